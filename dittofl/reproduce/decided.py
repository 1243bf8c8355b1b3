"""Which claims hold, ours beside what the paper's own numbers say, and the averages over data sets."""

from collections.abc import Callable, Sequence
from statistics import mean

from dittofl.report.tables import Table
from dittofl.reproduce.claims import CLAIMS, FULL, Claim
from dittofl.reproduce.compared import Compared
from dittofl.reproduce.grid import OURS, Grid, MissingError, of_cells, of_paper
from dittofl.reproduce.predicates import Verdict, against_fair, gain

Decided = tuple[Claim, str, Verdict, Verdict]  # a claim on a data set: ours, and by the paper's own numbers


def verdicts(cells: Sequence[Compared]) -> list[Decided]:
    """Every claim on every data set: ours, and the paper's own numbers."""
    mine, theirs = of_cells(cells), of_paper()
    return [(claim, name, claim.on(mine, name), claim.on(theirs, name)) for claim in CLAIMS for name in claim.datasets]


def claims(cells: Sequence[Compared]) -> Table:
    """Claims as a table."""
    rows = [
        (f"{claim.name} ({claim.where})", name, mine.said, theirs.said) for claim, name, mine, theirs in verdicts(cells)
    ]
    return Table(
        title="Claims of the paper, decided by our cells and by the paper's own",
        columns=("claim", "data set", "ours", "the paper's own numbers"), rows=tuple(rows),
    )  # fmt: skip


def averages(cells: Sequence[Compared]) -> list[str]:
    """The two figures that the paper averages over its five data sets, from its tables and from our cells."""
    said = []
    for grid in (of_paper(), of_cells(cells)):
        gains = _known(grid, lambda g, name: gain(g, name)[1])
        variances = _known(grid, lambda g, name: against_fair(g, name)[0])
        points = _known(grid, lambda g, name: against_fair(g, name)[1])
        whose = "The paper's tables" if grid.name != OURS else "Our cells"
        said.append(
            f"{whose}: above the strongest baseline {_points(gains)}; against TERM on clean data variance "
            f"{_percent(variances)}, accuracy {_points(points)}."
        )
    return said


def _known(grid: Grid, of: Callable[[Grid, str], float]) -> dict[str, float]:
    found = {}
    for name in FULL:
        try:
            found[name] = of(grid, name)
        except MissingError:
            continue
    return found


def _points(values: dict[str, float]) -> str:
    return _told(values, lambda value: f"{100 * value:+.1f} points")


def _percent(values: dict[str, float]) -> str:
    return _told(values, lambda value: f"{100 * value:+.0f} %")


def _told(values: dict[str, float], tell: Callable[[float], str]) -> str:
    if not values:
        return "not decidable here"
    whole = "all five data sets" if len(values) == len(FULL) else ", ".join(values)
    return f"{tell(mean(values.values()))} (mean over {whole})"
