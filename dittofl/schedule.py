"""Step sizes as functions of the round t, for any solver's `lr`; t is a number, or a 0-d tensor where compiled."""

import math
from dataclasses import dataclass
from typing import Any

import torch

from dittofl.errors import nonnegative, positive, require, whole
from dittofl.types import Counter


@dataclass(frozen=True, kw_only=True)
class Geometric:
    """η(t) = η₀ · γ^⌊t / every⌋.

    >>> Geometric(lr=0.4, factor=0.5, every=200)(399)
    0.2
    """

    lr: float
    factor: float
    every: int = 1

    def __post_init__(self) -> None:
        positive("Geometric", "lr", self.lr)
        positive("Geometric", "factor", self.factor)
        whole("Geometric", "every", self.every, 1)

    def __call__(self, t: Counter) -> Any:
        return self.lr * self.factor ** (t // self.every)


@dataclass(frozen=True, kw_only=True)
class Inverse:
    """η(t) = η₀ / (1 + t/τ): the O(1/t) step sizes of the convergence theorems.

    >>> Inverse(lr=0.4, tau=10)(10)
    0.2
    """

    lr: float
    tau: float

    def __post_init__(self) -> None:
        positive("Inverse", "lr", self.lr)
        positive("Inverse", "tau", self.tau)

    def __call__(self, t: Counter) -> Any:
        return self.lr / (1 + t / self.tau)


@dataclass(frozen=True, kw_only=True)
class Cosine:
    """η(t) = η₁ + ½ (η₀ − η₁) (1 + cos(π min(t/T, 1))).

    >>> round(Cosine(lr=0.4, end=0.2, rounds=100)(50), 6)
    0.3
    """

    lr: float
    end: float = 0.0
    rounds: int

    def __post_init__(self) -> None:
        positive("Cosine", "lr", self.lr)
        nonnegative("Cosine", "end", self.end)
        require(self.end <= self.lr, f"Cosine needs end ≤ lr, got end={self.end} and lr={self.lr}")
        whole("Cosine", "rounds", self.rounds, 1)

    def __call__(self, t: Counter) -> Any:
        turn = (
            torch.cos(math.pi * (t / self.rounds).clamp_max(1))
            if isinstance(t, torch.Tensor)
            else math.cos(math.pi * min(t / self.rounds, 1))
        )
        return self.end + 0.5 * (self.lr - self.end) * (1 + turn)
