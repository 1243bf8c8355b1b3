"""Ditto: the personal model beside any global objective."""

from dataclasses import dataclass

from torch import Tensor

from dittofl.errors import flag
from dittofl.optimiser import Chain, Rate, Walk, descend, plus, rate, turned
from dittofl.solver import path
from dittofl.types import Down, Steps


@dataclass(frozen=True, kw_only=True)
class Ditto:
    """v_k ← v_k − η (∇F_k(v_k) + λ (v_k − w^t)), begun at v_k and kept on the device.

    Li et al. 2021, Algorithm 1 line 6: minibatch steps on h_k(v; w^t) = F_k(v) + λ/2 ‖v − w^t‖². λ → 0 is `Local`,
    λ → ∞ serves w. The anchor is w^t as it came down, and v_k⁰ = w⁰. With `proximal=True` the quadratic is solved
    exactly after each gradient step, v_k ← (v_k − η ∇F_k(v_k) + ηλ w^t) / (1 + ηλ), which is stable for every λ. λ may
    be a rule of the device's train samples n, such as `Optimal`.

    >>> Ditto(lam=1.0, lr=0.1).lam
    1.0
    """

    lam: Rate
    lr: Rate
    steps: Steps = 1
    through: Chain = ()
    proximal: bool = False

    init, asks, start, points = path.keep_a_model, path.one_gradient_a_step, path.begin_at_row, path.where_it_stands
    keep, model = path.keep_v, path.serve_row

    def __post_init__(self) -> None:
        path.check(self)
        flag("Ditto", "proximal", self.proximal)
        path.check_pull(self, self.lam, explicit="" if self.proximal else "lower lr, or use proximal=True")

    def step(self, s: Walk, down: Down, i: int, f: Tensor, g: Tensor) -> Walk:
        eta, lam = rate(self.lr, down.t), rate(self.lam, down.n)
        if not self.proximal:
            return descend(s, plus(g[0], lam, s.at - down.w), eta, self.through)
        d, states = turned(s, g[0], self.through)
        share = 1 / (1 + eta * lam)  # as a mean of the two, whose weights cannot overflow
        return Walk(share * (s.at - eta * d) + (1 - share) * down.w, states)
