"""Runs that differ in nothing but their seed, together, under a title that says what is particular about them."""

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dittofl.errors import cut, require
from dittofl.experiment.names import known, nearest
from dittofl.experiment.signature import KIND
from dittofl.experiment.spec import CODE
from dittofl.method import GLOBAL
from dittofl.report.interval import Interval, interval
from dittofl.report.results import Result

OWN = ("name", "seed")  # what runs of one condition may differ in


@dataclass(frozen=True, kw_only=True, eq=False)
class Condition:
    """Runs that differ in their seed only."""

    title: str
    runs: tuple[Result, ...]

    @property
    def models(self) -> tuple[str, ...]:
        return self.runs[0].models

    @property
    def choices(self) -> tuple[str, ...]:
        """Models that are each device's choice among its rows."""
        return tuple(name for name in self.models if name in self.runs[0].devices.choices)

    def score(self, model: str, metric: str, statistic: str) -> Interval:
        """A number of the summary, over seeds."""
        return interval([run.scores[model, metric][statistic] for run in self.runs])


def conditions(results: Sequence[Result]) -> tuple[Condition, ...]:
    """The runs by what they have in common, in the order given; a seed that comes twice begins another condition."""
    require(results, "there is no run to report on: name one")
    groups: dict[tuple[str, int], list[Result]] = {}
    for run in results:
        key, again = _key(run), 0
        while any(other.seed == run.seed for other in groups.get((key, again), ())):
            again += 1
        groups.setdefault((key, again), []).append(run)
    runs = [tuple(sorted(its, key=lambda run: run.seed)) for its in groups.values()]
    return tuple(Condition(title=title, runs=its) for title, its in zip(_titles(runs), runs, strict=True))


def lead_metric(found: Sequence[Condition], metric: str | None = None) -> str:
    """The metric asked for, or accuracy where every run has it, or the loss."""
    common = [name for name in found[0].runs[0].metrics if all(name in run.metrics for c in found for run in c.runs)]
    if metric is None:
        return "accuracy" if "accuracy" in common else "loss"
    require(metric in common, f"no metric called {metric!r} is in every run: {nearest(metric, common)}")
    return metric


def lower_is_better(found: Sequence[Condition], metric: str) -> bool:
    """Whether the metric's worst devices have its highest values."""
    scores = [run.scores[model, metric] for c in found for run in c.runs for model in run.models]
    return metric == "loss" or any(its["worst10"] > its["best10"] for its in scores)


def lead_model(found: Sequence[Condition], metric: str) -> tuple[str | None, bool]:
    """The personal model that the headline is about, and whether it was picked by its results.

    A choice on validation data where there is one in every condition; else the one with the best mean.
    """
    shared = [name for name in found[0].models if name != GLOBAL and all(name in c.models for c in found)]
    for name in shared:
        if all(name in c.choices for c in found):
            return name, False
    sign = 1 if lower_is_better(found, metric) else -1
    means = {name: sum(sign * c.score(name, metric, "mean").mean for c in found) for name in shared}
    sound = {name: mean for name, mean in means.items() if mean == mean} or means
    return (min(sound, key=lambda name: sound[name]) if sound else None), len(shared) > 1


def _key(run: Result) -> str:
    """The spec without what runs of a condition differ in, and the user's files."""
    spec = {key: value for key, value in run.spec.items() if key not in OWN}
    return json.dumps([spec, _code(run)], sort_keys=True, default=str)


def _code(run: Result) -> str | None:
    files = sorted(file for file in (run.folder / CODE).rglob("*") if file.is_file() and file.suffix != ".pyc")
    digest = hashlib.sha256(b"".join(file.name.encode() + file.read_bytes() for file in files))
    return digest.hexdigest()[:8] if files else None


def _titles(groups: Sequence[tuple[Result, ...]]) -> list[str]:
    """The runs' names where these tell them apart, else what differs in their specs."""
    names = [its[0].name for its in groups]
    if len(set(names)) == len(names):
        return names
    tables = [{k: v for k, v in its[0].spec.items() if k not in OWN} | {"code": _code(its[0])} for its in groups]
    told = [cut(", ".join(its), 80) for its in zip(*_differences(tables, ""), strict=True)] or [""] * len(groups)
    if len(set(names)) > 1:
        told = [", ".join(filter(None, its)) for its in zip(names, told, strict=True)]
    told = [one or name for one, name in zip(told, names, strict=True)]
    folders = [its[0].folder for its in groups]
    for places in ([folder.name for folder in folders], [str(folder) for folder in folders]):
        told = [one if told.count(one) == 1 else f"{one} ({places[i]})" for i, one in enumerate(told)]
    return told


def _differences(tables: Sequence[Mapping[str, Any]], where: str) -> list[list[str]]:
    """For every part in which the tables differ, what each has there."""
    found: list[list[str]] = []
    for key in dict.fromkeys(key for table in tables for key in table):
        values = [table.get(key) for table in tables]
        if all(value == values[0] for value in values):
            continue
        inner = [value for value in values if isinstance(value, Mapping)]
        if len(inner) == len(values) and len({str(its.get(KIND)) for its in inner}) == 1:
            found += _differences(inner, f"{where}{key}." if where or key != "method" else "")
        else:
            found.append([_told(where + key, value) for value in values])
    return found


def _told(key: str, value: Any) -> str:
    """A part of a spec in few words: no attack, A1 ratio=0.5, rounds=200."""
    if value is None:
        return f"no {key}"
    if not isinstance(value, Mapping):
        return f"{key}={value}"
    left_out = _defaults(value)
    rest = [f"{name}={one}" for name, one in value.items() if name != KIND and (name, one) not in left_out]
    return " ".join([str(value.get(KIND, key)), *rest])


def _defaults(table: Mapping[str, Any]) -> list[tuple[str, Any]]:
    kind = known().get(str(table.get(KIND)))
    return [] if kind is None else [(one.name, one.default) for one in inspect.signature(kind).parameters.values()]
