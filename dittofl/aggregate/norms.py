"""Defences by length: clipping and k-norm."""

from dataclasses import dataclass

import torch

from dittofl.aggregate import chain
from dittofl.aggregate.cohort import Cohort, on_report
from dittofl.aggregate.mean import mean
from dittofl.aggregate.ranks import ascending, assumed, median
from dittofl.errors import nonnegative
from dittofl.types import Aggregator


@dataclass(frozen=True, kw_only=True)
class Clip:
    """Δ_k ← Δ_k min(1, τ / ‖Δ_k‖),  then their mean: τ = `norm`, or without it the median of the cohort's norms.

    Sun, Kairouz, Suresh, McMahan 2019; with the median, the paper's `clipping`. Longer rows are scaled down to τ, the
    others stay, none is dropped. So ‖δ‖ ≤ τ with weights of sum 1 behind it, and each row accounts for p_k τ at most,
    whatever it is. The median is not above the longest benign row while malicious ones are fewer than half.

    >>> import torch
    >>> from dittofl import Report
    >>> rows = torch.tensor([[1.0], [3.0], [100.0]])
    >>> report = Report(rows, torch.ones(3))
    >>> [round(rule(report, ())[0].item(), 2) for rule in (Clip(norm=2.0), Clip())]
    [1.67, 2.33]
    """

    norm: float | None = None
    then: Aggregator = mean

    init, combine, __call__ = chain.begin, chain.combine, on_report

    def __post_init__(self) -> None:
        chain.check(self)
        if self.norm is not None:
            nonnegative("Clip", "norm", self.norm)

    @property
    def losses(self) -> bool:
        return self.then.losses

    @property
    def least(self) -> int:
        return chain.least(self.then)

    def guaranteed(self, m: int) -> bool:
        return chain.vouched(self.then, m)

    def reduce(self, cohort: Cohort) -> Cohort:
        norms = cohort.norms(rough=True)
        most = median(norms) if self.norm is None else self.norm
        return cohort.scaled(torch.where(norms > most, most / norms, 1.0))


@dataclass(frozen=True, kw_only=True)
class KNorm:
    """δ = mean of all rows but the f longest,  by ‖Δ_k‖.

    Li et al. 2021's `k-norm`: k is f, or ⌊`ratio` m⌋, the number of malicious devices that the server expects. f = 0 is
    the mean. With f of m rows malicious, δ is a mean of rows no longer than the longest benign one. Of equally long
    rows the earliest stay.

    >>> import torch
    >>> from dittofl import Report
    >>> KNorm(f=1)(Report(torch.tensor([[-9.0], [1.0], [2.0]]), torch.ones(3)), ())[0].item()
    1.5
    """

    f: int | None = None
    ratio: float | None = None
    then: Aggregator = mean

    init, combine, __call__, guaranteed = chain.begin, chain.combine, on_report, chain.guaranteed

    def __post_init__(self) -> None:
        chain.check_f(self)

    @property
    def losses(self) -> bool:
        return self.then.losses

    @property
    def least(self) -> int:
        return chain.more_than_f(self)

    def proven(self, m: int) -> bool:
        return self.f is None or self.f < m

    def left(self, m: int) -> int:
        return m - assumed(self, m)

    def reduce(self, cohort: Cohort) -> Cohort:
        left = self.left(len(cohort))
        return cohort if left == len(cohort) else cohort.only(ascending(cohort.norms())[:left].sort().values)
