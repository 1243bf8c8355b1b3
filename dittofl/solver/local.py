"""Training on the device's own data alone."""

from dataclasses import dataclass

from torch import Tensor

from dittofl.optimiser import Chain, Rate, Walk, descend, rate
from dittofl.solver import path
from dittofl.types import Down, Steps


@dataclass(frozen=True, kw_only=True)
class Local:
    """v_k ← v_k − η ∇F_k(v_k), begun at v_k and kept on the device: Ditto with λ = 0 under its own name.

    The baseline `local` of Li et al. 2021: the same steps in the same rounds, not trained to convergence.

    >>> Local(lr=0.1).steps
    1
    """

    lr: Rate
    steps: Steps = 1
    through: Chain = ()

    init, asks, start, points = path.keep_a_model, path.one_gradient_a_step, path.begin_at_row, path.where_it_stands
    keep, model = path.keep_v, path.serve_row

    def __post_init__(self) -> None:
        path.check(self)

    def step(self, s: Walk, down: Down, i: int, f: Tensor, g: Tensor) -> Walk:
        return descend(s, g[0], rate(self.lr, down.t), self.through)
