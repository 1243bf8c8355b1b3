"""Paired differences between models, device by device."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import nan

import numpy as np

from dittofl.errors import InputError, require
from dittofl.experiment.names import nearest
from dittofl.method import GLOBAL
from dittofl.metrics import summarise
from dittofl.report.conditions import Condition, conditions, lead_metric, lower_is_better
from dittofl.report.interval import Interval, interval
from dittofl.report.results import Numbers, Result


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model of a condition."""

    condition: Condition
    name: str

    def __str__(self) -> str:
        return f"{self.condition.title}: {self.name}"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A model minus its reference, over the devices that are benign in both."""

    model: Model
    reference: Model
    mean: Interval
    over: str  # what the interval is over: "3 seeds" or "25 devices"
    better: float  # share of devices, of all seeds together
    worse: float
    worst10: Interval  # of the differences of the two worst 10 %, over seeds

    @property
    def sign(self) -> int:
        """1 where the model is better and its interval says so, −1 where it is worse, else 0."""
        return self.mean.sign * (-1 if self.lower else 1)

    lower: bool = False  # whether less is better


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Differences of a metric, and what the reader must know."""

    metric: str
    lower: bool
    part: str
    rows: tuple[Difference, ...]
    warnings: tuple[str, ...]


def compare(results: Sequence[Result], metric: str | None = None, against: str | None = None) -> Comparison:
    """d = mean over devices k benign in both of x_k(model) − x_k(reference), every model of every condition.

    The reference is `against`: MODEL of the first run; RUN:MODEL, a run by its folder or a condition by its title; or
    :MODEL, each condition's own. By default it is the first run's global model. With several seeds in common, d is made
    for each and the 95 % interval is over seeds, else over devices (Student's t of the paired differences).
    """
    found = conditions(results)
    metric = lead_metric(found, metric)
    parts = list(dict.fromkeys(run.part for run in results))
    require(len(parts) == 1, f"the runs were scored on different parts, {' and '.join(parts)}: compare those of one")
    lower, rows, warnings = lower_is_better(found, metric), [], []
    for condition in found:
        reference = _reference(found, results[0], condition, against)
        warnings += data_differ(condition, reference.condition)
        for name in condition.models:
            model = Model(condition=condition, name=name)
            if (condition, name) != (reference.condition, reference.name):
                rows.append(difference(model, reference, metric, lower))
    return Comparison(
        metric=metric, lower=lower, part=parts[0], rows=tuple(rows), warnings=tuple(dict.fromkeys(warnings))
    )


def difference(model: Model, reference: Model, metric: str, lower: bool) -> Difference:
    """One row; refuses runs without a device in common."""
    means, worst, signs = [], [], []
    for mine, other in pairs(model.condition, reference.condition):
        x, y = shared(mine, other, model.name, reference.name, metric)
        n = np.ones(len(x), dtype=np.int64)
        ends = [summarise(its, n, lower_is_better=lower).worst10 for its in (x, y)]
        with np.errstate(invalid="ignore"):  # ∞ − ∞ of two models that diverged is NaN, and is shown
            gaps = x - y
        means.append(gaps)
        worst.append(ends[0] - ends[1])
        signs.append(np.sign(gaps) * (-1 if lower else 1))
    several, devices = len(means) > 1, np.concatenate(signs)
    return Difference(
        model=model, reference=reference, lower=lower,
        mean=interval([float(its.mean()) for its in means] if several else means[0]),
        over=f"{len(means)} seeds" if several else f"{len(devices)} device{'s' * (len(devices) != 1)}",
        better=_share(devices == 1, devices), worse=_share(devices == -1, devices), worst10=interval(worst),
    )  # fmt: skip


def pairs(one: Condition, other: Condition) -> list[tuple[Result, Result]]:
    """Runs of the same seed; where no seed is in common, the first of each."""
    theirs = {run.seed: run for run in other.runs}
    found = [(run, theirs[run.seed]) for run in one.runs if run.seed in theirs]
    return found or [(one.runs[0], other.runs[0])]


def shared(mine: Result, other: Result, name: str, reference: str, metric: str) -> tuple[Numbers, Numbers]:
    """Two models' numbers on the devices that are benign in both runs and have samples; refuses where there are none.

    A device whose number is not finite stays in, as its model diverged: then the difference is NaN.
    """
    sides = (mine, name), (other, reference)
    tables = [_benign(run, model, metric) for run, model in sides]
    common = [device for device in tables[0] if device in tables[1]]
    require(
        common,
        f"{mine.folder} and {other.folder} share no benign device with {mine.part} data: compare runs on the same data",
    )
    x, y = (np.array([table[device] for device in common]) for table in tables)
    return x, y


def data_differ(one: Condition, other: Condition) -> list[str]:
    """A sentence where two conditions were not scored on the same data."""
    said = []
    for mine, theirs in pairs(one, other):
        prints = [str(run.facts["fingerprint"]) for run in (mine, theirs)]
        if mine.seed != theirs.seed:
            said.append(f"{one.title} and {other.title} have no seed in common: seeds {mine.seed} and {theirs.seed}.")
        if prints[0] != prints[1]:
            said.append(
                f"The test data of {mine.folder.name} and {theirs.folder.name} differ (fingerprints {prints[0][:12]} "
                f"and {prints[1][:12]}): their differences are those of models and of data."
            )
    return said


def _benign(run: Result, model: str, metric: str) -> dict[str, float]:
    devices = run.devices
    kept = ~devices.malicious & (devices.sizes[run.part] > 0)
    values = devices.values[model, metric]
    return {device: float(values[k]) for k, device in enumerate(devices.ids) if kept[k]}


def _share(which: np.ndarray, signs: np.ndarray) -> float:
    return nan if np.isnan(signs).any() else float(which.mean())


def _reference(found: Sequence[Condition], first: Result, own: Condition, against: str | None) -> Model:
    """The model that `against` names."""
    home = next(condition for condition in found if first in condition.runs)
    told = GLOBAL if against is None else against
    names = {f":{model}": Model(condition=own, name=model) for model in own.models}
    for condition, run in ((c, run) for c in found for run in c.runs):
        places = {condition.title, str(run.folder), run.folder.name}
        for place, model in product(places, condition.models):
            names.setdefault(f"{place}:{model}", Model(condition=condition, name=model))
    names |= {model: Model(condition=home, name=model) for model in home.models}
    if told not in names:
        raise InputError(f"there is no model {told!r} to compare against: {nearest(told, names)}")
    return names[told]
