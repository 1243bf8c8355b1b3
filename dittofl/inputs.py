"""What a module is fed: one tensor, a tuple of them (positional arguments) or a dict (keyword arguments)."""

from collections.abc import Callable, Sequence

from torch import Tensor

LINE = 64  # bytes

Inputs = Tensor | tuple[Tensor, ...] | dict[str, Tensor]


def each(x: Inputs, change: Callable[[Tensor], Tensor]) -> Inputs:
    """The same structure with every tensor changed.

    >>> import torch
    >>> each((torch.zeros(1), torch.ones(1)), lambda part: part + 1)
    (tensor([1.]), tensor([2.]))
    """
    if isinstance(x, tuple):
        return tuple(change(part) for part in x)
    if isinstance(x, dict):
        return {name: change(part) for name, part in x.items()}
    return change(x)


def aligned(part: Tensor) -> Tensor:
    """The same numbers where a cache line begins: matrix products round by where their factors lie in memory, and so
    would a device's model by which devices were fetched with it."""
    return part if part.data_ptr() % LINE == 0 else part.clone()


def parts(x: Inputs) -> tuple[Tensor, ...]:
    """All tensors of an input, in order."""
    if isinstance(x, tuple):
        return x
    return tuple(x.values()) if isinstance(x, dict) else (x,)


def rebuilt(like: Inputs, tensors: Sequence[Tensor]) -> Inputs:
    """An input of the same structure that holds these tensors."""
    if isinstance(like, dict):
        return dict(zip(like, tensors, strict=True))
    return tuple(tensors) if isinstance(like, tuple) else tensors[0]
