"""The compiled engine gives the plain one's numbers, and compiles as little often as it says.

On a GPU it is the default; here the same graphs run on a CPU.
"""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters

from dittofl import A2, SGD, Ditto, Epochs, Federation, Local, Loop, Method, Task, Vmap, federate
from dittofl.engine import compiler, vmap
from dittofl.engine.columns import columned
from dittofl.engine.lockstep import answer, walk
from tests.problems import integers, normal

COUNT = {"a": 7, "b": 2, "c": 11, "d": 3, "e": 5, "f": 9}  # more and less than a batch of 4
IMAGES = Federation.of({k: (normal(n, 1, 6, 6, seed=n), integers(3, n, seed=n + 1)) for k, n in COUNT.items()})
ENGINE = Vmap(compile=True, chunk=2)


@pytest.fixture(autouse=True)
def _traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Graphs are traced and differentiated as always, and run as they are: to make kernels of them takes a compiler."""
    walked, answered = (torch.compile(its, dynamic=False, backend="aot_eager") for its in (walk, answer))
    monkeypatch.setattr(compiler, "missing", lambda kind: "")
    monkeypatch.setattr(vmap, "compiled_walk", lambda kind: walked)
    monkeypatch.setattr(vmap, "compiled_answer", lambda kind: answered)
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def network() -> nn.Module:
    torch.manual_seed(0)
    conv = nn.Conv2d(1, 2, 3, padding="same")
    return nn.Sequential(conv, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 3)).double()


def ends(how: Method, engine: Loop | Vmap, rounds: int) -> dict[str, Tensor]:
    """w and every row after some rounds under attack, and after the final visit."""
    task, options = Task(network(), nn.CrossEntropyLoss()), {"cohort": 4, "attack": A2(count=2), "engine": engine}
    *_, last = federate(task, IMAGES, how, rounds=rounds, **options)  # type: ignore[arg-type]
    last.finish()
    ids = np.arange(IMAGES.K)
    return {"w": last.w} | {name: its.get(ids) for name, its in last.rows.items() if its.first.numel()}


def same(how: Method, rounds: int = 3) -> None:
    plain, compiled = ends(how, Loop(), rounds), ends(how, ENGINE, rounds)
    for name, its in plain.items():
        assert its.shape == compiled[name].shape
        assert float((its - compiled[name]).abs().max()) <= 1e-13, name


def test_a_visit_compiled_as_a_whole() -> None:
    """One graph for all rounds and chunks; the long final visit compiles its turns."""
    walk = {"lr": 0.1, "steps": 2}
    final = {"tuned": Local(lr=0.1, steps=Epochs(count=2)), "near": Ditto(lam=0.5, lr=0.1, steps=3)}
    same(Method(local=SGD(**walk), personal={"v": Ditto(lam=1.0, **walk)}, final=final, batch=4))
    assert counters["stats"]["unique_graphs"] == 2  # the visit, and a turn of a final solver


def test_a_visit_of_another_length_each_time() -> None:
    """Epochs are more steps for devices with more samples: turns are compiled, not cohorts."""
    walk = {"lr": 0.1, "steps": Epochs(count=2)}
    same(Method(local=SGD(**walk), personal={"v": Ditto(lam=1.0, **walk)}, batch=4), rounds=6)
    assert counters["stats"]["unique_graphs"] == 1


def test_a_long_visit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vmap, "FEW_TURNS", 4)
    same(Method(local=SGD(lr=0.1, steps=5), batch=4), rounds=2)
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize(
    "options",
    [
        {"padding": "same"},
        {"padding": 0, "bias": False},
        {"padding": 4},
        {"stride": 2, "padding": 1},
        {"stride": (2, 3), "padding": (1, 0), "dilation": (1, 2)},
    ],
)
def test_columns_are_the_convolution(options: dict[str, object]) -> None:
    conv = nn.Conv2d(3, 4, 3, dtype=torch.float64, **options)  # type: ignore[arg-type]
    x = normal(5, 3, 9, 11, seed=0).requires_grad_()
    both = [layer(x) for layer in (conv, columned(conv))]
    torch.testing.assert_close(*both)
    torch.testing.assert_close(*(torch.autograd.grad(y.sin().sum(), x, retain_graph=True)[0] for y in both))
