"""The MMSE estimators of w_k in linear regression: what Ditto at λ* is compared with."""

from typing import NamedTuple

import numpy as np

from dittofl.errors import require
from dittofl.theory.point import Array
from dittofl.theory.regression import Regression


class Posterior(NamedTuple):
    """Of the benign devices' w_k: mean [..., K_b, d] and covariance [K_b, d, d]."""

    mean: Array
    covariance: Array


def given_all(problem: Regression, c: Array) -> Posterior:
    """w_k | all data = Σ_{w_k} ((X_kᵀX_k/σ²) ŵ_k + (Σ_θ^{∖k} + τ²I)⁻¹ μ_θ^{∖k}) + N(0, Σ_{w_k}).

    Σ_θ^{∖k} = (Σ_{i≠k} Σ_i⁻¹)⁻¹, μ_θ^{∖k} = Σ_θ^{∖k} Σ_{i≠k} Σ_i⁻¹ ŵ_i, Σ_i = σ² (X_iᵀX_i)⁻¹ + τ_i² I (Li et al. 2021,
    appendix, lemmas before the first theorem). No estimator has a lower error. With adversaries it knows who they are
    and their τ_a: it beats every λ, also λ*_a, which the paper calls most accurate "among any" algorithm.

    >>> problem = Regression(X=[np.ones((2, 1))] * 3, sigma=1.0, tau=0.5)
    >>> given_all(problem, np.array([[0.0], [3.0], [6.0]])).mean.ravel().round(6).tolist()
    [2.0, 3.0, 4.0]
    """
    # Without inverses of X_iᵀX_i: Σ_i⁻¹ = G (σ²I + τ²G)⁻¹ and Σ_i⁻¹ ŵ_i = (σ²I + τ²G)⁻¹ X_iᵀy_i, G = X_iᵀX_i.
    G = problem.H * problem.n[:, None, None]
    inner = np.linalg.inv(problem.sigma**2 * np.eye(problem.d) + problem.taus[:, None, None] ** 2 * G)
    precision, weighted = G @ inner, _apply(inner * problem.n[:, None, None], c)
    benign = problem.benign
    others = precision.sum(0) - precision[benign]
    require(
        (np.linalg.matrix_rank(others) == problem.d).all(),
        "the other devices leave θ undetermined, as Σ X_iᵀX_i over i ≠ k is singular: add devices or samples",
    )
    spread = np.linalg.inv(others)
    mu = _apply(spread, weighted.sum(axis=-2, keepdims=True) - weighted[..., benign, :])
    return _with_own(problem, c, mu, spread)


def given_mean(problem: Regression, c: Array) -> Posterior:
    """w_k | ŵ_k, (1/(K−1)) Σ_{i≠k} ŵ_i, the two observations of the paper's theorems with adversaries.

    Σ_w^{∖k} = (K−1)⁻² Σ_{i≠k} (σ² (X_iᵀX_i)⁻¹ + τ_i² I), Σ_{w,a}⁻¹ = X_kᵀX_k/σ² + (Σ_w^{∖k} + τ²I)⁻¹. With
    XᵀX = βI its mean is ŵ_k(λ*_a). Every X_k must have full column rank.

    >>> problem = Regression(X=[np.ones((2, 1))] * 3, sigma=1.0, tau=0.5)
    >>> given_mean(problem, np.array([[0.0], [3.0], [6.0]])).mean.ravel().round(6).tolist()
    [2.0, 3.0, 4.0]
    """
    eye, benign = np.eye(problem.d), problem.benign
    require(
        (np.linalg.matrix_rank(problem.H) == problem.d).all(),
        "given_mean needs every X_k of full column rank, as it takes each ŵ_k: use given_all, or add samples",
    )
    local = np.asarray(_apply(problem.pull(0.0), c))
    noise = problem.sigma**2 * problem.pull(0.0) / problem.n[:, None, None]
    covariance = noise + problem.taus[:, None, None] ** 2 * eye
    mu = (local.sum(axis=-2, keepdims=True) - local[..., benign, :]) / (problem.K - 1)
    return _with_own(problem, c, mu, (covariance.sum(0) - covariance[benign]) / (problem.K - 1) ** 2)


def _with_own(problem: Regression, c: Array, mu: Array, spread: Array) -> Posterior:
    """What device k's data adds to θ ~ N(mu, spread) from the others."""
    benign = problem.benign
    prior = np.asarray(np.linalg.inv(spread + problem.tau**2 * np.eye(problem.d)))
    scale = problem.n[benign] / problem.sigma**2
    covariance = np.asarray(np.linalg.inv(prior + problem.H[benign] * scale[:, None, None]))
    return Posterior(_apply(covariance, _apply(prior, mu) + c[..., benign, :] * scale[:, None]), covariance)


def _apply(A: Array, x: Array) -> Array:
    """A_k x_k of every device, [K, d, d] and [..., K, d]."""
    return np.asarray(np.einsum("kij,...kj->...ki", A, x))
