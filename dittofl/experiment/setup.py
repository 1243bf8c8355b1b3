"""From a spec to what `federate` takes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from dittofl.attack import Attack
from dittofl.bind import bind
from dittofl.errors import blamed, require, short
from dittofl.experiment.construct import call
from dittofl.experiment.signature import Table
from dittofl.experiment.spec import Spec
from dittofl.federate import Rounds, federate
from dittofl.federated import Saved
from dittofl.federation import Federation
from dittofl.method import GLOBAL, Method
from dittofl.sampling import Uniform
from dittofl.solver import LambdaRule
from dittofl.task import Task


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a spec stands for."""

    task: Task
    federation: Federation
    method: Method
    attack: Attack | None
    strong: bool  # whether the λ rule counts the attack as strong
    options: Mapping[str, Any]  # of `federate`

    def federate(self, resume: Saved | None = None, rounds: int | None = None) -> Rounds:
        """The rounds of the experiment, from the first or from where it was saved."""
        options = dict(self.options) | ({} if rounds is None else {"rounds": rounds})
        return federate(self.task, self.federation, self.method, attack=self.attack, resume=resume, **options)

    @property
    def cohort(self) -> int:
        return self.options["cohort"] or self.federation.K

    @property
    def rows(self) -> dict[str, int]:
        """Elements of the row that each solver keeps of a device, for those that keep one."""
        solvers = {GLOBAL: self.method.local, **self.method.personal, **self.method.final}
        return {name: n for name, solver in solvers.items() if (n := solver.init(self._w0).numel())}

    @property
    def width(self) -> tuple[int, int]:
        """P, and the bytes of one element."""
        return self._w0.numel(), self._w0.element_size()

    @cached_property
    def _w0(self) -> Tensor:
        return bind(self.task, self.federation, self.options["seed"]).w0


def build(spec: Spec, device: str | None = None) -> Setup:
    """Makes the objects, for the spec's device or another; data and model get the run's seed where they name none."""
    its, names = spec.experiment, spec.names
    table = spec.table
    with _seeded(its.seed):
        federation = federation_of(names.built(table["data"], "data", seed=its.seed))
        module = _module(names.built(table["model"], "model", seed=its.seed))
    attack = names.built(its.attack, "attack") if its.attack else None
    require(attack is None or isinstance(attack, Attack), f"attack must name one such as A1, got {short(attack)}")
    strong = attack is not None and attack.is_strong(federation.K)
    options = {key: names.built(table.get(key), key) for key in ("loss", "penalty", "transform", "target")}
    task = Task(
        module.double() if its.precision == "float64" else module,
        metrics=names.built(table.get("metrics", {}), "metrics"), **options,
    )  # fmt: skip
    method = _method(names.arguments(its.method, "method"), strong)
    return Setup(
        task=task, federation=federation, method=method, attack=attack, strong=strong,
        options={
            "rounds": its.rounds, "cohort": its.cohort, "seed": its.seed, "device": device or its.device,
            "sampling": names.built(its.sampling, "sampling") if its.sampling else Uniform(),
            "engine": names.built(its.engine, "engine") if its.engine else None,
        },
    )  # fmt: skip


def _method(given: Table, strong: bool) -> Method:
    """The method, with every rule among its choices written out as rows and a choice among them."""
    parts = {part: dict(given.get(part, {})) for part in ("personal", "final", "choose")}
    for name, rule in parts["choose"].items():
        if isinstance(rule, LambdaRule):
            part, (rows, choice) = "personal", rule.rows(strong=strong)
        elif isinstance(rule, tuple):  # of `finetune`
            part, (rows, choice) = "final", rule
        else:
            continue
        parts["choose"][name] = choice
        for row, solver in rows.items():
            require(
                parts[part].setdefault(row, solver) == solver,
                f"method.choose.{name} trains a row {row!r} that differs from method.{part}'s: rename yours",
            )
    method: Method = call(Method, "method", given | parts)
    return method


def federation_of(given: Any) -> Federation:
    """What a spec's data gave, as a federation."""
    if callable(given):
        with blamed("data"):
            given = given()
    if isinstance(given, Federation):
        return given
    with blamed("data"):
        return Federation.of(given)


def _module(given: Any) -> nn.Module:
    if not isinstance(given, nn.Module) and callable(given):
        with blamed("model"):
            given = given()
    require(isinstance(given, nn.Module), f"model must give a torch module, got {short(given)}: return an nn.Module")
    module: nn.Module = given
    return module


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Initial weights are a function of the seed; the global generators are put back."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
