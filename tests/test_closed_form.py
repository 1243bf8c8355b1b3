"""Optima and update rules that are known in closed form, or from torch.optim."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from dittofl import (
    SGD,
    Adam,
    Add,
    ClipNorm,
    Cosine,
    Decay,
    Ditto,
    Federation,
    Geometric,
    Inverse,
    Local,
    Mean,
    Method,
    Momentum,
    Prox,
    Task,
)
from dittofl.optimiser import Chain
from tests.problems import (
    ENGINES,
    POINT,
    TASK,
    Point,
    everything,
    federation,
    half_square,
    linear,
    method,
    mlp,
    normal,
    points,
    rows,
    run,
    same,
)

LAMBDAS = (0.0, 0.1, 1.0, 10.0)
NUMBERS = {"a": (1.0, 2.0, 6.0), "b": (-4.0,), "c": (0.5, 0.5), "d": (10.0, 20.0, 30.0, 40.0)}
MEANS = np.array([3.0, -4.0, 0.5, 25.0])
SIZES = np.array([3, 1, 2, 4])

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())


def dittos(**options: Any) -> dict[str, Ditto]:
    return {f"{lam:g}": Ditto(lam=lam, lr=0.8 / (1 + lam), steps=2, **options) for lam in LAMBDAS}


# Point estimation: h_k(v; w) = ½ (v − x̄_k)² + λ/2 (v − w)²


@engines
@pytest.mark.parametrize(("proximal", "by_size"), [(False, False), (True, True)])
def test_point_estimation(engine: Any, proximal: bool, by_size: bool) -> None:
    how = Method(local=SGD(lr=0.5), personal=dittos(proximal=proximal), aggregate=Mean(by_size=by_size), batch=None)
    result = run(POINT, points(NUMBERS), how, rounds=40, engine=engine)
    w = np.average(MEANS, weights=SIZES if by_size else None)
    assert_allclose(result.w.item(), w, atol=1e-8)
    for lam in LAMBDAS:
        assert_allclose(rows(result, f"{lam:g}")[:, 0], (lam * w + MEANS) / (1 + lam), atol=1e-8)


@engines
def test_point_estimation_with_decaying_steps(engine: Any) -> None:
    lr = Inverse(lr=0.5, tau=20)
    personal = {"1": Ditto(lam=1.0, lr=lr)}
    result = run(
        POINT, points(NUMBERS), Method(local=SGD(lr=lr), personal=personal, batch=None), rounds=120, engine=engine
    )
    assert_allclose(result.w.item(), MEANS.mean(), atol=1e-8)
    assert_allclose(rows(result, "1")[:, 0], (MEANS.mean() + MEANS) / 2, atol=1e-8)


@engines
def test_the_anchor_is_the_w_that_came_down(engine: Any) -> None:
    """One round from w⁰ = 2: v = 2 − η (2 − x̄_k), then its second step is pulled to w⁰, not to w_k or w¹."""
    how = Method(local=SGD(lr=0.5), personal={"v": Ditto(lam=3.0, lr=0.1, steps=2)}, batch=None)
    result = run(Task(Point(2.0), half_square), points(NUMBERS), how, rounds=1, engine=engine)
    first = 2 - 0.1 * (2 - MEANS)
    assert_allclose(rows(result, "v")[:, 0], first - 0.1 * (first - MEANS + 3 * (first - 2)), atol=1e-14)


@engines
def test_a_huge_lambda_serves_w(engine: Any) -> None:
    """v is solved around the w that came down, which is w⁰ after one round and stands still at the end."""
    how = Method(local=SGD(lr=0.5), personal={"v": Ditto(lam=1e12, lr=0.1, proximal=True)}, batch=None)
    result = run(Task(Point(2.0), half_square), points(NUMBERS), how, rounds=1, engine=engine)
    assert_allclose(rows(result, "v")[:, 0], 2.0, atol=1e-9)
    result = run(Task(Point(2.0), half_square), points(NUMBERS), how, rounds=80, engine=engine)
    assert_allclose(rows(result, "v")[:, 0], MEANS.mean(), atol=1e-9)


class Bare(Point):
    def forward(self, x: Tensor) -> Tensor:
        return self.w.expand(len(x))


@engines
def test_a_module_may_return_a_view_of_its_parameter(engine: Any) -> None:
    how = Method(local=SGD(lr=0.5), batch=None)
    result = run(Task(Bare(), half_square), points(NUMBERS), how, rounds=1, engine=engine)
    assert result.w.item() == MEANS.mean() / 2


# Ridge regression with a different X_k on each device


def designs() -> dict[str, tuple[Tensor, Tensor]]:
    return {
        f"d{k}": (normal(n, 4, seed=k) * (1 + 0.2 * k) + 0.2 * k, normal(n, seed=50 + k))
        for k, n in enumerate((40, 30, 60))
    }


def quadratic(x: Tensor, y: Tensor, ridge: float) -> tuple[Any, Any, Any]:
    """H, b with ∇F(v) = H v − b for F(v) = (1/n)‖x̃ v − y‖² + ridge/2 ‖v‖², x̃ having a column of ones; and max eig H."""
    A = np.column_stack([x.numpy(), np.ones(len(x))])
    H = 2 / len(A) * A.T @ A + ridge * np.eye(5)
    return H, 2 / len(A) * A.T @ y.numpy(), np.linalg.eigvalsh(H).max()


@engines
def test_ridge_regression(engine: Any) -> None:
    data, ridge = designs(), 0.3
    parts = [quadratic(x, y, ridge) for x, y in data.values()]
    w = np.linalg.solve(sum(H for H, *_ in parts), sum(b for _, b, _ in parts))
    L = max(largest for *_, largest in parts)
    personal = {f"{lam:g}": Ditto(lam=lam, lr=1 / (L + lam), steps=2) for lam in LAMBDAS[1:]}
    task = Task(linear(), nn.MSELoss(), penalty=lambda p: ridge / 2 * sum((v**2).sum() for v in p.values()))
    how = Method(local=SGD(lr=1 / L), personal=personal, batch=None)
    result = run(task, Federation.from_parts(train=data, test={}), how, rounds=90, engine=engine)
    assert_allclose(result.w, w, atol=1e-8)
    for lam in LAMBDAS[1:]:
        v = [np.linalg.solve(H + lam * np.eye(5), b + lam * w) for H, b, _ in parts]
        assert_allclose(rows(result, f"{lam:g}"), v, atol=1e-8)


# Limits


@engines
def test_prox_with_mu_0_is_sgd(engine: Any) -> None:
    sgd, prox = (method(local=local) for local in (SGD(lr=0.2, steps=3), Prox(mu=0.0, lr=0.2, steps=3)))
    data = federation()
    assert same(everything(run(TASK, data, sgd, engine=engine)), everything(run(TASK, data, prox, engine=engine)))


@engines
@pytest.mark.parametrize("through", [(), (Momentum(beta=0.9), ClipNorm(norm=0.3))], ids=["plain", "chain"])
def test_ditto_with_lambda_0_is_local(engine: Any, through: Chain) -> None:
    personal = {
        "ditto": Ditto(lam=0.0, lr=0.2, steps=3, through=through),
        "local": Local(lr=0.2, steps=3, through=through),
    }
    result = run(TASK, federation(), method(personal=personal), engine=engine)
    assert torch.equal(rows(result, "ditto"), rows(result, "local"))
    assert not torch.equal(rows(result, "local"), result.w0.expand(5, -1))


@pytest.mark.parametrize("lr", [0.5, Cosine(lr=0.5, rounds=9)], ids=["number", "schedule"])
@pytest.mark.parametrize("solver", [lambda pull, lr: Ditto(lam=pull, lr=lr), lambda pull, lr: Prox(mu=pull, lr=lr)])
def test_a_step_that_diverges_is_warned_of(solver: Callable[..., Any], lr: Any) -> None:
    """Without a gradient v − w shrinks by 1 − ηλ a step: |1 − ηλ| < 1 where ηλ < 2."""
    solver(3.99, lr)  # a warning would be an error here
    with pytest.warns(
        UserWarning, match=r"(Ditto|Prox)'s step diverges where lr·(lam|mu) ≥ 2, got 0\.5 · 4\.0: lower lr"
    ):
        solver(4.0, lr)
    Ditto(lam=1e9, lr=lr, proximal=True)
    Ditto(lam=1e9, lr=lr, through=(Adam(),))  # whose steps are not those of the quadratic


@engines
def test_prox_with_a_huge_mu_pins_w(engine: Any) -> None:
    """Two steps with lr·μ = 1: the second undoes the first but for its own gradient."""
    data, far = federation(), run(TASK, federation(), method(local=Prox(mu=1e6, lr=1e-6, steps=2)), engine=engine)
    free = run(TASK, data, method(local=SGD(lr=1e-6, steps=2)), engine=engine)
    assert 0 < float((far.w - far.w0).norm()) < 0.6 * float((free.w - free.w0).norm())


@engines
def test_the_server_adds_a_share_of_the_update(engine: Any) -> None:
    whole, half = (run(TASK, federation(), method(server=Add(lr=lr)), rounds=1, engine=engine) for lr in (1.0, 0.5))
    assert_allclose(half.w - half.w0, (whole.w - whole.w0) / 2, atol=1e-15)


# Chains against torch.optim, on the gradients of one device's whole train part

Optimiser = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]

OPTIMISERS: dict[str, tuple[Chain, Optimiser]] = {
    "sgd": ((), lambda p: torch.optim.SGD(p, lr=0.05)),
    "momentum": ((Momentum(beta=0.8),), lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8)),
    "nesterov": (
        (Momentum(beta=0.8, nesterov=True),),
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8, nesterov=True),
    ),
    "decay, momentum": (
        (Decay(rate=0.1), Momentum(beta=0.8)),
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8, weight_decay=0.1),
    ),
    "adam": (
        (Adam(beta1=0.8, beta2=0.95, eps=1e-6),),
        lambda p: torch.optim.Adam(p, lr=0.05, betas=(0.8, 0.95), eps=1e-6),
    ),
    "adam with L2": ((Decay(rate=0.1), Adam()), lambda p: torch.optim.Adam(p, lr=0.05, weight_decay=0.1)),
    "adamw": ((Adam(), Decay(rate=0.1)), lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.1)),
}


def by_torch(data: Federation, device: str, optimiser: Optimiser, steps: int, visits: int) -> Tensor:
    """The row after full-batch training with a torch optimiser that starts anew in each visit."""
    module = mlp()
    x, y = data.part(device, "train")
    for _ in range(visits):
        descent = optimiser(module.parameters())
        for _ in range(steps):
            descent.zero_grad()
            nn.functional.cross_entropy(module(x), y).backward()
            descent.step()
    return nn.utils.parameters_to_vector(module.parameters()).detach()


@engines
@pytest.mark.parametrize(("through", "optimiser"), OPTIMISERS.values(), ids=OPTIMISERS.keys())
def test_chains_are_the_optimisers_of_torch(engine: Any, through: Chain, optimiser: Optimiser) -> None:
    data = federation()
    how = method(
        local=SGD(lr=0.05, steps=6, through=through),
        personal={"v": Local(lr=0.05, steps=6, through=through)},
        aggregate=lambda report: report.delta[0],
        batch=None,
    )
    result = run(TASK, data, how, rounds=2, engine=engine)
    for device in data.ids:
        v = by_torch(data, device, optimiser, steps=6, visits=2)
        assert_allclose(result.row("v", device), v, atol=1e-12)
    first = data.ids[result.history[0].cohort[0]]
    w = by_torch(data, first, optimiser, steps=6, visits=1)
    assert_allclose(run(TASK, data, how, rounds=1, engine=engine).w, w, atol=1e-12)


@engines
@pytest.mark.parametrize("norm", [1e-3, 0.3, 1e6])
def test_clipping_is_that_of_torch(engine: Any, norm: float) -> None:
    """torch adds 1e-6 to the norm that it divides by; ours ends exactly on the ball."""
    data = federation()
    module = mlp()
    x, y = data.part("c", "train")
    nn.functional.cross_entropy(module(x), y).backward()
    torch.nn.utils.clip_grad_norm_(module.parameters(), norm)
    g = torch.cat([p.grad.reshape(-1) for p in module.parameters() if p.grad is not None])
    how = method(local=SGD(lr=1.0, through=(ClipNorm(norm=norm),)), personal={}, batch=None)
    result = run(TASK, Federation.from_parts(train={"c": (x, y)}, test={}), how, rounds=1, engine=engine)
    assert_allclose(result.w0 - result.w, g, rtol=1e-5, atol=1e-13)


def test_clipping_ends_on_the_ball_keeps_direction_and_bears_zero() -> None:
    d = normal(20, seed=3)
    clipped, _ = ClipNorm(norm=0.5).apply(d, (), d)
    assert_allclose(clipped, 0.5 * d / d.norm(), atol=1e-15)
    short, _ = ClipNorm(norm=50.0).apply(d, (), d)
    assert torch.equal(short, d)
    nothing, _ = ClipNorm(norm=0.5).apply(torch.zeros(3), (), d)
    assert torch.equal(nothing, torch.zeros(3))


# Schedules


@pytest.mark.parametrize(
    ("schedule", "values"),
    [
        (Geometric(lr=0.8, factor=0.5, every=2), [0.8, 0.8, 0.4, 0.4, 0.2]),
        (Inverse(lr=0.6, tau=2), [0.6, 0.4, 0.3, 0.24, 0.2]),
        (Cosine(lr=1.0, end=0.2, rounds=4), [1.0, 0.6 + 0.4 * 0.5**0.5, 0.6, 0.6 - 0.4 * 0.5**0.5, 0.2, 0.2, 0.2]),
    ],
)
def test_schedules(schedule: Callable[[int | Tensor], Any], values: list[float]) -> None:
    assert_allclose([schedule(t) for t in range(len(values))], values, rtol=1e-14)
    assert_allclose(
        [schedule(torch.tensor(float(t), dtype=torch.float64)) for t in range(len(values))], values, rtol=1e-14
    )


@engines
def test_a_schedule_counts_rounds_not_visits_or_steps(engine: Any) -> None:
    """With F_k = ½ (v − x̄)² each step of round t leaves a share 1 − η(t) of the way."""
    lr = Geometric(lr=0.5, factor=0.5)
    how = Method(local=SGD(lr=lr, steps=3), personal={"v": Local(lr=lr, steps=2)}, batch=None)
    result = run(POINT, points(NUMBERS), how, rounds=6, cohort=2, engine=engine)
    left = np.ones(4)
    w = 0.0
    for t, drawn in enumerate(result.history):
        left[drawn.cohort] *= (1 - lr(t)) ** 2
        w += np.mean((1 - (1 - lr(t)) ** 3) * (MEANS[drawn.cohort] - w))
    assert len(set(left)) > 1
    assert_allclose(rows(result, "v")[:, 0], (1 - left) * MEANS, atol=1e-13)
    assert_allclose(result.w.item(), w, atol=1e-13)
