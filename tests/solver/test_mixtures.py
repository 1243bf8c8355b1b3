"""APFL and mapper: models mixed with w."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from dittofl import APFL, SGD, InputError, Local, Mapper, Method
from tests.problems import ENGINES, TASK, federation, method, rows, run
from tests.test_protocol import ByHand

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
LR = 0.2


def ends(how: Method, engine: Any, rounds: int) -> list[Any]:
    """The run after each number of rounds."""
    return [run(TASK, federation(), how, rounds=t, engine=engine) for t in range(1, rounds + 1)]


# APFL


@engines
@pytest.mark.parametrize("adaptive", [False, True])
def test_apfl(engine: Any, adaptive: bool) -> None:
    how = method(personal={"v": APFL(lr=LR, steps=3, alpha=0.3, adaptive=adaptive)})
    *earlier, result = ends(how, engine, 3)
    hand = ByHand(result, drawn=2)
    for k, id in enumerate(result.federation.ids):
        v, alpha = result.w0, 0.3
        for visit, down in enumerate((result.w0, *(end.w for end in earlier))):
            w = down
            for q in range(3):
                samples = hand.minibatch(k, visit, q, 3)
                g, at = hand.g(alpha * v + (1 - alpha) * w, samples), alpha
                if adaptive and q == 0:
                    alpha = min(max(alpha - LR * float((v - w) @ g), 0.0), 1.0)
                v, w = v - LR * at * g, w - LR * hand.g(w, samples)
        assert_allclose(rows(result, "v")[k][: len(v)], v, rtol=0, atol=1e-12)
        assert_allclose(result.row("v", id), alpha * v + (1 - alpha) * result.w, rtol=0, atol=1e-12)
        assert (alpha != 0.3) is adaptive


@engines
def test_apfl_at_its_ends_is_local_and_w(engine: Any) -> None:
    personal = {"one": APFL(lr=LR, alpha=1.0), "zero": APFL(lr=LR, alpha=0.0), "local": Local(lr=LR)}
    result = run(TASK, federation(), method(personal=personal), engine=engine)
    assert_allclose(rows(result, "one"), rows(result, "local"), rtol=0, atol=1e-15)
    for id in result.federation.ids:
        assert_allclose(result.row("zero", id), result.w, rtol=0, atol=1e-15)


@engines
def test_an_adaptive_alpha_stays_within_0_and_1(engine: Any) -> None:
    result = run(TASK, federation(), method(personal={"v": APFL(lr=20.0, adaptive=True)}), engine=engine)
    alphas = rows(result, "v")[:, -1]
    assert ((alphas >= 0) & (alphas <= 1)).all()
    assert ((alphas == 0) | (alphas == 1)).any()


# Mapper


@engines
def test_mapper(engine: Any) -> None:
    alphas, lr = (0.1, 0.5, 0.9), 6.0
    how = method(local=Mapper(lr=lr, steps=2, alphas=alphas), personal={})
    *earlier, result = ends(how, engine, 3)
    hand = ByHand(result, drawn=2)
    chosen, V = [], [result.w0] * 5
    for visit, down in enumerate((result.w0, *(end.w for end in earlier))):
        deltas = []
        for k in range(5):
            tried = []
            for alpha in alphas:
                v = V[k]
                for q in range(2):
                    g = hand.g(alpha * v + (1 - alpha) * down, hand.minibatch(k, visit, q, 2))
                    v = v - lr * alpha * g
                loss = float(hand.f(alpha * v + (1 - alpha) * down, hand.part(k, "train")))
                tried.append((loss, alpha, v, -lr * (1 - alpha) * g))
            _, alpha, V[k], delta = min(tried, key=lambda one: one[0])
            deltas.append(delta)
            chosen.append(alpha)
        w = down + torch.stack(deltas).mean(0)
    assert_allclose(result.w, w, rtol=0, atol=1e-12)
    assert_allclose(rows(result, "global")[:, :-1], torch.stack(V), rtol=0, atol=1e-12)
    assert_allclose(rows(result, "global")[:, -1], chosen[-5:], rtol=0, atol=1e-15)
    assert len(set(chosen)) > 1
    for k, id in enumerate(result.federation.ids):
        alpha = chosen[-5:][k]
        assert_allclose(result.row("global", id), alpha * V[k] + (1 - alpha) * w, rtol=0, atol=1e-12)


@engines
def test_mapper_at_its_ends_is_local_and_fedavg(engine: Any) -> None:
    local = run(TASK, federation(), method(personal={"v": Local(lr=LR, steps=2)}), engine=engine)
    one = run(TASK, federation(), method(local=Mapper(lr=LR, steps=2, alphas=(1.0,)), personal={}), engine=engine)
    assert torch.equal(one.w, one.w0)
    assert_allclose(rows(one, "global")[:, :-1], rows(local, "v"), rtol=0, atol=1e-14)
    zero, fedavg = (
        run(TASK, federation(), method(local=solver, personal={}), engine=engine)
        for solver in (Mapper(lr=LR, alphas=(0.0,)), SGD(lr=LR))
    )
    assert_allclose(zero.w, fedavg.w, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("solver", "mistake"),
    [
        (APFL, {"alpha": 1.1}),
        (APFL, {"alpha": float("nan")}),
        (APFL, {"adaptive": 1}),
        (Mapper, {"alphas": ()}),
        (Mapper, {"alphas": (0.5, 0.5)}),
        (Mapper, {"alphas": (-0.1,)}),
        (Mapper, {"alphas": [0.5]}),
        (Mapper, {"lr": 0.0}),
    ],
)
def test_mistakes_are_named(solver: Any, mistake: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{solver.__name__} needs .*{next(iter(mistake))}"):
        solver(**{"lr": LR, **mistake})


def test_the_rows_of_a_device_never_visited_serve_a_mixture_with_w0() -> None:
    how = method(local=Mapper(lr=LR), personal={"apfl": APFL(lr=LR, adaptive=True)})
    result = run(TASK, federation(), how, rounds=1, cohort=2)
    unseen = result.federation.ids[int(np.flatnonzero(result.visits == 0)[0])]
    for name in ("global", "apfl"):
        assert_allclose(result.row(name, unseen), (result.w0 + result.w) / 2, rtol=0, atol=1e-15)
