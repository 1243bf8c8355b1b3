"""Which samples a device trains on, and how many of them are in memory at a time."""

import weakref
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dittofl import SGD, Ditto, Epochs, Federation, Local, Loop, Method, Task, Vmap
from dittofl.batches import Stream
from dittofl.engine import chunks, samples
from dittofl.engine.lockstep import script
from dittofl.engine.setting import Plan, Setting, Visit
from dittofl.federate import begin
from dittofl.inputs import parts
from dittofl.seeds import Purpose
from dittofl.types import On
from tests.problems import ENGINES, TASK, everything, federation, method, normal, run, same

BATCH = 4


def device(n: int, wide: int = 2) -> Federation:
    return Federation.from_parts(train={"a": (normal(n, wide, seed=0), torch.arange(n) % 3)}, test={})


@pytest.mark.parametrize("n", [1, 3, 4, 5, 6, 7, 8, 9, 13])
def test_a_device_trains_on_all_of_its_samples(n: int) -> None:
    """An epoch leaves out less than a batch, and each epoch leaves out others: with n samples, B < n < 2B, too."""
    stream, ids = Stream(device(n), 0, BATCH), np.zeros(1, dtype=np.int64)
    drawn = [stream.take(Purpose.ROUND, ids, np.array([j])).of(0) for j in range(60)]
    assert all(len(set(one.tolist())) == min(n, BATCH) for one in drawn)
    counts = np.bincount(np.concatenate(drawn), minlength=n)
    assert (counts > 0).all()
    # Every sample is as likely as any other: four standard deviations of a binomial.
    share = min(n, BATCH) / n
    assert (np.abs(counts - 60 * share) <= 4 * np.sqrt(60 * share * (1 - share))).all()


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
def test_no_sample_of_a_device_is_without_effect(engine: Any) -> None:
    x, y = normal(6, 4, seed=0), torch.arange(6) % 3
    rows = []
    for changed in range(7):
        there = x.clone()
        there[changed : changed + 1] *= 3
        data = Federation.from_parts(train={"a": (there, y)}, test={})
        rows.append(run(TASK, data, Method(local=SGD(lr=0.1), batch=BATCH), rounds=20, engine=engine).w)
    assert all(not torch.equal(row, rows[6]) for row in rows[:6])


class Live:
    """Counts the elements of samples that have been gathered and are still held."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.most = 0
        gather = Setting.inputs

        def inputs(setting: Setting, index: Tensor) -> Any:
            found = gather(setting, index)
            for part in parts(found):
                self.now += part.numel()
                weakref.finalize(part, self.less, part.numel())
            self.most = max(self.most, self.now)
            return found

        monkeypatch.setattr(Setting, "inputs", inputs)

    def less(self, count: int) -> None:
        self.now -= count


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Live:
    monkeypatch.setattr(samples, "GATHERED", 2000)
    return Live(monkeypatch)


def long(steps: int) -> Method:
    personal = {"v": Ditto(lam=1.0, lr=0.1, steps=steps), "u": Local(lr=0.1, steps=Epochs(count=2))}
    return Method(local=SGD(lr=0.1, steps=steps), personal=personal, batch=BATCH)


@pytest.mark.parametrize("engine", [Loop(), Vmap(), Vmap(fuse=False)], ids=str)
def test_samples_in_memory_do_not_grow_with_local_steps(engine: Any, live: Live) -> None:
    data = {id: (normal(20, 100, seed=k), torch.arange(20) % 3) for k, id in enumerate("abc")}
    run(Task(nn.Linear(100, 3).double(), nn.CrossEntropyLoss()), Federation.of(data), long(60), rounds=1, engine=engine)
    one = 3 * BATCH * 100  # a minibatch of the cohort
    assert one <= live.most <= 6 * one
    assert live.now <= 6 * one


class Counted:
    """An evaluation that counts how often it is looked at."""

    of, grad = None, True
    looks = 0

    @property
    def on(self) -> On:
        Counted.looks += 1
        return On.NEXT


def test_a_plan_is_made_in_time_linear_in_local_steps() -> None:
    class Many:
        steps = 500

        def asks(self, steps: int) -> Any:
            return (Counted(),) * steps

    result = begin(TASK, federation(), method())
    solvers: dict[str, Any] = {"v": Many()}
    plan = Plan(result.setting, Visit(np.arange(5), np.zeros(5, dtype=np.int64), solvers, {}, None, result.down()))
    assert len({plan.feed("v", i) for i in range(500)}) == 500
    assert Counted.looks <= 10 * 500


def test_wide_samples_are_gathered_device_by_device(live: Live) -> None:
    """However few numbers the module makes of them."""
    data = {k: (normal(20, 100, seed=k), torch.arange(20) % 3) for k in range(50)}
    run(Task(nn.Linear(100, 3).double(), nn.CrossEntropyLoss()), Federation.of(data), long(1), rounds=1)
    assert live.most <= 2000


@pytest.mark.parametrize("gathered", [1, 100, 10**9])
def test_how_samples_are_gathered_changes_nothing(gathered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = everything(run(TASK, federation(), method()))
    monkeypatch.setattr(samples, "GATHERED", gathered)
    assert same(everything(run(TASK, federation(), method())), expected)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
def test_an_evaluation_takes_wide_samples_piece_by_piece(
    engine: Any, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dittofl.objective.HELD", 20 * 104)
    monkeypatch.setattr(chunks, "BUDGET", 1)
    data = {k: (normal(20, 100, seed=k), torch.arange(20) % 3) for k in range(10)}
    task = Task(nn.Linear(100, 3).double(), nn.CrossEntropyLoss())
    result = begin(task, Federation.of(data), long(1), engine=engine)
    live.most = live.now
    result.evaluate("train")
    assert 0 < live.most <= 2 * 20 * 100


def test_a_chunk_of_devices_is_small_where_samples_are_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "BUDGET", 8 * 10**5)
    for wide, most in ((10, 100), (1000, 5)):
        data = {k: (torch.zeros(20, wide), torch.arange(20) % 3) for k in range(100)}
        setting = begin(Task(nn.Linear(wide, 3), nn.CrossEntropyLoss()), Federation.of(data), long(1)).setting
        engine, ids = Vmap().bind(setting), np.arange(100)
        solvers = {"v": Local(lr=0.1, steps=50)}
        visit = Visit(ids, np.zeros_like(ids), solvers, {}, None, None)  # type: ignore[arg-type]
        turns = script(Plan(setting, visit), solvers)
        found = list(engine.chunks.of_visit(visit, turns, at_once=False))
        assert np.concatenate(found).tolist() == ids.tolist()
        assert len(found[0]) <= most
        assert wide > 10 or len(found[0]) > 5
        # Compiled as a whole it is given all fifty minibatches of a device, not the last few.
        assert len(next(engine.chunks.of_visit(visit, turns, at_once=True))) < len(found[0])
