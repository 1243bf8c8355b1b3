"""The tilted objective of TERM."""

from dataclasses import dataclass

from dittofl.aggregate.cohort import Cohort, on_report
from dittofl.aggregate.weighting import Weights, average, equal, nothing, ones
from dittofl.errors import finite, require, short
from dittofl.types import State


@dataclass(frozen=True, kw_only=True)
class Tilt:
    """δ = Σ_k p_k Δ_k,  p_k ∝ exp(t F_k(w^t)): TERM, which aims at (1/t) log (1/m) Σ_k exp(t F_k(w)).

    Li, Beirami, Sanjabi, Smith 2021; the paper's fair baseline, with t = 1. F_k is the loss on the whole train part of
    device k. t = 0 is the mean; t → ∞ the device with the largest loss, as in AFL; t < 0 turns away from large losses.
    The largest exponent is subtracted first, so that none overflows. A device that forges its loss can have all the
    weight.

    >>> import torch
    >>> from dittofl import Report
    >>> report = Report(torch.tensor([[0.0], [4.0]]), torch.ones(2), loss=torch.tensor([0.0, 1.0]).log1p())
    >>> round(Tilt(t=1.0)(report, ())[0].item(), 3)
    2.667
    """

    t: float

    init, combine, __call__ = nothing, average, on_report

    def __post_init__(self) -> None:
        require(finite(self.t), f"Tilt needs a finite t, got t={short(self.t)}")

    @property
    def losses(self) -> bool:
        return self.t != 0

    def weigh(self, cohort: Cohort, state: State) -> tuple[Weights, State]:
        if self.t == 0:
            return Weights(equal(cohort), ones(cohort)), state
        loss = cohort.loss
        # The difference comes before the product: t times a forged loss may overflow, and ∞ − ∞ is no weight.
        p = (self.t * (loss - (loss.max() if self.t > 0 else loss.min()))).exp()
        return Weights(p / p.sum(), ones(cohort)), state
