"""Run folders, read: nothing of the user's code is imported, and what is missing or broken is refused."""

import csv
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dittofl.errors import InputError, require, short
from dittofl.experiment.files import read_json
from dittofl.experiment.folder import DEVICES, METRICS, ROUNDS, RUN, SELECTIONS, SUMMARY, runs
from dittofl.experiment.record import STATISTICS
from dittofl.experiment.spec import SPEC
from dittofl.federation import PARTS

Numbers = NDArray[np.float64]
Ints = NDArray[np.int64]
Scores = Mapping[tuple[str, str], Mapping[str, float]]  # (model, metric) → statistic → number


@dataclass(frozen=True, kw_only=True, eq=False)
class Devices:
    """The per-device table, K long."""

    ids: tuple[str, ...]
    sizes: Mapping[str, Ints]  # of each part
    malicious: NDArray[np.bool_]
    visits: Ints
    choices: Mapping[str, tuple[str, ...]]  # of each choice, the row that each device chose
    values: Mapping[tuple[str, str], Numbers]  # (model, metric)


@dataclass(frozen=True, kw_only=True, eq=False)
class Curves:
    """The benign devices' metrics by round, on the part that the summary is of."""

    rounds: Mapping[str, Ints]  # of each model, when it was evaluated
    values: Mapping[tuple[str, str, str], Numbers]  # (model, metric, statistic)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rounds:
    """What each round saw: the devices drawn, how many of them malicious, how many reports dropped."""

    t: Ints
    cohort: Ints
    malicious: Ints
    dropped: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """A finished run."""

    folder: Path
    spec: Mapping[str, Any]
    facts: Mapping[str, Any]  # run.json
    summary: Mapping[str, Any]
    scores: Scores  # the summary's, over benign devices
    curves: Curves
    devices: Devices
    rounds: Rounds
    selections: tuple[Mapping[str, Any], ...]

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def seed(self) -> int:
        return int(self.spec["seed"])

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(model for model, _ in self.scores))

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(metric for _, metric in self.scores))

    @property
    def part(self) -> str:
        return str(self.summary["part"])


def read(places: Sequence[Path]) -> list[Result]:
    """The finished runs in or below these folders, each once."""
    found = {run.path.resolve(): run.path for run in runs(places)[0]}
    return [result(path) for path in sorted(found.values(), key=lambda path: _rank(path, places))]


def _rank(path: Path, places: Sequence[Path]) -> tuple[int, list[list[tuple[int, str]]]]:
    """By the place that a run was named by; below it by name, 10 after 9."""
    place = next(i for i, one in enumerate(places) if path.is_relative_to(one))
    parts = path.relative_to(places[place]).parts  # so that `digits` comes before `digits-a1`
    words = [re.split(r"(\d+)", part) for part in parts]
    return place, [[(int(word) if word.isdecimal() else -1, word) for word in its] for its in words]


def result(folder: Path) -> Result:
    """One run's folder."""
    facts, summary = read_json(folder / RUN), read_json(folder / SUMMARY)
    with _readable(folder / RUN):
        identity, _ = str(facts["identity"]), (str(facts["fingerprint"]), list(facts["malicious"]))
    with _readable(folder / SUMMARY):
        scores, part = _scores(summary["models"]), str(summary["part"])
        rounds, _ = int(summary["rounds"]), float(summary["seconds"])
        mixed = f"{folder} mixes two runs: {RUN} and {SUMMARY} have different identities, so leave it out"
        require(summary["identity"] == identity, mixed)
    with _readable(folder / SELECTIONS):
        selections = read_json(folder / SELECTIONS, "selections")["selections"]
        _ = [(str(its["model"]), list(its["among"])) for its in selections]
    with _readable(folder / SPEC):
        spec = tomllib.loads((folder / SPEC).read_text(encoding="utf-8"))
        _ = str(spec["name"]), int(spec["seed"]), spec["data"], [spec["method"][key] for key in ("local", "aggregate")]
    metrics = tuple(dict.fromkeys(metric for _, metric in scores))
    return Result(
        folder=folder, spec=spec, facts=facts, summary=summary, scores=scores,
        curves=_curves(folder / METRICS, part, metrics), devices=_devices(folder / DEVICES, tuple(scores)),
        rounds=_rounds(folder / ROUNDS, rounds), selections=tuple(selections),
    )  # fmt: skip


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Whatever is wrong with a file, in one sentence."""
    try:
        yield
    except InputError:
        raise
    except KeyError as error:
        raise InputError(f"{path} is damaged: it lacks {error}: leave that run out, or run it again") from error
    except (OSError, ValueError, TypeError, AttributeError, csv.Error) as error:
        raise InputError(f"{path} is damaged ({short(error)}): leave that run out, or run it again") from error


def _scores(models: Mapping[str, Any]) -> Scores:
    names = (*STATISTICS, "devices")
    return {  # JSON has no NaN and writes null
        (model, metric): {name: math.nan if numbers[name] is None else float(numbers[name]) for name in names}
        for model, its in models.items() for metric, numbers in its.items()
    }  # fmt: skip


def _table(path: Path) -> dict[str, list[str]]:
    """A CSV file by columns."""
    with path.open(newline="", encoding="utf-8") as file:
        head, *lines = csv.reader(file)
    require(
        all(len(line) == len(head) for line in lines),
        f"{path} is damaged: a line has more or fewer fields than the first: leave that run out, or run it again",
    )
    columns = zip(*lines, strict=True) if lines else ((),) * len(head)
    return {name: list(column) for name, column in zip(head, columns, strict=True)}


def _devices(path: Path, scored: Sequence[tuple[str, str]]) -> Devices:
    with _readable(path):
        table = _table(path)
        choices = [name.removesuffix(".choice") for name in table if name.endswith(".choice")]
        return Devices(
            ids=tuple(table["device"]), sizes={part: np.array(table[part], dtype=np.int64) for part in PARTS},
            malicious=np.array(table["malicious"], dtype=np.int64).astype(np.bool_),
            visits=np.array(table["visits"], dtype=np.int64),
            choices={name: tuple(table[f"{name}.choice"]) for name in choices},
            values={(m, its): np.array(table[f"{m}.{its}"], dtype=np.float64) for m, its in scored},
        )  # fmt: skip


def _curves(path: Path, part: str, metrics: Sequence[str]) -> Curves:
    with _readable(path):
        table = _table(path)
        mine = (np.array(table["part"]) == part) & (np.array(table["whom"]) == "benign")
        t, whose = np.array(table["round"], dtype=np.int64), np.array(table["model"])
        where = {model: np.flatnonzero(mine & (whose == model)) for model in dict.fromkeys(table["model"])}
        columns = {(m, s): np.array(table[f"{m}_{s}"], dtype=np.float64) for m in metrics for s in STATISTICS}
        return Curves(
            rounds={model: t[rows] for model, rows in where.items()},
            values={(model, *key): its[rows] for model, rows in where.items() for key, its in columns.items()},
        )


def _rounds(path: Path, rounds: int) -> Rounds:
    with _readable(path):
        # Not by the csv module, which refuses a field as long as a very large cohort.
        head, *lines = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
        if head[:4] != ["round", "devices", "malicious", "dropped"] or len(lines) != rounds:
            raise ValueError(f"{len(lines)} rounds of {rounds}")
        t, drawn, malicious, dropped, *_ = zip(*lines, strict=True)
        return Rounds(
            t=np.array(t, dtype=np.int64), cohort=np.array([len(its.split()) for its in drawn], dtype=np.int64),
            malicious=np.array(malicious, dtype=np.int64), dropped=np.array(dropped, dtype=np.int64),
        )  # fmt: skip
