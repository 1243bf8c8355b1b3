"""Which rows come first, and how many are f."""

from fractions import Fraction
from typing import Protocol

import torch
from torch import Tensor

from dittofl.errors import finite, require, short, whole

SAME = 1e-12  # of the larger one: what is as close is a tie, however it was rounded


class Assuming(Protocol):
    """A rule for at most f malicious rows among those it gets."""

    @property
    def f(self) -> int | None: ...
    @property
    def ratio(self) -> float | None: ...


def check(self: Assuming) -> None:
    """Refuses anything but one of f and ratio."""
    name = type(self).__name__
    require(
        (self.f is None) != (self.ratio is None),
        f"{name} needs either f= or ratio=, got f={short(self.f)} and ratio={short(self.ratio)}: give one",
    )
    if self.f is not None:
        whole(name, "f", self.f, 0)
    else:
        require(
            finite(self.ratio) and 0 <= float(self.ratio or 0) < 1,
            f"{name} needs 0 ≤ ratio < 1, got ratio={short(self.ratio)}",
        )


def assumed(self: Assuming, m: int) -> int:
    """f, or ⌊ratio m⌋ with the ratio read as the decimal it was written as; at most m − 1, so that a row is left.

    >>> from types import SimpleNamespace as Of
    >>> [assumed(Of(f=None, ratio=0.29), 100), assumed(Of(f=3, ratio=None), 2)]
    [29, 1]
    """
    f = self.f if self.f is not None else int(Fraction(str(float(self.ratio or 0))) * m)
    return max(0, min(int(f), m - 1))


def ascending(values: Tensor) -> Tensor:
    """The order of some numbers ≥ 0, those equal up to rounding as they came.

    >>> ascending(torch.tensor([3.0, 1.0 + 1e-15, 1.0], dtype=torch.float64)).tolist()
    [1, 2, 0]
    """
    order = values.argsort(stable=True)
    inorder = values[order]
    # inf is as large as inf, and a step up from inf would be NaN.
    steps = (inorder[1:] > inorder[:-1] * (1 + SAME)).long().cumsum(0)
    level = torch.zeros_like(order)
    level[order[1:]] = steps
    return level.argsort(stable=True)


def median(values: Tensor) -> float:
    """The middle number, or the mean of the two in the middle.

    >>> median(torch.tensor([3.0, 1.0, 8.0, 2.0]))
    2.5
    """
    up = values.sort().values
    return float(up[(len(up) - 1) // 2] / 2 + up[len(up) // 2] / 2)
