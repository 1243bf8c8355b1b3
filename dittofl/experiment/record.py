"""What a run writes down: metrics by round, who was drawn, and at the end one line a device and a summary."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dittofl.evaluate import Evaluation
from dittofl.experiment.files import Log, as_csv, write, write_json
from dittofl.experiment.folder import DEVICES, METRICS, ROUNDS, SELECTIONS, SUMMARY, Folder
from dittofl.federated import Federated
from dittofl.federation import PARTS, Federation, Part
from dittofl.metrics import Summary

STATISTICS = tuple(name for name in Summary.__dataclass_fields__ if name != "devices")


def metric_columns(metrics: Sequence[str]) -> list[str]:
    return ["round", "model", "part", "whom", *(f"{m}_{s}" for m in metrics for s in STATISTICS)]


def metric_rows(scored: Evaluation, metrics: Sequence[str], whom: Sequence[str]) -> Iterator[list[object]]:
    """One row a model, for each part and group of devices."""
    for who in whom:
        for model, part in scored.values:
            there = scored.values[model, part]
            numbers = [scored.summary(model, m, part, who).as_dict() if m in there else {} for m in metrics]
            yield [scored.t, model, part, who, *(its.get(name, "nan") for its in numbers for name in STATISTICS)]


class Record:
    """The logs of a run in progress."""

    def __init__(self, folder: Folder, metrics: Sequence[str], lengths: Mapping[str, int]) -> None:
        self.metrics = metrics
        self.logs = {
            name: Log(folder.path / name, columns, lengths.get(name, 0))
            for name, columns in (
                (METRICS, metric_columns(metrics)), (ROUNDS, ["round", "devices", "malicious", "dropped", "outside"]),
            )
        }  # fmt: skip

    def round(self, run: Federated) -> None:
        """Who was drawn."""
        drawn = run.history[-1]
        places = " ".join(map(str, drawn.cohort))  # the devices' lines in the per-device table, from 0
        self.logs[ROUNDS].add([run.t, places, drawn.malicious, drawn.dropped, int(not drawn.guaranteed)])

    def evaluated(self, scored: Evaluation, *whom: str) -> None:
        """How good every model is."""
        for row in metric_rows(scored, self.metrics, whom):
            self.logs[METRICS].add(row)
        self.flush()

    def flush(self, *, last: bool = False) -> dict[str, int]:
        """Writes what is held; the lengths of the logs."""
        return {name: log.flush(last=last) for name, log in self.logs.items()}


def parts_of(federation: Federation) -> list[Part]:
    """The parts that any device has samples of."""
    return [part for part in PARTS if federation.sizes(part).any()]


def finish(folder: Folder, run: Federated, scored: Evaluation, facts: dict[str, Any]) -> dict[str, Any]:
    """The per-device table, the selections and, last, the summary, whose presence says that the run has ended."""
    write(folder.path / DEVICES, _devices(run, scored).encode())
    write_json(folder.path / SELECTIONS, {"selections": _selections(run, scored)})
    models = [model for model, part in scored.values if part == scored.headline]
    summary = {
        "models": {model: _summary(scored, model, "benign") for model in models},
        "all_devices": {model: _summary(scored, model, "all") for model in models},
        "rounds": run.t,
        "malicious": facts["malicious"],
        "identity": facts["identity"],
        "never_visited": int((run.visits == 0).sum()),
        "dropped_reports": _total(folder, "dropped"),
        "rounds_outside_guarantee": _total(folder, "outside"),
        "part": scored.headline,
        "seconds": facts["seconds"],
    }
    write_json(folder.path / SUMMARY, summary)
    return summary


def _total(folder: Folder, column: str) -> int:
    """Summed over all rounds, also those before an interruption; not by the csv module, which refuses long cohorts."""
    head, *lines = [line.split(",") for line in (folder.path / ROUNDS).read_text(encoding="utf-8").splitlines()]
    return sum(int(line[head.index(column)]) for line in lines)


def _summary(scored: Evaluation, model: str, whom: str) -> dict[str, dict[str, float]]:
    part = scored.headline
    return {metric: scored.summary(model, metric, part, whom).as_dict() for metric in scored.values[model, part]}


def _devices(run: Federated, scored: Evaluation) -> str:
    """One line a device: data, malicious or not, visits, choices, and every metric of every model."""
    models = [(model, its) for (model, of), its in scored.values.items() if of == scored.headline]
    columns: dict[str, Any] = {"device": run.federation.ids}
    columns |= {name: run.federation.sizes(name) for name in PARTS}
    columns |= {"malicious": run.malicious.astype(int), "visits": run.visits}
    columns |= {f"{name}.choice": picks for name, picks in scored.choices.items()}
    columns |= {f"{model}.{metric}": numbers for model, its in models for metric, numbers in its.items()}
    return as_csv([columns, *zip(*(np.asarray(its).tolist() for its in columns.values()), strict=True)])


def _selections(run: Federated, scored: Evaluation) -> list[dict[str, Any]]:
    """Every choice that was made, among what and on which data."""
    return [
        {
            "model": name, "among": run.method.choose[name].among, "few": run.method.choose[name].few,
            "enough": run.method.choose[name].enough, "data": "each device's validation part", "round": scored.t,
            "chosen": {row: int((picks == row).sum()) for row in run.method.choose[name].among},
            "by_device": dict(zip(run.federation.ids, picks.tolist(), strict=True)),
        }
        for name, picks in scored.choices.items()
    ]  # fmt: skip
