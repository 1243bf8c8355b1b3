"""The names that specs know: what the package exports, by section, and objects of the user's own files."""

import difflib
import importlib
import inspect
import re
from collections.abc import Callable, Iterable
from enum import Enum
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

import dittofl.aggregate
import dittofl.attack
import dittofl.datasets
import dittofl.datasets.partition
import dittofl.engine
import dittofl.federation
import dittofl.losses
import dittofl.method
import dittofl.mocha
import dittofl.models
import dittofl.optimiser
import dittofl.sampling
import dittofl.schedule
import dittofl.server
import dittofl.solver
import dittofl.target
import dittofl.task
import dittofl.types
from dittofl.errors import InputError, blamed, cut, short
from dittofl.experiment.sources import loaded, source_file

REFERENCE = re.compile(r"[\w./-]*\w:[A-Za-z_]\w*")  # my_task:Net, my_task.py:Net, package.module:Net
LOSSES = (
    "BCEWithLogitsLoss", "BCELoss", "CrossEntropyLoss", "HuberLoss", "L1Loss", "MSELoss", "MultiLabelSoftMarginLoss",
    "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss",
)  # fmt: skip


def _exported(module: ModuleType, *names: str) -> dict[str, Callable[..., Any]]:
    """The public classes and functions of a package, without protocols."""
    found = {name: getattr(module, name) for name in names or module.__all__}
    return {name: each for name, each in found.items() if inspect.isfunction(each) or _is_piece(each)}


def _is_piece(each: Any) -> bool:
    """A class that a spec may call: no protocol, and no list of words."""
    return inspect.isclass(each) and not getattr(each, "_is_protocol", False) and not issubclass(each, Enum)


def _solvers() -> dict[str, dict[str, Callable[..., Any]]]:
    """Those that send, those that cannot, and what is no solver: choices among rows and rules for λ."""
    its = {name: each for name, each in _exported(dittofl.solver).items() if name != "lambda_rule"}
    kinds = {name: "solvers" if hasattr(each, "send") else "personal" if hasattr(each, "step") else "choices"
             for name, each in its.items()}  # fmt: skip
    return {kind: {n: its[n] for n in its if kinds[n] == kind} for kind in ("solvers", "personal", "choices")}


def _attacks() -> dict[str, dict[str, Callable[..., Any]]]:
    """Whole attacks, and their parts: what rewrites updates, what poisons data."""
    its = _exported(dittofl.attack)
    poisons = ("labels", "backdoor", "trigger")
    kinds = {name: "attacks" if each.__module__ == "dittofl.attack.attack"
             else "poisons" if each.__module__.rsplit(".", 1)[-1] in poisons else "updates"
             for name, each in its.items()}  # fmt: skip
    return {kind: {n: its[n] for n in its if kinds[n] == kind} for kind in ("attacks", "updates", "poisons")}


@cache
def sections() -> dict[str, dict[str, Callable[..., Any]]]:
    """What a spec may name, by section.

    >>> "SGD" in sections()["solvers"], "Ditto" in sections()["personal"], "digits" in sections()["datasets"]
    (True, True, True)
    """
    losses = {name: getattr(nn, name) for name in LOSSES} | _exported(
        dittofl.losses, "hinge", "half_square", "SquaredNorm"
    )
    rules = _exported(dittofl.aggregate)
    objectives = {name: rule for name, rule in rules.items() if hasattr(rule, "weigh")}
    return {
        "datasets": _exported(dittofl.datasets),
        "partitioners": _exported(dittofl.datasets.partition),
        "models": _exported(dittofl.models),
        "losses": losses,
        **_solvers(),
        "optimisers": _exported(dittofl.optimiser, "Adam", "ClipNorm", "Decay", "Momentum"),
        "schedules": _exported(dittofl.schedule, "Cosine", "Geometric", "Inverse"),
        "objectives": objectives,
        "defences": {name: rule for name, rule in rules.items() if name not in (*objectives, "Stateless")},
        "servers": _exported(dittofl.server),
        **_attacks(),
        "samplings": _exported(dittofl.sampling, "Uniform", "BySize"),
        "engines": _exported(dittofl.engine, "Auto", "Loop", "Vmap"),
        "targets": _exported(dittofl.target, "Binary", "Classes", "Real", "Signs"),
        "others": {
            "Epochs": dittofl.types.Epochs,
            "Method": dittofl.method.Method,
            "Metric": dittofl.task.Metric,
            "Split": dittofl.federation.Split,
            "Stateless": dittofl.aggregate.Stateless,
        },
        "alone": _exported(dittofl.mocha, "Mocha"),
    }


@cache
def known() -> dict[str, Callable[..., Any]]:
    """All of them by name."""
    return {name: its for section in sections().values() for name, its in section.items()}


def nearest(name: str, among: Iterable[str]) -> str:
    """What to say of a name that is not there.

    >>> nearest("Dito", ["Ditto", "SGD"])
    "did you mean 'Ditto'?"
    """
    names = sorted(among)
    lowered = {one.lower(): one for one in names}
    near = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)
    return f"did you mean {lowered[near[0]]!r}?" if near else f"there are {cut(', '.join(names) or 'none')}"


def found(name: str, where: str, folder: Path) -> Any:
    """The class, function or object that a spec names: ours, or `file:name` beside the spec, or `module:name`."""
    if ":" not in name:
        if name not in known():
            raise InputError(f"{where}: nothing is called {name!r}: {nearest(name, known())}")
        return known()[name]
    source, attribute = name.rsplit(":", 1)
    module = _module(source, where, folder)
    if not hasattr(module, attribute):
        names = [one for one in vars(module) if not one.startswith("_")]
        raise InputError(f"{where}: {source} has no {attribute!r}: {nearest(attribute, names)}")
    return getattr(module, attribute)


def _module(source: str, where: str, folder: Path) -> ModuleType:
    with blamed(f"{where}: {source}"):
        file = source_file(source, where, folder)
        if file is not None:
            return loaded(file)
        try:
            return importlib.import_module(source)
        except ModuleNotFoundError as error:
            raise InputError(
                f"{where}: there is no file {folder / source}.py and no module {source!r} ({short(error)}): "
                "write one, or correct the name"
            ) from error
