"""Closeness to w measured by the Fisher information."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dittofl.errors import nonnegative, whole
from dittofl.optimiser import Chain, Rate, Walk, begin, descend, rate
from dittofl.solver import path
from dittofl.types import Ask, Down, Row, Steps, Vector


class Weighted(NamedTuple):
    walk: Walk
    fisher: Tensor  # diagonal F, [P]


@dataclass(frozen=True, kw_only=True)
class EWC:
    """v_k ← v_k − η (∇F_k(v_k) + λ F ⊙ (v_k − w)),   F = (1/B) Σ_b ∇F_k(w; batch b)²  entry by entry.

    Elastic weight consolidation (Kirkpatrick et al. 2017; Yu et al. 2020) as Li et al. 2021 use it. F is the empirical
    Fisher diagonal from the squared gradients of `fisher` minibatches at w, which come before the steps: 1 in the
    paper, 4 in the authors' program. In `final=` it is the paper's fine-tuning from w^T; in `personal=` it is Ditto
    with a Fisher-weighted proximal term. F = 1 is Ditto, λ = 0 `Local`.

    >>> EWC(lam=10.0, lr=0.1, steps=5).asks(5) == (Ask(),) * 6
    True
    """

    lam: float
    lr: Rate
    steps: Steps = 1
    through: Chain = ()
    fisher: int = 1

    init, model = path.keep_a_model, path.serve_row

    def __post_init__(self) -> None:
        nonnegative("EWC", "lam", self.lam)
        path.check(self)
        whole("EWC", "fisher", self.fisher, 1)

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return (Ask(),) * (self.fisher + steps)

    def start(self, row: Row, down: Down) -> Weighted:
        return Weighted(begin(self.through, row), torch.zeros_like(row))

    def points(self, s: Weighted, down: Down, i: int) -> tuple[Vector, ...]:
        return (down.w if i < self.fisher else s.walk.at,)

    def step(self, s: Weighted, down: Down, i: int, f: Tensor, g: Tensor) -> Weighted:
        if i < self.fisher:
            return s._replace(fisher=s.fisher + g[0] ** 2 / self.fisher)
        d = g[0] + self.lam * s.fisher * (s.walk.at - down.w)
        return s._replace(walk=descend(s.walk, d, rate(self.lr, down.t), self.through))

    def keep(self, s: Weighted, row: Row, down: Down) -> Row:
        return s.walk.at
