"""Server optimisers against torch's and against plain loops; beside other pieces; after a restart."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from dittofl import (
    SGD,
    Add,
    Control,
    FedAdagrad,
    FedAdam,
    FedAvgM,
    FedYogi,
    InputError,
    Method,
    Prox,
    Report,
    Scaffold,
    federate,
)
from dittofl.federated import Saved
from tests.problems import ENGINES, TASK, Median, everything, federation, method, normal, rows, run, same

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
ROUNDS, P = 40, 6


def deltas() -> Tensor:
    """Of very different sizes by coordinate, one of them always 0 and one that falls silent."""
    its = normal(ROUNDS, P, seed=3) * torch.tensor([1e-6, 1e-3, 1.0, 1e3, 0.0, 1.0])
    its[10:, 5] = 0
    return its


def walked(server: Any, its: Tensor) -> Tensor:
    w = torch.ones(P, dtype=its.dtype)
    state, trace = server.init(w, 9), []
    for delta in its:
        w, state = server.step(w, delta, Report(delta[None], torch.ones(1)), state)
        trace.append(w)
    return torch.stack(trace)


def by_torch(make: Callable[[list[Tensor]], torch.optim.Optimizer], its: Tensor) -> Tensor:
    w = torch.ones(P, dtype=its.dtype)
    optimiser, trace = make([w]), []
    for delta in its:
        w.grad = -delta
        optimiser.step()
        trace.append(w.clone())
    return torch.stack(trace)


@pytest.mark.parametrize(
    ("server", "make"),
    [
        (FedAvgM(beta=0.9, lr=0.3), lambda w: torch.optim.SGD(w, lr=0.3, momentum=0.9)),
        (FedAvgM(beta=0.8, lr=0.3, nesterov=True), lambda w: torch.optim.SGD(w, lr=0.3, momentum=0.8, nesterov=True)),
        (Add(lr=0.3), lambda w: torch.optim.SGD(w, lr=0.3)),
        (FedAvgM(beta=0.0, lr=0.3), lambda w: torch.optim.SGD(w, lr=0.3)),
        (
            FedAdam(lr=0.1, beta1=0.8, beta2=0.95, tau=1e-3, corrected=True),
            lambda w: torch.optim.Adam(w, lr=0.1, betas=(0.8, 0.95), eps=1e-3),
        ),
        (FedAdam(lr=0.1, tau=1e-8, corrected=True), lambda w: torch.optim.Adam(w, lr=0.1, betas=(0.9, 0.99))),
    ],
    ids=str,
)
def test_they_are_torchs_optimisers_on_minus_delta(server: Any, make: Any) -> None:
    assert_allclose(walked(server, deltas()), by_torch(make, deltas()), rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("server", "u"),
    [
        (FedAdagrad(lr=0.1, beta1=0.3, tau=0.01), lambda u, d: u + d * d),
        (FedAdam(lr=0.1, beta1=0.3, beta2=0.9, tau=0.01), lambda u, d: 0.9 * u + 0.1 * d * d),
        (FedYogi(lr=0.1, beta1=0.3, beta2=0.9, tau=0.01), lambda u, d: u - 0.1 * d * d * np.sign(u - d * d)),
    ],
    ids=str,
)
def test_they_are_their_algorithm_number_by_number(server: Any, u: Callable[[float, float], float]) -> None:
    trace = np.ones((ROUNDS + 1, P))
    for j in range(P):
        m, v = 0.0, 0.01**2
        for t, delta in enumerate(deltas()[:, j].tolist()):
            m, v = 0.3 * m + 0.7 * delta, u(v, delta)
            trace[t + 1, j] = trace[t, j] + 0.1 * m / (v**0.5 + 0.01)
    assert_allclose(walked(server, deltas()), trace[1:], rtol=1e-12)
    assert (trace[:, 4] == 1).all()  # where nothing is sent nothing moves


def test_without_correction_it_is_another_adam() -> None:
    """Their first steps: (1 − β₁) η δ / (√((1 − β₂) δ² + β₂ τ²) + τ), and η δ / (|δ| + τ)."""
    delta, tau = deltas()[:1], 1e-3
    raw, corrected = (walked(FedAdam(lr=0.1, tau=tau, corrected=its), delta)[0] - 1 for its in (False, True))
    assert_allclose(raw, 0.01 * delta[0] / ((0.01 * delta[0] ** 2 + 0.99 * tau**2).sqrt() + tau), atol=1e-15)
    assert_allclose(corrected, 0.1 * delta[0] / (delta[0].abs() + tau), atol=1e-15)


def test_yogi_falls_more_slowly_than_adam() -> None:
    """After large updates u shrinks by a factor a round in Adam, by a share of δ² in Yogi."""
    its = torch.cat([torch.full((5, P), 10.0), torch.full((35, P), 0.01)]).double()
    servers = (FedYogi(lr=0.1, beta1=0.0), FedAdam(lr=0.1, beta1=0.0))
    yogi, adam = (np.diff(walked(server, its)[:, 0]) for server in servers)
    assert yogi[-1] < adam[-1] / 1.1


SERVERS = (
    FedAvgM(beta=0.5), FedAvgM(nesterov=True), FedAdagrad(lr=0.1), FedYogi(lr=0.1), FedAdam(lr=0.1),
    FedAdam(lr=0.1, corrected=True), Control(then=FedYogi(lr=0.1)),
)  # fmt: skip
every = pytest.mark.parametrize("server", SERVERS, ids=str)


def beside(server: Any) -> Method:
    local = Scaffold(lr=0.2, steps=2) if isinstance(server, Control) else Prox(mu=0.1, lr=0.2, steps=2)
    return method(local=local, server=server, aggregate=Median())


@engines
@every
def test_they_take_the_delta_of_any_solver_and_aggregator(server: Any, engine: Any) -> None:
    its: list[Tensor] = []

    def noted(report: Report) -> Tensor:
        its.append(Median()(report))
        return its[-1]

    result = run(TASK, federation(), replace(beside(server), aggregate=noted), rounds=3, cohort=3, engine=engine)
    inner = getattr(server, "then", server)
    w, state = result.w0, inner.init(result.w0, 5)
    for delta in its[-3:]:
        w, state = inner.step(w, delta, Report(delta[None], torch.ones(1)), state)
    assert torch.equal(result.w, w)


@engines
@every
def test_a_restart_changes_nothing(server: Any, engine: Any) -> None:
    *_, whole = federate(TASK, federation(), beside(server), rounds=6, cohort=3, engine=engine)
    *_, half = federate(TASK, federation(), beside(server), rounds=3, cohort=3, engine=engine)
    ids = np.arange(5)
    saved = Saved(
        3, {name: tensor.clone() for name, tensor in half.state().items()},
        {name: [(ids, rows(half, name))] for name in half.rows},
    )  # fmt: skip
    *_, resumed = federate(TASK, federation(), beside(server), rounds=6, cohort=3, engine=engine, resume=saved)
    assert resumed.t == 6
    assert same(everything(resumed), everything(whole))


def test_momentum_of_0_is_the_plain_server() -> None:
    plain, momentum = (run(TASK, federation(), method(server=its)) for its in (Add(), FedAvgM(beta=0.0)))
    assert same(everything(plain), everything(momentum))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@every
def test_the_state_has_the_dtype_of_w(server: Any, dtype: torch.dtype) -> None:
    w = torch.ones(P, dtype=dtype)
    its = Report(w[None], torch.ones(1), extra=w[None])
    w, _ = server.step(w, w, its, server.init(w, 3))
    assert w.dtype == dtype
    assert bool(w.isfinite().all())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FedAvgM(beta=1.0), "FedAvgM needs 0 ≤ beta < 1"),
        (lambda: FedAvgM(lr=0.0), "FedAvgM needs lr > 0"),
        (lambda: FedAvgM(nesterov=1), "FedAvgM needs nesterov=True or False"),  # type: ignore[arg-type]
        (lambda: FedAdam(lr=0.1, beta2=1.0), "FedAdam needs 0 ≤ beta2 < 1"),
        (lambda: FedAdam(lr=0.1, tau=0.0), "FedAdam needs tau > 0"),
        (lambda: FedAdam(lr=0.1, corrected=1), "FedAdam needs corrected=True or False"),  # type: ignore[arg-type]
        (lambda: FedYogi(lr=-0.1), "FedYogi needs lr > 0"),
        (lambda: FedAdagrad(lr=0.1, beta1=-0.1), "FedAdagrad needs 0 ≤ beta1 < 1"),
    ],
)
def test_wrong_parameters_are_told(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_momentum_is_ahead_where_steps_are_short() -> None:
    losses = [
        run(TASK, federation(), method(local=SGD(lr=0.05), server=server, personal={}), rounds=30)
        .evaluate("train").values["global", "train"]["loss"].mean()
        for server in (Add(), FedAvgM(beta=0.8))
    ]  # fmt: skip
    assert losses[1] < losses[0]
