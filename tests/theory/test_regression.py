"""Linear regression with any inputs: exact errors and Bayes estimators against naive references."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dittofl import InputError
from dittofl.theory import Orthogonal, Point, Regression, bayes
from dittofl.theory.search import least
from dittofl.theory.simulation import locate, mean_over_devices, simulate, variance_over_devices

LAMBDAS = (0.05, 0.7, 20.0, math.inf)


def problem(n: tuple[int, ...] = (6, 12, 3, 25), *, attacked: bool = True, test: bool = False) -> Regression:
    """Inputs with correlated, unequally scaled columns."""
    rng = np.random.default_rng(len(n))
    mix = rng.normal(size=(3, 3)) + np.eye(3)
    X = [rng.normal(size=(size, 3)) @ mix * rng.uniform(0.4, 1.5) for size in n]
    T = mix @ mix.T if test else None
    attack = {"malicious": (1,), "tau_a": 2.0} if attacked else {}
    return Regression(X=X, sigma=0.9, tau=0.5, test=T, **attack)


VARIANTS = {
    "clean": problem(attacked=False),
    "attacked": problem(),
    "fewer samples than features": problem((2, 7, 1, 9)),
    "test inputs": problem(test=True),
}
variants = pytest.mark.parametrize("its", VARIANTS.values(), ids=VARIANTS.keys())


def labels(its: Regression, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [x @ rng.normal(size=3) + rng.normal(size=len(x)) for x in its.X]


def solve_by_rows(its: Regression, y: list[np.ndarray], lam: float) -> np.ndarray:
    """ŵ_k(λ) by least squares on stacked rows: an oracle that knows neither H nor c."""
    X = np.concatenate([x / math.sqrt(len(x)) for x in its.X])
    w = np.linalg.lstsq(X, np.concatenate([t / math.sqrt(len(t)) for t in y]), rcond=None)[0]
    if math.isinf(lam):
        return np.tile(w, (its.K, 1))
    pull = math.sqrt(lam) * np.eye(its.d)
    stacked = [
        (np.concatenate([x / math.sqrt(len(x)), pull]), np.concatenate([t / math.sqrt(len(t)), pull @ w]))
        for x, t in zip(its.X, y, strict=True)
    ]
    return np.array([np.linalg.lstsq(A, b, rcond=None)[0] for A, b in stacked])


def units(its: Regression) -> Iterator[tuple[np.ndarray, list[np.ndarray], float]]:
    """w_k [K, d], z_k and the standard deviation, for every single random number of the model."""
    ends = np.cumsum([0, *(len(x) for x in its.X)])
    for k in range(its.K):
        for i in range(its.d):
            w = np.zeros((its.K, its.d))
            w[k, i] = 1
            yield w, np.split(np.zeros(ends[-1]), ends[1:-1]), its.taus[k]
    for i in range(ends[-1]):
        yield np.zeros((its.K, its.d)), np.split(np.eye(ends[-1])[i], ends[1:-1]), its.sigma


def joint_covariance(its: Regression, lam: float) -> np.ndarray:
    """Cov(e_k, e_l) [K, d, K, d], adding up one random number after the other."""
    total = np.zeros((its.K, its.d, its.K, its.d))
    for w, z, deviation in units(its):
        y = [x @ w_k + z_k for x, w_k, z_k in zip(its.X, w, z, strict=True)]
        e = solve_by_rows(its, y, lam) - w
        total += deviation**2 * np.einsum("ki,lj->kilj", e, e)
    return total


@variants
@pytest.mark.parametrize("lam", LAMBDAS)
def test_the_estimate_is_the_minimiser_of_h(its: Regression, lam: float) -> None:
    y = labels(its, 3)
    assert_allclose(its.estimate(its.moments(y), lam), solve_by_rows(its, y, lam), atol=1e-9)


@variants
@pytest.mark.parametrize("lam", LAMBDAS)
def test_error_and_variance_are_those_of_the_joint_law(its: Regression, lam: float) -> None:
    S, T = joint_covariance(its, lam), np.eye(3) if its.test is None else its.test
    error = [np.trace(T @ S[k, :, k]) for k in its.benign]
    assert_allclose(its.error(lam), error, rtol=1e-9)
    both = np.array([[2 * np.trace(T @ S[k, :, m] @ T @ S[m, :, k]) for m in its.benign] for k in its.benign])
    moments = both + np.outer(error, error)  # E q_k q_l
    assert_allclose(its.variance(lam), np.mean(np.diag(moments)) - moments.mean(), rtol=1e-8)


@variants
def test_error_and_variance_by_simulation(its: Regression) -> None:
    drawn = simulate(its, LAMBDAS, trials=8000, rng=np.random.default_rng(1))
    assert (abs(drawn.error - [its.error(lam).mean() for lam in LAMBDAS]) <= 4 * drawn.error_se).all()
    assert (abs(drawn.variance - [its.variance(lam) for lam in LAMBDAS]) <= 4 * drawn.variance_se).all()
    assert (drawn.error_se < 0.04 * drawn.error).all()


@variants
def test_lambda_star_minimises_the_error(its: Regression) -> None:
    grid = np.geomspace(its.lam_star / 30, 30 * its.lam_star, 401)
    assert min(its.error(lam).mean() for lam in grid) >= its.error(its.lam_star).mean() * (1 - 1e-9)
    assert min(its.variance(lam) for lam in grid) >= its.variance(its.fairest) * (1 - 1e-9)


def test_lambda_star_by_simulation() -> None:
    its, rng = VARIANTS["attacked"], np.random.default_rng(2)
    for measure, expected in ((mean_over_devices, its.lam_star), (variance_over_devices, its.fairest)):
        found = locate(its, measure, trials=4000, rng=rng)
        assert abs(math.log(found.lam / expected)) <= 4 * found.log_se
        assert found.log_se < 0.3


@pytest.mark.parametrize("K_a", [0, 2])
def test_orthogonal_inputs_give_the_closed_form(K_a: int) -> None:
    closed = Orthogonal(sigma=0.8, n=9, d=2, beta=5.0, tau=0.4, K=6, K_a=K_a, tau_a=1.5 if K_a else None)
    its = closed.with_inputs(np.random.default_rng(0))
    for lam in (0.0, *LAMBDAS):
        assert_allclose(its.error(lam), np.full(6 - K_a, closed.error(lam)), rtol=1e-10)
        assert_allclose(its.variance(lam), closed.variance(lam), rtol=1e-10)
    assert_allclose([its.lam_star, its.fairest], [closed.lam_star, closed.fairest], rtol=1e-5)


def test_a_column_of_ones_is_point_estimation() -> None:
    point = Point(sigma=0.8, n=7, tau=0.4, K=5, K_a=2, tau_a=1.5)
    its = Regression(X=[np.ones((7, 1))] * 5, sigma=0.8, tau=0.4, malicious=(0, 1), tau_a=1.5)
    for lam in (0.0, *LAMBDAS):
        assert_allclose(its.error(lam), np.full(3, point.error(lam)), rtol=1e-12)
        assert_allclose(its.variance(lam), point.variance(lam), rtol=1e-12)


def test_the_convention_is_one_over_2n() -> None:
    """∇ of (1/2n)‖X v − y‖² + λ/2 ‖v − w*‖² is 0 at ŵ(λ); with 1/n it is 0 at ŵ(λ/2), and λ* = 2σ²/(nτ²)."""
    closed = Orthogonal(sigma=0.8, n=9, d=2, beta=5.0, tau=0.4, K=6)
    its, lam = closed.with_inputs(np.random.default_rng(0)), 0.6
    y = [np.random.default_rng(k).normal(size=9) for k in range(6)]
    c = its.moments(y)
    w = its.w_star(c)
    for factor, at in ((1, its.estimate(c, lam)), (2, its.estimate(c, lam / 2))):
        for x, v, its_y in zip(its.X, at, y, strict=True):
            assert_allclose(factor / 9 * x.T @ (x @ v - its_y) + lam * (v - w), 0, atol=1e-12)
    assert_allclose(closed.lam_star, 0.8**2 / (9 * 0.4**2), rtol=1e-12)
    twice = least(lambda lam: float(its.error(lam / 2).mean()))
    assert_allclose(twice, 2 * 0.8**2 / (9 * 0.4**2), rtol=1e-5)


def test_lambda_0_is_the_limit_where_a_device_has_too_few_samples() -> None:
    its = VARIANTS["fewer samples than features"]
    c = its.moments(labels(its, 5))
    assert_allclose(its.estimate(c, 0.0), its.estimate(c, 1e-7), atol=1e-4)
    assert_allclose(its.error(0.0), its.error(1e-7), rtol=1e-4)
    assert_allclose(its.X[0] @ its.estimate(c, 0.0)[0], labels(its, 5)[0], atol=1e-9)


# Bayes estimators


def by_joint_precision(its: Regression, y: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Means and covariances of w_k [K, d] given y from the joint precision of (θ, w_1, …, w_K), flat in θ."""
    d, K = its.d, its.K
    A, b = np.zeros(((K + 1) * d, (K + 1) * d)), np.zeros((K + 1) * d)
    for k, (x, its_y, tau) in enumerate(zip(its.X, y, its.taus, strict=True)):
        at, eye = slice((k + 1) * d, (k + 2) * d), np.eye(d) / tau**2
        A[:d, :d] += eye
        A[:d, at], A[at, :d] = -eye, -eye
        A[at, at] = x.T @ x / its.sigma**2 + eye
        b[at] = x.T @ its_y / its.sigma**2
    covariance = np.linalg.inv(A).reshape(K + 1, d, K + 1, d)
    return np.linalg.solve(A, b).reshape(K + 1, d)[1:], np.array([covariance[k, :, k] for k in range(1, K + 1)])


@variants
def test_given_all_is_the_joint_posterior(its: Regression) -> None:
    y = labels(its, 4)
    mean, covariance = by_joint_precision(its, y)
    found = bayes.given_all(its, its.moments(y))
    assert_allclose(found.mean, mean[its.benign], atol=1e-9)
    assert_allclose(found.covariance, covariance[its.benign], atol=1e-9)


@pytest.mark.parametrize("K_a", [0, 2])
def test_with_orthogonal_inputs_ditto_at_lambda_star_is_the_mmse_estimator(K_a: int) -> None:
    closed = Orthogonal(sigma=0.8, n=9, d=2, beta=5.0, tau=0.4, K=6, K_a=K_a, tau_a=1.5 if K_a else None)
    its = closed.with_inputs(np.random.default_rng(0))
    _, c = its.draw(10, np.random.default_rng(1))
    ditto = its.estimate(c, closed.lam_star)[:, its.benign]
    two, everything = bayes.given_mean(its, c), bayes.given_all(its, c)
    assert_allclose(two.mean, ditto, atol=1e-12)
    assert_allclose(np.trace(two.covariance, axis1=1, axis2=2), closed.least_error, rtol=1e-12)
    if K_a:  # who knows the malicious does better: "most accurate among any" is given the two observations
        assert (np.trace(everything.covariance, axis1=1, axis2=2) < 0.95 * closed.least_error).all()
    else:
        assert_allclose(everything.mean, ditto, atol=1e-12)
        assert_allclose(everything.covariance, two.covariance, atol=1e-12)


def test_given_mean_has_the_error_it_says_and_lies_between() -> None:
    its = VARIANTS["attacked"]
    w, c = its.draw(20_000, np.random.default_rng(2))
    two, everything = bayes.given_mean(its, c), bayes.given_all(its, c)
    for found in (two, everything):
        errors = ((found.mean - w[:, its.benign]) ** 2).sum(axis=2)
        expected = np.trace(found.covariance, axis1=1, axis2=2)
        assert (abs(errors.mean(axis=0) - expected) <= 4 * errors.std(axis=0) / math.sqrt(len(errors))).all()
    least_two, least_all = (np.trace(one.covariance, axis1=1, axis2=2) for one in (two, everything))
    assert (least_all < least_two).all()
    assert (least_all < its.error(its.lam_star)).all()


def test_mistakes_are_told() -> None:
    X = [np.eye(2)[:1], np.eye(2)]
    with pytest.raises(InputError, match="each \\[n_k, d\\]"):
        Regression(X=[np.ones(3), np.ones(3)], sigma=1.0, tau=1.0)
    with pytest.raises(InputError, match="full rank"):
        Regression(X=[np.eye(2)[:1]] * 2, sigma=1.0, tau=1.0)
    with pytest.raises(InputError, match="malicious"):
        Regression(X=X, sigma=1.0, tau=1.0, malicious=(2,), tau_a=2.0)
    with pytest.raises(InputError, match="tau_a with adversaries"):
        Regression(X=X, sigma=1.0, tau=1.0, malicious=(1,))
    its = Regression(X=X, sigma=1.0, tau=1.0)
    with pytest.raises(InputError, match="full column rank"):
        bayes.given_mean(its, np.zeros((2, 2)))
    with pytest.raises(InputError, match="undetermined"):
        bayes.given_all(its, np.zeros((2, 2)))
    with pytest.raises(InputError, match="λ must be ≥ 0"):
        replace(its, tau=0.5).error(-1.0)
