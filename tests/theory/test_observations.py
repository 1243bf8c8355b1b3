"""The appendix's statements, one test each: the monotonicity lemma and both lists of "Observations"."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from dittofl import SGD, Ditto, Federated, Federation, Method, Task
from dittofl.theory import Point, Regression
from tests.problems import rows, run, seeded
from tests.theory.test_point import FIGURE2, SETTINGS

CLEAN, ATTACKED = SETTINGS[::2], SETTINGS[1::2]
LAMBDAS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 1e4)

clean = pytest.mark.parametrize("problem", CLEAN)
attacked = pytest.mark.parametrize("problem", ATTACKED)


# Lemma: ∂F_k(ŵ_k(λ))/∂λ ≥ 0, ∂ψ(ŵ_k(λ))/∂λ ≤ 0, ŵ_k(λ) → w* as λ → ∞, for strongly convex F_k

Path = tuple[np.ndarray, np.ndarray, np.ndarray]  # F [λs, K], ψ [λs, K], the last ŵ_k − w* [K]


def of_regression() -> Path:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)) * scale for n, scale in ((5, 1.0), (9, 0.5), (30, 2.0))]
    y = [rng.normal(size=len(x)) for x in X]
    problem = Regression(X=X, sigma=1.0, tau=1.0)
    c = problem.moments(y)
    w = problem.w_star(c)
    v = [problem.estimate(c, lam) for lam in LAMBDAS]
    F = [[np.mean((x @ v_k - its) ** 2) / 2 for x, v_k, its in zip(X, at, y, strict=True)] for at in v]
    return np.array(F), ((np.array(v) - w) ** 2).sum(axis=2) / 2, np.linalg.norm(v[-1] - w, axis=1)


def of_training() -> Path:
    """Logistic regression with a ridge, by Algorithm 1 until it stands still."""
    draws = torch.Generator().manual_seed(1)
    x = torch.randn(4, 12, 2, generator=draws, dtype=torch.float64)
    y = (x @ torch.randn(4, 2, 1, generator=draws, dtype=torch.float64) > 0)[..., 0].double()
    task = Task(
        seeded(lambda: nn.Linear(2, 1)),
        nn.BCEWithLogitsLoss(),
        penalty=lambda p: 0.1 * sum((v**2).sum() for v in p.values()),
    )
    personal = {f"{lam}": Ditto(lam=lam, lr=0.7, proximal=True, steps=2) for lam in LAMBDAS}
    how = Method(local=SGD(lr=0.7), personal=personal, batch=None)
    data = Federation.from_parts(train={k: (x[k], y[k]) for k in range(4)}, test={})
    last: Federated = run(task, data, how, rounds=80)
    v = torch.stack([rows(last, name) for name in personal])
    logits = torch.einsum("kni,lki->lkn", x, v[..., :2]) + v[..., 2:]
    F = nn.functional.softplus(logits).mean(2) - (logits * y).mean(2) + 0.1 * (v**2).sum(2)
    off = v - last.w
    return F.numpy(), ((off**2).sum(2) / 2).numpy(), off[-1].norm(dim=1).numpy()


@pytest.fixture(scope="module", params=[of_regression, of_training], ids=["regression", "logistic, trained"])
def path(request: pytest.FixtureRequest) -> Path:
    make: Callable[[], Path] = request.param
    return make()


def test_lemma_the_training_loss_grows_with_lambda(path: Path) -> None:
    F, _, _ = path
    assert (np.diff(F, axis=0) > 0).all()


def test_lemma_the_distance_to_w_falls_with_lambda(path: Path) -> None:
    _, psi, _ = path
    assert (np.diff(psi, axis=0) < 0).all()


def test_lemma_the_limit_is_w(path: Path) -> None:
    _, psi, last = path
    assert (last < 1e-3).all()
    assert (psi[0] > 1e-2).all()


# Observations without adversaries


@clean
def test_one_lambda_minimises_error_and_variance(problem: Point) -> None:
    assert_allclose(problem.fairest, problem.lam_star, rtol=1e-5)
    for lam in (0.0, problem.lam_star / 2, 2 * problem.lam_star, math.inf):
        assert problem.error(lam) > problem.error(problem.lam_star)
        assert problem.variance(lam) > problem.variance(problem.lam_star)


@clean
def test_with_many_samples_local_training_is_best(problem: Point) -> None:
    stars = [replace(problem, n=n).lam_star for n in (10, 10**3, 10**6, 10**9)]
    assert sorted(stars, reverse=True) == stars
    assert stars[-1] < 1e-5
    many = replace(problem, n=10**9)
    assert_allclose(many.error(0.0), many.least_error, rtol=1e-5)
    assert_allclose(many.variance(0.0), many.variance(many.fairest), rtol=1e-5)


@clean
def test_unrelated_tasks_want_local_and_equal_ones_global_models(problem: Point) -> None:
    stars = [replace(problem, tau=tau).lam_star for tau in (1e4, 1.0, 1e-2, 1e-6, 0.0)]
    assert sorted(stars) == stars
    assert stars[0] < 1e-6
    assert stars[-1] == math.inf
    unrelated, same = replace(problem, tau=1e4), replace(problem, tau=0.0)
    assert_allclose(unrelated.error(0.0), unrelated.least_error, rtol=1e-6)
    assert_allclose(same.error(math.inf), same.least_error, rtol=1e-12)
    assert same.fairest == math.inf


# Observations with adversaries


@attacked
def test_under_attack_one_lambda_nearly_minimises_both(problem: Point) -> None:
    """The error exactly; the variance only as K → ∞ (facts of finite K: tests/theory/test_point.py)."""
    many = replace(problem, K=200 * problem.K, K_a=200 * problem.K_a)
    assert_allclose(many.fairest, many.lam_star, rtol=0.02)
    assert problem.variance(problem.lam_star) < 1.2 * problem.variance(problem.fairest)
    for lam in (0.0, problem.lam_star / 2, 2 * problem.lam_star, math.inf):
        assert problem.error(lam) > problem.error(problem.lam_star)


@attacked
def test_under_unbounded_attack_local_training_is_best(problem: Point) -> None:
    stars = [replace(problem, tau_a=tau_a).lam_star for tau_a in (2.0, 1e2, 1e4, 1e6)]
    assert sorted(stars, reverse=True) == stars
    assert stars[-1] < 1e-6
    worst = replace(problem, tau_a=1e6)
    assert_allclose(worst.least_error, worst.error(0.0), rtol=1e-6)
    assert_allclose(worst.variance(0.0), worst.variance(worst.fairest), rtol=1e-6)


@attacked
def test_under_attack_a_global_model_is_not_best_even_for_equal_tasks(problem: Point) -> None:
    same = replace(problem, tau=0.0)
    assert same.lam_star < math.inf
    assert_allclose(same.lam_star, same.s * same.K * (same.K - 1) / (same.K_a * same.tau_a**2), rtol=1e-12)
    assert same.error(math.inf) > 1.0001 * same.least_error


@attacked
def test_stronger_attacks_need_more_personalisation(problem: Point) -> None:
    by_count = [replace(problem, K_a=K_a).lam_star for K_a in range(1, problem.K)]
    by_power = [replace(problem, tau_a=problem.tau_a * factor).lam_star for factor in (1.0, 1.5, 3.0)]
    for stars in (by_count, by_power):
        assert all(after < before for before, after in pairwise(stars))


@attacked
def test_stronger_attacks_cost_accuracy_and_fairness(problem: Point) -> None:
    """σ²_{w,a} and 2σ⁴_{w,a} grow with K_a and τ_a. At finite K this is so of the variance over benign devices divided
    by K_b − 1; divided by K_b, it falls to 0 as one benign device is left."""
    more = [replace(problem, K_a=K_a) for K_a in range(1, problem.K - 1)]
    stronger = [replace(problem, tau_a=problem.tau_a * factor) for factor in (1.0, 1.5, 3.0)]
    for problems in (more, stronger):
        errors = [one.least_error for one in problems]
        spreads = [float(one.variance(one.lam_star)) * one.K_b / (one.K_b - 1) for one in problems]
        for values in (errors, spreads):
            assert all(after > before for before, after in pairwise(values))


def test_divided_by_the_benign_devices_the_least_variance_ends_at_zero() -> None:
    least = [float(one.variance(one.fairest)) for one in (replace(FIGURE2, K_a=K_a) for K_a in range(1, 16))]
    assert np.argmax(least) not in (0, len(least) - 1)
    assert least[-1] == 0


# Section 4


@attacked
def test_lambda_star_falls_with_samples_and_unrelatedness(problem: Point) -> None:
    assert replace(problem, n=2 * problem.n).lam_star < problem.lam_star
    assert replace(problem, tau=1.1 * problem.tau).lam_star < problem.lam_star


@attacked
def test_without_an_attack_lambda_star_is_that_of_clean_devices(problem: Point) -> None:
    harmless = replace(problem, tau_a=problem.tau)
    assert_allclose(harmless.lam_star, problem.sigma**2 / (problem.n * problem.tau**2), rtol=1e-12)
    assert_allclose(harmless.fairest, harmless.lam_star, rtol=1e-5)
