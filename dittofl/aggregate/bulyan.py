"""Bulyan."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dittofl.aggregate import ranks, weighting
from dittofl.aggregate.cohort import Cohort, on_report
from dittofl.aggregate.distances import squares
from dittofl.aggregate.krum import scores
from dittofl.aggregate.mean import mean
from dittofl.aggregate.median import averaged, balanced
from dittofl.aggregate.order import weighted
from dittofl.aggregate.weighting import Weighting
from dittofl.types import State, Vector


@dataclass(frozen=True, kw_only=True)
class Bulyan:
    """δ_j = mean of the m − 4f values nearest to the median of Δ_kj,  k among m − 2f rows that Krum takes one by one.

    El Mhamdi, Guerraoui, Rouault 2018, with Krum: the best row is set aside, and scores are taken anew among what is
    left. f is `f`, or ⌊`ratio` m⌋. Proven for m ≥ 4f + 3: each δ_j is then as near to a benign value as benign values
    are to each other. f = 0 is the mean. Rows of equal score, as the last choices often have, are taken in order; of
    two values as near to the median the smaller comes first. `by` is a fair objective: its weights, on the rows taken,
    make median and mean weighted ones, for rows c_k Δ_k.

    >>> from dittofl import Report
    >>> rows = torch.tensor([[1.0], [2.0], [3.0], [2.5], [1.5], [3.5], [90.0]])
    >>> Bulyan(f=1)(Report(rows, torch.ones(7)), ())[0].item()
    2.0
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
        return 4 * (self.f or 0) + 1

    def guaranteed(self, m: int) -> bool:
        return m >= 4 * ranks.assumed(self, m) + 3

    def combine(self, cohort: Cohort, state: State) -> tuple[Vector, State]:
        m, f = len(cohort), min(ranks.assumed(self, len(cohort)), (len(cohort) - 1) // 4)
        taken = cohort.only(one_by_one(squares(cohort), f, m - 2 * f))
        weights, state = self.by.weigh(taken, state)
        delta = cohort.whole.delta.new_empty(cohort.P)
        for at, values, p in weighted(taken.scaled(weights.c), weights.p):
            near = (values - balanced(values, p)[:, None]).abs().argsort(dim=1, stable=True)[:, : m - 4 * f]
            near = near.sort(1).values
            delta[at] = averaged(values.gather(1, near), p.gather(1, near))
        return delta, state


def one_by_one(apart: Tensor, f: int, many: int) -> Tensor:
    """The rows that Krum takes, the best of those left each time, in their own order."""
    left = torch.arange(len(apart))
    taken: list[int] = []
    for _ in range(many):
        best = int(ranks.ascending(scores(apart[left[:, None], left], f))[0])
        taken.append(int(left[best]))
        left = left[left != taken[-1]]
    return torch.tensor(sorted(taken))
