"""What y means: which outputs are right, which labels are legal, and what poisoning makes of them.

Attack A1 of the paper (Definition 1): "flipped (if binary) or uniformly random noisy labels".
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from dittofl.errors import InputError, finite, require, short, whole
from dittofl.seeds import Keys


@runtime_checkable
class Target(Protocol):
    """The meaning of y."""

    def legal(self, y: Tensor) -> Tensor:
        """Which samples [n] carry a legal label."""

    def right(self, out: Tensor, y: Tensor) -> Tensor | None:
        """The share of each sample [n] that is predicted right; None where no prediction is right or wrong."""

    def poison(self, y: Tensor, drawn: Keys) -> Tensor:
        """Poisoned labels, from one key for each sample."""


def by_sample(values: Tensor) -> Tensor:
    """The mean of each sample: [n, ...] → [n]."""
    return values.flatten(1).mean(1) if values.dim() > 1 else values


@dataclass(frozen=True)
class Classes:
    """y ∈ {0, …, C−1}; right where argmax(out) = y; poisoned: 1 − y for two classes, else uniform over all C."""

    C: int

    def __post_init__(self) -> None:
        whole("Classes", "C", self.C, 1)

    def legal(self, y: Tensor) -> Tensor:
        return by_sample(((y < 0) | (y >= self.C)).double()) == 0

    def right(self, out: Tensor, y: Tensor) -> Tensor:
        return by_sample((out.argmax(1) == y).to(out.dtype))

    def poison(self, y: Tensor, drawn: Keys) -> Tensor:
        if self.C == 2:
            return 1 - y
        noise = torch.from_numpy((drawn % np.uint64(self.C)).astype(np.int64))
        return noise.view(-1, *[1] * (y.dim() - 1)).expand_as(y).to(y)


@dataclass(frozen=True)
class Binary:
    """y ∈ {0, 1}, one or several labels a sample; right where (out > threshold) = y; poisoned: 1 − y."""

    threshold: float = 0.0

    def __post_init__(self) -> None:
        require(finite(self.threshold), f"Binary needs a number as its threshold, got {short(self.threshold)}")

    def legal(self, y: Tensor) -> Tensor:
        return by_sample(((y != 0) & (y != 1)).double()) == 0

    def right(self, out: Tensor, y: Tensor) -> Tensor:
        return by_sample(((out > self.threshold) == (y > 0.5)).to(out.dtype))

    def poison(self, y: Tensor, drawn: Keys) -> Tensor:
        return 1 - y


@dataclass(frozen=True)
class Signs:
    """y ∈ {−1, +1}; right where y·out > 0, so a score of 0 is wrong; poisoned: −y."""

    def legal(self, y: Tensor) -> Tensor:
        return by_sample((y.abs() != 1).double()) == 0

    def right(self, out: Tensor, y: Tensor) -> Tensor:
        return by_sample((out * y > 0).to(out.dtype))

    def poison(self, y: Tensor, drawn: Keys) -> Tensor:
        return -y


@dataclass(frozen=True)
class Real:
    """y ∈ R: a loss, no accuracy."""

    def legal(self, y: Tensor) -> Tensor:
        return torch.ones(len(y), dtype=torch.bool)

    def right(self, out: Tensor, y: Tensor) -> None:
        return None

    def poison(self, y: Tensor, drawn: Keys) -> Tensor:
        raise InputError(
            "label poisoning needs classes, but y is real-valued: give the attack relabel= or poisoned=False"
        )
