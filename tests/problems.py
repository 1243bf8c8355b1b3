"""Small federations, modules and runs that the tests of engines, solvers and metrics share."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from dittofl import SGD, Ditto, Federated, Federation, Local, Loop, Method, Momentum, Report, Task, Vmap, federate
from dittofl.batches import Stream
from dittofl.federated import Saved
from dittofl.seeds import Purpose
from dittofl.types import State, Vector

torch.set_num_threads(1)  # runs are bitwise reproducible for one thread count

# Train, validation and test samples: some devices are smaller than a batch of 4, some lack a part.
SIZES = {"a": (7, 3, 2), "b": (2, 0, 3), "c": (11, 2, 2), "d": (1, 1, 2), "e": (4, 5, 0)}
PAIRS = {"a": (7, 3, 2), "b": (2, 2, 3), "c": (11, 2, 2), "d": (3, 2, 2), "e": (5, 2, 4)}  # no part of one sample
PARTS = ("train", "validation", "test")
ENGINES = {"loop": Loop(), "vmap": Vmap()}

Samples = tuple[Any, Tensor]
Make = Callable[[int, int], Samples]  # (n, seed) → x, y


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def integers(high: int, *shape: int, seed: int) -> Tensor:
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


def classes(n: int, seed: int) -> Samples:
    return normal(n, 4, seed=seed), integers(3, n, seed=seed + 1)


def binary(n: int, seed: int) -> Samples:
    return normal(n, 4, seed=seed), integers(2, n, seed=seed + 1)


def signs(n: int, seed: int) -> Samples:
    x, y = binary(n, seed)
    return x, 2 * y - 1


def reals(n: int, seed: int) -> Samples:
    x = normal(n, 4, seed=seed)
    return x, x @ normal(4, seed=seed // 10) + 0.1 * normal(n, seed=seed + 1)


def several(n: int, seed: int) -> Samples:
    """Three binary labels a sample."""
    return normal(n, 4, seed=seed), integers(2, n, 3, seed=seed + 1)


def pairs(n: int, seed: int) -> Samples:
    """Inputs as a tuple."""
    x, y = classes(n, seed)
    return (x, normal(n, 2, seed=seed + 2)), y


def named(n: int, seed: int) -> Samples:
    """Inputs as a dict, one of them tokens."""
    x, y = classes(n, seed)
    return {"x": x, "token": integers(5, n, seed=seed + 2)}, y


def federation(make: Make = classes, sizes: Mapping[str, tuple[int, int, int]] = SIZES) -> Federation:
    """Every device has its own distribution's samples; a part of size 0 is left out."""
    parts = {
        part: {id: make(n[j], 1000 * k + 10 * j) for k, (id, n) in enumerate(sizes.items()) if n[j]}
        for j, part in enumerate(PARTS)
    }
    return Federation.from_parts(**parts)


def seeded(build: Callable[[], nn.Module]) -> nn.Module:
    """A module in float64 whose initial weights are always the same, without a trace in the global generator."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build().double()


def mlp(out: int = 3) -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, out)))


def linear(out: int = 1) -> nn.Module:
    return seeded(lambda: nn.Linear(4, out))


class Point(nn.Module):
    """One parameter, whatever the input: F_k(w) = ½ mean (w − x)² is point estimation."""

    def __init__(self, start: float = 0.0) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([start], dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return self.w * torch.ones_like(x[:, 0])


def half_square(out: Tensor, y: Tensor) -> Tensor:
    return 0.5 * (out - y) ** 2


def points(values: Mapping[str, Iterable[float]]) -> Federation:
    """Devices that hold numbers, as y."""
    y = {id: torch.tensor(list(its), dtype=torch.float64) for id, its in values.items()}
    return Federation.from_parts(train={id: (its[:, None], its) for id, its in y.items()}, test={})


TASK = Task(mlp(), nn.CrossEntropyLoss())
POINT = Task(Point(), half_square)
PERSONAL = {
    "ditto": Ditto(lam=0.7, lr=0.2, steps=3),
    "local": Local(lr=0.1, steps=1, through=(Momentum(beta=0.8),)),
    "proximal": Ditto(lam=3.0, lr=0.2, steps=2, proximal=True),
}


@dataclass(frozen=True)
class Median:
    """A rule as a plain callable of a report."""

    def __call__(self, report: Report) -> Tensor:
        return report.delta.median(0).values


@dataclass(frozen=True)
class ByLoss:
    """δ = Σ_k F_k(w) Δ_k / Σ_k F_k(w): an aggregator that asks for losses."""

    losses: ClassVar[bool] = True

    def init(self, w0: Vector) -> State:
        return ()

    def __call__(self, report: Report, state: State) -> tuple[Vector, State]:
        assert report.loss is not None
        return report.loss / report.loss.sum() @ report.delta, state


def method(**changes: Any) -> Method:
    """w takes two steps on minibatches of 4, beside three personal solvers."""
    return Method(**{"local": SGD(lr=0.2, steps=2), "personal": PERSONAL, "batch": 4, **changes})


def run(task: Task, data: Federation, how: Method, *, rounds: int = 5, **options: Any) -> Federated:
    """The federation after its last round, on the loop engine by default."""
    *_, last = federate(task, data, how, rounds=rounds, **{"engine": Loop(), **options})
    return last


def rows(run: Federated, name: str) -> Tensor:
    """What all devices keep of a solver, [K, …]."""
    return run.rows[name].get(np.arange(run.federation.K)).clone()


def everything(run: Federated) -> dict[str, Tensor]:
    """w and every row of every device."""
    return {"w": run.w.clone()} | {name: rows(run, name) for name in run.rows}


def saved(run: Federated) -> Saved:
    """A run between two rounds, with the rows of those devices alone that have one."""
    kept = {name: (store.touched(), store.get(store.touched())) for name, store in run.rows.items()}
    state = {name: tensor.clone() for name, tensor in run.state().items()}
    return Saved(run.t, state, {name: [(ids, its.clone())] if len(ids) else [] for name, (ids, its) in kept.items()})


def gap(a: Federated, b: Federated) -> float:
    """The largest difference between two runs over w and all rows; they must both have moved and be finite."""
    for one in (a, b):
        assert not torch.equal(one.w, one.w0)
        assert all(bool(tensor.isfinite().all()) for tensor in everything(one).values())
    ours, theirs = everything(a), everything(b)
    assert ours.keys() == theirs.keys()
    return max(float((ours[name] - theirs[name]).abs().max()) for name in ours if ours[name].numel())


def same(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> bool:
    """Bitwise equality of `everything` of two runs."""
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


class Minibatches:
    """The minibatches that a run drew, for tests that do its arithmetic by hand: indices into its x and y."""

    def __init__(self, data: Federation, seed: int, size: int | None, *, drawn: int) -> None:
        self.stream, self.drawn = Stream(data, seed, size), drawn  # by w in one visit

    def take(self, k: int, visit: int, q: int, wanted: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The q-th minibatch of a visit of a solver that takes `wanted`: the round's, then further ones."""
        if q < self.drawn:
            purpose, j = Purpose.ROUND, visit * self.drawn + q
        else:
            purpose, j = Purpose.FURTHER, visit * (wanted - self.drawn) + q - self.drawn
        return self.stream.take(purpose, np.array([k]), np.array([j])).of(0)
