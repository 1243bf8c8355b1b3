"""Stochastic controlled averaging: local steps corrected for the drift of each device."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from dittofl.errors import require
from dittofl.optimiser import Chain, Rate, Walk, begin, descend, rate
from dittofl.server import Control
from dittofl.solver import path
from dittofl.types import Down, Row, Sent, Steps, Vector


class Corrected(NamedTuple):
    walk: Walk
    c: Tensor  # c_k as the visit found it
    mean: Tensor  # of the minibatch gradients so far
    taken: Tensor  # how many they are


@dataclass(frozen=True, kw_only=True)
class Scaffold:
    """w_k ← w_k − η (∇F_k(w_k) − c_k + c), begun at w^t;  c_k⁺ = (1/r) Σ_i g_i;  sent: w_k − w^t and c_k⁺ − c_k.

    Karimireddy et al. 2020, Algorithm 1 with option II: the mean of the r minibatch gradients g_i of a visit is their
    c_k − c + (w^t − w_k)/(rη), and stays what it means where `through` or a schedule bends the step. c_k⁰ = c⁰ = 0. The
    device keeps c_k and serves w^t; the server `Control` keeps c and sends it down. It is `SGD` (FedAvg) where c_k = c:
    in the first round, and on equal devices that all take part.

    >>> Scaffold(lr=0.1, steps=10)
    Scaffold(lr=0.1, steps=10, through=())
    """

    lr: Rate
    steps: Steps = 1
    through: Chain = ()
    server: ClassVar[type] = Control

    asks, model = path.one_gradient_a_step, path.serve_w

    def __post_init__(self) -> None:
        path.check(self)

    def init(self, w0: Vector) -> Row:
        return torch.zeros_like(w0)

    def start(self, row: Row, down: Down) -> Corrected:
        return Corrected(begin(self.through, down.w), row, torch.zeros_like(row), row.new_zeros(()))

    def points(self, s: Corrected, down: Down, i: int) -> tuple[Vector, ...]:
        return (s.walk.at,)

    def step(self, s: Corrected, down: Down, i: int, f: Tensor, g: Tensor) -> Corrected:
        require(down.extra is not None, "Scaffold needs the c of the server Control")
        d = g[0] - s.c + down.extra  # type: ignore[operator]
        taken = s.taken + 1
        walk = descend(s.walk, d, rate(self.lr, down.t), self.through)
        return Corrected(walk, s.c, s.mean + (g[0] - s.mean) / taken, taken)

    def keep(self, s: Corrected, row: Row, down: Down) -> Row:
        return s.mean

    def send(self, s: Corrected, row: Row, down: Down) -> Sent:
        return Sent(s.walk.at - down.w, s.mean - row)
