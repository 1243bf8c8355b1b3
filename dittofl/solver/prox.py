"""FedProx's local solver."""

from dataclasses import dataclass

from torch import Tensor

from dittofl.errors import nonnegative
from dittofl.optimiser import Chain, Rate, Walk, descend, plus, rate
from dittofl.solver import path
from dittofl.types import Down, Steps


@dataclass(frozen=True, kw_only=True)
class Prox:
    """w_k ← w_k − η (∇F_k(w_k) + μ (w_k − w^t)), begun at w^t; Δ_k = w_k − w^t is sent.

    Li et al. 2020 (FedProx), solved inexactly by minibatch steps. μ = 0 is SGD, that is FedAvg; μ → ∞ pins w_k to w^t.
    Ditto has the same line, but begins at v_k and keeps the result.

    >>> Prox(mu=0.1, lr=0.05).mu
    0.1
    """

    mu: float
    lr: Rate
    steps: Steps = 1
    through: Chain = ()

    init, asks, start, points = path.keep_nothing, path.one_gradient_a_step, path.begin_at_w, path.where_it_stands
    keep, send, model = path.leave_row, path.send_delta, path.serve_w

    def __post_init__(self) -> None:
        nonnegative("Prox", "mu", self.mu)
        path.check(self)
        path.check_pull(self, self.mu, name="mu")

    def step(self, s: Walk, down: Down, i: int, f: Tensor, g: Tensor) -> Walk:
        return descend(s, plus(g[0], self.mu, s.at - down.w), rate(self.lr, down.t), self.through)
