"""Rows mixed with others before a defence sees them: nearest-neighbour mixing and bucketing."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dittofl.aggregate import chain
from dittofl.aggregate.cohort import Cohort, on_report, passed
from dittofl.aggregate.distances import squares
from dittofl.aggregate.mean import mean
from dittofl.aggregate.ranks import ascending, assumed
from dittofl.errors import whole
from dittofl.seeds import Purpose, keys
from dittofl.types import Aggregator, Report, State, Vector


def mixed(cohort: Cohort, W: Tensor, place: Tensor | None) -> Cohort:
    """W Δ, and losses and sizes alike: whoever weighs a mixture weighs it as what it is made of."""
    whole, rows = cohort.whole, cohort.whole.delta.new_empty(len(W), cohort.P)
    on_device = W.to(rows.device)
    for at, block in cohort.blocks(torch.float64):  # not as one product of Δ's own type, which may be rounded to TF32
        rows[:, at] = on_device @ block
    loss = None if whole.loss is None else (W @ cohort.loss).to(whole.loss)
    size = (W @ cohort.size).to(rows.device)
    return Cohort.of(Report(rows, size, loss, place=place))


@dataclass(frozen=True, kw_only=True)
class NearestNeighbourMixing:
    """Δ_i ← mean of the m − f rows nearest to Δ_i, itself among them,  then `then`.

    Allouah, Farhadkhani, Guerraoui, Gupta, Pinot, Stephan 2023. f is `f`, or ⌊`ratio` m⌋, and should be that of the
    defence behind it: mixed rows are as close to each other as f < m/2 allows, however much benign devices differ.
    f = 0 makes every row the mean. Ties go to the earliest row. Losses and sizes are mixed alike.

    >>> from dittofl import Krum, Report
    >>> rule = NearestNeighbourMixing(f=1, then=Krum(f=1))
    >>> rule(Report(torch.tensor([[0.0], [0.5], [1.0], [1.5], [90.0]]), torch.ones(5)), ())[0].item()
    0.75
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
        return max(2 * (self.f or 0) + 1, chain.least(self.then))

    def proven(self, m: int) -> bool:
        return 2 * assumed(self, m) < m

    def left(self, m: int) -> int:
        return m

    def reduce(self, cohort: Cohort) -> Cohort:
        m = len(cohort)
        near, apart = m - assumed(self, m), squares(cohort).fill_diagonal_(-1)  # itself is the nearest
        W = torch.zeros(m, m, dtype=torch.float64)
        for i in range(m):
            W[i, ascending(apart[i])[:near]] = 1 / near
        return mixed(cohort, W, cohort.place)


class Round(NamedTuple):
    """What bucketing remembers."""

    t: Tensor
    then: State


@dataclass(frozen=True, kw_only=True)
class Bucketing:
    """Δ_b ← mean of the rows in bucket b,  ⌈m/s⌉ buckets of `size` s drawn anew each round,  then `then`.

    Karimireddy, He, Jaggi 2022. Means of s rows differ less than rows do, by √s; f malicious rows are in f buckets at
    most, so that the f of the defence behind it stays, of fewer rows. s = 1 is `then` alone, s ≥ m the mean. Drawn from
    `seed`, by round and by the devices' places; without places by the order of rows. Losses and sizes are averaged
    alike; a mean has no place.

    >>> from dittofl import Median, Report
    >>> rule, rows = Bucketing(size=2, then=Median()), torch.tensor([[1.0], [1.0], [1.0], [1.0], [9.0], [1.0]])
    >>> rule(Report(rows, torch.ones(6)), rule.init(rows[0]))[0].item()
    1.0
    """

    size: int
    then: Aggregator = mean
    seed: int = 0

    __call__ = on_report

    def __post_init__(self) -> None:
        chain.check(self)
        whole("Bucketing", "size", self.size, 1)
        whole("Bucketing", "seed", self.seed, 0)

    @property
    def losses(self) -> bool:
        return self.then.losses

    @property
    def least(self) -> int:
        return (chain.least(self.then) - 1) * self.size + 1

    def guaranteed(self, m: int) -> bool:
        return chain.vouched(self.then, -(-m // self.size))

    def init(self, w0: Vector) -> Round:
        return Round(torch.zeros((), dtype=torch.int64), self.then.init(w0))

    def combine(self, cohort: Cohort, state: Round) -> tuple[Vector, State]:
        order = np.argsort(keys(self.seed, Purpose.BUCKETS, int(state.t), cohort.place.numpy()), kind="stable")
        buckets = torch.from_numpy(order).split(self.size)
        W = torch.zeros(len(buckets), len(cohort), dtype=torch.float64)
        for b, rows in enumerate(buckets):
            W[b, rows] = 1 / len(rows)
        delta, then = passed(self.then, mixed(cohort, W, None), state.then)
        return delta, Round(state.t + 1, then)
