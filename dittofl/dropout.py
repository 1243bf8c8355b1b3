"""Dropout whose masks come from our streams, on every engine the same.

    kept(e) = [bits₂₄(mix(key + γ·(call, e))) ≥ 2²⁴ p],    out = x · kept / (1 − p)

for element (or channel) e of the call-th dropout of a forward pass; the key is a function of seed, device and
minibatch. The module stays as the user wrote it: a mode of torch's function protocol answers its dropout calls, so
functional dropout works too and `vmap` maps over the key.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from dittofl.seeds import FACTORS, GAMMA, SHIFTS

# Which dimensions share a mask entry: none, or all behind the channels.
DROPOUTS: dict[Callable[..., Any], bool] = {
    F.dropout: False,
    F.dropout1d: True,
    F.dropout2d: True,
    F.dropout3d: True,
}


def signed(constant: int) -> int:
    """A 64-bit constant as torch's int64 holds it."""
    return constant - 2**64 if constant >= 2**63 else constant


def mix(z: Tensor) -> Tensor:
    """`seeds.mix` on int64 tensors, whose products wrap and whose shifts are made logical."""
    for shift, factor in zip(SHIFTS[:2], FACTORS, strict=True):
        z = (z ^ _shifted(z, shift)) * signed(factor)
    return z ^ _shifted(z, SHIFTS[2])


def _shifted(z: Tensor, bits: int) -> Tensor:
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def kept(key: Tensor, call: int, count: int, p: float) -> Tensor:
    """Which of `count` elements the call-th dropout keeps."""
    element = torch.arange(count, device=key.device)
    bits = mix(mix(key + signed(GAMMA * (call + 1) % 2**64)) + element * signed(GAMMA))
    return ((bits >> 40) & (2**24 - 1)) >= round(p * 2**24)


class Masks(TorchFunctionMode):
    """Within it, the dropout calls of one forward pass take their masks from `key`, a 0-d int64 tensor."""

    def __init__(self, key: Tensor) -> None:
        # TorchFunctionMode.__init__ has nothing to set up.
        self.key = key
        self.call = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        if func in DROPOUTS:
            return self.drop(DROPOUTS[func], *args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))

    def drop(self, channels: bool, x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        """x · kept / (1 − p); an in-place request is answered out of place, which gives the same values."""
        if not training or p == 0:
            return x
        shape = (*x.shape[:2], *[1] * (x.dim() - 2)) if channels else x.shape
        mask = kept(self.key, self.call, torch.Size(shape).numel(), p).view(shape)
        self.call += 1
        return x * mask / (1 - p) if p < 1 else x * 0


class Watch(TorchFunctionMode):
    """Watches one forward pass: whether it drops, and how many elements it makes. Its dropout draws nothing."""

    def __init__(self) -> None:
        self.drops = False
        self.elements = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        if func in DROPOUTS:
            self.drops |= _active(*args, **(kwargs or {}))
            return args[0]
        out = func(*args, **(kwargs or {}))
        self.elements += out.numel() if isinstance(out, Tensor) else 0
        return out


def _active(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> bool:
    """Whether a dropout call, by its arguments, drops anything."""
    return training and p > 0
