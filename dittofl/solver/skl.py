"""Closeness to w measured on what the models predict."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dittofl.errors import flag, nonnegative
from dittofl.optimiser import Chain, Rate, Walk, begin, descend, rate
from dittofl.solver import path
from dittofl.target import by_sample
from dittofl.types import Ask, Down, On, Row, Steps, Vector


def symmetrised(out: Tensor, y: Tensor, anchor: Tensor) -> Tensor:
    """KL(p‖q) + KL(q‖p) = Σ_c (p_c − q_c) (log p_c − log q_c) of every sample, p, q = softmax(out), softmax(anchor).

    One score a sample is the log-odds of two classes.

    >>> symmetrised(torch.zeros(1, 2), torch.zeros(1), torch.zeros(1, 2))
    tensor([0.])
    """
    p, q = (torch.stack([torch.zeros_like(o), o], 1) if o[0].numel() == 1 else o for o in (out, anchor))
    p, q = p.log_softmax(1), q.log_softmax(1)
    return by_sample(((p.exp() - q.exp()) * (p - q)).sum(1))


class Pulled(NamedTuple):
    walk: Walk
    g: Tensor  # ∇F_k at the last minibatch


@dataclass(frozen=True, kw_only=True)
class SKL:
    """v_k ← v_k − η ∇(F_k(v_k) + λ/2 (KL(f(v_k)‖f(w)) + KL(f(w)‖f(v_k)))),   f the softmax of the outputs.

    Symmetrised KL (Yu et al. 2020; Li et al. 2021, App. "Personalization Baselines"), its mean taken over the minibatch
    of ∇F_k. In `final=` it is the paper's fine-tuning from w^T; in `personal=` it is Ditto with a KL proximal term.
    λ = 0 is `Local`. With `summed` the weight is λ n_k, not λ/2, and the mean over the whole train part, as in the
    authors' program, whose λ thus weighs 2 n_k times as much.

    >>> SKL(lam=1.0, lr=0.1).summed
    False
    """

    lam: float
    lr: Rate
    steps: Steps = 1
    through: Chain = ()
    summed: bool = False

    init, model = path.keep_a_model, path.serve_row

    def __post_init__(self) -> None:
        nonnegative("SKL", "lam", self.lam)
        path.check(self)
        flag("SKL", "summed", self.summed)

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return (Ask(), Ask(On.TRAIN if self.summed else On.SAME, of=symmetrised)) * steps

    def start(self, row: Row, down: Down) -> Pulled:
        return Pulled(begin(self.through, row), torch.zeros_like(row))

    def points(self, s: Pulled, down: Down, i: int) -> tuple[Vector, ...]:
        return (s.walk.at,)

    def step(self, s: Pulled, down: Down, i: int, f: Tensor, g: Tensor) -> Pulled:
        if i % 2 == 0:
            return s._replace(g=g[0])
        weight = self.lam * down.n if self.summed else self.lam / 2
        return s._replace(walk=descend(s.walk, s.g + weight * g[0], rate(self.lr, down.t), self.through))

    def keep(self, s: Pulled, row: Row, down: Down) -> Row:
        return s.walk.at
