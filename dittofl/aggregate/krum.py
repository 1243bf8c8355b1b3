"""Krum and multi-Krum."""

from dataclasses import dataclass

from torch import Tensor

from dittofl.aggregate import chain
from dittofl.aggregate.cohort import Cohort, on_report
from dittofl.aggregate.distances import squares
from dittofl.aggregate.mean import mean
from dittofl.aggregate.ranks import ascending, assumed
from dittofl.errors import whole
from dittofl.types import Aggregator


def scores(apart: Tensor, f: int) -> Tensor:
    """Σ ‖Δ_i − Δ_j‖² over the max(m − f − 2, 0) others j that are nearest to i, [m], from all of them [m, m]."""
    near, away = max(len(apart) - f - 2, 0), apart.clone().fill_diagonal_(-1)  # first in order, and left out
    return away.sort(1).values[:, 1 : near + 1].sum(1)


@dataclass(frozen=True, kw_only=True)
class Krum:
    """δ = Δ_i*,  i* = argmin_i Σ_{j near i} ‖Δ_i − Δ_j‖²,  the sum over the m − f − 2 rows that are nearest to i.

    Blanchard, El Mhamdi, Guerraoui, Stainer 2017. f is `f`, or ⌊`ratio` m⌋. Proven for m ≥ 2f + 3: the nearer the m − f
    benign rows are to each other, the nearer δ is to their mean. Outside of it a run goes on and records so; without
    neighbours, m ≤ f + 2, every score is 0. Ties go to the earliest row. Distances neither overflow nor lose their
    digits far from 0 (`squares`).

    >>> import torch
    >>> from dittofl import Report
    >>> rows = torch.tensor([[9.0], [1.0], [1.5], [0.0], [1.125]])
    >>> Krum(f=1)(Report(rows, torch.ones(5)), ())[0].item()
    1.125
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
        return m >= 2 * assumed(self, m) + 3

    def left(self, m: int) -> int:
        return 1

    def reduce(self, cohort: Cohort) -> Cohort:
        return cohort.only(ascending(scores(squares(cohort), assumed(self, len(cohort))))[:1])


@dataclass(frozen=True, kw_only=True)
class MultiKrum:
    """δ = mean of the m − f rows i with the smallest scores  Σ_{j near i} ‖Δ_i − Δ_j‖²,  which are those of `Krum`.

    Blanchard et al. 2017, who leave the number of rows open: `keep`. m − f is what Li et al. 2021 take; f = 0 is then
    the mean. `keep=1` is Krum, and what is said there of f, of its guarantee and of ties holds here.

    >>> import torch
    >>> from dittofl import Report
    >>> rows = torch.tensor([[9.0], [1.0], [1.5], [0.0], [1.5]])
    >>> MultiKrum(f=1)(Report(rows, torch.ones(5)), ())[0].item()
    1.0
    """

    f: int | None = None
    ratio: float | None = None
    keep: int | None = None
    then: Aggregator = mean

    init, combine, __call__, guaranteed = chain.begin, chain.combine, on_report, chain.guaranteed

    def __post_init__(self) -> None:
        chain.check_f(self)
        if self.keep is not None:
            whole("MultiKrum", "keep", self.keep, 1)

    @property
    def losses(self) -> bool:
        return self.then.losses

    @property
    def least(self) -> int:
        return chain.more_than_f(self)

    def proven(self, m: int) -> bool:
        return m >= 2 * assumed(self, m) + 3

    def left(self, m: int) -> int:
        return m - assumed(self, m) if self.keep is None else min(self.keep, m)

    def reduce(self, cohort: Cohort) -> Cohort:
        m, f = len(cohort), assumed(self, len(cohort))
        if self.left(m) == m:
            return cohort
        return cohort.only(ascending(scores(squares(cohort), f))[: self.left(m)].sort().values)
