"""Linear regression whose inputs satisfy X_kᵀX_k = β I on every device: d copies of point estimation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dittofl.errors import positive, require, whole
from dittofl.theory.point import Array, Point
from dittofl.theory.regression import Regression


@dataclass(frozen=True, kw_only=True)
class Orthogonal:
    """λ* = (σ²/n) K / (K τ² + K_a/(K−1) (τ_a² − τ²)) for F_k(w) = (1/2n) ‖X_k w − y_k‖²; β drops out.

    Li et al. 2021, appendix "Federated Linear Regression". The paper defines F_k with 1/n, for which λ* is twice that,
    but solves for 1/(2n), as here. A coordinate is `Point` with β samples at λ n/β, and the coordinates are
    independent: error and variance are d times a coordinate's. Both are of ‖ŵ_k(λ) − w_k‖², benign devices only.

    >>> problem = Orthogonal(sigma=0.8, n=30, d=3, beta=12.0, tau=0.1, K=8)
    >>> round(problem.lam_star, 4)
    2.1333
    """

    sigma: float
    n: int
    d: int
    beta: float
    tau: float
    K: int
    K_a: int = 0
    tau_a: float | None = None

    def __post_init__(self) -> None:
        positive("Orthogonal", "beta", self.beta)
        whole("Orthogonal", "d", self.d, 1)
        whole("Orthogonal", "n", self.n, 1)
        require(self.n >= self.d, f"Orthogonal needs n ≥ d for XᵀX = β I, got n={self.n}, d={self.d}: raise n")
        self.coordinate  # noqa: B018  its construction checks the rest

    @property
    def coordinate(self) -> Point:
        """One coordinate, whose observation of w_k has variance σ²/β; its λ is n/β times ours."""
        return Point(sigma=self.sigma, n=self.beta, tau=self.tau, K=self.K, K_a=self.K_a, tau_a=self.tau_a)

    @property
    def K_b(self) -> int:
        return self.K - self.K_a

    def _scaled(self, lam: ArrayLike) -> Array:
        return np.asarray(lam, dtype=np.float64) * self.n / self.beta

    @property
    def lam_star(self) -> float:
        """λ*, with adversaries λ*_a: the λ of the least error."""
        return self.coordinate.lam_star * self.beta / self.n

    @property
    def least_error(self) -> float:
        """d σ²_{w,a}, the error at λ*."""
        return self.d * self.coordinate.least_error

    @property
    def fairest(self) -> float:
        """argmin over λ of `variance`; λ* without adversaries."""
        return self.coordinate.fairest * self.beta / self.n

    def error(self, lam: ArrayLike) -> Array:
        """E ‖ŵ_k(λ) − w_k‖² = d V. Like `lam` in shape."""
        return self.d * self.coordinate.error(self._scaled(lam))

    def variance(self, lam: ArrayLike) -> Array:
        """E var_k ‖ŵ_k(λ) − w_k‖² = 2d (1 − 1/K_b) (V² − C²). Like `lam` in shape."""
        return self.d * self.coordinate.variance(self._scaled(lam))

    def with_inputs(self, rng: np.random.Generator) -> Regression:
        """The same problem with inputs: X_k = √β Q_k [n, d], Q_k of orthonormal columns drawn at random."""
        X = tuple(np.sqrt(self.beta) * np.linalg.qr(rng.normal(size=(self.n, self.d)))[0] for _ in range(self.K))
        return Regression(X=X, sigma=self.sigma, tau=self.tau, malicious=range(self.K_a), tau_a=self.tau_a)
