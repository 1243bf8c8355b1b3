"""λ chosen at every step."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from dittofl.errors import finite, require, short
from dittofl.optimiser import Chain, Rate, rate
from dittofl.solver import path
from dittofl.types import Ask, Down, On, Row, Steps, Vector


class Tried(NamedTuple):
    v: Tensor
    g: Tensor  # ∇F_k at v, on the last minibatch


@dataclass(frozen=True, kw_only=True)
class Greedy:
    """v_k ← argmin over u_λ of F_k^val(u_λ),   u_λ = v_k − η (∇F_k(v_k) + λ (v_k − w^t)) for λ in `lams`.

    Ditto as in the authors' program with `--dynamic_lam`: the candidate steps come of one gradient, and the one with
    the lowest validation loss stands. A device without validation samples, where all tie, takes `few` (None: the
    middle one). One λ is Ditto.

    >>> Greedy(lr=0.1).lams
    (0.1, 1.0, 2.0)
    """

    lr: Rate
    steps: Steps = 1
    lams: tuple[float, ...] = (0.1, 1.0, 2.0)
    few: float | None = None
    through: ClassVar[Chain] = ()

    init, model = path.keep_a_model, path.serve_row

    def __post_init__(self) -> None:
        path.check(self)
        proper = isinstance(self.lams, tuple) and all(finite(lam) and lam >= 0 for lam in self.lams)
        require(
            proper and len(set(self.lams)) == len(self.lams) >= 1,
            f"Greedy needs lams=(…,), distinct numbers ≥ 0, got lams={short(self.lams)}",
        )
        require(
            self.few is None or self.few in self.lams,
            f"Greedy needs few= to be one of lams={self.lams}, got few={short(self.few)}",
        )
        path.check_pull(self, max(self.lams))

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return (Ask(), Ask(On.VALIDATION, grad=False)) * steps

    def start(self, row: Row, down: Down) -> Tried:
        return Tried(row, torch.zeros_like(row))

    def points(self, s: Tried, down: Down, i: int) -> tuple[Vector, ...]:
        return (s.v,) if i % 2 == 0 else self._candidates(s, down)

    def step(self, s: Tried, down: Down, i: int, f: Tensor, g: Tensor | None) -> Tried:
        if g is not None:
            return s._replace(g=g[0])
        few = len(self.lams) // 2 if self.few is None else self.lams.index(self.few)
        best = torch.where((f == f[0]).all(), few, path.lowest(f))
        return s._replace(v=torch.stack(self._candidates(s, down)).index_select(0, best[None])[0])

    def keep(self, s: Tried, row: Row, down: Down) -> Row:
        return s.v

    def _candidates(self, s: Tried, down: Down) -> tuple[Vector, ...]:
        eta = rate(self.lr, down.t)
        return tuple(s.v - eta * (s.g + lam * (s.v - down.w)) for lam in self.lams)
