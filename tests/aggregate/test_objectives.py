"""Fair objectives: their limits, and FedMGDA+'s quadratic programme against others' solutions."""

import sys
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from dittofl import AFL, MGDA, QFFL, Clip, InputError, Mean, MultiKrum, Report, Tilt
from dittofl.aggregate.afl import projected
from tests.aggregate import naive
from tests.problems import normal


def report(m: int = 7, P: int = 5, seed: int = 0) -> Report:
    return Report(normal(m, P, seed=seed), torch.arange(1, m + 1), normal(m, seed=seed + 1).exp())


def made(rule: Any, given: Report) -> Tensor:
    return rule(given, rule.init(given.delta[0]))[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "rule", [Tilt(t=0.0), QFFL(q=0.0, lr=0.1), AFL(lr=0.0), Clip(norm=1e9), MultiKrum(f=0)], ids=str
)
def test_it_is_the_mean(rule: Any) -> None:
    assert torch.equal(made(rule, report()), made(Mean(), report()))


@pytest.mark.parametrize("rule", [Tilt(t=0), QFFL(q=0, lr=0.1)], ids=str)
def test_what_needs_no_losses_asks_for_none(rule: Any) -> None:
    assert not rule.losses
    assert Clip(then=Tilt(t=1)).losses
    assert torch.equal(made(rule, report()._replace(loss=None)), made(Mean(), report()))


def test_a_rule_without_the_losses_it_needs_says_so() -> None:
    with pytest.raises(InputError, match="needs the loss of every report"):
        made(Tilt(t=1), report()._replace(loss=None))


def test_tilted_weights_go_to_the_largest_or_the_smallest_loss() -> None:
    given = report()
    gaps = []
    for t in (1.0, 10.0, 100.0, 1e3, 1e300):
        gaps.append(float((made(Tilt(t=t), given) - given.delta[given.loss.argmax()]).norm()))  # type: ignore[union-attr]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] == 0
    assert torch.equal(made(Tilt(t=-1e300), given), given.delta[given.loss.argmin()])  # type: ignore[union-attr]


def test_forged_losses_overflow_nothing() -> None:
    for value in (1e30, -1e30, 1e308, -1e308, 0.0):
        given = report()
        given.loss[2] = value  # type: ignore[index]
        for rule in (Tilt(t=1e5), Tilt(t=-1e5), QFFL(q=0.5, lr=0.1), QFFL(q=20.0, lr=0.1), AFL(lr=1e3)):
            state = rule.init(given.delta[0])
            for _ in range(3):
                delta, state = rule(given, state)
                assert delta.isfinite().all(), (rule, value)
                assert float(delta.norm()) <= float(given.delta.norm(dim=1).max()) * (1 + 1e-9)


def test_forged_sizes_leave_weights() -> None:
    for sizes in ([-1, 1, 1], [0, 0, 0], [-5, -5, -5], [10**18, 1, 1]):
        given = report(3)._replace(size=torch.tensor(sizes))
        assert float(made(Mean(by_size=True), given).norm()) <= float(given.delta.norm(dim=1).max()) * (1 + 1e-9)


def test_the_projection_is_the_nearest_point_of_the_simplex() -> None:
    for seed in range(50):
        x = normal(1 + seed % 9, seed=seed) * 10.0 ** (seed % 5 - 2)
        p = projected(x)
        assert abs(float(p.sum()) - 1) <= 1e-12
        assert float(p.min()) >= 0
        np.testing.assert_allclose(p, naive.simplex(x.numpy()), atol=1e-12)


def test_afl_finds_the_minimax_point() -> None:
    """F_k(w) = ½ c_k (w − a_k)² on three devices: the worst loss is least where two of them are equal."""
    a, c, rule, w = torch.tensor([0.0, 4.0, 1.0]), torch.tensor([1.0, 4.0, 1.0]), AFL(lr=0.05), torch.zeros(1)
    a, c, w = a.double(), c.double(), w.double()
    state, tail = rule.init(w), []
    for _ in range(4000):
        loss = c / 2 * (w - a) ** 2
        delta, state = rule(Report(-0.02 * (c * (w - a))[:, None], torch.ones(3), loss), state)
        w = w + delta
        tail.append(float(w))
    assert abs(np.mean(tail[2000:]) - 8 / 3) <= 1e-2  # w² = 4 (w − 4)²: w = 8/3


# FedMGDA+


def units(rows: Tensor) -> np.ndarray[Any, Any]:
    return (rows.double() / rows.double().norm(dim=1, keepdim=True)).numpy()


def test_with_eps_0_it_is_the_mean_of_unit_rows() -> None:
    given = report()
    np.testing.assert_allclose(made(MGDA(eps=0, lr=0.5), given), 0.5 * units(given.delta).mean(0), atol=1e-15)


def sequential(u: Any, eps: float) -> Any:
    """The weights by sequential quadratic programming."""
    m = len(u)
    found = minimize(
        lambda lam: ((lam @ u) ** 2).sum(), np.full(m, 1 / m), jac=lambda lam: 2 * u @ (lam @ u),
        bounds=[(max(0.0, 1 / m - eps), min(1.0, 1 / m + eps))] * m,
        constraints={"type": "eq", "fun": lambda lam: lam.sum() - 1, "jac": lambda lam: np.ones(m)},
        method="SLSQP", options={"ftol": 1e-15, "maxiter": 1000},
    )  # fmt: skip
    return found.x


@pytest.mark.parametrize("eps", [0.02, 0.1, 0.5, 1.0])
def test_the_programme_against_another_solver(eps: float) -> None:
    for seed in range(8):
        given = report(2 + seed, 6, seed)
        u = units(given.delta)
        np.testing.assert_allclose(made(MGDA(eps=eps), given), sequential(u, eps) @ u, atol=2e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_the_programme_is_solved_to_the_last_digits(dtype: torch.dtype) -> None:
    """‖δ‖² − min over the weights allowed of δ·(Σ λ_k u_k) bounds ‖δ − δ*‖², whatever solved it."""
    for seed in range(3 * len(naive.KINDS)):
        given = naive.drawn(seed, dtype, most=3000)
        if not bool(given.delta.any(1).all()):
            continue
        m, u = len(given.delta), units(given.delta)
        for eps in (0.5 / m, 0.3, 1.0):
            delta = made(MGDA(eps=eps), given).double().numpy()
            low, high = max(0.0, 1 / m - eps), min(1.0, 1 / m + eps)
            lam, along = np.full(m, low), u @ delta
            for k in np.argsort(along):
                lam[k] += min(high - low, 1 - lam.sum())
            assert delta @ delta - lam @ along <= (1e-13 if dtype == torch.float64 else 1e-6), (seed, eps)


def test_a_common_direction_of_descent_is_found_where_there_is_one() -> None:
    rows = normal(6, 9, seed=3) + 2 * normal(9, seed=4).sign()
    delta = made(MGDA(eps=1.0), Report(rows, torch.ones(6)))
    assert float((torch.from_numpy(units(rows)) @ delta).min()) >= float(delta @ delta) - 1e-12 > 0
    opposed = torch.cat([rows, -rows])
    assert float(made(MGDA(eps=1.0), Report(opposed, torch.ones(12))).norm()) <= 1e-7


def test_rows_of_zeros_stay_zeros() -> None:
    rows = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(made(MGDA(eps=0), Report(rows, torch.ones(2))), [0.3, 0.4], atol=1e-7)
    assert float(made(MGDA(eps=1.0), Report(rows, torch.ones(2))).norm()) <= 1e-12
    assert not made(MGDA(eps=1.0), Report(0 * rows, torch.ones(2))).any()


def test_without_daqp_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "daqp", None)
    with pytest.raises(InputError, match=r"dittofl\[mgda\]"):
        MGDA(eps=0.1)
    assert MGDA(eps=0).lr == 1
