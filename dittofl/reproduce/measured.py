"""The measures that a reproduction is held to, from its cells."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

from dittofl.report.tables import Table
from dittofl.reproduce.compared import CLOSE, Compared
from dittofl.reproduce.decided import verdicts
from dittofl.reproduce.predicates import BASELINES

SPREAD = 0.02  # between standard deviations
FULL = ("table7", "table9")


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Some cells of a data set's full table, what each is asked, and how many must meet it."""

    says: str
    of: Callable[[Compared], bool]
    met: Callable[[Compared], bool]
    least: float


def _own(cell: Compared) -> bool:
    return cell.method == "local" or cell.method.startswith("Ditto")


def _close(cell: Compared) -> bool:
    return abs(cell.difference) <= CLOSE


def _spread(cell: Compared) -> bool:
    return abs(cell.std.mean - cell.paper_std) <= SPREAD + 0.005  # two digits printed


MEASURES = (
    Measure(
        says="local and Ditto, clean, A1, A2: accuracy within .0155",
        of=lambda cell: _own(cell) and cell.where.attack != "A3", met=_close, least=0.9,
    ),
    Measure(
        says="the same cells: standard deviation within .02, to the paper's two digits",
        of=lambda cell: _own(cell) and cell.where.attack != "A3", met=_spread, least=0.9,
    ),
    Measure(
        says="A3, local and λ = .1: accuracy within .0155",
        of=lambda cell: cell.where.attack == "A3" and cell.method in ("local", "Ditto, lambda=0.1"), met=_close,
        least=1.0,
    ),
    Measure(
        says="global, fair, defences: the paper's number in the range of our last ten evaluations, widened by .01",
        of=lambda cell: cell.method in ("fair", *BASELINES), met=lambda cell: cell.within, least=0.75,
    ),
)  # fmt: skip


def measures(cells: Sequence[Compared]) -> Table:
    """A line for each measure and data set."""
    rows = []
    for name in ("Fashion MNIST", "Vehicle"):
        its = [cell for cell in cells if cell.dataset == name and cell.table in FULL and isfinite(cell.paper)]
        for one in MEASURES:
            asked = [cell for cell in its if one.of(cell)]
            made = [cell for cell in asked if cell.made]
            met = sum(one.met(cell) for cell in made)
            said = f"{met} of {len(made)}" + ("" if len(made) == len(asked) else f" made, of {len(asked)} in the paper")
            verdict = "–" if not made else "met" if met >= one.least * len(made) else "not met"
            rows.append((name, one.says, said, f"{100 * one.least:.0f} %", verdict))
        here = [mine for _, data, mine, _ in verdicts(cells) if data == name]
        decided = sum(mine.holds is not None for mine in here)
        verdict = "met" if decided == len(here) else "not met"
        rows.append((name, "claims decided", f"{decided} of {len(here)}", "100 %", verdict))
    return Table(title="Measures", columns=("data set", "what", "cells", "wanted", ""), rows=tuple(rows))
