"""Rules by coordinate: the median and the trimmed mean."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dittofl.aggregate import ranks, weighting
from dittofl.aggregate.cohort import Cohort, on_report
from dittofl.aggregate.mean import mean
from dittofl.aggregate.order import ordered, weighted
from dittofl.aggregate.weighting import Weighting, Weights
from dittofl.types import State, Vector

Middle = Callable[[list[Tensor]], Tensor]  # of rows in order
WeightedMiddle = Callable[[Tensor, Tensor], Tensor]  # of values [b, m] in order, and their weights


def by_coordinate(
    cohort: Cohort, weights: Weights, first: int, last: int, plain: Middle, uneven: WeightedMiddle
) -> Vector:
    """δ by blocks of columns, from the rows first … last of each column in order."""
    rows, p = cohort.scaled(weights.c), weights.p
    delta = cohort.whole.delta.new_empty(cohort.P)
    if bool((p == p[0]).all()):
        for at, middle in ordered(rows, first, last):
            delta[at] = plain(middle)
    else:
        for at, values, its in weighted(rows, p):
            delta[at] = uneven(values, its)
    return delta


@dataclass(frozen=True, kw_only=True)
class Median:
    """δ_j = median_k Δ_kj,  coordinate by coordinate; of an even number the mean of the two in the middle.

    Yin, Chen, Kannan, Bartlett 2018. While malicious rows are fewer than half, δ_j lies between the smallest and the
    largest benign Δ_kj. `by` is a fair objective whose weights make it a weighted median, for rows c_k Δ_k: δ_j is
    where the weights below and above are ½ at most. The bound then holds while the malicious rows' weights sum to less
    than ½, and weights by loss can be forged.

    >>> from dittofl import Report
    >>> rows = torch.tensor([[0.0, 5.0], [1.0, 1e30], [2.0, 7.0]])
    >>> Median()(Report(rows, torch.ones(3)), ())[0].tolist()
    [1.0, 7.0]
    """

    by: Weighting = mean

    init, __call__ = weighting.begin_by, on_report

    def __post_init__(self) -> None:
        weighting.check_by(self)

    @property
    def losses(self) -> bool:
        return self.by.losses

    def combine(self, cohort: Cohort, state: State) -> tuple[Vector, State]:
        weights, state = self.by.weigh(cohort, state)
        m = len(cohort)
        return by_coordinate(cohort, weights, (m - 1) // 2, m // 2, halfway, balanced), state


def halfway(middle: list[Tensor]) -> Tensor:
    """Halves are added, as a sum may overflow."""
    return middle[0] if len(middle) == 1 else middle[0] / 2 + middle[1] / 2


def balanced(values: Tensor, p: Tensor) -> Tensor:
    """The weighted median of each row; where the weights below one value are just ½, halfway to the next."""
    below = p.cumsum(1)
    half = below[:, -1:] / 2
    low = torch.searchsorted(below, half * (1 - ranks.SAME))
    high = torch.searchsorted(below, half * (1 + ranks.SAME), right=True)
    return (values.gather(1, low) / 2 + values.gather(1, high) / 2).squeeze(1)


@dataclass(frozen=True, kw_only=True)
class TrimmedMean:
    """δ_j = mean of Δ_kj without its f smallest and f largest,  coordinate by coordinate.

    Yin et al. 2018, f = ⌊βm⌋: f is `f`, or ⌊`ratio` m⌋. f = 0 is the mean; f = ⌊(m − 1)/2⌋, the most there is, is the
    median. With at most f malicious rows δ_j lies between the smallest and the largest benign Δ_kj. A larger f than m
    allows is the median, outside the guarantee. What is left is averaged, never "the sum less its extremes", which
    one value of 1e30 would wipe out. `by` is a fair objective: its weights average what is left of rows c_k Δ_k, which
    is within that bound whatever they are.

    >>> from dittofl import Report
    >>> rows = torch.tensor([[0.0], [1.0], [2.0], [1e30]])
    >>> TrimmedMean(f=1)(Report(rows, torch.ones(4)), ())[0].item()
    1.5
    """

    f: int | None = None
    ratio: float | None = None
    by: Weighting = mean

    init, __call__ = weighting.begin_by, on_report

    def __post_init__(self) -> None:
        ranks.check(self)
        weighting.check_by(self)

    @property
    def losses(self) -> bool:
        return self.by.losses

    @property
    def least(self) -> int:
        return 2 * (self.f or 0) + 1

    def guaranteed(self, m: int) -> bool:
        return m > 2 * ranks.assumed(self, m)

    def combine(self, cohort: Cohort, state: State) -> tuple[Vector, State]:
        weights, state = self.by.weigh(cohort, state)
        m = len(cohort)
        f = min(ranks.assumed(self, m), (m - 1) // 2)

        def uneven(values: Tensor, p: Tensor) -> Tensor:
            return averaged(values[:, f : m - f], p[:, f : m - f])

        return by_coordinate(cohort, weights, f, m - f - 1, within, uneven), state


def within(rows: list[Tensor]) -> Tensor:
    """The mean of rows in order, not even by rounding outside of them."""
    total = rows[0] / len(rows)
    for row in rows[1:]:
        total.add_(row, alpha=1 / len(rows))
    return total.clamp_(rows[0], rows[-1])


def averaged(values: Tensor, p: Tensor) -> Tensor:
    """The weighted mean of each row of values in order; the plain one where all that have weight are gone."""
    total = p.sum(1, keepdim=True)
    shares = torch.where(total > 0, p / total, 1 / values.shape[1])
    return (shares * values).sum(1).clamp(values[:, 0], values[:, -1])
