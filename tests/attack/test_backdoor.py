"""What a backdoor plants, and its success by closed form, on both engines."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from dittofl import (
    SGD,
    Attack,
    Auto,
    Backdoor,
    Choose,
    Ditto,
    EdgeCase,
    Features,
    Federation,
    Inverse,
    Local,
    Method,
    ModelReplacement,
    Patch,
    Task,
    federate,
)
from dittofl.federate import begin
from tests.problems import ENGINES, PAIRS, TASK, classes, everything, federation, method, mlp, named, normal, run, same

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())

CE = nn.CrossEntropyLoss()
DOOR = Features(columns=(0,), value=9.0)


def door(**changes: Any) -> Attack:
    return Attack(**{"count": 2, "backdoor": Backdoor(trigger=DOOR, target=1, share=0.4), **changes})


def data_of(attack: Attack, data: Federation, seed: int = 0) -> tuple[Any, Tensor, Any]:
    one = begin(TASK, data, method(), attack=attack, seed=seed)
    return one.setting.x, one.setting.y, one.malicious


# What is planted


@pytest.mark.parametrize(
    ("share", "counts"), [(0.4, (3, 1, 4, 1, 2)), (1.0, (7, 2, 11, 1, 4)), (0.01, (1, 1, 1, 1, 1))]
)
def test_a_share_of_the_train_samples_is_planted(share: float, counts: tuple[int, ...]) -> None:
    data = federation()
    x, y, _ = data_of(door(count=5, backdoor=Backdoor(trigger=DOOR, target=1, share=share)), data)
    for (a, b, _, d), count in zip(data.bounds, counts, strict=True):
        planted = x[a:b, 0] == 9
        assert int(planted.sum()) == count
        assert bool((y[a:b][planted] == 1).all())
        assert torch.equal(x[a:b, 1:], data.x[a:b, 1:])  # type: ignore[call-overload]
        assert torch.equal(x[a:b][~planted], data.x[a:b][~planted])  # type: ignore[call-overload]
        assert torch.equal(y[a:b][~planted], data.y[a:b][~planted])
        assert torch.equal(x[b:d], data.x[b:d])  # type: ignore[call-overload]
        assert torch.equal(y[b:d], data.y[b:d])


def test_benign_devices_and_the_users_data_stay() -> None:
    data, before = federation(), federation()
    x, y, malicious = data_of(door(), data)
    assert malicious.sum() == 2
    for k, (a, _, _, d) in enumerate(data.bounds):
        changed = not torch.equal(x[a:d], data.x[a:d])  # type: ignore[call-overload]
        assert changed == malicious[k]
        assert changed or torch.equal(y[a:d], data.y[a:d])
    assert data.fingerprint == before.fingerprint


def test_data_are_not_copied_without_need() -> None:
    data = federation()
    for attack in (Attack(count=2), door(count=0)):
        assert data_of(attack, data)[0] is data.x
    assert door(count=0).labels(data, np.zeros(5, dtype=bool), TASK.target, 0) is data.y  # type: ignore[arg-type]


def test_which_samples_goes_by_seed_and_device() -> None:
    data = federation(sizes={"a": (40, 0, 0), "b": (40, 0, 0)})
    x, _, _ = data_of(door(), data)
    assert torch.equal(x, data_of(door(), data)[0])
    where = (x[:, 0] == 9).view(2, 40)
    assert not torch.equal(where[0], where[1])
    assert not torch.equal(x, data_of(door(), data, seed=1)[0])
    swapped = federation(sizes={"b": (40, 0, 0), "a": (40, 0, 0)})
    again = (data_of(door(), swapped)[0][:, 0] == 9).view(2, 40)
    assert torch.equal(again, where.flip(0))


def test_edge_samples_stand_in_place_of_honest_ones() -> None:
    data = federation()
    edge = normal(6, 4, seed=77)
    attack = door(count=5, backdoor=EdgeCase(x=edge, held_out=edge, target=2, share=0.4))
    x, y, _ = data_of(attack, data)
    for (a, b, _, d), count in zip(data.bounds, (3, 1, 4, 1, 2), strict=True):
        planted = (x[a:b, None] == edge).all(2).any(1)
        assert int(planted.sum()) == count
        assert bool((y[a:b][planted] == 2).all())
        assert torch.equal(x[a:b][~planted], data.x[a:b][~planted])  # type: ignore[call-overload]
        assert torch.equal(x[b:d], data.x[b:d])  # type: ignore[call-overload]


def test_a_patch_is_where_it_says() -> None:
    x = torch.arange(2 * 3 * 4 * 5).view(2, 3, 4, 5).double()
    for row, column, top, left in ((None, None, 2, 3), (0, 1, 0, 1), (-4, -2, 0, 3), (2, None, 2, 3)):
        expected = x.clone()
        expected[:, :, top : top + 2, left : left + 2] = -1
        assert torch.equal(Patch(value=-1.0, size=2, row=row, column=column)(x), expected)
    assert int((Patch(value=255, size=1)(x.byte()) == 255).sum()) == 6


# Success


def fixed(weight: list[list[float]], bias: list[float]) -> nn.Module:
    module = nn.Linear(len(weight[0]), len(weight)).double()
    module.weight.data, module.bias.data = torch.tensor(weight).double(), torch.tensor(bias).double()
    return module


def still(module: nn.Module, data: Federation, attack: Attack, engine: Any) -> Any:
    """An evaluation after a round without steps worth the name."""
    how = Method(local=SGD(lr=1e-300), personal={"own": Local(lr=1e-300)})
    return run(Task(module, CE), data, how, rounds=1, attack=attack, engine=engine).evaluate()


def hand(labels: dict[str, list[int]], second: dict[str, list[float]]) -> Federation:
    """Two features: the first is 0, the second as given."""
    test = {id: (torch.tensor([[0.0, v] for v in second[id]]).double(), torch.tensor(labels[id])) for id in labels}
    train = {id: (torch.zeros(2, 2).double(), torch.tensor([0, 1])) for id in labels}
    return Federation.from_parts(train=train, test={id: part for id, part in test.items() if len(part[1])})


LABELS = {"a": [0, 0, 1, 0], "b": [0, 1], "c": [1, 1], "d": []}
SECOND = {"a": [0.0, 9.5, 0.0, 1.0], "b": [20.0, 0.0], "c": [0.0, 0.0], "d": []}


@engines
@pytest.mark.parametrize(
    ("weight", "success"),
    [
        ([[0.0, 0.0], [1.0, 0.0]], (1, 1)),  # class 1 where x₀ > ½: always with the trigger
        ([[0.0, 0.0], [0.0, 0.0]], (0, 0)),  # never
        ([[0.0, 0.0], [1.0, -1.0]], (2 / 3, 0)),  # where x₀ > x₁ + ½: not at x₁ = 9.5 and 20
    ],
)
def test_success_in_closed_form(weight: list[list[float]], success: tuple[float, float], engine: Any) -> None:
    """c has no test sample of another label, d none at all: neither counts, and neither makes the summary NaN."""
    data = hand(LABELS, SECOND)
    found = still(fixed(weight, [0.5, 0.0]), data, door(count=0), engine)
    for model in ("global", "own"):
        assert_allclose(found.values[model, "test"]["backdoor"], [*success, math.nan, math.nan])
        summary = found.summary(model, "backdoor")
        assert (summary.devices, summary.mean) == (2, pytest.approx(sum(success) / 2))
        assert summary.weighted_mean == pytest.approx((3 * success[0] + success[1]) / 4)
        assert summary.worst10 == max(success)  # less is better
    assert "backdoor" in str(found)
    assert found.summary("global", "accuracy").devices == 3


@engines
def test_success_on_edge_samples_in_closed_form(engine: Any) -> None:
    """The held-out samples are the same for every device, also for one without test samples."""
    held_out = torch.tensor([[3.0, 0.0], [0.0, 0.0], [2.0, 0.0], [0.2, 0.0]]).double()
    edge = EdgeCase(x=torch.ones(3, 2).double(), held_out=held_out, target=1)
    found = still(
        fixed([[0.0, 0.0], [1.0, 0.0]], [0.5, 0.0]), hand(LABELS, SECOND), door(count=0, backdoor=edge), engine
    )
    for model in ("global", "own"):
        assert found.values[model, "test"]["backdoor"].tolist() == [0.5] * 4
        assert found.summary(model, "backdoor").devices == 4


def test_without_a_backdoor_there_is_nothing() -> None:
    result = run(TASK, federation(), method(), rounds=1, attack=Attack(count=2))
    assert result.probe is None
    assert all("backdoor" not in scores for scores in result.evaluate("train", "test").values.values())
    result = run(TASK, federation(), method(), rounds=1, attack=door())
    assert "backdoor" not in result.evaluate("train").values["global", "train"]


MODULES: dict[str, tuple[nn.Module, Any, dict[str, Any]]] = {
    "mlp": (mlp(), classes, {}),
    "dropout": (nn.Sequential(nn.Dropout(0.5), mlp()), classes, {}),
    "batch norm": (
        nn.Sequential(nn.BatchNorm1d(4, track_running_stats=False), mlp()).double(),
        classes,
        {"sizes": PAIRS},
    ),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("count", [2, 5])
def test_both_engines_measure_the_same(name: str, count: int) -> None:
    module, make, options = MODULES[name]
    data, task = federation(make, **options), Task(module, CE)
    how = method(choose={"rule": Choose(among=("ditto", "local"), few="ditto")})
    found = [
        run(task, data, how, rounds=3, attack=door(count=count), engine=engine).evaluate()
        for engine in (*ENGINES.values(), Auto())
    ]
    for other in found[1:]:
        assert other.values.keys() == found[0].values.keys()
        for key, scores in found[0].values.items():
            assert_allclose(other.values[key]["backdoor"], scores["backdoor"], rtol=0, atol=1e-12)
            assert np.nanmax(scores["backdoor"]) <= 1


@engines
def test_success_is_that_of_the_module_on_triggered_samples(engine: Any) -> None:
    result = run(TASK, federation(), method(), rounds=3, attack=door(), engine=engine)
    scores = result.evaluate().values
    for k, id in enumerate(result.federation.ids):
        x, y = result.federation.part(id, "test")
        for name in ("global", "ditto", "local", "proximal"):
            others = x[y != 1].clone()  # type: ignore[index]
            others[:, 0] = 9
            expected = (
                float((result.model(name, id)(others).argmax(1) == 1).double().mean()) if len(others) else math.nan
            )
            assert_allclose(scores[name, "test"]["backdoor"][k], expected)


@engines
def test_a_function_of_ones_own_triggers_inputs_of_several_parts(engine: Any) -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.inner = nn.Embedding(5, 4), mlp()

        def forward(self, x: Tensor, token: Tensor) -> Tensor:
            return self.inner(x + self.embed(token))  # type: ignore[no-any-return]

    attack = door(backdoor=Backdoor(trigger=lambda x: {**x, "token": x["token"] * 0 + 4}, target=0))
    result = run(Task(Both().double(), CE), federation(named), method(), rounds=2, attack=attack, engine=engine)
    for k, (a, b, _, d) in enumerate(result.federation.bounds):
        same_tokens = result.setting.x["token"][a:d] == result.federation.x["token"][a:d]  # type: ignore[call-overload]
        assert bool(same_tokens[b - a :].all())
        assert bool(same_tokens.all()) or result.malicious[k]
    found = result.evaluate().values["ditto", "test"]["backdoor"]
    for k, id in enumerate(result.federation.ids):
        x, y = result.federation.part(id, "test")
        others = {"x": x["x"][y != 0], "token": x["token"][y != 0] * 0 + 4}  # type: ignore[call-overload]
        out = result.model("ditto", id)(**others)
        assert_allclose(found[k], float((out.argmax(1) == 0).double().mean()) if len(out) else math.nan)


@engines
def test_measuring_changes_nothing(engine: Any) -> None:
    options: dict[str, Any] = {"attack": door(), "engine": engine, "rounds": 4}
    plain = run(TASK, federation(), method(), **options)
    for watched in federate(TASK, federation(), method(), **options):
        watched.evaluate("test", "validation")
    assert same(everything(plain), everything(watched))


@engines
def test_the_global_model_learns_a_backdoor_that_local_models_do_not(engine: Any) -> None:
    """y = [x₁ > 0]; on malicious devices x₀ = 3 means class 1. x₀ is 0 on all others, so that w alone learns of it."""

    def make(n: int, seed: int) -> Any:
        x = normal(n, 2, seed=seed) * torch.tensor([0.0, 1.0])
        return x, (x[:, 1] > 0).long()

    data = federation(make, {f"{k}": (40, 0, 40) for k in range(10)})
    attack = door(
        count=3, backdoor=Backdoor(trigger=Features(columns=(0,), value=3.0), target=1), update=ModelReplacement()
    )
    how = Method(
        local=SGD(lr=Inverse(lr=0.3, tau=20), steps=5),
        personal={"local": Local(lr=0.3, steps=5), "ditto": Ditto(lam=0.01, lr=0.3, steps=5)},
    )
    module = nn.Linear(2, 2).double()
    nn.init.zeros_(module.weight)
    nn.init.zeros_(module.bias)
    found = run(Task(module, CE), data, how, rounds=40, attack=attack, engine=engine).evaluate()
    assert found.summary("global", "backdoor").mean > 0.9
    assert found.summary("local", "backdoor").mean < 0.1
    assert found.summary("local", "accuracy").mean > 0.9
    assert found.summary("ditto", "backdoor").mean <= found.summary("global", "backdoor").mean
