"""The names that specs know: what the package exports, by section, and objects of the user's own files."""

import difflib
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

import dittofl.aggregate
import dittofl.attack
import dittofl.datasets
import dittofl.engine
import dittofl.federation
import dittofl.losses
import dittofl.method
import dittofl.models
import dittofl.optimiser
import dittofl.sampling
import dittofl.schedule
import dittofl.server
import dittofl.solver
import dittofl.target
import dittofl.task
import dittofl.types
from dittofl.errors import InputError, blamed, cut

REFERENCE = re.compile(r"[\w./-]*\w:[A-Za-z_]\w*")  # my_task:Net, my_task.py:Net, package.module:Net
LOSSES = (
    "BCEWithLogitsLoss", "BCELoss", "CrossEntropyLoss", "HuberLoss", "L1Loss", "MSELoss", "MultiLabelSoftMarginLoss",
    "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss",
)  # fmt: skip


def _exported(module: ModuleType, *names: str) -> dict[str, Callable[..., Any]]:
    """The public classes and functions of a package, without protocols."""
    found = {name: getattr(module, name) for name in names or module.__all__}
    return {
        name: each for name, each in found.items() if callable(each) and not getattr(each, "_is_protocol", False)
        and (inspect.isclass(each) or inspect.isfunction(each))
    }  # fmt: skip


@cache
def sections() -> dict[str, dict[str, Callable[..., Any]]]:
    """What a spec may name, by section.

    >>> "Ditto" in sections()["solvers"], "digits" in sections()["datasets"]
    (True, True)
    """
    losses = {name: getattr(nn, name) for name in LOSSES} | _exported(dittofl.losses, "hinge", "SquaredNorm")
    return {
        "datasets": _exported(dittofl.datasets),
        "models": _exported(dittofl.models),
        "losses": losses,
        "solvers": {name: its for name, its in _exported(dittofl.solver).items() if name != "lambda_rule"},
        "optimisers": _exported(dittofl.optimiser, "Adam", "ClipNorm", "Decay", "Momentum"),
        "schedules": _exported(dittofl.schedule, "Cosine", "Geometric", "Inverse"),
        "aggregators": _exported(dittofl.aggregate),
        "servers": _exported(dittofl.server),
        "attacks": _exported(dittofl.attack),
        "samplings": _exported(dittofl.sampling, "Uniform", "BySize"),
        "engines": _exported(dittofl.engine, "Auto", "Loop", "Vmap"),
        "targets": _exported(dittofl.target, "Binary", "Classes", "Real", "Signs"),
        "others": {
            "Epochs": dittofl.types.Epochs,
            "Method": dittofl.method.Method,
            "Metric": dittofl.task.Metric,
            "Split": dittofl.federation.Split,
        },
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
    file = folder / (source if source.endswith(".py") else source.replace(".", "/") + ".py")
    with blamed(f"{where}: {source}"):
        if file.is_file():
            return _loaded(file.resolve())
        try:
            return importlib.import_module(source)
        except ModuleNotFoundError as error:
            raise InputError(
                f"{where}: there is no file {file} and no module {source!r}: write one, or correct the name"
            ) from error


@cache
def _loaded(file: Path) -> ModuleType:
    """A user's file as a module; the files beside it can be imported by it."""
    name = f"dittofl_user_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InputError(f"{file} cannot be loaded as Python: give it the ending .py")
    module = importlib.util.module_from_spec(spec)
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    sys.modules[name] = module  # as dataclasses and pickling look there
    spec.loader.exec_module(module)
    return module


def user_files(folder: Path) -> dict[str, Path]:
    """The Python files below a folder that are loaded now, by their place in it: what a spec's names brought."""
    there, ours = folder.resolve(), Path(dittofl.__file__).resolve().parent
    system = [Path(place).resolve() for place in (sys.prefix, sys.base_prefix)] + [ours]
    named = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    files = {Path(file).resolve() for file in named if file}
    mine = [file for file in files if file.is_relative_to(there) and not any(map(file.is_relative_to, system))]
    return {file.relative_to(there).as_posix(): file for file in sorted(mine)}
