"""Ditto: the personal model beside any global objective."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from dittofl.errors import blamed, nonnegative, require
from dittofl.optimiser import Chain, Rate, Walk, descend, plus, rate, turned
from dittofl.solver import path
from dittofl.types import Counter, Down, Steps


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

    lam: float | Callable[[Counter], Any]
    lr: Rate
    steps: Steps = 1
    through: Chain = ()
    proximal: bool = False

    init, asks, start, points = path.keep_a_model, path.one_gradient_a_step, path.begin_at_row, path.where_it_stands
    keep, model = path.keep_v, path.serve_row

    def __post_init__(self) -> None:
        lam: Any = self.lam
        if callable(lam) and not isinstance(lam, type):
            with blamed("Ditto's rule lam="):
                lam = lam(1)
        nonnegative("Ditto", "lam", lam)
        path.check(self)
        require(isinstance(self.proximal, bool), f"Ditto needs proximal=True or False, got {self.proximal!r}")
        if not self.proximal and not callable(self.lam):
            path.warn_of_divergence(self, self.lam, "lower lr, or use proximal=True")

    def step(self, s: Walk, down: Down, i: int, f: Tensor, g: Tensor) -> Walk:
        eta, lam = rate(self.lr, down.t), self.lam(down.n) if callable(self.lam) else self.lam
        if not self.proximal:
            return descend(s, plus(g[0], lam, s.at - down.w), eta, self.through)
        d, states = turned(s, g[0], self.through)
        share = 1 / (1 + eta * lam)  # as a mean of the two, whose weights cannot overflow
        return Walk(share * (s.at - eta * d) + (1 - share) * down.w, states)
