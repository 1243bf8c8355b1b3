"""RSA: its rounds by hand, what it converges to, and how far attackers move w."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from dittofl import (
    A2,
    A3,
    RSA,
    SGD,
    Attack,
    InputError,
    Local,
    Method,
    Send,
    SignFlip,
    Task,
    Votes,
)
from tests.problems import ENGINES, POINT, TASK, Median, Point, federation, half_square, method, points, rows, run
from tests.test_protocol import TASK as PENALISED
from tests.test_protocol import ByHand

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
LAM, LR = 0.3, 0.1


def rsa(**more: Any) -> dict[str, Any]:
    return {"local": RSA(lam=LAM, lr=LR, steps=2), "server": Votes(lam=LAM, lr=LR, **more)}


@engines
def test_its_rounds_by_hand(engine: Any) -> None:
    """Devices vote by the w_k that they come with, then take their steps; w decays by f₀."""
    result = run(PENALISED, federation(), Method(batch=4, **rsa(decay=0.05)), rounds=5, cohort=3, engine=engine)
    hand, w, V = ByHand(result, drawn=2), result.w0, result.w0.repeat(5, 1)
    visits = np.zeros(5, dtype=int)
    for drawn in result.history:
        votes = torch.zeros_like(w)
        for k in map(int, drawn.cohort):
            votes += (V[k] - w).sign()
            for q in range(2):
                g = hand.g(V[k], hand.minibatch(k, int(visits[k]), q, 2))
                V[k] = V[k] - LR * (g + LAM * (V[k] - w).sign())
            visits[k] += 1
        w = w + LR * (LAM * votes - 0.05 * w)
    assert_allclose(result.w, w, rtol=0, atol=1e-12)
    assert_allclose(rows(result, "global"), V, rtol=0, atol=1e-12)
    assert torch.equal(result.row("global", "a"), result.w)


@engines
def test_for_point_estimation_w_is_a_median(engine: Any) -> None:
    """min Σ ½ (w_k − x_k)² + λ |w_k − w|: w is the median of the x_k, and |w_k − x_k| ≤ λ, with = where w is far."""
    x = {"a": (-4.0,), "b": (0.5,), "c": (3.0,), "d": (25.0,), "e": (2.0,)}
    eta = 0.05
    how = Method(local=RSA(lam=LAM, lr=eta), server=Votes(lam=LAM, lr=eta), batch=None)
    result = run(POINT, points(x), how, rounds=400, engine=engine)
    slack = 5 * LAM * eta  # of one round's votes
    assert abs(result.w.item() - 2.0) <= slack
    its = rows(result, "global")[:, 0]
    assert_allclose(its[[0, 1, 2, 3]], [-4 + LAM, 0.5 + LAM, 3 - LAM, 25 - LAM], rtol=0, atol=slack)
    assert abs(its[4].item() - 2.0) <= slack


@engines
def test_with_lambda_0_it_is_local(engine: Any) -> None:
    how = method(local=RSA(lam=0.0, lr=0.2, steps=2), server=Votes(lam=LAM, lr=LR))
    mine = run(TASK, federation(), how, engine=engine)
    local = run(TASK, federation(), method(personal={"v": Local(lr=0.2, steps=2)}), engine=engine)
    assert torch.equal(rows(mine, "global"), rows(local, "v"))


UPDATES = (SignFlip(factor=1e6), Send(value=1e30), Send(value=-1e300), Send(value=float("nan")))


@engines
@pytest.mark.parametrize("update", UPDATES, ids=str)
def test_attackers_move_w_by_no_more_than_their_votes(engine: Any, update: Any) -> None:
    """f devices, one round from the same w: at most f λ η from what the benign alone would make of it."""
    how = Method(batch=4, **rsa())
    before = run(TASK, federation(), how, rounds=3, engine=engine)
    attack = Attack(count=2, poisoned=False, update=update, start=3)
    after = run(TASK, federation(), how, rounds=4, engine=engine, attack=attack)
    benign = torch.from_numpy(~after.malicious)
    votes = (rows(before, "global")[benign] - before.w).sign().sum(0)
    moved = (after.w - (before.w + LR * LAM * votes)).abs()
    assert float(moved.max()) <= 2 * LAM * LR + 1e-15
    honest = run(TASK, federation(), how, rounds=4, engine=engine)
    assert not torch.equal(honest.w, after.w)


@engines
def test_any_aggregator_sees_votes(engine: Any) -> None:
    """The majority's vote, times m."""
    result = run(TASK, federation(), Method(batch=4, aggregate=Median(), **rsa()), rounds=4, engine=engine)
    before = run(TASK, federation(), Method(batch=4, aggregate=Median(), **rsa()), rounds=3, engine=engine)
    votes = (rows(before, "global") - before.w).sign().median(0).values
    assert_allclose(result.w, before.w + LR * LAM * 5 * votes, rtol=0, atol=1e-15)


@pytest.mark.parametrize("attack", [A2(ratio=0.4, poisoned=False), A3(ratio=0.4, poisoned=False)], ids=["A2", "A3"])
def test_the_papers_attacks_are_votes_too(attack: Attack) -> None:
    """A3 scales a vote, which stays one; A2 votes by coin."""
    task, data = Task(Point(2.0), half_square), points({k: (float(k),) for k in range(5)})
    how = Method(local=RSA(lam=1.0, lr=0.05), server=Votes(lam=1.0, lr=0.05), batch=None)
    w = run(task, data, how, rounds=200, attack=attack).w.item()
    assert 0 <= w <= 4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RSA(lam=-1.0, lr=0.1), "RSA needs 0 ≤ lam"),
        (lambda: Votes(lam=0.0, lr=0.1), "Votes needs lam > 0"),
        (lambda: Votes(lam=0.1, lr=0.1, decay=-1.0), "Votes needs 0 ≤ decay"),
        (lambda: Method(local=RSA(lam=0.1, lr=0.1)), "RSA works with the server Votes alone"),
        (lambda: Method(local=SGD(lr=0.1), server=Votes(lam=0.1, lr=0.1)), "Votes reads what RSA sends"),
    ],
)
def test_what_does_not_go_together_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
