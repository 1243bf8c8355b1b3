"""Algorithm 1: sample → visit → attack → aggregate → server, a generator that gives every round to the caller."""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from dittofl.attack import Attack
from dittofl.batches import Stream
from dittofl.engine import Auto, Loop, Setting, Visit, Vmap, tried
from dittofl.engine.rows import MemoryRows
from dittofl.errors import InputError, require
from dittofl.evaluate import Evaluation, chosen, device_losses, evaluate
from dittofl.federation import Federation, Part
from dittofl.inputs import each
from dittofl.method import GLOBAL, Method
from dittofl.sampling import Ids, Sampling, Uniform
from dittofl.task import Task
from dittofl.types import Aggregator, Down, Report, Sent

How = Auto | Loop | Vmap


class Drawn(NamedTuple):
    """What a round saw."""

    cohort: Ids
    malicious: int  # how many of them are
    dropped: int  # reports that were not finite


class Federated:
    """A federation in training: w, every device's rows, and what was drawn. `federate` yields it after each round."""

    def __init__(self, setting: Setting, how: How, method: Method, attack: Attack | None, seed: int) -> None:
        self.setting, self.method, self.attack, self.seed = setting, method, attack, seed
        self.federation, self.objective = setting.federation, setting.objective
        self.aggregator = cast(Aggregator, method.aggregate)  # `Method` has lifted plain functions
        self.engine = tried(how, setting) if isinstance(how, Vmap) else how.bind(setting)
        self.t, self.w, self.w0 = 0, self.objective.w0, self.objective.w0
        self.solvers = {GLOBAL: method.local, **method.personal}
        K = self.federation.K
        self.rows = {name: MemoryRows(K, solver.init(self.w0)) for name, solver in self.solvers.items()}
        self.visits = np.zeros(K, dtype=np.int64)
        self.malicious = np.zeros(K, dtype=np.bool_) if attack is None else attack.malicious(K, seed)
        self.aggregator_state = self.aggregator.init(self.w0)
        self.server_state = method.server.init(self.w0, K)
        self.history: list[Drawn] = []

    def down(self) -> Down:
        """What goes down to a device now."""
        return Down(self.w, self.method.server.down(self.server_state), self.t, 0, self.objective.layout)

    def round(self, ids: Ids) -> None:
        """One round of Algorithm 1 with this cohort."""
        down = self.down()
        sent = cast(Sent, self.engine.visit(Visit(ids, self.visits[ids], self.solvers, self.rows, GLOBAL, down)))
        size = torch.from_numpy(self.federation.sizes("train")[ids]).to(self.w.device)
        loss = device_losses(self, self.w, ids, "train") if self.aggregator.losses else None
        report = Report(sent.delta, size, loss, sent.extra)
        if self.attack is not None:
            who = torch.from_numpy(self.malicious[ids]).to(self.w.device)
            report = self.attack.rewrite(report, who, self.federation.tags[ids], self.t, self.seed)
        report, dropped = finite(report)
        if len(report.delta):
            delta, self.aggregator_state = self.aggregator(report, self.aggregator_state)
            self.w, self.server_state = self.method.server.step(self.w, delta, report, self.server_state)
        self.visits[ids] += 1
        self.t += 1
        self.history.append(Drawn(ids, int(self.malicious[ids].sum()), dropped))

    def evaluate(self, *parts: Part) -> Evaluation:
        """Metrics of w and every personal model on every device, on these parts (default: test)."""
        return evaluate(self, parts or ("test",))

    def row(self, name: str, device: object) -> Tensor:
        """What a device serves under a model's name: `global`, a personal solver's, or a choice among those."""
        names = [GLOBAL, *self.method.personal, *self.method.choose]
        require(name in names, f"no model is called {name!r}: there are {', '.join(names)}")
        ids = np.array([self.federation.index(str(device))])
        if name in self.method.choose:
            name = chosen(self, name, ids)[0]
        return self.engine.models(self.solvers[name], self.rows[name], ids, self.down())[0]

    def model(self, name: str = GLOBAL, device: object | None = None) -> nn.Module:
        """The same as a module of the user's own class; `global` needs no device."""
        require(device is not None or name == GLOBAL, f"{name!r} is a personal model: say whose, device=…")
        return self.objective.module_of(self.w if device is None else self.row(name, device))


def finite(report: Report) -> tuple[Report, int]:
    """The reports whose every number is finite, by gathering, and how many are not."""
    fields = [field.reshape(len(report.delta), -1) for field in report if field is not None]
    # A sum can overflow, but cannot be finite where an entry is not: one cheap pass where all is well.
    if bool(torch.stack([field.sum(1).isfinite().all() for field in fields]).all()):
        return report, 0
    good = torch.stack([field.isfinite().all(1) for field in fields]).all(0)
    return report.rows(torch.nonzero(good).flatten()), len(good) - int(good.sum())


def federate(
    task: Task, federation: Federation, method: Method, *, rounds: int, cohort: int | None = None, seed: int = 0,
    attack: Attack | None = None, sampling: Sampling | None = None, engine: How | None = None,
    device: str | torch.device = "cpu",
) -> Iterator[Federated]:  # fmt: skip
    """Yields the federation after each of `rounds` rounds with `cohort` devices each (None: all).

    Every check of data, module and parameters is made by this call, before the first round. The object yielded is the
    same each time and moves on: evaluate, save or copy what is to be kept.

    >>> data = {k: ([[float(k)], [1.0], [2.0]], [0, 1, 1]) for k in range(3)}
    >>> from dittofl.solver import SGD, Ditto
    >>> method = Method(local=SGD(lr=0.1), personal={"ditto": Ditto(lam=1.0, lr=0.1)})
    >>> task = Task(nn.Linear(1, 2), nn.CrossEntropyLoss())
    >>> [run.t for run in federate(task, Federation.of(data), method, rounds=2)]
    [1, 2]
    """
    run = begin(task, federation, method, seed=seed, attack=attack, engine=engine, device=device)
    K = federation.K
    require(isinstance(rounds, int) and rounds >= 0, f"rounds must be a whole number ≥ 0, got rounds={rounds!r}")
    m = K if cohort is None else cohort
    require(
        isinstance(m, int) and 1 <= m <= K,
        f"cohort must be a whole number from 1 to the {K} devices of the federation, got cohort={cohort!r}",
    )
    return _rounds(run, rounds, m, sampling or Uniform())


def _check(task: Any, federation: Any, method: Any, attack: Any, seed: Any) -> None:
    kinds = (("task", task, Task), ("federation", federation, Federation), ("method", method, Method))
    for name, given, kind in kinds:
        require(
            isinstance(given, kind), f"{name} must be a {kind.__name__}, got {type(given).__name__}: build one first"
        )
    require(
        attack is None or isinstance(attack, Attack), f"attack must be an Attack such as A1(ratio=.2), got {attack!r}"
    )
    require(isinstance(seed, int | np.integer), f"seed must be a whole number, got seed={seed!r}")


def _rounds(run: Federated, rounds: int, m: int, sampling: Sampling) -> Iterator[Federated]:
    sizes = run.federation.sizes("train")
    while run.t < rounds:
        run.round(sampling(run.t, m, sizes, run.seed))
        yield run


def begin(
    task: Task, federation: Federation, method: Method, *, seed: int = 0, attack: Attack | None = None,
    engine: How | None = None, device: str | torch.device = "cpu",
) -> Federated:  # fmt: skip
    """The federation before its first round."""
    _check(task, federation, method, attack, seed)
    seed, target_device = int(seed), _device(device)
    objective = task.bind(federation, seed).to(target_device)
    y = federation.y
    if attack is not None:
        y = attack.labels(federation, attack.malicious(federation.K, seed), objective.target, seed)
    setting = Setting(
        objective=objective,
        federation=federation,
        x=each(federation.x, lambda part: part.to(target_device)),
        y=y.to(target_device),
        stream=Stream(federation, seed, method.batch),
    )
    return Federated(setting, engine or Auto(), method, attack, seed)


def _device(name: str | torch.device) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"device {str(name)!r} cannot be used here ({reason}): use device='cpu'") from error
    return device
