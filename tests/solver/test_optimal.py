"""λ by the closed forms, from given or estimated variances."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from dittofl import SGD, Ditto, Federation, InputError, Method, Optimal, Task, estimate
from dittofl.losses import hinge
from tests.problems import ENGINES, POINT, TASK, federation, linear, normal, points, rows, run, signs

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
NUMBERS = {"a": (1.0, 2.0, 6.0), "b": (-4.0,), "c": (0.5, 0.5), "d": (10.0, 20.0, 30.0, 40.0)}
MEANS, SIZES = np.array([3.0, -4.0, 0.5, 25.0]), np.array([3, 1, 2, 4])


@engines
@pytest.mark.parametrize("proximal", [False, True])
def test_each_device_has_the_lambda_of_its_size(engine: Any, proximal: bool) -> None:
    rule = Optimal(sigma2=2.0, tau2=1.5)
    how = Method(local=SGD(lr=0.5), personal={"v": Ditto(lam=rule, lr=0.4, steps=2, proximal=proximal)}, batch=None)
    result = run(POINT, points(NUMBERS), how, rounds=60, engine=engine)
    lam = 2.0 / (SIZES * 1.5)
    assert_allclose(rows(result, "v")[:, 0], (lam * MEANS.mean() + MEANS) / (1 + lam), rtol=0, atol=1e-8)


@engines
def test_a_rule_that_is_constant_is_that_lambda(engine: Any) -> None:
    data = {name: (x.float(), y) for name, (x, y) in ((id, federation().part(id, "train")) for id in "ace")}
    module = nn.Linear(4, 3)
    personal = {"rule": Ditto(lam=lambda n: 0.5 + 0.0 * n, lr=0.1), "number": Ditto(lam=0.5, lr=0.1)}
    how = Method(local=SGD(lr=0.1), personal=personal, batch=4)
    result = run(Task(module, nn.CrossEntropyLoss()), Federation.of(data), how, engine=engine)
    assert rows(result, "rule").dtype == torch.float32
    assert_allclose(rows(result, "rule"), rows(result, "number"), rtol=0, atol=1e-6)


def test_for_point_estimation_the_estimate_is_that_of_the_numbers() -> None:
    result = run(POINT, points(NUMBERS), Method(local=SGD(lr=0.3), batch=None), rounds=2)
    scatter = sum(((np.array(its) - np.mean(its)) ** 2).sum() for its in NUMBERS.values())
    sigma2 = scatter / (SIZES - 1).sum()
    tau2 = MEANS.var(ddof=1) - sigma2 * (1 / SIZES).mean()
    assert tau2 > 0
    found = estimate(result)
    assert_allclose((found.sigma2, found.tau2), (sigma2, tau2), rtol=1e-10)
    some = estimate(result, ["a", "d"])
    assert_allclose(some.sigma2, ((4 + 1 + 9) + 500) / 5, rtol=1e-10)


@pytest.mark.parametrize("h", [0.2, 3.0])
def test_another_curvature_is_another_lambda(h: float) -> None:
    """h F_k has the same ŵ_k, of the same spread; its λ* is h times that of F_k."""

    def bent(out: Any, y: Any) -> Any:
        return h / 2 * (out - y) ** 2

    plain, curved = (
        estimate(run(task, points(NUMBERS), Method(local=SGD(lr=0.3), batch=None), rounds=1))
        for task in (POINT, Task(POINT.module, bent))
    )
    assert_allclose((curved.sigma2, curved.tau2), (h * plain.sigma2, plain.tau2), rtol=1e-10)


def test_for_linear_regression_the_estimate_finds_the_truth() -> None:
    """XᵀX = n I, 200 devices, w near the mean of their models: λ* = σ²/(n τ²)."""
    K, n, sigma, tau = 200, 150, 0.8, 0.1
    draws = np.random.default_rng(0)
    data = {}
    for k in range(K):
        x = np.linalg.qr(draws.normal(size=(n, 4)))[0] * np.sqrt(n)
        y = x @ (tau * draws.normal(size=4)) + sigma * draws.normal(size=n)
        data[k] = (torch.from_numpy(x), torch.from_numpy(y)[:, None])
    module = nn.Linear(4, 1, bias=False).double()
    with torch.no_grad():
        module.weight.zero_()

    def half(out: Any, y: Any) -> Any:
        return 0.5 * (out - y) ** 2

    how = Method(local=SGD(lr=0.5), batch=None)
    result = run(Task(module, half), Federation.from_parts(train=data, test={}), how, rounds=3)
    found = estimate(result)
    assert_allclose(found.tau2, tau**2, rtol=0.15)
    assert_allclose(found.sigma2, sigma**2, rtol=0.15)
    assert_allclose(found(n), sigma**2 / (n * tau**2), rtol=0.2)


def test_on_a_network_it_is_finite_and_pieces_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(TASK, federation(), Method(local=SGD(lr=0.2), batch=4), rounds=3)
    before = estimate(result)
    monkeypatch.setattr("dittofl.variances.HELD", 3 * len(result.w))
    pieces = estimate(result)
    assert_allclose((pieces.sigma2, pieces.tau2), (before.sigma2, before.tau2), rtol=1e-10)
    assert 0 < before(10) < np.inf


def test_without_differences_lambda_is_large_not_infinite() -> None:
    x, y = normal(8, 4, seed=1), normal(8, 1, seed=2)
    data = Federation.from_parts(train={"a": (x, y), "b": (x, y)}, test={})
    result = run(Task(linear(), nn.MSELoss()), data, Method(local=SGD(lr=0.1), batch=None), rounds=1)
    assert 100 < estimate(result)(8) < 1e6


@pytest.mark.parametrize(
    "mistake",
    [
        {"sigma2": -1.0},
        {"tau2": 0.0},
        {"K": 1},
        {"K_a": 2},
        {"K_a": 1},
        *({"K": 4, "K_a": 1, "tau_a2": tau_a2} for tau_a2 in (0.5, float("inf"), float("nan"), "2", [])),
    ],
)
def test_mistakes_are_named(mistake: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="Optimal needs"):
        Optimal(**{"sigma2": 1.0, "tau2": 1.0, **mistake})


def test_mistakes_in_a_rule_are_named() -> None:
    for rule in (lambda n: -1.0, lambda n: None, lambda: 1.0, Optimal):
        with pytest.raises(InputError, match="Ditto"):
            Ditto(lam=rule, lr=0.1)  # type: ignore[arg-type]


def test_estimate_says_what_it_needs() -> None:
    straight = run(Task(linear(), hinge), federation(signs), Method(local=SGD(lr=0.1), batch=4), rounds=1)
    with pytest.raises(InputError, match="curvature of 0: train further, or use another loss"):
        estimate(straight)
    result = run(POINT, points(NUMBERS), Method(local=SGD(lr=0.3), batch=None), rounds=1)
    with pytest.raises(InputError, match="at least 2 devices"):
        estimate(result, ["a"])
    lonely = run(POINT, points({"a": (1.0,), "b": (2.0,)}), Method(local=SGD(lr=0.3), batch=None), rounds=1)
    with pytest.raises(InputError, match="2 train samples"):
        estimate(lonely)
