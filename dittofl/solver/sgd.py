"""FedAvg's local solver."""

from dataclasses import dataclass

from torch import Tensor

from dittofl.optimiser import Chain, Rate, Walk, descend, rate
from dittofl.solver import path
from dittofl.types import Down, Steps


@dataclass(frozen=True, kw_only=True)
class SGD:
    """w_k ← w_k − η ∇F_k(w_k), begun at w^t; Δ_k = w_k − w^t is sent.

    Li et al. 2021, Algorithm 2; McMahan et al. 2017. The device keeps nothing and serves w^t.

    >>> SGD(lr=0.1, steps=2)
    SGD(lr=0.1, steps=2, through=())
    """

    lr: Rate
    steps: Steps = 1
    through: Chain = ()

    init, asks, start, points = path.keep_nothing, path.one_gradient_a_step, path.begin_at_w, path.where_it_stands
    keep, send, model = path.leave_row, path.send_delta, path.serve_w

    def __post_init__(self) -> None:
        path.check(self)

    def step(self, s: Walk, down: Down, i: int, f: Tensor, g: Tensor) -> Walk:
        return descend(s, g[0], rate(self.lr, down.t), self.through)
