"""The mean of the cohort's updates."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from dittofl.aggregate.cohort import Cohort, on_report
from dittofl.aggregate.weighting import Weights, average, equal, nothing, ones, shares
from dittofl.errors import flag
from dittofl.types import Report, State, Vector


@dataclass(frozen=True, kw_only=True)
class Mean:
    """δ = (1/m) Σ_k Δ_k, or Σ_k n_k Δ_k / Σ_k n_k with `by_size`.

    Li et al. 2021, Algorithm 2 line 8. Devices drawn by size and averaged plainly, or drawn uniformly and averaged by
    size, both aim at Σ_k (n_k/N) F_k; drawn uniformly and averaged plainly, at the mean of the F_k. One malicious row
    moves it anywhere.

    >>> import torch
    >>> report = Report(delta=torch.tensor([[0.0], [3.0]]), size=torch.tensor([2, 1]))
    >>> Mean()(report, ())[0].item(), Mean(by_size=True)(report, ())[0].item()
    (1.5, 1.0)
    """

    by_size: bool = False
    losses: ClassVar[bool] = False

    init, combine, __call__ = nothing, average, on_report

    def __post_init__(self) -> None:
        flag("Mean", "by_size", self.by_size)

    def weigh(self, cohort: Cohort, state: State) -> tuple[Weights, State]:
        return Weights(shares(cohort.size) if self.by_size else equal(cohort), ones(cohort)), state


@dataclass(frozen=True)
class Stateless:
    """A plain function of a report as an aggregator without memory: δ = rule(report)."""

    rule: Callable[[Report], Vector]
    losses: ClassVar[bool] = False

    init = nothing

    def __call__(self, report: Report, state: State) -> tuple[Vector, State]:
        return self.rule(report), state


mean = Mean()
