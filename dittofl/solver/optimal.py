"""λ by the closed forms of the paper's theory."""

from dataclasses import dataclass
from typing import Any

from dittofl.errors import finite, nonnegative, positive, require, short, whole
from dittofl.types import Counter


@dataclass(frozen=True, kw_only=True)
class Optimal:
    """λ*(n) = σ²/(n τ²);   with K_a of K devices malicious   λ*_a(n) = (σ²/n) K / (K τ² + K_a/(K−1) (τ_a² − τ²)).

    For `Ditto(lam=…)`, which gives it each device's n. The forms are those of Li et al. 2021 (theorems on point
    estimation and linear regression with XᵀX = βI): σ² is the variance of the noise of a sample, τ² that of the true
    models of benign devices, τ_a² that of malicious ones. That λ is set by them on other tasks is ours, not the
    paper's: `estimate` finds σ² and τ². λ falls with n; take `proximal=True` where small devices make lr·λ large.

    >>> Optimal(sigma2=0.64, tau2=0.01)(30)
    2.1333333333333333
    >>> round(Optimal(sigma2=0.64, tau2=0.01, K=16, K_a=8, tau_a2=0.25)(30), 4)
    1.1852
    """

    sigma2: float
    tau2: float
    K: int = 2
    K_a: int = 0
    tau_a2: float | None = None

    def __post_init__(self) -> None:
        nonnegative("Optimal", "sigma2", self.sigma2)
        positive("Optimal", "tau2", self.tau2)
        whole("Optimal", "K", self.K, 2)
        whole("Optimal", "K_a", self.K_a, 0)
        require(self.K_a < self.K, f"Optimal needs K_a < K, got K_a={self.K_a} and K={self.K}")
        if self.K_a:
            require(
                self.tau_a2 is not None, f"Optimal needs tau_a2= for K_a={self.K_a} malicious devices, got tau_a2=None"
            )
        if self.tau_a2 is not None:
            strong = finite(self.tau_a2) and self.tau_a2 >= self.tau2
            require(strong, f"Optimal needs tau_a2 ≥ tau2={self.tau2}, got tau_a2={short(self.tau_a2)}")

    def __call__(self, n: Counter) -> Any:
        excess = 0.0 if self.tau_a2 is None else self.K_a / (self.K - 1) * (self.tau_a2 - self.tau2)
        return self.sigma2 * self.K / (self.K * self.tau2 + excess) / n
