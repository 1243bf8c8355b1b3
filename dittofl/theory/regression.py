"""Federated linear regression with any inputs: the exact error of Ditto at every λ, and the Bayes estimators.

    F_k(w) = (1/2n_k) ‖X_k w − y_k‖²,  y_k = X_k w_k + z_k,  z_k ~ N(0, σ² I),  w_k ~ N(θ, τ² I), malicious N(θ, τ_a² I)

All that F_k depends on is H_k = X_kᵀX_k/n_k and c_k = X_kᵀy_k/n_k: functions take the moments c [..., K, d], and a
device may have fewer samples than features. Li et al. 2021, appendix "Federated Linear Regression".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dittofl.errors import blamed, is_whole, nonnegative, positive, require, short
from dittofl.theory import search
from dittofl.theory.point import Array, check_strength


@dataclass(frozen=True, kw_only=True, eq=False)
class Regression:
    """ŵ_k(λ) = (H_k + λI)⁻¹ (c_k + λ w*), w* = (Σ_j H_j)⁻¹ Σ_j c_j, with the error e_k = ŵ_k(λ) − w_k known exactly.

    e_k is linear in (w_j − θ) and z_j: Gaussian, mean 0, no θ in it. Errors are E e_kᵀ T e_k, where `test` is T = E xxᵀ
    of a test input, [d, d] or [K, d, d] (None: I). The paper's 1/n in F_k would double λ*; its solution is that of
    1/(2n), as here.

    >>> X = [np.array([[1.0], [1.0]])] * 3
    >>> problem = Regression(X=X, sigma=1.0, tau=0.5)
    >>> round(problem.lam_star, 4), problem.error(problem.lam_star).round(4).tolist()
    (2.0, [0.2778, 0.2778, 0.2778])
    """

    X: Sequence[Array]  # [n_k, d] of every device
    sigma: float
    tau: float
    malicious: Iterable[int] = ()
    tau_a: float | None = None
    test: Array | None = None

    def __post_init__(self) -> None:
        positive("Regression", "sigma", self.sigma)
        nonnegative("Regression", "tau", self.tau)
        with blamed("Regression's X=[…], matrices of numbers,"):
            X = tuple(np.asarray(x, dtype=np.float64) for x in self.X)
        require(
            len(X) >= 2 and len({x.shape[1:] for x in X}) == 1 and all(x.ndim == 2 and x.size for x in X),
            f"Regression needs two X=[…] or more, each [n_k, d], got shapes {short([x.shape for x in X])}",
        )
        require(all(np.isfinite(x).all() for x in X), "Regression got an X that is not finite: mend it")
        object.__setattr__(self, "X", X)
        with blamed("Regression's malicious=[…], devices by number,"):
            who = tuple(sorted(set(self.malicious)))
        require(
            all(is_whole(k, 0) and k < len(X) for k in who) and len(who) < len(X),
            f"Regression needs malicious=[…] among 0 … {len(X) - 1} and one benign device, got {short(who)}",
        )
        object.__setattr__(self, "malicious", who)
        check_strength("Regression", bool(who), self.tau_a)
        if self.test is not None:
            with blamed("Regression's test=, E xxᵀ of a test input,"):
                T = np.asarray(self.test, dtype=np.float64)
            fits = T.shape in ((self.d, self.d), (self.K, self.d, self.d)) and np.isfinite(T).all()
            require(fits, f"Regression needs test= of shape [{self.d}, {self.d}] or one a device, got {T.shape}")
        require(np.linalg.matrix_rank(self.H.sum(0)) == self.d, "Regression needs Σ X_kᵀX_k of full rank: add samples")

    @property
    def K(self) -> int:
        return len(self.X)

    @property
    def d(self) -> int:
        return int(self.X[0].shape[1])

    @cached_property
    def n(self) -> Array:
        """The samples of every device [K]."""
        return np.array([len(x) for x in self.X], dtype=np.float64)

    @cached_property
    def benign(self) -> list[int]:
        return [k for k in range(self.K) if k not in tuple(self.malicious)]

    @cached_property
    def taus(self) -> Array:
        """The spread of every device's w_k [K]."""
        taus = np.full(self.K, float(self.tau))
        taus[list(self.malicious)] = self.tau_a or 0.0
        return taus

    @cached_property
    def H(self) -> Array:
        """H_k = X_kᵀX_k / n_k, the Hessian of F_k, [K, d, d]."""
        return np.stack([x.T @ x / len(x) for x in self.X])

    @cached_property
    def noise(self) -> Array:
        """B_k [K, d, d] with c_k = H_k w_k + B_k ξ, ξ standard normal: B_k = (σ/n_k) R_kᵀ, X_k = Q_k R_k."""
        # Not by a root of H_k, whose zero eigenvalues would leave √rounding, to be divided by a small λ.
        noise = np.zeros_like(self.H)
        for k, x in enumerate(self.X):
            R = np.asarray(np.linalg.qr(x, mode="r"))
            noise[k, :, : len(R)] = self.sigma / len(x) * R.T
        return noise

    @cached_property
    def test_root(self) -> Array:
        """T^½ of the benign devices, [K_b, d, d] or [d, d]."""
        T = np.eye(self.d) if self.test is None else np.asarray(self.test, dtype=np.float64)
        values, vectors = np.linalg.eigh(T if T.ndim == 2 else T[self.benign])
        return np.asarray(np.sqrt(np.maximum(values, 0))[..., :, None] * vectors.swapaxes(-1, -2))

    def moments(self, y: Sequence[Array]) -> Array:
        """c_k = X_kᵀ y_k / n_k of labels y_k [n_k]: [K, d]."""
        return np.stack([x.T @ labels / len(x) for x, labels in zip(self.X, y, strict=True)])

    def w_star(self, c: Array) -> Array:
        """w* = argmin (1/K) Σ_k F_k = (Σ H_k)⁻¹ Σ c_k: [..., K, d] to [..., d]. (The paper has 1/K before argmin.)"""
        return np.asarray(c.sum(axis=-2) @ np.linalg.inv(self.H.sum(0)))

    def pull(self, lam: float) -> Array:
        """J_k = (H_k + λI)⁻¹, at λ = 0 the pseudo-inverse, at λ = ∞ 0: [K, d, d]."""
        require(lam >= 0, f"λ must be ≥ 0, got {short(lam)}: give a number from 0 to infinity")
        if np.isinf(lam):
            return np.zeros_like(self.H)
        if lam == 0:
            return np.asarray(np.linalg.pinv(self.H, hermitian=True))
        return np.asarray(np.linalg.inv(self.H + lam * np.eye(self.d)))

    def estimate(self, c: Array, lam: float) -> Array:
        """ŵ_k(λ) = w* + (H_k + λI)⁻¹ (c_k − H_k w*), [..., K, d]: λ = 0 is local, λ = ∞ global.

        With fewer samples than features λ = 0 is the limit λ → 0: of the minimisers of F_k the nearest to w*.
        """
        w = self.w_star(c)[..., None, :]
        return np.asarray(
            w + np.einsum("kij,...kj->...ki", self.pull(lam), c - np.einsum("kij,...kj->...ki", self.H, w))
        )

    def _errors(self, lam: float) -> Array:
        """L_k [K_b, d, 2Kd] with T^½ e_k = L_k ξ, ξ standard normal: the exact joint law of the errors."""
        J, eye = self.pull(lam)[self.benign], np.eye(self.d)
        to_w = (eye - J @ self.H[self.benign]) @ np.linalg.inv(self.H.sum(0))
        own = np.eye(self.K)[self.benign][:, :, None, None]  # whether j is k, [K_b, K, 1, 1]
        of_c = own * J[:, None] + to_w[:, None]  # ∂e_k/∂c_j, [K_b, K, d, d]
        of_w = (of_c @ self.H - own * eye) * self.taus[:, None, None]
        parts = np.concatenate([of_w, of_c @ self.noise], axis=-1)
        return np.asarray(self.test_root @ parts.swapaxes(1, 2).reshape(len(self.benign), self.d, -1))

    def error(self, lam: float) -> Array:
        """E e_kᵀ T e_k of the benign devices, [K_b]."""
        return np.asarray((self._errors(lam) ** 2).sum(axis=(1, 2)))

    def variance(self, lam: float) -> float:
        """E var_k (e_kᵀTe_k), benign devices, ddof 0: Cov(e_kᵀTe_k, e_lᵀTe_l) = 2 ‖L_k L_lᵀ‖², as e is Gaussian."""
        L = self._errors(lam)
        q = (L**2).sum(axis=(1, 2))
        covariance = 2 * (np.einsum("kij,lmj->klim", L, L) ** 2).sum(axis=(2, 3))
        return float(np.mean(np.diag(covariance)) - covariance.mean() + q.var())

    @cached_property
    def near(self) -> float:
        """σ²/(n τ²) at the mean n: the λ* of orthogonal inputs, where searches begin."""
        return float(self.sigma**2 / (self.n.mean() * self.tau**2)) if self.tau else 1.0

    @cached_property
    def lam_star(self) -> float:
        """argmin over λ of the mean of `error` over benign devices."""
        return search.least(lambda lam: float(self.error(lam).mean()), near=self.near)

    @cached_property
    def fairest(self) -> float:
        """argmin over λ of `variance`."""
        return search.least(self.variance, near=self.near)

    def draw(self, trials: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """w_k and c_k of independent trials at θ = 0, [trials, K, d] each."""
        w = rng.normal(size=(trials, self.K, self.d)) * self.taus[:, None]
        drawn = rng.normal(size=w.shape)
        c = np.einsum("kij,tkj->tki", self.H, w) + np.einsum("kij,tkj->tki", self.noise, drawn)
        return w, np.asarray(c)

    def squared_errors(self, drawn: tuple[Array, Array], lam: float) -> Array:
        """e_kᵀ T e_k of the benign devices, [trials, K_b]."""
        w, c = drawn
        e = (self.estimate(c, lam) - w)[:, self.benign, :, None]
        return np.asarray(((self.test_root @ e) ** 2).sum(axis=(2, 3)))
