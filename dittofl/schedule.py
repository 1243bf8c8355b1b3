"""Step sizes as functions of the round t, for any solver's `lr`; t is a number, or a 0-d tensor where compiled."""

import math
from dataclasses import dataclass
from typing import Any

import torch

from dittofl.errors import require
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
        require(
            self.lr > 0 and self.factor > 0 and self.every >= 1,
            f"Geometric needs lr > 0, factor > 0 and every ≥ 1, got {self}",
        )

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
        require(self.lr > 0 and self.tau > 0, f"Inverse needs lr > 0 and tau > 0, got {self}")

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
        require(
            self.lr > 0 and 0 <= self.end <= self.lr and self.rounds >= 1,
            f"Cosine needs lr > 0, 0 ≤ end ≤ lr and rounds ≥ 1, got {self}",
        )

    def __call__(self, t: Counter) -> Any:
        turn = (
            torch.cos(math.pi * (t / self.rounds).clamp_max(1))
            if isinstance(t, torch.Tensor)
            else math.cos(math.pi * min(t / self.rounds, 1))
        )
        return self.end + 0.5 * (self.lr - self.end) * (1 + turn)
