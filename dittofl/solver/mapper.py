"""A mixture of a local and the global model whose weight each device chooses."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from dittofl.errors import finite, require, short
from dittofl.optimiser import Chain, Rate, rate
from dittofl.solver import path
from dittofl.types import Ask, Down, On, Row, Sent, Steps, Vector


class Candidates(NamedTuple):
    v: Tensor  # [C, P], one a candidate α
    g: Tensor  # [C, P] ∇F_k at their mixtures, on the last minibatch
    best: Tensor


@dataclass(frozen=True, kw_only=True)
class Mapper:
    """v_α ← v_α − η α ∇F_k(α v_α + (1 − α) w^t) for each α;  α_k = argmin_α F_k(α v_α + (1 − α) w^t);  v_k = v_{α_k}.

    MAPPER (Mansour et al. 2020) as in Li et al. 2021: each candidate α trains a copy of v_k, the train part's loss
    chooses, and Δ_k = −η (1 − α_k) ∇F_k, one step of w at the last minibatch and the mixture before its last step. The
    device serves its mixture. α = 1 alone is `Local` and sends nothing; α = 0 alone is FedAvg with one step.

    >>> Mapper(lr=0.1).alphas
    (0.25, 0.5, 0.75)
    """

    lr: Rate
    steps: Steps = 1
    alphas: tuple[float, ...] = (0.25, 0.5, 0.75)

    through: ClassVar[Chain] = ()

    def __post_init__(self) -> None:
        path.check(self)
        proper = isinstance(self.alphas, tuple) and all(finite(a) and 0 <= a <= 1 for a in self.alphas)
        require(
            proper and len(set(self.alphas)) == len(self.alphas) >= 1,
            f"Mapper needs alphas=(…,), distinct numbers from 0 to 1, got alphas={short(self.alphas)}",
        )

    def init(self, w0: Vector) -> Row:
        """v_k, and the α it was last served with."""
        return torch.cat([w0, w0.new_tensor([self.alphas[len(self.alphas) // 2]])])

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return (Ask(), Ask(On.TRAIN, grad=False)) * steps

    def start(self, row: Row, down: Down) -> Candidates:
        v = torch.stack([row[:-1]] * len(self.alphas))
        return Candidates(v, torch.zeros_like(v), row.new_zeros(()))

    def points(self, s: Candidates, down: Down, i: int) -> tuple[Vector, ...]:
        return tuple(a * v + (1 - a) * down.w for a, v in zip(self.alphas, s.v, strict=True))

    def step(self, s: Candidates, down: Down, i: int, f: Tensor, g: Tensor | None) -> Candidates:
        if g is None:
            return s._replace(best=path.lowest(f).to(s.best))
        return s._replace(v=s.v - rate(self.lr, down.t) * self._weights(s.v)[:, None] * g, g=g)

    def keep(self, s: Candidates, row: Row, down: Down) -> Row:
        best = s.best.long()
        return torch.cat([_of(s.v, best), _of(self._weights(s.v), best)[None]])

    def send(self, s: Candidates, row: Row, down: Down) -> Sent:
        best = s.best.long()
        return Sent(-rate(self.lr, down.t) * (1 - _of(self._weights(s.v), best)) * _of(s.g, best))

    def model(self, row: Row, down: Down) -> Vector:
        return row[-1] * row[:-1] + (1 - row[-1]) * down.w

    def _weights(self, like: Tensor) -> Tensor:
        return like.new_tensor(self.alphas)


def _of(rows: Tensor, which: Tensor) -> Tensor:
    """rows[which], also where `which` is mapped."""
    return rows.index_select(0, which[None])[0]
