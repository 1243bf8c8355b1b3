"""The paper's numbers: test accuracy over benign devices, as printed but where `printed` says what was."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from dittofl.reproduce.column import Column


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A cell of the paper."""

    mean: float
    std: float | None
    printed: str  # where the paper contradicts itself and this is not what stands there
    note: str


Key = tuple[str, str, str, Column]  # table, data set, method, column


@cache
def paper() -> Mapping[Key, Printed]:
    """All cells of Tables 1 to 3 and 5 to 12."""
    text = resources.files("dittofl.reproduce").joinpath("paper.csv").read_text(encoding="utf-8")
    return {
        (row["table"], row["dataset"], row["method"], Column(row["attack"], float(row["ratio"]))): Printed(
            mean=float(row["mean"]), std=float(row["std"]) if row["std"] else None, printed=row["printed"],
            note=row["note"],
        )
        for row in csv.DictReader(text.splitlines())
    }  # fmt: skip


# Where figures have their numbers from, as the paper prints none beside them.
FULL = {"Vehicle": "table7", "FEMNIST": "table8", "Fashion MNIST": "table9", "FEMNIST (skewed)": "table10",
        "CelebA": "table11", "StackOverflow": "table12"}  # fmt: skip
ALIKE = {"Ditto": ("table5", "dynamic lambda"), "TERM, t=1": (None, "fair")}


def printed(table: str, dataset: str, method: str, where: Column) -> Printed | None:
    """The paper's cell; a figure's is that of the full tables."""
    if table.startswith("table"):
        return paper().get((table, dataset, method, where))
    source, name = ALIKE.get(method, (None, method))
    return paper().get((source or FULL.get(dataset, ""), dataset, name, where))
