"""The objective of q-FFL."""

from dataclasses import dataclass

from dittofl.aggregate.cohort import Cohort, on_report
from dittofl.aggregate.weighting import Weights, average, equal, nothing, ones
from dittofl.errors import nonnegative, positive
from dittofl.types import State

LEAST = 1e-10  # F_k from here on, as 0^(q − 1) is infinite for q < 1


@dataclass(frozen=True, kw_only=True)
class QFFL:
    """δ = Σ_k F_k^q Δ_k / Σ_k (F_k^q + q F_k^(q−1) ‖Δ_k‖² / η): q-FedAvg, which aims at Σ_k F_k(w)^(q+1) / (q + 1).

    Li, Sanjabi, Beirami, Smith 2020, Algorithm 2, with L = 1/η: Δ_k there is L (w^t − w_k), the server's step is
    L Σ_k F_k^q (w^t − w_k) over the sum of q F_k^(q−1) ‖L (w^t − w_k)‖² + L F_k^q. `lr` is η, that of the devices; with
    several local steps η times their number is as good a guess of 1/L. q = 0 is the mean, q → ∞ minimises the largest
    loss. Losses below 1e-10 count as that. A row of norm R moves w by no more than η F_k / (q R) for large R; a forged
    loss can have all the weight.

    >>> import torch
    >>> from dittofl import Report
    >>> report = Report(torch.tensor([[0.0], [4.0]]), torch.ones(2), loss=torch.tensor([1.0, 3.0]))
    >>> QFFL(q=0, lr=0.1)(report, ())[0].item(), QFFL(q=1, lr=16.0)(report, ())[0].item()
    (2.0, 2.4000000953674316)
    """

    q: float
    lr: float

    init, combine, __call__ = nothing, average, on_report

    def __post_init__(self) -> None:
        nonnegative("QFFL", "q", self.q)
        positive("QFFL", "lr", self.lr)

    @property
    def losses(self) -> bool:
        return self.q != 0

    def weigh(self, cohort: Cohort, state: State) -> tuple[Weights, State]:
        if self.q == 0:
            return Weights(equal(cohort), ones(cohort)), state
        loss = cohort.loss.clamp(min=LEAST)
        worst, share = loss.max(), loss / loss.max()  # powers of shares do not overflow
        p = share**self.q
        bound = self.q * share ** (self.q - 1) * cohort.norms(rough=True).square() / (self.lr * worst)
        return Weights(p / p.sum(), ones(cohort) * p.sum() / (p + bound).sum()), state
