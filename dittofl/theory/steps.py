"""The step sizes of the convergence theorem.

    η(t) = 2 g(t) / (A (μ+λ) p_k),   g(t) = D (1 + t/T₀)^−q

p_k is the chance of a device to be in a round. The theorem wants g(t+1)/g(t) ≥ 1 − g(t)/A: this family meets it with
A = D T₀ for 0 < q ≤ 1; a geometric g never does, so the theorem is about sublinear rates.
"""

from dataclasses import dataclass
from typing import Any

from dittofl.errors import finite, positive, require, short
from dittofl.theory.point import Array
from dittofl.types import Counter


@dataclass(frozen=True, kw_only=True)
class Power:
    """η(t) = η₀ (1 + t/T₀)^−q: `Inverse` at q = 1.

    >>> Power(lr=0.4, shift=10, q=0.5)(30)
    0.2
    """

    lr: float
    shift: float
    q: float = 1.0

    def __post_init__(self) -> None:
        positive("Power", "lr", self.lr)
        positive("Power", "shift", self.shift)
        require(finite(self.q) and 0 < self.q <= 1, f"Power needs 0 < q ≤ 1, got q={short(self.q)}")

    def __call__(self, t: Counter | Array) -> Any:
        return self.lr * (1 + t / self.shift) ** -self.q


def local_steps(lam: float, mu: float, L: float, p: float, q: float = 1.0) -> Power:
    """η(t) = 2 / (T₀ (μ+λ) p) · (1 + t/T₀)^−q, T₀ = 2 (L+λ) / ((μ+λ) p): the theorem's, with A = D T₀.

    At q = 1 it is the lemma's 2 / ((t+1) (μ+λ) p) with t + T₀ for t + 1: unshifted, the first steps exceed 1/(L+λ).

    >>> local_steps(lam=1.0, mu=1.0, L=3.0, p=0.5)
    Power(lr=0.25, shift=8.0, q=1.0)
    """
    shift = 2 * (L + lam) / ((mu + lam) * p)
    return Power(lr=2 / (shift * (mu + lam) * p), shift=shift, q=q)


def global_steps(mu: float, L: float, q: float = 1.0) -> Power:
    """η(t) = (1/4L) (1 + t/T₀)^−q, T₀ = 8L/μ: at q = 1 the 2 / (μ (T₀ + t)) of Li et al. 2019 (FedAvg, Theorem 2).

    >>> global_steps(mu=1.0, L=4.0)(32)
    0.03125
    """
    return Power(lr=1 / (4 * L), shift=8 * L / mu, q=q)
