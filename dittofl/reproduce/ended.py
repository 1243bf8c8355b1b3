"""What a finished run says of its models."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import isfinite, nan
from pathlib import Path
from typing import Any

from dittofl.errors import require
from dittofl.experiment.files import read_json
from dittofl.experiment.folder import METRICS, RUN, SUMMARY
from dittofl.reproduce.trajectory import LAST


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
        with (path / METRICS).open(encoding="utf-8", newline="") as file:
            self.rows = list(csv.DictReader(file))

    def score(self, model: str) -> Score:
        """The model's headline."""
        models: Mapping[str, Any] = self.summary["models"]
        require(model in models, f"{self.path} has no model {model!r}: it has {', '.join(models)}")
        its = {key: nan if value is None else float(value) for key, value in models[model]["accuracy"].items()}
        last = self.curve(model)[-LAST:]
        known = [value for _, value in last if isfinite(value)]
        return Score(
            weighted_mean=its["weighted_mean"], mean=its["mean"], std=its["std"],
            low=min(known, default=nan), high=max(known, default=nan),
        )  # fmt: skip

    def curve(
        self, model: str, part: str = "test", whom: str = "benign", value: str = "accuracy_weighted_mean"
    ) -> list[tuple[int, float]]:
        """(round, accuracy) of every evaluation."""
        return [
            (int(row["round"]), float(row[value]))
            for row in self.rows if (row["model"], row["part"], row["whom"]) == (model, part, whom)
        ]  # fmt: skip

    def validation(self, model: str) -> float:
        """Accuracy on benign devices' validation data after the last round; −∞ for a model that diverged."""
        values = self.curve(model, "validation")
        require(values, f"{self.path} has no validation accuracy of {model!r}: run it again")
        return values[-1][1] if isfinite(values[-1][1]) else -float("inf")


@cache
def ended(path: Path) -> Ended:
    """The run in a folder, read once."""
    return Ended(path)
