"""Algorithm 1: sample → visit → attack → aggregate → server, a generator that gives every round to the caller."""

import copy
from dataclasses import dataclass
from typing import Any

import torch

from dittofl.aggregate.chain import least as needed
from dittofl.attack import Attack
from dittofl.batches import Stream
from dittofl.bind import bind, check_batch
from dittofl.engine import Auto, Loop, Setting, Vmap
from dittofl.errors import InputError, an_instance, as_seed, cut, is_whole, require, short
from dittofl.federated import Federated, How, Saved
from dittofl.federation import Federation
from dittofl.inputs import each
from dittofl.method import GLOBAL, Method
from dittofl.reports import combined, stepped, still
from dittofl.sampling import Sampling, Uniform, draw
from dittofl.task import Task


@dataclass
class Rounds:
    """The rounds of a federation, one at a time; `run` is what each of them yields, also before the first."""

    run: Federated
    last: int
    m: int
    rule: Sampling

    def __iter__(self) -> "Rounds":
        return self

    def __next__(self) -> Federated:
        if self.run.t >= self.last:
            raise StopIteration
        sizes = self.run.federation.sizes("train")
        self.run.round(draw(self.rule, self.run.t, self.m, sizes, self.run.seed))
        return self.run


def federate(
    task: Task, federation: Federation, method: Method, *, rounds: int, cohort: int | None = None, seed: int = 0,
    attack: Attack | None = None, sampling: Sampling | None = None, engine: How | None = None,
    device: str | torch.device = "cpu", resume: Saved | None = None,
) -> Rounds:  # fmt: skip
    """Yields the federation after each of `rounds` rounds with `cohort` devices each (None: all).

    With `resume` it goes on behind the round that an equal run had saved, and ends as if never interrupted.

    Every check of data, module and parameters is made by this call, before the first round. The object yielded is the
    same each time and moves on: evaluate, save or copy what is to be kept.

    >>> data = {k: ([[float(k)], [1.0], [2.0]], [0, 1, 1]) for k in range(3)}
    >>> from torch import nn
    >>> from dittofl.solver import SGD, Ditto
    >>> method = Method(local=SGD(lr=0.1), personal={"ditto": Ditto(lam=1.0, lr=0.1)})
    >>> task = Task(nn.Linear(1, 2), nn.CrossEntropyLoss())
    >>> [run.t for run in federate(task, Federation.of(data), method, rounds=2)]
    [1, 2]
    """
    run = begin(task, federation, method, seed=seed, attack=attack, engine=engine, device=device)
    m = federation.K if cohort is None else cohort
    require(is_whole(rounds, 0), f"rounds must be a whole number ≥ 0, got rounds={short(rounds)}")
    require(
        is_whole(m, 1) and m <= federation.K,
        f"cohort must be a whole number from 1 to the {federation.K} devices, got cohort={short(cohort)}",
    )
    rule = Uniform() if sampling is None else sampling
    require(
        callable(rule) and not isinstance(rule, type), f"sampling must be a rule such as Uniform(), got {short(rule)}"
    )
    sizes = federation.sizes("train")
    draw(rule, 0, int(m), sizes, run.seed)
    least = needed(run.aggregator)
    require(
        m >= least,
        f"{cut(str(run.aggregator))} needs at least {least} reports, the cohort is {m}: lower f or enlarge the cohort",
    )
    _rehearse(run, int(m))
    if resume is not None:
        require(an_instance(resume, Saved), f"resume must be what an equal run has Saved, or None, got {short(resume)}")
        run.restore(resume)
    return Rounds(run, int(rounds), int(m), rule)


def _rehearse(run: Federated, m: int) -> None:
    """Line 7 on what m devices would send that did not move: a mistake of the server's side is told before training."""
    local, down = run.method.local, run.down()._replace(n=1)
    row = run.rows[GLOBAL].first
    try:
        sent = local.send(local.start(row, down), row, down)
    except Exception:  # a solver may need a step before it can send; then the first round tells
        return
    mine = run.aggregator, run.method.server, run.aggregator_state, run.server_state
    aggregator, server, remembered, state = copy.deepcopy(mine)
    report = still(m, run.w0, losses=aggregator.losses, extra=sent.extra)
    delta, _ = combined(aggregator, server, report, remembered)
    stepped(server, run.w0, delta, report, state)


def _check(task: Any, federation: Any, method: Any, attack: Any, engine: Any) -> None:
    for name, given, kind, how in (
        ("task", task, Task, "Task(module, loss)"),
        ("federation", federation, Federation, "Federation.of(data)"),
        ("method", method, Method, "Method(local=SGD(lr=.1))"),
    ):
        require(
            isinstance(given, kind),
            f"{name} must be a {kind.__name__}, got {type(given).__name__} {short(given)}: make one by {how}",
        )
    for name, given, kinds, example in (
        ("attack", attack, Attack, "A1(ratio=.2)"),
        ("engine", engine, (Auto, Loop, Vmap), "Loop() or Vmap()"),
    ):
        require(given is None or isinstance(given, kinds), f"{name} must be None or {example}, got {short(given)}")


def begin(
    task: Task, federation: Federation, method: Method, *, seed: int = 0, attack: Attack | None = None,
    engine: How | None = None, device: str | torch.device = "cpu",
) -> Federated:  # fmt: skip
    """The federation before its first round."""
    _check(task, federation, method, attack, engine)
    seed, target_device = as_seed(seed), usable(device)
    objective = bind(task, federation, seed).to(target_device)
    x, y = federation.x, federation.y
    if attack is not None:
        x, y = attack.data(federation, attack.malicious(federation.K, seed), objective.target, seed)
    check_batch(objective, method.batch)
    setting = Setting(
        objective=objective,
        federation=federation,
        x=each(x, lambda part: part.to(target_device)),
        y=y.to(target_device),
        stream=Stream(federation, seed, method.batch),
    )
    return Federated(setting, engine or Auto(), method, attack, seed)


def usable(name: Any) -> torch.device:
    """The device of that name, refused where nothing can be computed on it."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except Exception as error:
        raise InputError(f"device {cut(str(name))!r} cannot be used here ({short(error)}): use device='cpu'") from error
    return device
