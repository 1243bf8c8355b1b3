"""What a finished run says of its models."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np

from dittofl.errors import require
from dittofl.experiment.files import read_csv, read_json, reading
from dittofl.experiment.folder import METRICS, RUN, SUMMARY
from dittofl.reproduce.trajectory import LAST

HEADLINE = ("weighted_mean", "mean", "std")
AGAIN = "remove that folder, and run it again"
damaged = partial(reading, what="is damaged", advice=AGAIN)


@dataclass(frozen=True, kw_only=True)
class Score:
    """Test accuracy of a model over benign devices after the last round, and the range of its last ten evaluations."""

    weighted_mean: float
    mean: float
    std: float
    low: float
    high: float


class Ended:
    """The files of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.summary = read_json(path / SUMMARY, "models", "rounds", "seconds")
        self.facts = read_json(path / RUN, "identity", "fingerprint", "seed")
        with damaged(path / RUN):
            self.run = str(self.facts["identity"][:12])
        with damaged(path / METRICS):
            self.rows = read_csv(path / METRICS)
            self.rounds = sorted({int(row["round"]) for row in self.rows})

    def score(self, model: str) -> Score:
        """The model's headline."""
        with damaged(self.path / SUMMARY):
            models: Mapping[str, Any] = self.summary["models"]
            require(model in models, f"{self.path} has no model {model!r}: it has {', '.join(models)}")
            accuracy = models[model]["accuracy"]
            its = {key: nan if accuracy[key] is None else float(accuracy[key]) for key in HEADLINE}
        for key in HEADLINE:
            there = self.curve(model, value=f"accuracy_{key}")[-1][1]
            same = np.isclose(there, its[key], rtol=1e-9, equal_nan=True)
            require(same, f"{self.path / METRICS} ends otherwise than {SUMMARY} for {model!r}: {AGAIN}")
        last = self.curve(model)[-LAST:]
        known = [value for _, value in last if isfinite(value)]
        return Score(
            weighted_mean=its["weighted_mean"], mean=its["mean"], std=its["std"],
            low=min(known, default=nan), high=max(known, default=nan),
        )  # fmt: skip

    def curve(
        self, model: str, part: str = "test", whom: str = "benign", value: str = "accuracy_weighted_mean"
    ) -> list[tuple[int, float]]:
        """(round, accuracy) of every evaluation, or of the last alone; a file that lacks some is refused."""
        with damaged(self.path / METRICS):
            found = [
                (int(row["round"]), float(row[value]))
                for row in self.rows if (row["model"], row["part"], row["whom"]) == (model, part, whom)
            ]  # fmt: skip
        at, last = [t for t, _ in found], self.rounds[-1:]
        require(
            at in (self.rounds, last) and last == [self.summary["rounds"]],
            f"{self.path / METRICS} lacks evaluations of {model!r} on {part} data: {AGAIN}",
        )
        return found

    def validation(self, model: str) -> float:
        """Accuracy on benign devices' validation data after the last round; −∞ for a model that diverged."""
        values = self.curve(model, "validation")
        return values[-1][1] if isfinite(values[-1][1]) else -float("inf")


@cache
def ended(path: Path) -> Ended:
    """The run in a folder, read once."""
    return Ended(path)
