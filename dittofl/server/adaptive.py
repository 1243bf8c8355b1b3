"""Servers with a step size of its own for every coordinate (Reddi et al. 2021, Algorithm 2).

    m ← β₁ m + (1 − β₁) δ,    w^{t+1} = w^t + η_s m / (√u + τ),    m = 0 and u = τ² before the first round

They differ in u alone.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from dittofl.errors import flag, fraction, positive
from dittofl.optimiser import Adam
from dittofl.types import Report, State, Vector


class Moments(NamedTuple):
    m: Tensor
    u: Tensor


class Adaptive(Protocol):
    """What the parts below read of a server."""

    @property
    def lr(self) -> float: ...
    @property
    def beta1(self) -> float: ...
    @property
    def tau(self) -> float: ...


def check(self: Adaptive) -> None:
    name = type(self).__name__
    positive(name, "lr", self.lr)
    fraction(name, "beta1", self.beta1)
    positive(name, "tau", self.tau)


def begin(self: Adaptive, w0: Vector, K: int) -> State:
    return Moments(torch.zeros_like(w0), torch.full_like(w0, self.tau**2))


def send_nothing(self: object, state: State) -> Tensor | None:
    return None


def move(self: Adaptive, w: Vector, delta: Vector, state: Moments, u: Tensor) -> tuple[Vector, State]:
    m = self.beta1 * state.m + (1 - self.beta1) * delta
    return w + self.lr * m / (u.sqrt() + self.tau), Moments(m, u)


@dataclass(frozen=True, kw_only=True)
class FedAdagrad:
    """u ← u + δ²,  w^{t+1} = w^t + η_s m / (√u + τ),  m ← β₁ m + (1 − β₁) δ.

    Reddi et al. 2021, Algorithm 2, begun at u = τ², with β₁ = 0 as in their experiments. Where τ outweighs √u, it is
    `Add` with η_s/τ.

    >>> FedAdagrad(lr=0.1).tau
    0.001
    """

    lr: float
    beta1: float = 0.0
    tau: float = 1e-3

    init, down = begin, send_nothing

    def __post_init__(self) -> None:
        check(self)

    def step(self, w: Vector, delta: Vector, report: Report, state: Moments) -> tuple[Vector, State]:
        return move(self, w, delta, state, state.u + delta.square())


@dataclass(frozen=True, kw_only=True)
class FedYogi:
    """u ← u − (1 − β₂) δ² sign(u − δ²),  w^{t+1} = w^t + η_s m / (√u + τ),  m ← β₁ m + (1 − β₁) δ.

    Reddi et al. 2021, Algorithm 2, begun at u = τ². u falls by no more than a share of δ²: where updates become
    small, more slowly than in `FedAdam`.

    >>> FedYogi(lr=0.1).beta2
    0.99
    """

    lr: float
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3

    init, down = begin, send_nothing

    def __post_init__(self) -> None:
        check(self)
        fraction("FedYogi", "beta2", self.beta2)

    def step(self, w: Vector, delta: Vector, report: Report, state: Moments) -> tuple[Vector, State]:
        square = delta.square()
        return move(self, w, delta, state, state.u - (1 - self.beta2) * square * (state.u - square).sign())


@dataclass(frozen=True, kw_only=True)
class FedAdam:
    """u ← β₂ u + (1 − β₂) δ²,  w^{t+1} = w^t + η_s m / (√u + τ),  m ← β₁ m + (1 − β₁) δ.

    Reddi et al. 2021, Algorithm 2, which corrects no bias: it begins at u = τ², and m at a share 1 − β₁ of δ. With
    `corrected` it is Kingma, Ba 2015 on the pseudo-gradient −δ (torch.optim.Adam, τ its eps): u begins at 0, and
    m / (1 − β₁ᵗ) and u / (1 − β₂ᵗ) stand in their places.

    >>> FedAdam(lr=0.1).corrected
    False
    """

    lr: float
    beta1: float = 0.9
    beta2: float = 0.99
    tau: float = 1e-3
    corrected: bool = False

    down = send_nothing

    def __post_init__(self) -> None:
        check(self)
        fraction("FedAdam", "beta2", self.beta2)
        flag("FedAdam", "corrected", self.corrected)

    def init(self, w0: Vector, K: int) -> State:
        return self._adam().init(w0) if self.corrected else begin(self, w0, K)

    def step(self, w: Vector, delta: Vector, report: Report, state: State) -> tuple[Vector, State]:
        if self.corrected:
            d, state = self._adam().apply(delta, state, w)  # odd in d, so that −T(−δ) = T(δ)
            return w + self.lr * d, state
        return move(self, w, delta, state, self.beta2 * state.u + (1 - self.beta2) * delta.square())

    def _adam(self) -> Adam:
        return Adam(beta1=self.beta1, beta2=self.beta2, eps=self.tau)
