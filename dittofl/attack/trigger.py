"""Triggers: what a backdoor changes in a sample."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dittofl.errors import InputError, finite, require, short, whole
from dittofl.inputs import Inputs


@dataclass(frozen=True, kw_only=True)
class Patch:
    """x[…, i, j] ← `value` on a square of `size` pixels, its first at (`row`, `column`) of x [n, …, height, width].

    A pixel trigger (Gu et al. 2017), in all channels; rows and columns below 0 count from the end. `value` is on the
    data's scale, as images may be bytes or normalised.

    >>> Patch(value=9.0, size=1)(torch.zeros(1, 2, 2)).tolist()
    [[[0.0, 0.0], [0.0, 9.0]]]
    """

    value: float
    size: int = 3
    row: int | None = None  # None: the last square
    column: int | None = None

    def __post_init__(self) -> None:
        require(finite(self.value), f"Patch needs a finite value, got value={short(self.value)}")
        whole("Patch", "size", self.size, 1)

    def __call__(self, x: Inputs) -> Tensor:
        alone, wanted = one(x), self.size
        require(
            alone.dim() > 2, f"a Patch needs images [n, …, height, width], got x {tuple(alone.shape)}: use Features"
        )
        for name, first, n in (("row", self.row, alone.shape[-2]), ("column", self.column, alone.shape[-1])):
            inside = wanted <= n and (first is None or -n <= first <= -wanted or 0 <= first <= n - wanted)
            require(inside, f"a Patch of {wanted} pixels at {name}={first} leaves images of {n}: move or shrink it")
        rows, columns = (
            torch.arange(wanted) + (-wanted if first is None else first) for first in (self.row, self.column)
        )
        return stamped(alone, (..., rows[:, None], columns), self.value)


@dataclass(frozen=True, kw_only=True)
class Features:
    """x[:, j] ← `value` for the features j in `columns` of x [n, d]: a trigger for tables and tokens.

    >>> Features(columns=(0, 2), value=5)(torch.zeros(1, 3, dtype=torch.int64))
    tensor([[5, 0, 5]])
    """

    columns: tuple[int, ...]
    value: float

    def __post_init__(self) -> None:
        require(finite(self.value), f"Features needs a finite value, got value={short(self.value)}")
        given = isinstance(self.columns, tuple) and len(self.columns) > 0
        require(given, f"Features needs columns=(0, …), a tuple of places, got columns={short(self.columns)}")
        for column in self.columns:
            whole("Features", "columns", column, 0)

    def __call__(self, x: Inputs) -> Tensor:
        alone = one(x)
        inside = alone.dim() > 1 and max(self.columns) < alone.shape[1]
        require(inside, f"Features has columns={self.columns}, but x is {tuple(alone.shape)}: name columns that exist")
        return stamped(alone, (slice(None), torch.tensor(self.columns)), self.value)


def one(x: Inputs) -> Tensor:
    """x where it is one tensor."""
    if not isinstance(x, Tensor):
        raise InputError(f"x has {len(x)} members: give trigger= a function that changes the right one")
    return x


def stamped(x: Tensor, place: object, value: float) -> Tensor:
    """A copy with a value in a place."""
    held = torch.tensor(value).to(x.dtype)
    fits = x.is_floating_point() or float(held) == value
    require(fits, f"the trigger's value {value} is none of x, which is {x.dtype}: give it on the data's scale")
    x = x.clone()
    x[place] = held  # type: ignore[index]
    return x
