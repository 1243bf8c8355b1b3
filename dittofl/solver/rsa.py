"""Byzantine-robust stochastic aggregation: models of their own that are held together by an ℓ1 penalty."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from dittofl.errors import nonnegative
from dittofl.optimiser import Chain, Rate, Walk, descend, plus, rate
from dittofl.server import Votes
from dittofl.solver import path
from dittofl.types import Down, Row, Sent, Steps


@dataclass(frozen=True, kw_only=True)
class RSA:
    """w_k ← w_k − η (∇F_k(w_k) + λ sign(w_k − w^t)), begun at w_k and kept;  sent: sign(w_k − w^t), before the steps.

    Li, Xu, Chen, Giannakis, Ling 2019, Algorithm 2 (ℓ1): stochastic subgradients of Σ_k F_k(w_k) + λ ‖w_k − w‖₁ + f₀(w)
    in all w_k and w at once, w being moved by the server `Votes`. As w_k⁰ = w⁰, no device votes in the first round. At
    λ = 0 the w_k are those of `Local`; from some λ on, all of them are w at the optimum. The device serves w.

    >>> RSA(lam=0.1, lr=0.01)
    RSA(lam=0.1, lr=0.01, steps=1, through=())
    """

    lam: float
    lr: Rate
    steps: Steps = 1
    through: Chain = ()
    server: ClassVar[type] = Votes

    init, asks, start, points = path.keep_a_model, path.one_gradient_a_step, path.begin_at_row, path.where_it_stands
    keep, model = path.keep_v, path.serve_w

    def __post_init__(self) -> None:
        nonnegative("RSA", "lam", self.lam)
        path.check(self)

    def step(self, s: Walk, down: Down, i: int, f: Tensor, g: Tensor) -> Walk:
        return descend(s, plus(g[0], self.lam, (s.at - down.w).sign()), rate(self.lr, down.t), self.through)

    def send(self, s: Walk, row: Row, down: Down) -> Sent:
        return Sent((row - down.w).sign())
