"""What a run says of its models, against the user's own module on each device's own data."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from torch import Tensor, nn

from dittofl import (
    A1,
    A2,
    A3,
    SGD,
    Attack,
    Choose,
    Ditto,
    Epochs,
    Evaluation,
    Federated,
    Federation,
    InputError,
    Inverse,
    Local,
    Method,
    Metric,
    Task,
    federate,
    hinge,
    lambda_rule,
    personalise,
)
from dittofl.types import Steps
from tests.problems import (
    ENGINES,
    PARTS,
    TASK,
    Make,
    Minibatches,
    Point,
    binary,
    everything,
    federation,
    half_square,
    integers,
    linear,
    method,
    mlp,
    normal,
    points,
    reals,
    rows,
    run,
    same,
    seeded,
    several,
    signs,
)

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
CE, BCE = nn.CrossEntropyLoss(), nn.BCEWithLogitsLoss()


def ridge(parameters: dict[str, Tensor]) -> Tensor:
    return 0.1 * sum((p**2).sum() for p in parameters.values())  # type: ignore[return-value]


def dropped() -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.Tanh(), nn.Linear(6, 3)))


def square(out: Tensor, y: Tensor) -> Tensor:
    return (out - y) ** 2


def top(out: Tensor, y: Tensor) -> Tensor:
    return (out.argmax(1) == y).double()


def both(out: Tensor, y: Tensor) -> Tensor:
    return ((out > 0) == (y > 0)).double().mean(1)


def sign(out: Tensor, y: Tensor) -> Tensor:
    return (out[:, 0] * y > 0).double()


def logit(out: Tensor, y: Tensor) -> Tensor:
    return ((out[:, 0] > 0) == (y == 1)).double()


def squeezed(loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda out, y: loss(out[:, 0], y.double())


Case = tuple[Task, Make | None, Callable[[Tensor, Tensor], Tensor], Callable[[Tensor, Tensor], Tensor] | None]
CASES: dict[str, Case] = {
    "classes": (Task(mlp(), CE), None, CE, top),
    "dropout, transform": (Task(dropped(), CE, transform=lambda x, generator: x * 0), None, CE, top),
    "binary": (Task(linear(), BCE), binary, squeezed(BCE), logit),
    "multi-label": (Task(mlp(), BCE), several, lambda out, y: BCE(out, y.double()), both),
    "svm": (Task(linear(), hinge), signs, squeezed(lambda out, y: (1 - y * out).clamp_min(0).mean()), sign),
    "regression": (Task(linear(), square), reals, squeezed(lambda out, y: square(out, y).mean()), None),
}  # fmt: skip


@engines
@pytest.mark.parametrize("name", CASES)
def test_evaluation_is_that_of_the_module_on_the_device(name: str, engine: Any) -> None:
    task, make, loss, right = CASES[name]
    task = Task(task.module, task.loss, penalty=ridge, transform=task.transform)
    data = federation(make) if make else federation()
    result = run(task, data, method(), rounds=3, cohort=3, engine=engine)
    evaluation = result.evaluate(*PARTS)
    assert set(evaluation.values) == {(m, part) for m in ("global", *result.method.personal) for part in PARTS}
    for (model, part), scores in evaluation.values.items():
        assert set(scores) == ({"accuracy", "loss"} if right else {"loss"})
        for k, id in enumerate(data.ids):
            x, y = data.part(id, part)  # type: ignore[arg-type]
            module = result.model(model, id)
            assert not module.training
            if not len(y):
                assert all(np.isnan(numbers[k]) for numbers in scores.values())
                continue
            with torch.no_grad():
                expected = loss(module(x), y) + ridge(dict(module.named_parameters()))
                assert_allclose(scores["loss"][k], float(expected), rtol=0, atol=1e-12)
                if right:
                    assert_allclose(scores["accuracy"][k], float(right(module(x), y).mean()), rtol=0, atol=1e-12)


@engines
def test_by_default_the_test_part_is_scored(engine: Any) -> None:
    evaluation = run(TASK, federation(), method(), rounds=1, engine=engine).evaluate()
    assert {part for _, part in evaluation.values} == {"test"}
    assert evaluation.t == 1
    assert evaluation.sizes["test"].tolist() == [2, 3, 2, 2, 0]
    assert "round 1, 5 benign of 5 devices" in str(evaluation)


@engines
def test_models_are_modules_of_the_users_class(engine: Any) -> None:
    result = run(TASK, federation(), method(), rounds=2, engine=engine)
    assert isinstance(result.model(), nn.Sequential)
    for name, expected in (("global", result.w), ("ditto", rows(result, "ditto")[2])):
        module = result.model(name, "c")
        assert torch.equal(nn.utils.parameters_to_vector(module.parameters()), expected)
        assert torch.equal(result.row(name, "c"), expected)
    for mistake in (("nobody", "c"), ("ditto", None), ("ditto", "z")):
        with pytest.raises(InputError):
            result.model(*mistake)


# Metrics of the user's own


def confidence(out: Tensor, y: Tensor) -> Tensor:
    """One number a sample."""
    return out.softmax(1).amax(1)


def entropy(out: Tensor, y: Tensor) -> float:
    """One number a device."""
    return float(-(out.softmax(1) * out.log_softmax(1)).sum(1).mean())


@engines
def test_metrics_of_the_user(engine: Any) -> None:
    metrics = {"confidence": confidence, "entropy": Metric(of=entropy, lower_is_better=True)}
    result = run(Task(mlp(), CE, metrics=metrics), federation(), method(), rounds=3, engine=engine)
    evaluation = result.evaluate("train")
    for model in ("global", "ditto"):
        scores = evaluation.values[model, "train"]
        for k, id in enumerate(result.federation.ids):
            x, y = result.federation.part(id, "train")
            out = result.model(model, id)(x).detach()
            assert_allclose(scores["confidence"][k], float(confidence(out, y).mean()), atol=1e-12)
            assert_allclose(scores["entropy"][k], entropy(out, y), atol=1e-12)
    up, down = (evaluation.summary("ditto", metric, "train") for metric in ("confidence", "entropy"))
    assert up.worst10 == up.min < up.best10
    assert down.best10 == down.min < down.worst10
    loss = evaluation.summary("ditto", "loss", "train")
    assert loss.best10 == loss.min < loss.worst10


@engines
def test_a_metric_of_another_shape_is_refused(engine: Any) -> None:
    task = Task(mlp(), CE, metrics={"outputs": lambda out, y: out})
    with pytest.raises(InputError, match="'outputs' must give one number, or one per sample"):
        run(task, federation(), method(), rounds=1, engine=engine).evaluate()


@engines
def test_benign_devices_are_the_headline(engine: Any) -> None:
    result = run(TASK, federation(), method(), attack=A1(count=2), engine=engine)
    evaluation = result.evaluate("train", "test")
    assert evaluation.malicious.sum() == 2
    for part in ("train", "test"):
        scores, n = evaluation.values["ditto", part]["accuracy"], evaluation.sizes[part]  # type: ignore[index]
        for whom, counted in (("benign", ~evaluation.malicious & (n > 0)), ("all", n > 0)):
            summary = evaluation.summary("ditto", part=part, whom=whom)  # type: ignore[arg-type]
            assert summary.devices == counted.sum()
            assert_allclose(summary.mean, scores[counted].mean())
            assert_allclose(summary.weighted_mean, np.average(scores[counted], weights=n[counted]))
    for mistake in ({"whom": "malicious"}, {"metric": "auc"}, {"part": "validation"}, {"model": "nobody"}):
        with pytest.raises(InputError):
            evaluation.summary(**mistake)  # type: ignore[arg-type]


@engines
def test_malicious_devices_are_scored_on_poisoned_train_and_clean_test_labels(engine: Any) -> None:
    result = run(TASK, federation(), method(), attack=A1(count=2), engine=engine)
    evaluation, poisoned = result.evaluate(*PARTS), 0
    for k, id in enumerate(result.federation.ids):
        bounds = result.federation.bounds[k]
        for j, part in enumerate(PARTS):
            x, clean = result.federation.part(id, part)  # type: ignore[arg-type]
            y = result.setting.y[bounds[j] : bounds[j + 1]]
            poisoned += int((y != clean).sum())
            assert torch.equal(y, clean) or (result.malicious[k] and part != "test")
            if len(y):
                expected = float(CE(result.model("ditto", id)(x), y).detach())
                assert_allclose(evaluation.values["ditto", part]["loss"][k], expected, atol=1e-12)  # type: ignore[index]
    assert poisoned > 0


# The choice among personal rows


def naive_choice(evaluation: Evaluation, among: tuple[str, ...], few: str, enough: int, k: int) -> str:
    """The paper's rule, device by device."""
    if evaluation.sizes["validation"][k] < enough:
        return few
    best, best_accuracy, best_loss = "", -1.0, float("inf")
    for name in among:
        scores = evaluation.values[name, "validation"]
        accuracy, loss = scores.get("accuracy", -scores["loss"])[k], scores["loss"][k]
        if accuracy > best_accuracy or best == "" or (accuracy == best_accuracy and loss < best_loss):
            best, best_accuracy, best_loss = name, accuracy, loss
    return best


def chosen_from(seed: int, K: int = 12) -> Federation:
    """Devices with 0..5 validation samples."""
    sizes = {f"d{k}": (6, (k + seed) % 6, 3) for k in range(K)}
    return federation(sizes=sizes)


@engines
@pytest.mark.parametrize("strong", [False, True])
def test_the_lambda_rule(engine: Any, strong: bool) -> None:
    personal, rule = lambda_rule(strong=strong, lr=0.5, steps=4)
    assert [ditto.lam for ditto in personal.values()] == ([0.05, 0.1, 0.2] if strong else [0.1, 1.0, 2.0])
    assert personal[rule.few].lam == (0.1 if strong else 1.0)
    wide = {**personal, "far": Local(lr=3.0, steps=6), "near": Ditto(lam=4.0, lr=0.2)}
    eager = Choose(among=("near", "far", *personal), few="far", enough=2)
    how = method(personal=wide, choose={"rule": rule, "eager": eager})
    result = run(TASK, chosen_from(0), how, attack=A1(count=3), engine=engine)
    evaluation = result.evaluate(*PARTS)
    for name, choice in (("rule", rule), ("eager", eager)):
        picks = [naive_choice(evaluation, choice.among, choice.few, choice.enough, k) for k in range(12)]
        assert evaluation.choices[name].tolist() == picks
        for part in PARTS:
            for metric, numbers in evaluation.values[name, part].items():  # type: ignore[index]
                expected = [evaluation.values[pick, part][metric][k] for k, pick in enumerate(picks)]  # type: ignore[index]
                assert_array_equal(numbers, expected)
        for k, id in enumerate(result.federation.ids):
            assert torch.equal(result.row(name, id), result.row(picks[k], id))
    assert len(set(evaluation.choices["eager"])) > 2


@engines
def test_without_an_accuracy_the_loss_decides(engine: Any) -> None:
    personal = {"tiny": Local(lr=1e-3), "small": Local(lr=0.05), "large": Local(lr=0.3, steps=3)}
    rule = Choose(among=("tiny", "small", "large"), few="tiny", enough=1)
    task = Task(linear(), square)
    result = run(task, federation(reals), method(personal=personal, choose={"best": rule}), engine=engine)
    evaluation = result.evaluate("validation")
    picks = [naive_choice(evaluation, rule.among, rule.few, rule.enough, k) for k in range(5)]
    assert evaluation.choices["best"].tolist() == picks
    assert evaluation.choices["best"][1] == "tiny"
    assert len(set(picks)) > 1


def test_ties_in_accuracy_go_to_the_lower_loss_then_to_the_earlier_row() -> None:
    rule = Choose(among=("a", "b", "c"), few="b", enough=4)
    accuracy = np.array([[0.5, 0.5, 0.5, np.nan, 0.9], [0.5, 0.5, 0.7, np.nan, 0.1], [0.5, 0.2, 0.7, np.nan, 0.1]])
    loss = np.array([[1.0, 2.0, 0.1, np.nan, 9.0], [0.9, 2.0, 0.5, np.nan, 0.1], [np.nan, 0.1, 0.5, np.nan, 0.1]])
    n = np.array([4, 5, 6, 0, 3])
    assert rule.pick(n, accuracy, loss).tolist() == [1, 0, 1, 1, 1]


def test_a_choice_made_by_evaluation_changes_nothing() -> None:
    personal, rule = lambda_rule(strong=False, lr=0.5)
    how = method(personal=personal, choose={"rule": rule})
    never = run(TASK, federation(), how)
    for always in federate(TASK, federation(), how, rounds=5, engine=ENGINES["loop"]):
        always.evaluate()
    assert same(everything(never), everything(always))


@engines
def test_validation_is_scored_once_for_all_choices(engine: Any) -> None:
    personal, rule = lambda_rule(strong=False, lr=0.5)
    choices = {"rule": rule, "first": Choose(among=("lam=1", "lam=2"), few="lam=1")}
    result = run(TASK, federation(), method(personal=personal, choose=choices), engine=engine)
    outputs, scored = result.engine.outputs, []

    def noted(models: Tensor, ids: Any, part: Any) -> Tensor:
        scored.append(part)
        return outputs(models, ids, part)

    result.engine.outputs = noted  # type: ignore[method-assign]
    both = result.evaluate("test", "validation")
    assert sorted(scored) == ["test"] * 4 + ["validation"] * 4  # w and the three candidates
    result.engine.outputs = outputs  # type: ignore[method-assign]
    for name in choices:
        assert both.choices[name].tolist() == result.evaluate("test").choices[name].tolist()


def test_columns_of_a_table_stand_apart() -> None:
    """Also where numbers are large and names long."""
    huge, name = {"a": [1e5, -1e5], "b": [3e5, 1e5]}, "a-model-with-a-long-name"
    how = Method(local=SGD(lr=1e-9), personal={name: Local(lr=1e-9)})
    evaluation = run(Task(Point(), half_square), points(huge), how, rounds=1).evaluate("train")
    for line, model in zip(str(evaluation).splitlines()[2:], ("global", name), strict=True):
        s = evaluation.summary(model, "loss", "train")
        numbers = (f"{its:.4f}" for its in (s.mean, s.std, s.worst10, s.weighted_mean))
        assert line.split() == [model, "train", "loss", *numbers]


# Devices that were never visited


@engines
def test_a_device_never_visited_serves_w0_and_is_counted(engine: Any) -> None:
    result = run(TASK, federation(), method(), rounds=1, cohort=2, engine=engine)
    evaluation = result.evaluate("train")
    never = np.flatnonzero(evaluation.visits == 0)
    assert len(never) == 3
    assert "3 never visited" in str(evaluation)
    for k in never:
        id = result.federation.ids[k]
        x, y = result.federation.part(id, "train")
        for name in ("ditto", "local", "proximal"):
            assert torch.equal(result.row(name, id), result.w0)
            assert_allclose(evaluation.values[name, "train"]["loss"][k], float(CE(mlp()(x), y).detach()), atol=1e-12)
        assert torch.equal(result.row("global", id), result.w)
    for k in result.history[0].cohort:
        assert not torch.equal(result.row("ditto", result.federation.ids[k]), result.w0)


@engines
def test_an_evaluation_is_a_snapshot(engine: Any) -> None:
    evaluations = [
        (its.evaluate("train"), its.visits.copy())
        for its in federate(TASK, federation(), method(), rounds=3, cohort=2, engine=engine)
    ]
    assert [evaluation.t for evaluation, _ in evaluations] == [1, 2, 3]
    for evaluation, visits in evaluations:
        assert evaluation.visits.tolist() == visits.tolist()
    losses = [evaluation.values["global", "train"]["loss"] for evaluation, _ in evaluations]
    assert not np.allclose(losses[0], losses[2])


# Newcomers


def optimum(x: Tensor, y: Tensor, w: Tensor, lam: float) -> NDArray[np.float64]:
    """argmin (1/n) ‖x̃ v − y‖² + λ/2 ‖v − w‖²."""
    A = np.column_stack([x.numpy(), np.ones(len(x))])
    return np.linalg.solve(2 / len(A) * A.T @ A + lam * np.eye(5), 2 / len(A) * A.T @ y.numpy() + lam * w.numpy())


@pytest.mark.parametrize("lam", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("proximal", [False, True])
def test_a_newcomer_reaches_its_optimum(lam: float, proximal: bool) -> None:
    x, y = reals(20, 500)
    w = normal(5, seed=6)
    task = Task(linear(), nn.MSELoss())
    solver = Ditto(lam=lam, lr=0.15 if lam < 10 else 0.08, steps=5, proximal=proximal)
    module = personalise(w, (x, y), task=task, solver=solver, visits=100, batch=None)
    assert isinstance(module, nn.Linear)
    v = nn.utils.parameters_to_vector(module.parameters()).detach()
    assert_allclose(v, optimum(x, y, w, lam), atol=1e-8)
    assert_allclose(w, normal(5, seed=6))


def test_a_newcomer_begins_at_w() -> None:
    w = normal(5, seed=6)
    still = personalise(w, reals(20, 500), task=Task(linear(), nn.MSELoss()), solver=Local(lr=1e-300), visits=1)
    assert torch.equal(nn.utils.parameters_to_vector(still.parameters()), w)


@pytest.mark.parametrize("steps", [2, Epochs()], ids=str)
def test_a_newcomer_takes_new_minibatches_in_each_visit(steps: Steps) -> None:
    """A decaying step counts its visits. An epoch of 20 samples has 5 batches of 4."""
    (x, y), w, lr = reals(20, 500), normal(5, seed=6), Inverse(lr=0.1, tau=2)
    solver = Ditto(lam=0.5, lr=lr, steps=steps)
    found = personalise(w, (x, y), task=Task(linear(), nn.MSELoss()), solver=solver, visits=3, batch=4, seed=1)
    newcomer = Federation.from_parts(train={"newcomer": (x, y)}, test={})
    minibatches = Minibatches(newcomer, 1, 4, drawn=0)
    A, v = np.column_stack([x.numpy(), np.ones(20)]), w.numpy()
    count = steps if isinstance(steps, int) else 5
    for visit in range(3):
        for q in range(count):
            b = minibatches.take(0, visit, q, count)
            v = v - lr(visit) * (2 / 4 * A[b].T @ (A[b] @ v - y.numpy()[b]) + 0.5 * (v - w.numpy()))
    assert_allclose(nn.utils.parameters_to_vector(found.parameters()).detach(), v, rtol=0, atol=1e-12)


def test_a_newcomer_after_training_is_as_good_as_a_member() -> None:
    """Point estimation with all devices in each round: v of a newcomer is λ w*/(1+λ) + x̄/(1+λ), as in the run."""
    data = points({"a": (1.0, 3.0), "b": (-4.0,)})
    task = Task(Point(), half_square)
    solver = Ditto(lam=2.0, lr=0.2)
    result = run(task, data, Method(local=SGD(lr=0.5), personal={"v": solver}, batch=None), rounds=60)
    x, y = data.part("a", "train")
    module = personalise(result.w, (x, y), task=task, solver=solver, visits=60, batch=None)
    assert_allclose(float(next(module.parameters()).detach()), (2 * -1.0 + 2.0) / 3, atol=1e-8)
    assert_allclose(float(result.row("v", "a")), (2 * -1.0 + 2.0) / 3, atol=1e-8)


@pytest.mark.parametrize(
    "mistake", [{"w": torch.zeros(4)}, {"w": [0.0] * 5}, {"visits": 0}, {"data": ([], [])}, {"batch": 0}], ids=str
)
def test_a_newcomers_mistakes_are_named(mistake: dict[str, Any]) -> None:
    options = {"w": torch.zeros(5), "data": reals(5, 1), "task": Task(linear(), nn.MSELoss())}
    with pytest.raises(InputError):
        personalise(**{**options, "solver": Local(lr=0.1), **mistake})  # type: ignore[arg-type]


# Malicious devices


def attacked(attack: Attack, how: Method, **options: Any) -> Federated:
    return run(TASK, chosen_from(0), how, rounds=3, cohort=5, attack=attack, **options)


@engines
def test_malicious_devices_are_fixed_and_the_same_for_every_method(engine: Any) -> None:
    plain, other = method(), method(local=SGD(lr=0.01), personal={}, batch=2)
    one = attacked(A1(count=4), plain, engine=engine)
    assert one.malicious.sum() == 4
    for attack in (A1(count=4), A2(count=4), A3(count=4), Attack(ratio=0.34, poisoned=False)):
        assert attacked(attack, other, engine=engine).malicious.tolist() == one.malicious.tolist()
    for result in federate(TASK, chosen_from(0), plain, rounds=3, cohort=5, attack=A2(count=4), engine=engine):
        assert result.malicious.tolist() == one.malicious.tolist()
    assert attacked(A1(count=4), plain, engine=engine, seed=1).malicious.tolist() != one.malicious.tolist()


def test_a_smaller_set_of_malicious_devices_is_part_of_a_larger() -> None:
    for seed in range(20):
        sets = [set(np.flatnonzero(A1(count=count).malicious(30, seed))) for count in range(31)]
        assert [len(its) for its in sets] == list(range(31))
        assert all(small < large for small, large in pairwise(sets))
    assert len({tuple(A1(count=3).malicious(30, seed)) for seed in range(20)}) > 15


@pytest.mark.parametrize(
    ("ratio", "K", "count"), [(0.29, 100, 29), (0.1, 5, 0), (0.5, 23, 11), (1.0, 7, 7), (0.0, 7, 0)]
)
def test_a_ratio_is_rounded_down_as_a_decimal(ratio: float, K: int, count: int) -> None:
    assert A1(ratio=ratio).malicious(K, 0).sum() == count


@engines
def test_history_records_the_malicious_of_each_cohort(engine: Any) -> None:
    result = run(TASK, chosen_from(0), method(), rounds=6, cohort=5, attack=A2(count=5), engine=engine)
    assert len(result.history) == 6
    for drawn in result.history:
        assert len(set(drawn.cohort.tolist())) == 5
        assert drawn.malicious == result.malicious[drawn.cohort].sum()
        assert drawn.dropped == 0
    assert len({drawn.malicious for drawn in result.history}) > 1


@pytest.mark.parametrize("attack", [A1(ratio=0.6), A2(ratio=0.6), A1(count=6), A3(count=1), A1(ratio=0.5)], ids=str)
def test_strong_attacks(attack: Attack) -> None:
    strong = attack.update == A3(count=1).update or attack.ratio == 0.6 or attack.count == 6
    assert attack.is_strong(10) == strong
    assert not Attack(count=9, strong=False).is_strong(10)


@engines
def test_the_three_attacks_do_what_they_say(engine: Any) -> None:
    """A1: other labels, honest steps. A2: noise of the update's energy. A3: m times the update."""
    data = federation()
    reports: dict[str, Tensor] = {}

    def recorder(name: str) -> Callable[..., Tensor]:
        def mean(report: Any) -> Tensor:
            reports[name] = report.delta
            return report.delta.mean(0)  # type: ignore[no-any-return]

        return mean

    attacks = {
        "none": None,
        "A1": A1(count=2),
        "A2": A2(count=2),
        "A2 clean": A2(count=2, poisoned=False),
        "A2 std": A2(count=2, std=3.0),
        "A3": A3(count=2),
        "A3 clean": A3(count=2, poisoned=False, factor=7.0),
    }
    for name, attack in attacks.items():
        how = Method(local=SGD(lr=0.2, steps=2), aggregate=recorder(name), batch=4)
        result = run(TASK, data, how, rounds=1, attack=attack, engine=engine)
    who = torch.from_numpy(A1(count=2).malicious(5, 0)[result.history[0].cohort])
    for name, delta in reports.items():
        assert torch.equal(delta[~who], reports["none"][~who]), name
    assert not torch.allclose(reports["A1"][who], reports["none"][who])
    assert torch.equal(reports["A3"][who], 5 * reports["A1"][who])
    assert torch.equal(reports["A3 clean"][who], 7 * reports["none"][who])
    for name, like in (("A2", "A1"), ("A2 clean", "none")):
        z = reports[name][who] / reports[like][who].std(1, correction=0, keepdim=True)
        assert not torch.allclose(z[0], z[1])
        assert 0.7 < float(z.std()) < 1.3
        assert abs(float(z.mean())) < 0.4
    assert_allclose(
        reports["A2 std"][who] / 3, reports["A2"][who] / reports["A1"][who].std(1, correction=0, keepdim=True)
    )


def twos(n: int, seed: int) -> Any:
    """Two classes."""
    return normal(n, 4, seed=seed), integers(2, n, seed=seed + 1)


@pytest.mark.parametrize(
    ("task", "make", "flipped"),
    [
        (Task(mlp(2), CE), twos, lambda y: 1 - y),
        (Task(linear(), BCE), binary, lambda y: 1 - y),
        (Task(mlp(), BCE), several, lambda y: 1 - y),
        (Task(linear(), hinge), signs, lambda y: -y),
    ],
    ids=["two classes", "binary", "multi-label", "signs"],
)
def test_two_labels_are_flipped(task: Task, make: Make, flipped: Callable[[Tensor], Tensor]) -> None:
    result = run(task, federation(make), method(), rounds=1, attack=A1(count=2))
    for k, (start, _, stop, _) in enumerate(result.federation.bounds):
        y, clean = (labels[start:stop] for labels in (result.setting.y, result.federation.y))
        assert torch.equal(y, flipped(clean) if result.malicious[k] else clean)


def test_more_labels_are_redrawn_uniformly() -> None:
    """A third of them stays by chance."""
    result = run(TASK, federation(sizes={"a": (600, 0, 0), "b": (600, 0, 0)}), method(), rounds=1, attack=A1(count=2))
    y, clean = result.setting.y, result.federation.y
    assert abs(float((y == clean).double().mean()) - 1 / 3) < 0.06
    assert_allclose(torch.bincount(y) / len(y), 1 / 3, atol=0.06)
    assert not torch.equal(y[:600], y[600:])


@engines
def test_noise_is_new_in_each_round(engine: Any) -> None:
    reports: list[Tensor] = []

    def recorded(report: Any) -> Tensor:
        reports.append(report.delta)
        return report.delta.mean(0)  # type: ignore[no-any-return]

    how = Method(local=SGD(lr=0.2), aggregate=recorded)
    result = run(TASK, federation(), how, rounds=2, attack=A2(count=1, std=1.0), engine=engine)
    noise = [
        delta[result.malicious[drawn.cohort].tolist()]
        for delta, drawn in zip(reports[-2:], result.history, strict=True)  # before them, a trial call
    ]
    assert [len(z) for z in noise] == [1, 1]
    assert not torch.isclose(noise[0], noise[1], atol=1e-3).all()


@engines
def test_label_poisoning_of_real_labels_says_what_to_do(engine: Any) -> None:
    """The advice must name a parameter that exists."""
    with pytest.raises(InputError, match="relabel=") as caught:
        run(Task(mlp(1), nn.MSELoss()), federation(reals), method(), attack=A1(count=1), engine=engine)
    assert "labels=" not in str(caught.value).replace("relabel=", "")
    flipped = A1(count=1, relabel=lambda y, keys: -y)
    result = run(Task(mlp(1), half_square), federation(reals), method(), attack=flipped, engine=engine)
    assert not torch.equal(result.setting.y, result.federation.y)
