"""The defence by loss."""

from dataclasses import dataclass
from typing import ClassVar

from dittofl.aggregate import chain
from dittofl.aggregate.cohort import Cohort, on_report
from dittofl.aggregate.mean import mean
from dittofl.aggregate.ranks import assumed
from dittofl.types import Aggregator


@dataclass(frozen=True, kw_only=True)
class KLoss:
    """δ = Δ_i,  i the device with the (f+1)-th largest F_i(w^t): one update alone.

    Li et al. 2021's `k-loss`, as its appendix has it (its main text says the k-th): k is f, or ⌊`ratio` m⌋, the number
    of malicious devices that the server expects. F_i is the loss on the whole train part, on poisoned labels too; a run
    computes it only for aggregators that need it. f = 0 is the device with the largest loss. Ties go to the earliest
    row. A device that forges its loss chooses whether its row is taken.

    >>> import torch
    >>> from dittofl import Report
    >>> report = Report(torch.tensor([[1.0], [2.0], [3.0]]), torch.ones(3), loss=torch.tensor([0.5, 9.0, 0.7]))
    >>> KLoss(f=1)(report, ())[0].item()
    3.0
    """

    f: int | None = None
    ratio: float | None = None
    then: Aggregator = mean
    losses: ClassVar[bool] = True

    init, combine, __call__, guaranteed = chain.begin, chain.combine, on_report, chain.guaranteed

    def __post_init__(self) -> None:
        chain.check_f(self)

    @property
    def least(self) -> int:
        return chain.more_than_f(self)

    def proven(self, m: int) -> bool:
        return self.f is None or self.f < m

    def left(self, m: int) -> int:
        return 1

    def reduce(self, cohort: Cohort) -> Cohort:
        f = assumed(self, len(cohort))
        return cohort.only(cohort.loss.argsort(descending=True, stable=True)[f : f + 1])
