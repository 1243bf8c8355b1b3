"""Final visits: fine-tuning from w^T, EWC and SKL, beside joint solvers on one trajectory."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from dittofl import EWC, SGD, SKL, Choose, Ditto, Epochs, InputError, Local, Method, Momentum, Task, finetune
from dittofl.federate import begin
from dittofl.solver.skl import symmetrised
from tests.problems import (
    ENGINES,
    POINT,
    TASK,
    Point,
    everything,
    federation,
    gap,
    half_square,
    method,
    mlp,
    points,
    rows,
    run,
    same,
)
from tests.test_protocol import ByHand, gradient, ridge

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
NUMBERS = {"a": (1.0, 2.0, 6.0), "b": (-4.0,), "c": (0.5, 0.5), "d": (10.0, 20.0, 30.0, 40.0)}
MEANS = np.array([3.0, -4.0, 0.5, 25.0])
FINAL = {
    "tuned": Local(lr=0.1, steps=Epochs(count=3)),
    "ditto, tuned": Ditto(lam=0.5, lr=0.1, steps=7, through=(Momentum(),)),
    "ewc": EWC(lam=2.0, lr=0.1, steps=3, fisher=2),
    "skl": SKL(lam=2.0, lr=0.1, steps=Epochs(count=2)),
}


@engines
def test_fine_tuning_is_gradient_descent_from_the_last_w(engine: Any) -> None:
    """v_s = v* + (1 − η (1 + λ))^s (w − v*) with v* = (x̄_k + λ w) / (1 + λ)."""
    final = {f"{lam:g}": Ditto(lam=lam, lr=0.2, steps=3) for lam in (0.0, 1.5)}
    how = Method(local=SGD(lr=0.3), personal={"joint": Ditto(lam=1.5, lr=0.2)}, final=final, batch=None)
    result = run(POINT, points(NUMBERS), how, rounds=4, cohort=2, engine=engine)
    result.finish()
    for lam in (0.0, 1.5):
        best = (MEANS + lam * result.w.item()) / (1 + lam)
        expected = best + (1 - 0.2 * (1 + lam)) ** 3 * (result.w.item() - best)
        assert_allclose(rows(result, f"{lam:g}")[:, 0], expected, rtol=0, atol=1e-12)


@engines
def test_final_visits_take_minibatches_epoch_by_epoch(engine: Any) -> None:
    final = {"tuned": Local(lr=0.1, steps=Epochs(count=3))}
    result = run(TASK, federation(), method(final=final), rounds=2, engine=engine)
    result.finish()
    hand = ByHand(result, drawn=0)
    for k, batches in enumerate((1, 1, 2, 1, 1)):
        v = result.w
        for q in range(3 * batches):
            v = v - 0.1 * hand.g(v, hand.minibatch(k, 0, q, 3 * batches))
        assert_allclose(rows(result, "tuned")[k], v, rtol=0, atol=1e-12)


@engines
def test_finishing_changes_nothing_else(engine: Any) -> None:
    plain = run(TASK, federation(), method(), cohort=3, engine=engine)
    finished = begin(TASK, federation(), method(final=FINAL), engine=engine)
    for drawn in plain.history:
        finished.finish()
        finished.finish()
        assert set(FINAL) <= set(finished.rows)
        finished.round(drawn.cohort)
    assert same(everything(plain), everything(finished))
    assert plain.visits.tolist() == finished.visits.tolist()


def test_a_final_visit_is_the_same_on_both_engines_and_again() -> None:
    ends = [run(TASK, federation(), method(final=FINAL), cohort=3, engine=engine) for engine in ENGINES.values()]
    for end in ends:
        end.finish()
    assert set(ends[0].rows) == {"global", *method().personal, *FINAL}
    assert gap(*ends) <= 1e-10
    before = everything(ends[0])
    ends[0].finish()
    assert same(before, everything(ends[0]))


def test_more_devices_than_are_visited_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (run(TASK, federation(), method(final=FINAL), rounds=1) for _ in range(2))
    one.finish()
    monkeypatch.setattr("dittofl.federated.TOGETHER", 2)
    other.finish()
    assert same(everything(one), everything(other))


@engines
def test_final_models_are_there_until_the_next_round(engine: Any) -> None:
    final, choice = finetune(lr=0.1, stops=(1, Epochs(count=4)))
    assert list(final) == ["steps=1", "epochs=4"]
    how = method(final=final, choose={"stopped": choice})
    result = run(TASK, federation(), how, rounds=2, engine=engine)
    assert ("epochs=4", "test") not in result.evaluate().values
    for name in ("epochs=4", "stopped"):
        with pytest.raises(InputError, match=r"finish\(\)"):
            result.row(name, "a")
    result.finish()
    values = result.evaluate().values
    assert {"epochs=4", "steps=1", "stopped", "ditto", "global"} <= {model for model, _ in values}
    x, y = result.federation.part("c", "test")
    loss = nn.functional.cross_entropy(result.model("epochs=4", "c")(x), y)
    assert_allclose(values["epochs=4", "test"]["loss"][2], float(loss.detach()), atol=1e-12)
    assert result.row("stopped", "c").shape == result.w.shape
    result.round(np.array([0, 1]))
    assert {model for model, _ in result.evaluate().values} == {"global", *how.personal}


def test_names_of_final_solvers_are_checked() -> None:
    for wrong in ({"ditto": Local(lr=0.1)}, {"global": Local(lr=0.1)}, {"x": SGD}, [1]):
        with pytest.raises(InputError):
            method(final=wrong)
    with pytest.raises(InputError, match="among"):
        method(choose={"c": Choose(among=("tuned",), few="tuned")})
    for stops in ((), (3, 3), 5):
        with pytest.raises(InputError):
            finetune(lr=0.1, stops=stops)  # type: ignore[arg-type]


@engines
def test_plain_fine_tuning_and_the_solver_of_ditto_in_one_run(engine: Any) -> None:
    """Several λ and stops are rows of their own names."""
    stops = (2, Epochs(count=3))
    (plain, _), (pulled, choice) = (finetune(lr=0.1, lam=lam, stops=stops) for lam in (0.0, 0.5))
    assert list(pulled) == ["lam=0.5,steps=2", "lam=0.5,epochs=3"]
    result = run(TASK, federation(), method(final=plain | pulled, choose={"best": choice}), rounds=2, engine=engine)
    result.finish()
    for name, solver in pulled.items():
        assert solver == Ditto(lam=0.5, lr=0.1, steps=solver.steps)
        assert (rows(result, name) != rows(result, name.removeprefix("lam=0.5,"))).any(1).all()
    assert ("best", "test") in result.evaluate().values


# EWC


@engines
@pytest.mark.parametrize("lam", [0.0, 0.7])
def test_ewc_with_unit_fisher_is_the_fine_tuning_of_ditto(engine: Any, lam: float) -> None:
    """At w = 0 the gradients are ±1."""
    data = points({"a": (1.0, 1.0), "b": (-1.0,)})
    final = {"ewc": EWC(lam=lam, lr=0.2, steps=4, fisher=2), "ditto": Ditto(lam=lam, lr=0.2, steps=4)}
    result = begin(Task(Point(), half_square), data, Method(local=SGD(lr=0.1), final=final, batch=None), engine=engine)
    result.finish()
    assert_allclose(rows(result, "ewc"), rows(result, "ditto"), rtol=0, atol=1e-15)
    assert rows(result, "ewc").any(1).all()


@engines
def test_the_fisher_diagonal_is_of_squared_minibatch_gradients_at_w(engine: Any) -> None:
    """As a joint solver: the first minibatches of each visit are for F, at the w of that visit."""
    solver = EWC(lam=30.0, lr=0.1, steps=2, fisher=3)
    how = method(personal={"v": solver})
    ws = [run(TASK, federation(), how, rounds=t, engine=engine).w for t in (0 + 1,)]
    result = run(TASK, federation(), how, rounds=2, engine=engine)
    hand = ByHand(result, drawn=2)
    for k in range(5):
        v = result.w0
        for visit, w in enumerate((result.w0, *ws)):
            batches = [hand.minibatch(k, visit, q, 5) for q in range(5)]
            F = sum(hand.g(w, batch) ** 2 for batch in batches[:3]) / 3
            for batch in batches[3:]:
                v = v - 0.1 * (hand.g(v, batch) + 30 * F * (v - w))
        assert_allclose(rows(result, "v")[k], v, rtol=0, atol=1e-12)


# SKL


def kl(a: Tensor, b: Tensor) -> Tensor:
    return nn.functional.kl_div(b.log_softmax(1), a.softmax(1), reduction="none").sum(1)


@engines
@pytest.mark.parametrize("summed", [False, True])
def test_symmetrised_kl(engine: Any, summed: bool) -> None:
    """The penalty of F_k is counted once."""
    task = Task(mlp(), nn.CrossEntropyLoss(), penalty=ridge)
    how = method(final={"v": SKL(lam=0.3, lr=0.1, steps=3, summed=summed)})
    result = run(task, federation(), how, rounds=2, engine=engine)
    result.finish()
    hand = ByHand(result, drawn=0)
    for k, n in enumerate((7, 2, 11, 1, 4)):
        v = result.w
        for q in range(3):
            samples = hand.minibatch(k, 0, q, 3)
            x = hand.part(k, "train")[0] if summed else samples[0]
            f = hand.out(result.w, x).detach()

            def closeness(row: Tensor, x: Tensor = x, f: Tensor = f) -> Tensor:
                out = hand.out(row, x)
                return (kl(out, f) + kl(f, out)).mean()

            v = v - 0.1 * (hand.g(v, samples) + (0.3 * n if summed else 0.15) * gradient(closeness, v))
        assert_allclose(rows(result, "v")[k], v, rtol=0, atol=1e-12)
    assert not torch.allclose(rows(result, "v"), result.w)


def test_one_score_is_two_classes() -> None:
    a, b = torch.tensor([[0.3], [-2.0]]), torch.tensor([[1.0], [0.5]])
    two = [torch.cat([torch.zeros(2, 1), o], 1) for o in (a, b)]
    for given in ((a, b), (a[:, 0], b[:, 0]), two):
        assert_allclose(symmetrised(given[0], b, given[1]), kl(*two) + kl(*two[::-1]), rtol=1e-6)


@engines
def test_lambda_0_is_local(engine: Any) -> None:
    final = {
        "tuned": Local(lr=0.2, steps=3),
        "zero": Ditto(lam=0.0, lr=0.2, steps=3),
        "skl": SKL(lam=0.0, lr=0.2, steps=3),
    }
    result = run(TASK, federation(), method(final=final), rounds=1, engine=engine)
    result.finish()
    for name in ("zero", "skl"):
        assert_allclose(rows(result, name), rows(result, "tuned"), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("solver", "mistake"),
    [
        (EWC, {"lam": -1.0}),
        (EWC, {"fisher": 0}),
        (SKL, {"lam": float("inf")}),
        (SKL, {"summed": 1}),
    ],
)
def test_mistakes_are_named(solver: Any, mistake: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{solver.__name__} needs .*{next(iter(mistake))}"):
        solver(**{"lr": 0.1, "lam": 1.0, **mistake})
