"""SCAFFOLD: its rounds by hand, where it is FedAvg, what it converges to, and what malicious devices do to c."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from dittofl import (
    A3,
    SGD,
    Add,
    Attack,
    ClipNorm,
    Clusters,
    Control,
    Ditto,
    Epochs,
    FedAdam,
    FedAvgM,
    Federation,
    Forge,
    InputError,
    Inverse,
    Method,
    Momentum,
    Report,
    Scaffold,
    Send,
    Share,
    Task,
)
from dittofl.aggregate import Stateless
from tests.problems import (
    ENGINES,
    TASK,
    ByLoss,
    Median,
    Point,
    federation,
    method,
    rows,
    run,
)
from tests.test_protocol import TASK as PENALISED
from tests.test_protocol import ByHand

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
SPREAD = {"a": (1.0, 3.0), "b": (2.0, -1.0), "c": (0.5, 10.0), "d": (3.0, 0.5)}  # curvature, minimiser
LR = 0.3


@engines
@pytest.mark.parametrize("steps", [2, Epochs(count=2)], ids=str)
def test_its_rounds_by_hand(engine: Any, steps: Any) -> None:
    """c_k⁺ = c_k − c + (w − w_k)/(r η), r the device's own number of steps; c moves by a K-th of Σ Δc_k."""
    beside = {"ditto": Ditto(lam=1.0, lr=0.1)}
    how = Method(local=Scaffold(lr=LR, steps=steps), server=Control(), personal=beside, batch=4)
    result = run(PENALISED, federation(), how, rounds=5, cohort=3, engine=engine)
    w = result.w0
    c, controls, visits = torch.zeros_like(w), torch.zeros(5, len(w), dtype=w.dtype), np.zeros(5, dtype=int)
    for drawn in result.history:
        deltas, changes = [], []
        for k in map(int, drawn.cohort):
            r = steps if isinstance(steps, int) else 2 * (1, 1, 2, 1, 1)[k]
            hand, w_k = ByHand(result, drawn=r), w
            for q in range(r):
                w_k = w_k - LR * (hand.g(w_k, hand.minibatch(k, int(visits[k]), q, r)) - controls[k] + c)
            new = controls[k] - c + (w - w_k) / (r * LR)
            deltas.append(w_k - w)
            changes.append(new - controls[k])
            controls[k], visits[k] = new, visits[k] + 1
        w, c = w + sum(deltas) / 3, c + sum(changes) / 5
    assert_allclose(result.w, w, rtol=0, atol=1e-12)
    assert_allclose(result.server_state.c, c, rtol=0, atol=1e-12)
    assert_allclose(rows(result, "global"), controls, rtol=0, atol=1e-12)
    assert float(c.abs().max()) > 1e-3
    assert torch.equal(result.row("global", "a"), result.w)


@engines
def test_on_equal_devices_it_is_fedavg(engine: Any) -> None:
    x, y = federation().part("c", "train")
    data = Federation.from_parts(train=dict.fromkeys(range(3), (x, y)), test={})
    ends = [
        run(TASK, data, Method(batch=None, **how), rounds=4, engine=engine).w
        for how in ({"local": SGD(lr=LR, steps=3)}, {"local": Scaffold(lr=LR, steps=3), "server": Control()})
    ]
    assert_allclose(ends[0], ends[1], rtol=0, atol=1e-14)


@engines
def test_its_first_round_is_fedavgs(engine: Any) -> None:
    pairs = ({"local": SGD(lr=LR, steps=3)}, {"local": Scaffold(lr=LR, steps=3), "server": Control()})
    fedavg, scaffold = (run(TASK, federation(), method(**how), rounds=1, engine=engine) for how in pairs)
    assert torch.equal(fedavg.w, scaffold.w)


class Line(Point):
    """w x: F_k = ½ mean (w x − y)² has curvature x² and minimiser y/x."""

    def forward(self, x: Tensor) -> Tensor:
        return self.w * x[:, 0]


def bowls() -> tuple[Task, Federation, float]:
    data = {}
    for id, (curvature, least) in SPREAD.items():
        x = torch.full((3, 1), curvature**0.5, dtype=torch.float64)
        data[id] = (x, x[:, 0] * least)
    a, m = np.array(list(SPREAD.values())).T
    task = Task(Line(), lambda out, y: 0.5 * (out - y) ** 2)
    return task, Federation.from_parts(train=data, test={}), float((a * m).sum() / a.sum())


@pytest.mark.parametrize("cohort", [4, 2])
def test_it_reaches_w_star_with_ten_steps_where_fedavg_does_not(cohort: int) -> None:
    """FedAvg stands still at Σ p_k m_k / Σ p_k, p_k = 1 − (1 − η a_k)^r, that is far from Σ a_k m_k / Σ a_k."""
    task, data, best = bowls()
    local = {"lr": 0.1, "steps": 10}
    how = Method(local=Scaffold(**local), server=Control(), batch=None)
    scaffold = run(task, data, how, rounds=100, cohort=cohort)
    assert_allclose(scaffold.w.item(), best, rtol=0, atol=1e-8)
    assert_allclose(scaffold.server_state.c, 0, atol=1e-7)
    a, m = np.array(list(SPREAD.values())).T
    assert_allclose(rows(scaffold, "global")[:, 0], a * (best - m), atol=1e-7)  # c_k = ∇F_k(w*)
    fedavg = run(task, data, Method(local=SGD(**local), batch=None), rounds=100)
    p = 1 - (1 - 0.1 * a) ** 10
    assert_allclose(fedavg.w.item(), (p * m).sum() / p.sum(), atol=1e-8)
    assert abs(fedavg.w.item() - best) > 0.3


@pytest.mark.parametrize("through", [(Momentum(beta=0.5),), (ClipNorm(norm=1.0),)], ids=str)
def test_c_stays_a_gradient_behind_a_transform_and_a_schedule(through: Any) -> None:
    """(w − w_k)/(rη) would not be one."""
    task, data, best = bowls()
    local = Scaffold(lr=Inverse(lr=0.1, tau=100), steps=5, through=through)
    result = run(task, data, Method(local=local, server=Control(), batch=None), rounds=50)
    assert_allclose(result.w.item(), best, rtol=0, atol=1e-8)


# Attacks


@engines
def test_attacks_on_updates_leave_what_is_sent_beside_them(engine: Any) -> None:
    """Malicious devices send the Δc of their own training, so that c is the mean of all c_k."""
    how = method(local=Scaffold(lr=0.2, steps=2), server=Control(), personal={}, aggregate=Median())
    result = run(TASK, federation(), how, cohort=3, engine=engine, attack=A3(ratio=0.5))
    assert result.malicious.sum() == 2
    assert_allclose(result.server_state.c, rows(result, "global").mean(0), rtol=0, atol=1e-14)
    honest = run(TASK, federation(), how, cohort=3, engine=engine, attack=Attack(ratio=0.5))
    assert not torch.equal(honest.w, result.w)
    assert torch.equal(result.aggregator.rule(Report(result.w[None], result.w)), result.w)


def test_dropped_reports_do_not_move_c() -> None:
    how = method(local=Scaffold(lr=0.2, steps=2), server=Control(), personal={})
    result = run(TASK, federation(), how, rounds=1, attack=Attack(count=2, update=Send(value=math.nan)))
    assert result.history[0].dropped == 2
    assert_allclose(result.server_state.c, rows(result, "global")[~result.malicious].sum(0) / 5, atol=1e-14)


@pytest.mark.parametrize(("rule", "most"), [(Add, 1e20), (Stateless, 10.0)])
def test_forged_changes_of_c_want_a_rule_of_their_own(rule: Any, most: float) -> None:
    server = Control(aggregate=Stateless(Median())) if rule is Stateless else Control()
    how = method(local=Scaffold(lr=0.2, steps=2), server=server, personal={}, aggregate=Median())
    attack = Attack(count=1, poisoned=False, update=Forge(extra=1e30))
    largest = float(run(TASK, federation(), how, rounds=1, attack=attack).server_state.c.abs().max())
    assert (largest < 10.0) == (most == 10.0)


# Beside other servers


def test_another_server_may_move_w() -> None:
    """The first round of SCAFFOLD is FedAvg's, so that the servers get the same δ; c is what it is without them."""
    for server in (Add(lr=0.5), FedAvgM(lr=0.5), FedAdam(lr=0.1)):
        plain = run(TASK, federation(), method(local=SGD(lr=0.2, steps=2), server=server), rounds=1)
        how = method(local=Scaffold(lr=0.2, steps=2), server=Control(then=server))
        assert torch.equal(run(TASK, federation(), how, rounds=1).w, plain.w)
    moved, plain = (
        run(TASK, federation(), replace(how, server=Control(then=then)), rounds=3)
        for then in (FedAvgM(beta=0.5), FedAvgM(beta=0.0))
    )
    assert not torch.equal(moved.w, plain.w)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Control(then=Share()), "then= to be a server that goes with SGD"),
        (lambda: Control(then=Clusters(groups=2)), "then= to be a server that goes with SGD"),
        (lambda: Control(then=Add), "then= to be a server that goes with SGD"),
        (lambda: Control(aggregate=ByLoss()), "a rule without losses"),
        (lambda: Control(aggregate=Median()), "a rule without losses"),
        (lambda: Method(local=Scaffold(lr=0.1)), "Scaffold works with the server Control alone"),
        (lambda: Method(local=SGD(lr=0.1), server=Control()), "Control reads what Scaffold sends"),
        (lambda: Scaffold(lr=0.1, steps=0), "Scaffold needs steps"),
    ],
)
def test_what_does_not_go_together_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
