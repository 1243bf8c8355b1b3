"""Per-FedAvg and pFedMe."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torch.autograd.functional import hessian

from dittofl import SGD, Add, InputError, Method, PerFedAvg, PFedMe, Task
from tests.problems import ENGINES, POINT, TASK, federation, linear, method, points, reals, rows, run
from tests.test_protocol import ByHand

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
NUMBERS = {"a": (1.0, 2.0, 6.0), "b": (-4.0,), "c": (0.5, 0.5), "d": (10.0, 20.0, 30.0, 40.0)}
MEANS = np.array([3.0, -4.0, 0.5, 25.0])


def exact(hand: ByHand, w: Tensor, batches: list[Any], alpha: float) -> Tensor:
    """(I − α ∇²F(w; third batch)) ∇F(w − α ∇F(w; first); second)."""
    g = hand.g(w - alpha * hand.g(w, batches[0]), batches[1])
    return g - alpha * hessian(lambda row: hand.f(row, batches[2]), w) @ g


def columns(n: int, seed: int) -> Any:
    x, y = reals(n, seed)
    return x, y[:, None]


@engines
def test_per_fedavg_on_quadratics_is_that_of_the_exact_hessian(engine: Any) -> None:
    task = Task(linear(), nn.MSELoss())
    how = method(local=PerFedAvg(lr=0.05, inner=0.1, steps=2, delta=0.1), personal={})
    result = run(task, federation(columns), how, rounds=1, engine=engine)
    hand, ends = ByHand(result, drawn=6), []
    for k in range(5):
        w = result.w0
        for step in range(2):
            w = w - 0.05 * exact(hand, w, [hand.minibatch(k, 0, 3 * step + q, 6) for q in range(3)], 0.1)
        ends.append(w)
    assert_allclose(result.w, torch.stack(ends).mean(0), rtol=0, atol=1e-11)


@engines
def test_the_central_difference_is_of_second_order(engine: Any) -> None:
    """On a network a hundredth of the error remains where δ is a tenth."""
    errors = []
    for delta in (0.5, 0.05):
        how = method(local=PerFedAvg(lr=0.1, inner=0.3, delta=delta), personal={}, aggregate=lambda r: r.delta[0])
        result = run(TASK, federation(), how, rounds=1, cohort=1, engine=engine)
        hand, k = ByHand(result, drawn=3), int(result.history[0].cohort[0])
        w = result.w0 - 0.1 * exact(hand, result.w0, [hand.minibatch(k, 0, q, 3) for q in range(3)], 0.3)
        errors.append(float((result.w - w).norm()))
    assert 50 < errors[0] / errors[1] < 200


@engines
def test_per_fedavg_of_first_order(engine: Any) -> None:
    how = method(local=PerFedAvg(lr=0.1, inner=0.3, steps=2, first_order=True), personal={})
    result = run(TASK, federation(), how, rounds=1, engine=engine)
    hand, ends = ByHand(result, drawn=4), []
    for k in range(5):
        w = result.w0
        for step in range(2):
            first, second = (hand.minibatch(k, 0, 2 * step + q, 4) for q in range(2))
            w = w - 0.1 * hand.g(w - 0.3 * hand.g(w, first), second)
        ends.append(w)
    assert_allclose(result.w, torch.stack(ends).mean(0), rtol=0, atol=1e-12)


@engines
@pytest.mark.parametrize("first_order", [False, True])
def test_per_fedavg_without_an_inner_step_is_fedavg(engine: Any, first_order: bool) -> None:
    solver = PerFedAvg(lr=0.1, inner=1e-13, steps=2, first_order=first_order)
    one, other = (
        run(TASK, federation(), Method(local=local, batch=None), engine=engine)
        for local in (solver, SGD(lr=0.1, steps=2))
    )
    assert_allclose(one.w, other.w, rtol=0, atol=1e-11)


# pFedMe on F_k = ½ (θ − x̄_k)²: θ = (x̄_k + λ w) / (1 + λ) after one exact inner step


@engines
def test_pfedme_on_quadratics(engine: Any) -> None:
    lam, eta = 3.0, 0.1
    solver = PFedMe(lam=lam, lr=eta, inner_lr=1 / (1 + lam), inner=1, steps=2)
    result = run(POINT, points(NUMBERS), Method(local=solver, server=Add(lr=0.5), batch=None), rounds=3, engine=engine)
    w = 0.0
    for _ in range(3):
        ends = np.full(4, w)
        for _ in range(2):
            theta = (MEANS + lam * ends) / (1 + lam)
            ends = ends - eta * lam * (ends - theta)
        w = 0.5 * w + 0.5 * ends.mean()
    assert_allclose(result.w.item(), w, rtol=0, atol=1e-12)
    assert_allclose(rows(result, "global")[:, 0], theta, rtol=0, atol=1e-12)


@engines
def test_the_inner_steps_of_pfedme_see_one_minibatch(engine: Any) -> None:
    how = method(local=PFedMe(lam=2.0, lr=0.1, inner_lr=0.2, inner=3, steps=2), personal={})
    result = run(TASK, federation(), how, rounds=1, engine=engine)
    hand, ends = ByHand(result, drawn=2), []
    for k in range(5):
        w = theta = result.w0
        for q in range(2):
            for _ in range(3):
                theta = theta - 0.2 * (hand.g(theta, hand.minibatch(k, 0, q, 2)) + 2 * (theta - w))
            w = w - 0.2 * (w - theta)
        assert_allclose(rows(result, "global")[k], theta, rtol=0, atol=1e-12)
        ends.append(w)
    assert_allclose(result.w, torch.stack(ends).mean(0), rtol=0, atol=1e-12)


@engines
def test_pfedme_with_a_huge_lambda_is_fedavg(engine: Any) -> None:
    lam = 1e6
    solver = PFedMe(lam=lam, lr=0.1, inner_lr=1 / (1 + lam), inner=2, steps=2)
    one, other = (
        run(POINT, points(NUMBERS), Method(local=local, batch=None), engine=engine)
        for local in (solver, SGD(lr=0.1, steps=2))
    )
    assert_allclose(one.w, other.w, rtol=1e-5)


@engines
def test_pfedme_warns_where_its_inner_step_diverges_and_only_there(engine: Any) -> None:
    """A large lr·λ is no mistake: with θ the argmin the step is of size lr on the envelope."""
    with pytest.warns(UserWarning, match=r"PFedMe's step diverges where inner_lr·lam ≥ 2, got 1\.0 · 2\.0"):
        diverging = PFedMe(lam=2.0, lr=0.1, inner_lr=1.0, inner=40)
    converging = PFedMe(lam=30.0, lr=0.2, inner_lr=1 / 31, inner=1)
    ends = [
        run(POINT, points(NUMBERS), Method(local=local, batch=None), rounds=30, engine=engine).w.abs().item()
        for local in (diverging, converging)
    ]
    assert ends[0] > 1e6 > 100 > ends[1]


@pytest.mark.parametrize("mistake", [{"inner": 0.0}, {"delta": 0.0}, {"first_order": 1}, {"steps": 0}])
def test_mistakes_in_per_fedavg_are_named(mistake: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"PerFedAvg needs .*{next(iter(mistake))}"):
        PerFedAvg(**{"lr": 0.1, "inner": 0.1, **mistake})


@pytest.mark.parametrize("mistake", [{"lam": 0.0}, {"inner": 0}, {"inner_lr": -1.0}, {"lr": 0.0}])
def test_mistakes_in_pfedme_are_named(mistake: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"PFedMe needs .*{next(iter(mistake))}"):
        PFedMe(**{"lr": 0.1, "inner_lr": 0.1, "lam": 1.0, **mistake})
