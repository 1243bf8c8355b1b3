"""Agnostic federated learning."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from dittofl.aggregate.cohort import Cohort, on_report
from dittofl.aggregate.weighting import Weights, average, equal, ones
from dittofl.errors import nonnegative
from dittofl.types import State, Vector


@dataclass(frozen=True, kw_only=True)
class AFL:
    """δ = Σ_k λ_k Δ_k / Σ_k λ_k,  λ ← Π(λ + γ F(w^t)): descent in w, ascent in λ on min_w max_λ Σ_k λ_k F_k(w).

    Mohri, Sivek, Suresh 2019, Stochastic-AFL: both steps are taken at the same (w^t, λ^t), Π projects onto the simplex,
    γ is `lr`, λ⁰ is uniform. γ = 0 is the mean. The server remembers λ of every device by its place.

    That algorithm sees all devices in each round. Where only some are drawn, the ascent moves weight among the drawn
    alone and keeps what they have together, and their average is taken with their own weights: the others' losses are
    not known, and weights of 1/K would be steps of nearly nothing. With all drawn it is the paper's. Devices that have
    lost all weight come back only beside others that have some; a round with none that has leaves w. Reports without
    places count as devices 0, 1, …, in order. A device that forges its loss can have all the weight.

    >>> from dittofl import Report
    >>> rule, rows = AFL(lr=1.0), torch.tensor([[0.0], [4.0]])
    >>> report = Report(rows, torch.ones(2), loss=torch.tensor([1.0, 1.5]))
    >>> first, state = rule(report, rule.init(rows[0]))
    >>> first.item(), rule(report, state)[0].item()
    (2.0, 3.0)
    """

    lr: float
    losses: ClassVar[bool] = True

    combine, __call__ = average, on_report

    def __post_init__(self) -> None:
        nonnegative("AFL", "lr", self.lr)

    def init(self, w0: Vector) -> Tensor:
        return torch.ones(0, dtype=torch.float64)  # grows with the places seen; λ is kept up to a factor

    def weigh(self, cohort: Cohort, state: Tensor) -> tuple[Weights, State]:
        place = cohort.place
        lam = pad(state, (0, max(0, int(place.max()) + 1 - len(state))), value=1.0)
        mass = lam[place].sum()
        if not bool(mass > 0):
            return Weights(equal(cohort), 0 * ones(cohort)), lam
        share = lam[place] / mass
        return Weights(share, ones(cohort)), lam.index_copy(0, place, mass * projected(share + self.lr * cohort.loss))


def projected(x: Tensor) -> Tensor:
    """The point of the simplex {λ ≥ 0, Σ λ = 1} nearest to x.

    >>> projected(torch.tensor([0.5, 1.0, -3.0])).tolist()
    [0.25, 0.75, 0.0]
    """
    # What is 1 below the largest is 0 in the end; cut there, so that forged losses round nothing off.
    x = (x - x.max()).clamp(min=-1)
    down = x.sort(descending=True).values
    over = (down.cumsum(0) - 1) / torch.arange(1, len(x) + 1)
    return (x - over[int((down > over).sum()) - 1]).clamp(min=0)
