"""Data sets made by a formula, and the digits."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from dittofl import SGD, Ditto, Federation, InputError, Method, Task
from dittofl.cli import answer
from dittofl.datasets import digits, linear_regression, point_estimation, synthetic
from dittofl.losses import half_square
from dittofl.models import linear
from dittofl.theory import Orthogonal, Point
from dittofl.theory.point import estimate
from tests.problems import run


def samples(data: Federation, device: int) -> tuple[np.ndarray, np.ndarray]:
    a, b = data.bounds[device, [0, 3]]
    return data.x[a:b].double().numpy(), data.y[a:b].numpy()  # type: ignore[index]


def test_synthetic_inputs_have_the_law_of_the_formula() -> None:
    """x ~ N(v_k, Σ), Σ_jj = j^−1.2, v_kj ~ N(B_k, 1), B_k ~ N(0, β)."""
    beta, K = 2.0, 200
    data = synthetic(beta=beta, devices=K)
    assert np.unique(data.y).tolist() == list(range(10))
    spread = sum(((x := samples(data, k)[0]) - x.mean(0)).T @ (x - x.mean(0)) for k in range(K)) / (len(data.y) - K)
    diagonal = np.arange(1, 61) ** -1.2
    se = np.sqrt(2 / len(data.y))  # relative, of a variance
    assert_allclose(np.diag(spread), diagonal, rtol=6 * se)
    scale = np.sqrt(np.outer(diagonal, diagonal))
    assert abs((spread - np.diag(np.diag(spread))) / scale).max() < 6 * np.sqrt(1 / len(data.y))
    v = np.stack([samples(data, k)[0].mean(0) for k in range(K)])
    assert v.mean(1).var() == pytest.approx(beta + 1 / 60, rel=6 * np.sqrt(2 / K))
    assert (v - v.mean(1, keepdims=True)).var() == pytest.approx(1, rel=0.1)


def test_synthetic_sizes() -> None:
    """n − 50 is e^N(4, 4), rounded down: half of the devices have more than 50 + e⁴, and few more than e^(4 + 2·3)."""
    n = synthetic(devices=400).bounds[:, 3] - synthetic(devices=400).bounds[:, 0]
    assert n.min() >= 50
    assert abs(np.mean(n - 50 > math.exp(4)) - 0.5) < 4 * 0.5 / np.sqrt(400)
    z = (np.log(n - 50 + 0.5) - 4) / 2
    assert z.std() == pytest.approx(1, rel=4 * np.sqrt(1 / 800))


def accuracy(*parts: tuple[np.ndarray, np.ndarray]) -> float:
    """What a linear model of ten scores comes to on all of these samples."""
    x, y = (torch.from_numpy(np.concatenate(its)) for its in zip(*parts, strict=True))
    module = linear(inputs=60, outputs=10, zero=True).double()
    optimiser = torch.optim.LBFGS(module.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(x), y)
        loss.backward()
        return loss

    optimiser.step(closure)  # type: ignore[arg-type]
    return float((module(x).argmax(1) == y).double().mean())


def test_synthetic_labels_are_those_of_a_linear_model_of_each_device_s_own() -> None:
    data = synthetic(devices=20)
    devices = [samples(data, k) for k in range(20)]
    assert [accuracy(device) for device in devices[:3]] == [1.0] * 3
    assert accuracy(*devices) < 0.95


def test_alpha_changes_no_label_and_beta_inputs() -> None:
    one, same, other = synthetic(alpha=0.0, devices=5), synthetic(alpha=9.0, devices=5), synthetic(beta=9.0, devices=5)
    assert one.fingerprint == same.fingerprint != other.fingerprint


def test_a_device_s_samples_do_not_depend_on_the_others() -> None:
    few, many = synthetic(devices=2, seed=5), synthetic(devices=9, seed=5)
    assert all(np.array_equal(a, b) for k in range(2) for a, b in zip(samples(few, k), samples(many, k), strict=True))
    assert few.fingerprint != synthetic(devices=2, seed=6).fingerprint


@pytest.mark.parametrize("wrong", [{"alpha": -1}, {"beta": -1}, {"devices": 0}])
def test_synthetic_parameters(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=f"synthetic needs .*{next(iter(wrong))}"):
        synthetic(**wrong)  # type: ignore[arg-type]


def truth(data: Federation) -> np.ndarray:
    """w_k [K, d], from the test parts, which are noiseless."""
    parts = [data.part(id, "test") for id in data.ids]
    return np.stack([np.linalg.solve(x.numpy(), y.numpy()) for x, y in parts])  # type: ignore[union-attr]


def test_point_estimation_trained_is_the_paper_s_estimator_and_its_test_loss_the_error() -> None:
    data, lam = point_estimation(seed=3), 2.0
    how = {"lr": 0.2, "steps": 30}
    method = Method(local=SGD(**how), personal={"v": Ditto(lam=lam, **how)}, batch=None)
    task = Task(linear(inputs=1, bias=False, zero=True).double(), half_square)
    found = run(task, data, method, rounds=12)
    means = np.array([data.part(id, "train")[1].mean() for id in data.ids])
    v = np.array([found.row("v", id) for id in data.ids])[:, 0]
    assert_allclose(v, estimate(means, lam), atol=1e-8)
    assert_allclose(found.evaluate("test").values["v", "test"]["loss"], (v - truth(data)[:, 0]) ** 2, atol=1e-12)


def test_the_draws_of_both_problems() -> None:
    """w_k and ȳ_k have the spreads that `Point` and `Orthogonal` assume, over seeds; inputs are orthogonal."""
    its = Point(sigma=0.8, n=30, tau=0.1, K=8)
    drawn = [point_estimation(seed=seed) for seed in range(60)]
    w = np.concatenate([truth(data)[:, 0] for data in drawn])
    means = np.concatenate([[float(data.part(id, "train")[1].mean()) for id in data.ids] for data in drawn])
    for values, variance in ((w, its.tau**2), (means - w, its.s)):
        assert values.mean() == pytest.approx(0, abs=4 * np.sqrt(variance / len(values)))
        assert values.var() == pytest.approx(variance, rel=4 * np.sqrt(2 / len(values)))
    data = linear_regression(d=3, n=20, beta=7.0, devices=4)
    for id in data.ids:
        x = data.part(id, "train")[0]
        assert_allclose(x.T @ x, 7.0 * np.eye(3), atol=1e-12)  # type: ignore[union-attr]


def test_linear_regression_s_test_loss_is_the_error() -> None:
    data, problem = linear_regression(d=3, devices=4), Orthogonal(sigma=0.8, n=30, d=3, beta=30.0, tau=0.1, K=4)
    v = np.random.default_rng(0).normal(size=(4, 3))
    for id, own, w in zip(data.ids, v, truth(data), strict=True):
        x, y = data.part(id, "test")
        assert float(half_square(x @ torch.tensor(own), y).mean()) == pytest.approx(((own - w) ** 2).sum())  # type: ignore[operator]
    assert problem.lam_star == pytest.approx(0.8**2 / 30 / 0.1**2)


@pytest.mark.parametrize("wrong", [{"devices": 1}, {"n": 0}, {"sigma": 0.0}, {"tau": -1.0}])
def test_parameters_of_the_estimation_problems(wrong: dict[str, float]) -> None:
    for make in (point_estimation, linear_regression):
        with pytest.raises(InputError):
            make(**wrong)  # type: ignore[operator]


def test_digits_are_dealt_out_in_equal_parts_to_those_who_hold_the_class() -> None:
    data = digits(devices=25)
    held = np.array([np.bincount(samples(data, k)[1], minlength=10) for k in range(25)])
    assert held.sum() == 1797
    for k, one in enumerate(held):
        assert set(one.nonzero()[0]) == {(k + j) % 10 for j in range(2 + k % 2)}
    for one in held.T:
        assert one[one > 0].max() - one[one > 0].min() <= 1


def test_a_spec_of_point_estimation(tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    spec = tmp_path / "spec.toml"
    spec.write_text("""
        rounds = 3
        data = "point_estimation"
        model = { kind = "linear", inputs = 1, bias = false, zero = true }
        loss = "half_square"
        [method]
        local = { kind = "SGD", lr = 0.2, steps = 20 }
        personal.v = { kind = "Ditto", lam = 2.0, lr = 0.2, steps = 20 }
    """)
    assert answer(["run", str(spec), "--out", str(tmp_path / "runs"), "--quiet"]) == 0
    assert "loss" in capsys.readouterr().out
