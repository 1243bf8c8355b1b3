"""All cells by data set, method and column, ours or the paper's: what claims are decided on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite, nan

from dittofl.reproduce.bench import BENCHES, Bench
from dittofl.reproduce.column import Column
from dittofl.reproduce.compared import Compared
from dittofl.reproduce.paper import paper

# Rows that mean the same as one of another table: (table, row) → row. `Ditto` alone is the rule in Table 1 and in our
# figures, the best λ in Tables 2, 3 and 6.
OURS = "ours"
DIGITS = 5  # a mean of CSV files' six is no better, and what is equal must not differ by it
BEST, RULE = "best lambda", "dynamic lambda"
SAME = {
    ("table1", "Ditto"): RULE, ("table2", "Ditto"): BEST, ("table3", "Ditto"): BEST, ("table6", "Ditto"): BEST,
    ("figure4", "Ditto"): RULE, ("figure6", "Ditto"): RULE, ("figure5", "TERM, t=1"): "fair",
}  # fmt: skip


class MissingError(Exception):
    """A cell that a claim needs is not there, or has no number."""


@dataclass(frozen=True)
class Grid:
    """Accuracy and its standard deviation by data set, method and column."""

    values: Mapping[tuple[str, str, Column], tuple[float, float]]
    name: str = OURS

    def mean(self, dataset: str, method: str, where: Column) -> float:
        return self._at(dataset, method, where)[0]

    def std(self, dataset: str, method: str, where: Column) -> float:
        found = self._at(dataset, method, where)[1]
        if not isfinite(found):
            raise MissingError(f"the spread of {method} at {where.name} is missing")
        return found

    def _at(self, dataset: str, method: str, where: Column) -> tuple[float, float]:
        key = dataset, method, where
        found = self.values.get(key, (nan, nan))
        if not isfinite(found[0]):
            raise MissingError(f"{method} at {where.name} {'diverged' if key in self.values else 'is missing'}")
        return found

    def methods(self, dataset: str) -> tuple[str, ...]:
        """The rows there are of a data set."""
        return tuple(dict.fromkeys(method for data, method, _ in self.values if data == dataset))


def of_paper() -> Grid:
    """The paper's own numbers."""
    found = {
        (dataset, SAME.get((table, method), method), where): (its.mean, nan if its.std is None else its.std)
        for (table, dataset, method, where), its in reversed(list(paper().items()))
    }
    return Grid(found, "the paper")


def of_cells(cells: Iterable[Compared]) -> Grid:
    """Ours, each over its seeds."""
    found = {
        (cell.dataset, SAME.get((cell.table, cell.method), cell.method), cell.where): (
            round(cell.ours.mean, DIGITS), round(cell.std.mean, DIGITS),
        )
        for cell in sorted(cells, key=lambda its: len(its.rows)) if cell.made  # the most seeds stand
    }  # fmt: skip
    return Grid(found)


def bench(dataset: str) -> Bench:
    """The data set of that name."""
    return next(its for its in BENCHES if its.name == dataset)
