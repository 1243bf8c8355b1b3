"""Personal models pulled towards their own mean."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from dittofl.errors import flag, nonnegative
from dittofl.optimiser import Chain, Rate, Walk, descend, plus, rate
from dittofl.server import Share
from dittofl.solver import path
from dittofl.types import Down, Row, Sent, Steps


@dataclass(frozen=True, kw_only=True)
class L2SGD:
    """v_k ← v_k − η (∇F_k(v_k) + λ (v_k − w̄)), begun at v_k and kept;  sent: v_k new − v_k old.

    min Σ_k F_k(v_k) + λ/2 ‖v_k − w̄‖², w̄ = (1/K) Σ_k v_k: the objective of Hanzely, Richtárik 2020 under the solver of
    Li et al. 2021 (App. "Personalization Baselines"), with partial participation. w is w̄, kept by the server `Share`,
    the device serves v_k. λ = 0 is `Local`. Where all are quadratics of one curvature, w̄ is the minimiser of Σ F_k and
    v_k is Ditto's. With `moving` the device sends v_k − w̄ as in the authors' program: w̄ then moves as slowly, but
    forgets.

    >>> L2SGD(lam=1.0, lr=0.1).moving
    False
    """

    lam: float
    lr: Rate
    steps: Steps = 1
    through: Chain = ()
    moving: bool = False
    server: ClassVar[type] = Share

    init, asks, start, points = path.keep_a_model, path.one_gradient_a_step, path.begin_at_row, path.where_it_stands
    keep, model = path.keep_v, path.serve_row

    def __post_init__(self) -> None:
        nonnegative("L2SGD", "lam", self.lam)
        path.check(self)
        flag("L2SGD", "moving", self.moving)
        path.check_pull(self, self.lam)

    def step(self, s: Walk, down: Down, i: int, f: Tensor, g: Tensor) -> Walk:
        return descend(s, plus(g[0], self.lam, s.at - down.w), rate(self.lr, down.t), self.through)

    def send(self, s: Walk, row: Row, down: Down) -> Sent:
        return Sent(s.at - (down.w if self.moving else row))
