"""A mixture of a local and the global model."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dittofl.errors import finite, flag, require, short
from dittofl.optimiser import Chain, Rate, Walk, begin, descend, rate
from dittofl.solver import path
from dittofl.types import Down, Row, Steps, Vector


class Mixed(NamedTuple):
    v: Walk
    w: Walk  # the device's own copy of w, as FedAvg moves it
    alpha: Tensor


@dataclass(frozen=True, kw_only=True)
class APFL:
    """v_k ← v_k − η α ∇F_k(v̄_k),  w_k ← w_k − η ∇F_k(w_k),  v̄_k = α v_k + (1 − α) w_k;  served: α v_k + (1 − α) w^t.

    Deng et al. 2020, Algorithm 1. w_k is what `SGD` with the same lr and steps computes beside it: that one sends. α =
    1 is `Local`, α = 0 serves w^t. With `adaptive` each device keeps an α of its own, begun at `alpha`, and moves it at
    the first step of a visit (their eq. 10), within [0, 1]:  α_k ← α_k − η ⟨v_k − w_k, ∇F_k(v̄_k)⟩.

    >>> APFL(lr=0.1).alpha
    0.5
    """

    lr: Rate
    steps: Steps = 1
    through: Chain = ()
    alpha: float = 0.5
    adaptive: bool = False

    asks = path.one_gradient_a_step

    def __post_init__(self) -> None:
        path.check(self)
        require(finite(self.alpha) and 0 <= self.alpha <= 1, f"APFL needs 0 ≤ alpha ≤ 1, got alpha={short(self.alpha)}")
        flag("APFL", "adaptive", self.adaptive)

    def init(self, w0: Vector) -> Row:
        return torch.cat([w0, w0.new_tensor([self.alpha])]) if self.adaptive else w0

    def start(self, row: Row, down: Down) -> Mixed:
        v, alpha = self._parts(row)
        return Mixed(begin(self.through, v), begin(self.through, down.w), alpha)

    def points(self, s: Mixed, down: Down, i: int) -> tuple[Vector, ...]:
        return s.alpha * s.v.at + (1 - s.alpha) * s.w.at, s.w.at

    def step(self, s: Mixed, down: Down, i: int, f: Tensor, g: Tensor) -> Mixed:
        eta = rate(self.lr, down.t)
        alpha = s.alpha
        if self.adaptive and i == 0:
            alpha = (alpha - eta * torch.dot(s.v.at - s.w.at, g[0])).clamp(0, 1)
        v = descend(s.v, s.alpha * g[0], eta, self.through)
        return Mixed(v, descend(s.w, g[1], eta, self.through), alpha)

    def keep(self, s: Mixed, row: Row, down: Down) -> Row:
        return torch.cat([s.v.at, s.alpha[None]]) if self.adaptive else s.v.at

    def model(self, row: Row, down: Down) -> Vector:
        v, alpha = self._parts(row)
        return alpha * v + (1 - alpha) * down.w

    def _parts(self, row: Row) -> tuple[Vector, Tensor]:
        return (row[:-1], row[-1]) if self.adaptive else (row, torch.full_like(row[0], self.alpha))
