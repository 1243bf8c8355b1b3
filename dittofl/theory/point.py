"""Federated point estimation: the exact error of Ditto at every λ, with and without adversaries.

    w_k ~ N(θ, τ²), malicious ones N(θ, τ_a²);  x_{k,i} ~ N(w_k, σ²), i ≤ n;  F_k(w) = ½ (w − x̄_k)²

Li et al. 2021, Section 4 and appendix "The Case of Federated Point Estimation".
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dittofl.errors import nonnegative, positive, require, short, whole
from dittofl.theory import search

Array = NDArray[np.float64]


def weight(lam: ArrayLike) -> Array:
    """b = λ / (1 + λ), the share of w* in ŵ_k(λ): 0 at λ = 0, 1 at λ = ∞; refuses λ < 0.

    >>> weight([0, 1, math.inf]).tolist()
    [0.0, 0.5, 1.0]
    """
    lam = np.asarray(lam, dtype=np.float64)
    require(bool((lam >= 0).all()), f"λ must be ≥ 0, got {short(lam.tolist())}: give numbers from 0 to infinity")
    return np.asarray(1 - 1 / (1 + lam), dtype=np.float64)


def estimate(means: Array, lam: ArrayLike) -> Array:
    """ŵ_k(λ) = (x̄_k + λ w*) / (1 + λ), w* = (1/K) Σ_j x̄_j: the minimiser of F_k(w) + λ/2 (w − w*)².

    Li et al. 2021, appendix. λ = 0 is local, λ = ∞ global. `means` is [..., K], and so is the result.

    >>> estimate(np.array([0.0, 4.0]), 1.0).tolist()
    [1.0, 3.0]
    """
    return np.asarray(means + weight(lam) * (means.mean(axis=-1, keepdims=True) - means))


@dataclass(frozen=True, kw_only=True)
class Point:
    """λ* = (σ²/n) K / (K τ² + K_a/(K−1) (τ_a² − τ²)), which is σ²/(n τ²) without adversaries.

    The error e_k = ŵ_k(λ) − w_k of a benign device has variance V, and two such errors covariance C, exactly:

        V = a² s + b² τ² + C,    C = b² M + 2ab s/K − 2b² τ²/K,    a = 1/(1+λ), b = λ/(1+λ), s = σ²/n,
        M = s/K + (K_b τ² + K_a τ_a²)/K²

    The first K_a of K devices are malicious. The paper takes τ_a > τ; the formulas hold for any τ_a. In the simulation
    of the paper's code λ is one number for all devices, θ = 0 and n is the same everywhere, as here.

    >>> problem = Point(sigma=0.8, n=30, tau=0.1, K=8)
    >>> round(problem.lam_star, 4), round(float(problem.error(problem.lam_star)), 6)
    (2.1333, 0.008624)
    """

    sigma: float
    n: float  # samples of a device; in `Orthogonal` β, which need not be whole
    tau: float
    K: int
    K_a: int = 0
    tau_a: float | None = None

    def __post_init__(self) -> None:
        positive("Point", "sigma", self.sigma)
        positive("Point", "n", self.n)
        nonnegative("Point", "tau", self.tau)
        whole("Point", "K", self.K, 2)
        whole("Point", "K_a", self.K_a, 0)
        require(self.K_a < self.K, f"Point needs K_a < K, a benign device at least, got K_a={self.K_a}, K={self.K}")
        check_strength("Point", self.K_a > 0, self.tau_a)

    @property
    def s(self) -> float:
        """σ²/n, the variance of x̄_k about w_k."""
        return self.sigma**2 / self.n

    @property
    def K_b(self) -> int:
        return self.K - self.K_a

    @property
    def taus(self) -> Array:
        """The spread of every device's w_k [K], the malicious first."""
        return np.repeat([self.tau_a or 0.0, self.tau], [self.K_a, self.K_b])

    @property
    def relatedness(self) -> float:
        """D = K τ² + K_a/(K−1) (τ_a² − τ²): (K−1) (Σ_w^{∖k} + τ²) − s, the one number through which attacks enter."""
        return self.K * self.tau**2 + self.K_a / (self.K - 1) * ((self.tau_a or 0.0) ** 2 - self.tau**2)

    @property
    def lam_star(self) -> float:
        """λ*, with adversaries λ*_a: the λ of the least error; ∞ where all devices are alike.

        The paper's theorems call it also the λ of the least variance over benign devices. That holds without
        adversaries; with them only as K → ∞: see `fairest`.
        """
        return self.s * self.K / self.relatedness if self.relatedness > 0 else math.inf

    @property
    def least_error(self) -> float:
        """σ²_{w,a} with 1/σ²_{w,a} = 1/s + (K−1)/(D + s): the error at λ*, and the posterior variance of w_k."""
        return 1 / (1 / self.s + (self.K - 1) / (self.relatedness + self.s))

    def covariance(self, lam: ArrayLike) -> Array:
        """C, the covariance of the errors of two benign devices: they share w*. Like `lam` in shape."""
        b, K = weight(lam), self.K
        shared = self.s / K + (self.taus**2).sum() / K**2
        return np.asarray(b**2 * shared + 2 * (1 - b) * b * self.s / K - 2 * b**2 * self.tau**2 / K)

    def error(self, lam: ArrayLike) -> Array:
        """V = E (ŵ_k(λ) − w_k)² of a benign device: the expected test error less its noise. Like `lam` in shape."""
        b = weight(lam)
        return (1 - b) ** 2 * self.s + b**2 * self.tau**2 + self.covariance(lam)

    def variance(self, lam: ArrayLike) -> Array:
        """E var_k e_k² = 2 (1 − 1/K_b) (V² − C²), var over the K_b benign devices, divided by K_b.

        At λ* the paper has 2σ⁴_{w,a}, which leaves out K_b and C; at K → ∞ they are the same. (Its proof ends in
        2dσ²_w for 2dσ⁴_w, and counts pairs of coordinates twice.) It drops the noise of a test label, of variance σ²,
        from the loss: with it the variance is (1 − 1/K_b) (4σ²V + 2σ⁴) more, which is least at the same λ as V.
        """
        return 2 * (1 - 1 / self.K_b) * (self.error(lam) ** 2 - self.covariance(lam) ** 2)

    @property
    def fairest(self) -> float:
        """argmin over λ of `variance`: λ* without adversaries, more than λ*_a with them (τ_a > τ).

        V is flat at λ*_a, where C is positive and still grows: errors that share more of w* differ less. Of one benign
        device alone the variance is 0 at every λ, and this is no answer.
        """
        return search.least(lambda lam: float(self.variance(lam)), near=self._guess)

    @property
    def _guess(self) -> float:
        return self.lam_star if 0 < self.lam_star < math.inf else 1.0

    def mmse(self, means: Array) -> Array:
        """E[w_k | x̄_k, mean of the other x̄_j] of the benign devices: [..., K] to [..., K_b]. It is ŵ_k(λ*).

        σ²_{w,a}/s x̄_k + (K−1) σ²_{w,a}/(D + s) x̄^{∖k}. Without adversaries no estimator is better. With them one that
        knows who is malicious is: `bayes.given_all`; the paper's "any federated algorithm" has these two observations.
        """
        own = means[..., self.K_a :]
        others = (means.sum(axis=-1, keepdims=True) - own) / (self.K - 1)
        least = self.least_error
        return np.asarray(least / self.s * own + (self.K - 1) * least / (self.relatedness + self.s) * others)

    def draw(self, trials: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """w_k and x̄_k of independent trials at θ = 0, [trials, K] each; no error depends on θ."""
        w = rng.normal(size=(trials, self.K)) * self.taus
        return w, w + math.sqrt(self.s) * rng.normal(size=w.shape)

    def squared_errors(self, drawn: tuple[Array, Array], lam: float) -> Array:
        """(ŵ_k(λ) − w_k)² of the benign devices, [trials, K_b]."""
        w, means = drawn
        return ((estimate(means, lam) - w) ** 2)[:, self.K_a :]


def check_strength(owner: str, attacked: bool, tau_a: Any) -> None:
    """τ_a is given where there are adversaries, and only there."""
    require(
        attacked == (tau_a is not None),
        f"{owner} needs tau_a with adversaries and only with them, got tau_a={short(tau_a)}: give both or neither",
    )
    if tau_a is not None:
        nonnegative(owner, "tau_a", tau_a)
