"""What the figures show, from results: numbers only, whatever draws them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import ceil, floor

import numpy as np

from dittofl.method import GLOBAL
from dittofl.report.conditions import Condition, lower_is_better
from dittofl.report.results import Numbers, Result

UNIT = (0.0, 1.0)  # the range of an accuracy
HIGH = 4.0  # an axis ends at so many times the median curve, lest one model that diverged flattens all others


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """A metric's mean and standard deviation over benign devices by round, each averaged over seeds."""

    t: Numbers
    mean: Numbers
    std: Numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """Share of malicious devices among those drawn: mean, least and most over a few rounds and all seeds."""

    t: Numbers
    mean: Numbers
    low: Numbers
    high: Numbers
    expected: float  # their share of all devices


@dataclass(frozen=True, kw_only=True)
class Worst:
    """A device that a model serves badly."""

    device: str
    seed: int
    samples: int  # of its train part
    visits: int
    choice: str
    value: float
    other: float  # the global model's


def order(found: Sequence[Condition]) -> dict[str, int]:
    """Every model's place among the colours: global first, then choices, then the rest."""
    names = dict.fromkeys(name for c in found for name in (*c.choices, *c.models) if name != GLOBAL)
    return {name: i for i, name in enumerate((GLOBAL, *names))}


def curve(condition: Condition, model: str, metric: str) -> Curve:
    """One model's curve, at the rounds that all seeds were evaluated at."""
    curves = [run.curves for run in condition.runs]
    t = reduce(np.intersect1d, [its.rounds[model] for its in curves])

    def averaged(statistic: str) -> Numbers:
        rows = [its.values[model, metric, statistic][np.isin(its.rounds[model], t)] for its in curves]
        mean: Numbers = np.mean(rows, axis=0)
        return mean

    with np.errstate(all="ignore"):
        return Curve(t=t.astype(np.float64), mean=averaged("mean"), std=averaged("std"))


def reach(condition: Condition, metric: str) -> tuple[float, float]:
    """The range of an axis that shows the curves."""
    if metric == "accuracy":
        return UNIT
    curves = [curve(condition, model, metric) for model in condition.models]
    means = _finite(np.concatenate([its.mean for its in curves]))
    ends = _finite(np.concatenate([x for its in curves for x in (its.mean - its.std, its.mean + its.std)]))
    if len(ends) == 0:
        return UNIT
    low, high = float(ends.min()), float(ends.max())
    if metric == "loss":  # no loss of ours is negative, though its mean − std may be
        low, high = max(low, min(0.0, float(means.min()))), min(high, HIGH * float(np.median(means)))
    return wide(low, high)


def devices(condition: Condition, model: str, metric: str) -> Numbers:
    """The benign devices' numbers, of all seeds."""
    return np.concatenate([run.devices.values[model, metric][_benign(run)] for run in condition.runs])


def span(condition: Condition, metric: str) -> tuple[float, float]:
    """The range of a histogram's axis: that of nine tenths of the devices where it is no share."""
    if metric == "accuracy":
        return UNIT
    values = _finite(np.concatenate([devices(condition, model, metric) for model in condition.models]))
    if len(values) == 0:
        return UNIT
    return wide(float(values.min()), float(np.quantile(values, 0.95)))


def histogram(values: Numbers, low: float, high: float, bins: int = 10) -> tuple[Numbers, Numbers]:
    """Edges, and the share of devices in each bin; what lies beyond the ends is in the first or last."""
    finite = _finite(values)
    counts, edges = np.histogram(np.clip(finite, low, high), bins=bins, range=(low, high))
    return edges, counts / max(len(values), 1)


def chosen(condition: Condition, choice: str) -> dict[str, float]:
    """Share of benign devices, of all seeds, that chose each row."""
    rows = {
        row: 0 for run in condition.runs for its in run.selections if its["model"] == choice for row in its["among"]
    }
    picks = [np.array(run.devices.choices[choice])[~run.devices.malicious] for run in condition.runs]
    total = max(sum(map(len, picks)), 1)
    return {row: float(sum((its == row).sum() for its in picks)) / total for row in rows}


def drawn(condition: Condition, most: int = 120) -> Drawn | None:
    """Malicious devices in the cohorts, in at most so many steps; None where no device is malicious."""
    if not any(run.devices.malicious.any() for run in condition.runs):
        return None
    rounds = min(len(run.rounds.t) for run in condition.runs)
    shares = np.array(
        [run.rounds.malicious[:rounds] / np.maximum(run.rounds.cohort[:rounds], 1) for run in condition.runs]
    )
    edges = np.arange(0, rounds, ceil(rounds / most) if rounds else 1)
    steps = [shares[:, a : a + (edges[1] if len(edges) > 1 else rounds)] for a in edges]
    return Drawn(
        t=np.array([condition.runs[0].rounds.t[a] for a in edges], dtype=np.float64),
        mean=np.array([its.mean() for its in steps]), low=np.array([its.min() for its in steps]),
        high=np.array([its.max() for its in steps]),
        expected=float(np.mean([run.devices.malicious.mean() for run in condition.runs])),
    )  # fmt: skip


def points(condition: Condition, model: str, metric: str) -> list[tuple[float, float]]:
    """(std, mean) of each seed."""
    return [(run.scores[model, metric]["std"], run.scores[model, metric]["mean"]) for run in condition.runs]


def reached(found: Sequence[Condition], metric: str) -> tuple[float, float]:
    """The range of an axis that shows every model's mean and worst tenth."""
    its = [c.score(m, metric, one).mean for c in found for m in c.models for one in ("mean", "worst10")]
    values = _finite(np.array(its))
    if len(values) == 0:
        return UNIT
    if metric == "accuracy":
        return floor(10 * float(values.min())) / 10 if values.min() < 1 else 0.0, 1.0
    return wide(float(values.min()), min(float(values.max()), HIGH * float(np.median(values))), 0.05)


def corners(condition: Condition, metric: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ranges of a scatter's axes."""
    all_points = np.array([p for model in condition.models for p in points(condition, model, metric)])
    sound = all_points[np.isfinite(all_points).all(1)]
    if len(sound) == 0:
        return UNIT, UNIT
    xs, ys = sound.T
    return wide(float(xs.min()), float(xs.max()), 0.08), wide(float(ys.min()), float(ys.max()), 0.08)


def worst(condition: Condition, model: str, metric: str, most: int = 8) -> list[Worst]:
    """The benign devices, of all seeds, that a model serves worst; first those where it diverged."""
    sign = -1 if lower_is_better([condition], metric) else 1
    found = [(run, int(k)) for run in condition.runs for k in np.flatnonzero(_benign(run))]
    keys = np.array([sign * run.devices.values[model, metric][k] for run, k in found])
    ranks = np.argsort(np.where(np.isnan(keys), -np.inf, keys), kind="stable")[:most]
    return [_worst(*found[int(rank)], model, metric) for rank in ranks]


def wide(low: float, high: float, margin: float = 0.0) -> tuple[float, float]:
    """A range that is not empty, with a margin on either side."""
    room = (high - low) or abs(high) or 1.0
    return (low - margin * room, high + margin * room) if high > low else (low - room / 2, high + room / 2)


def _worst(run: Result, k: int, model: str, metric: str) -> Worst:
    its = run.devices
    return Worst(
        device=its.ids[k], seed=run.seed, samples=int(its.sizes["train"][k]), visits=int(its.visits[k]),
        choice=its.choices[model][k] if model in its.choices else "",
        value=float(its.values[model, metric][k]), other=float(its.values[GLOBAL, metric][k]),
    )  # fmt: skip


def _benign(run: Result) -> np.ndarray:
    which: np.ndarray = ~run.devices.malicious & (run.devices.sizes[run.part] > 0)
    return which


def _finite(values: Numbers) -> Numbers:
    kept: Numbers = values[np.isfinite(values)]
    return kept
