"""Point estimation and its copy in d dimensions: closed forms against simulation in random settings."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dittofl import InputError
from dittofl.theory import Orthogonal, Point
from dittofl.theory.point import estimate
from dittofl.theory.search import least
from dittofl.theory.simulation import locate, mean_over_devices, simulate, variance_over_devices


def setting(seed: int) -> Point:
    """Even seeds are clean, odd ones have adversaries."""
    rng = np.random.default_rng(seed)
    K, tau = int(rng.integers(4, 20)), float(rng.uniform(0.1, 1))
    clean = Point(sigma=float(rng.uniform(0.3, 2)), n=int(rng.integers(2, 40)), tau=tau, K=K)
    if seed % 2 == 0:
        return clean
    return replace(clean, K_a=int(rng.integers(1, K - 1)), tau_a=tau * float(rng.uniform(1.2, 5)))


SETTINGS = [setting(seed) for seed in range(20)]
settings = pytest.mark.parametrize("problem", SETTINGS, ids=[f"{i}" for i in range(20)])
FIGURE2 = Point(sigma=0.8, n=30, tau=0.1, K=16, K_a=8, tau_a=0.5)


@settings
def test_mean_and_variance_of_the_error_by_simulation(problem: Point) -> None:
    lams = [0.0, problem.lam_star / 2, problem.lam_star, 4 * problem.lam_star, math.inf]
    drawn = simulate(problem, lams, trials=20_000, rng=np.random.default_rng(1))
    assert (abs(drawn.error - problem.error(lams)) <= 4 * drawn.error_se).all()
    assert (abs(drawn.variance - problem.variance(lams)) <= 4 * drawn.variance_se).all()
    assert (drawn.error_se < 0.03 * drawn.error).all()  # else the lines above would say little
    assert (drawn.variance_se < 0.06 * drawn.variance).all()


@settings
def test_lambda_star_by_simulation(problem: Point) -> None:
    rng, near = np.random.default_rng(2), problem.lam_star
    found = locate(problem, mean_over_devices, trials=4000, rng=rng, near=near)
    assert abs(math.log(found.lam / problem.lam_star)) <= 4 * found.log_se
    assert found.log_se < 0.2
    fairest = locate(problem, variance_over_devices, trials=4000, rng=rng, near=near)
    assert abs(math.log(fairest.lam / problem.fairest)) <= 4 * fairest.log_se
    assert fairest.log_se < 0.4


@settings
def test_lambda_star_is_the_minimiser_and_its_error_the_posterior_variance(problem: Point) -> None:
    assert_allclose(least(lambda lam: float(problem.error(lam)), near=1.0), problem.lam_star, rtol=1e-5)
    assert_allclose(problem.error(problem.lam_star), problem.least_error, rtol=1e-12)


@settings
def test_ditto_at_lambda_star_is_the_mmse_estimator(problem: Point) -> None:
    _, means = problem.draw(50, np.random.default_rng(3))
    ditto = estimate(means, problem.lam_star)[:, problem.K_a :]
    assert_allclose(problem.mmse(means), ditto, atol=1e-12)
    assert abs(problem.mmse(means) - estimate(means, 1.1 * problem.lam_star)[:, problem.K_a :]).max() > 1e-4


@settings
def test_the_mmse_residual_is_uncorrelated_with_both_observations(problem: Point) -> None:
    """That is what makes it the best linear estimator, and for normal variables the best."""
    w, means = problem.draw(40_000, np.random.default_rng(4))
    own = means[:, problem.K_a :]
    residual = w[:, problem.K_a :] - problem.mmse(means)
    others = (means.sum(axis=1, keepdims=True) - own) / (problem.K - 1)
    # Against x̄_k − x̄^{∖k}: under the flat prior of θ only differences have a distribution.
    products = (residual * (own - others)).mean(axis=1)
    assert abs(products.mean()) <= 4 * products.std() / math.sqrt(len(products))


def test_the_minimiser_of_h_from_single_observations() -> None:
    """x_{k,i} drawn one by one, ∇h_k(ŵ_k(λ)) = (v − x̄_k) + λ (v − w*) = 0, and the error as the formula has it."""
    problem, rng, lam = replace(FIGURE2, n=4), np.random.default_rng(5), 0.7
    w = rng.normal(size=(20_000, 16)) * problem.taus + 3.0  # θ = 3
    x = w[:, :, None] + 0.8 * rng.normal(size=(20_000, 16, 4))
    v = estimate(x.mean(axis=2), lam)
    gradient = (v - x.mean(axis=2)) + lam * (v - x.mean(axis=(1, 2))[:, None])
    assert abs(gradient).max() < 1e-12
    errors = ((v - w)[:, 8:] ** 2).mean(axis=1)
    assert abs(errors.mean() - problem.error(lam)) <= 4 * errors.std() / math.sqrt(len(errors))


@pytest.mark.parametrize("problem", [FIGURE2, replace(FIGURE2, K_a=0, tau_a=None)], ids=["attacked", "clean"])
def test_the_noise_of_test_labels_adds_to_the_variance(problem: Point) -> None:
    """var_k (e_k + z)², z ~ N(0, σ²) on every device: the step of the fairness proof that drops z is no identity."""
    rng, sigma = np.random.default_rng(8), problem.sigma
    w, means = problem.draw(60_000, rng)
    lams = (0.0, problem.lam_star, 3.0, math.inf)
    for lam in lams:
        e = (estimate(means, lam) - w)[:, problem.K_a :]
        drawn = ((e + sigma * rng.normal(size=e.shape)) ** 2).var(axis=1)
        more = (1 - 1 / problem.K_b) * (4 * sigma**2 * problem.error(lam) + 2 * sigma**4)
        assert abs(drawn.mean() - problem.variance(lam) - more) <= 4 * drawn.std() / math.sqrt(len(drawn))


def test_covariance_of_two_devices_by_simulation() -> None:
    w, means = FIGURE2.draw(100_000, np.random.default_rng(6))
    for lam in (0.5, 3.0, math.inf):
        e = (estimate(means, lam) - w)[:, 8:]
        products = e[:, 0] * e[:, 1]
        assert abs(products.mean() - FIGURE2.covariance(lam)) <= 4 * products.std() / math.sqrt(len(products))


# Adversaries at finite K: λ*_a is not the λ of the least variance


def test_the_variance_minimiser_of_figure_2_is_not_lambda_star() -> None:
    grid = np.linspace(0.5, 3, 250_001)
    assert_allclose(FIGURE2.fairest, grid[FIGURE2.variance(grid).argmin()], atol=2e-5)
    found = locate(FIGURE2, variance_over_devices, trials=60_000, rng=np.random.default_rng(7))
    assert abs(math.log(found.lam / FIGURE2.fairest)) <= 4 * found.log_se
    assert abs(math.log(found.lam / FIGURE2.lam_star)) > 4 * found.log_se
    assert FIGURE2.fairest / FIGURE2.lam_star > 1.15


def test_the_correction_vanishes_as_devices_multiply() -> None:
    problems = [replace(FIGURE2, K=16 * m, K_a=8 * m) for m in (1, 3, 10, 100)]
    off = [problem.fairest / problem.lam_star - 1 for problem in problems]
    lost = [float(problem.variance(problem.lam_star) / problem.variance(problem.fairest)) - 1 for problem in problems]
    assert sorted(off, reverse=True) == off
    assert sorted(lost, reverse=True) == lost
    assert 0 < off[-1] < 1e-3
    # The paper's 2σ⁴ is the limit of the variance as well.
    ratios = [float(problem.variance(problem.lam_star)) / (2 * problem.least_error**2) for problem in problems]
    assert sorted(ratios) == ratios
    assert 0.99 < ratios[-1] < 1


@pytest.mark.parametrize("problem", SETTINGS[1::2])
def test_with_adversaries_fairness_wants_more_of_w(problem: Point) -> None:
    assert problem.fairest > problem.lam_star
    assert problem.covariance(problem.lam_star) > 0
    assert problem.covariance(1.001 * problem.lam_star) > problem.covariance(problem.lam_star)


@settings
def test_the_least_variance_is_the_papers_less_its_correlation(problem: Point) -> None:
    """2σ⁴_{w,a} (1 − 1/K_b) (1 − ρ²), ρ the correlation of two benign devices' errors."""
    V, C = problem.error(problem.lam_star), problem.covariance(problem.lam_star)
    expected = 2 * problem.least_error**2 * (1 - 1 / problem.K_b) * (1 - (C / V) ** 2)
    assert_allclose(problem.variance(problem.lam_star), expected, rtol=1e-12)


# XᵀX = βI


@pytest.mark.parametrize("seed", range(20))
def test_orthogonal_regression_by_simulation(seed: int) -> None:
    """With inputs drawn and w_k of d dimensions: error, variance, λ* within 4 standard errors; β drops out of λ*."""
    rng, point = np.random.default_rng(100 + seed), SETTINGS[seed]
    shape = {"n": int(rng.integers(4, 20)), "d": int(rng.integers(1, 4)), "beta": float(rng.uniform(2, 30))}
    population = {"sigma": point.sigma, "tau": point.tau, "K": point.K, "K_a": point.K_a, "tau_a": point.tau_a}
    closed = Orthogonal(**shape, **population)
    assert_allclose(closed.lam_star, Point(**population, n=shape["n"]).lam_star, rtol=1e-12)
    problem = closed.with_inputs(rng)
    lams = [0.0, closed.lam_star, 5 * closed.lam_star]
    drawn = simulate(problem, lams, trials=4000, rng=rng)
    assert (abs(drawn.error - closed.error(lams)) <= 4 * drawn.error_se).all()
    assert (abs(drawn.variance - closed.variance(lams)) <= 4 * drawn.variance_se).all()
    assert_allclose(closed.error(closed.lam_star), closed.least_error, rtol=1e-12)
    if seed < 6:
        found = locate(problem, mean_over_devices, trials=1500, rng=rng, near=closed.lam_star)
        assert abs(math.log(found.lam / closed.lam_star)) <= 4 * found.log_se


class GlobalIsBest:
    def draw(self, trials: int, rng: np.random.Generator) -> None:
        pass

    def squared_errors(self, drawn: None, lam: float) -> np.ndarray:
        return np.full((2, 1), 1 / (1 + lam))


def test_mistakes_are_told() -> None:
    with pytest.raises(InputError, match="K_a < K"):
        Point(sigma=1.0, n=5, tau=0.1, K=4, K_a=4, tau_a=1.0)
    with pytest.raises(InputError, match="tau_a with adversaries"):
        Point(sigma=1.0, n=5, tau=0.1, K=4, K_a=1)
    with pytest.raises(InputError, match="tau_a with adversaries"):
        Point(sigma=1.0, n=5, tau=0.1, K=4, tau_a=1.0)
    with pytest.raises(InputError, match="λ must be ≥ 0"):
        FIGURE2.error([1.0, -0.1])
    with pytest.raises(InputError, match="n ≥ d"):
        Orthogonal(sigma=1.0, n=2, d=3, beta=1.0, tau=1.0, K=4)
    with pytest.raises(InputError, match="sigma > 0"):
        Orthogonal(sigma=0.0, n=5, d=3, beta=1.0, tau=1.0, K=4)
    with pytest.raises(InputError, match="at the bound"):
        locate(GlobalIsBest(), mean_over_devices, trials=2, rng=np.random.default_rng(0))
