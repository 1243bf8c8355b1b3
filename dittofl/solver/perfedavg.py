"""A global model that is good after one step of a device's own."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dittofl.errors import flag, positive
from dittofl.optimiser import Chain, Rate, Walk, begin, descend, rate
from dittofl.solver import path
from dittofl.types import Ask, Down, Row, Sent, Steps, Vector


class Adapted(NamedTuple):
    walk: Walk  # w_k
    u: Tensor  # w_k after the inner step
    g: Tensor  # ∇F_k(u)


@dataclass(frozen=True, kw_only=True)
class PerFedAvg:
    """w_k ← w_k − β (I − α ∇²F_k(w_k)) ∇F_k(u),   u = w_k − α ∇F_k(w_k);   Δ_k = w_k − w^t is sent.

    Fallah et al. 2020, Algorithm 1 (HF): β is `lr`, α `inner`, each of the three derivatives on a minibatch of its own,
    and the Hessian's product by a central difference, ∇²F_k g ≈ (∇F_k(w_k + δ g) − ∇F_k(w_k − δ g)) / 2δ, exact on
    quadratics. `first_order` leaves it out (FO). α → 0 is `SGD`. The device serves w^t: fine-tune it in `final=`.

    >>> len(PerFedAvg(lr=0.01, inner=0.1).asks(2)), len(PerFedAvg(lr=0.01, inner=0.1, first_order=True).asks(2))
    (6, 4)
    """

    lr: Rate
    inner: float
    steps: Steps = 1
    through: Chain = ()
    first_order: bool = False
    delta: float = 1e-3

    init, keep, model = path.keep_nothing, path.leave_row, path.serve_w

    def __post_init__(self) -> None:
        path.check(self)
        positive("PerFedAvg", "inner", self.inner)
        positive("PerFedAvg", "delta", self.delta)
        flag("PerFedAvg", "first_order", self.first_order)

    @property
    def _phases(self) -> int:
        return 2 if self.first_order else 3

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return (Ask(),) * (self._phases * steps)

    def start(self, row: Row, down: Down) -> Adapted:
        return Adapted(begin(self.through, down.w), down.w, torch.zeros_like(down.w))

    def points(self, s: Adapted, down: Down, i: int) -> tuple[Vector, ...]:
        w, nudge = s.walk.at, self.delta * s.g
        return ((w,), (s.u,), (w + nudge, w - nudge))[i % self._phases]

    def step(self, s: Adapted, down: Down, i: int, f: Tensor, g: Tensor) -> Adapted:
        phase = i % self._phases
        if phase == 0:
            return s._replace(u=s.walk.at - self.inner * g[0])
        if phase == 1:
            return s._replace(g=g[0]) if not self.first_order else self._moved(s, g[0], down)
        return self._moved(s, s.g - self.inner * (g[0] - g[1]) / (2 * self.delta), down)

    def _moved(self, s: Adapted, d: Vector, down: Down) -> Adapted:
        return s._replace(walk=descend(s.walk, d, rate(self.lr, down.t), self.through))

    def send(self, s: Adapted, row: Row, down: Down) -> Sent:
        return Sent(s.walk.at - down.w)
