"""A cell over its seeds beside the paper's, and whether they differ by more than noise."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path

from dittofl.report.interval import Interval, interval
from dittofl.reproduce.column import Column
from dittofl.reproduce.tables import TABLES
from dittofl.reproduce.tidy import Row, read

WIDER = 0.01  # of the range of the last ten evaluations, on both sides
CLOSE = 0.0155  # a difference that is none: three digits printed, one seed of theirs


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A cell: ours over seeds, the paper's, the difference."""

    table: str
    dataset: str
    method: str
    where: Column
    rows: tuple[Row, ...]

    @property
    def made(self) -> bool:
        return self.rows[0].made

    @property
    def ours(self) -> Interval:
        """Sample-weighted mean accuracy over benign devices, over seeds."""
        return interval([row.weighted_mean for row in self.rows if row.made])

    @property
    def std(self) -> Interval:
        """Standard deviation of accuracy over benign devices, over seeds."""
        return interval([row.std for row in self.rows if row.made])

    @property
    def low(self) -> float:
        """The least of the last ten evaluations of all seeds."""
        return min((row.last10_min for row in self.rows if isfinite(row.last10_min)), default=nan)

    @property
    def high(self) -> float:
        """The greatest of them."""
        return max((row.last10_max for row in self.rows if isfinite(row.last10_max)), default=nan)

    @property
    def paper(self) -> float:
        return self.rows[0].paper_mean

    @property
    def paper_std(self) -> float:
        return self.rows[0].paper_std

    @property
    def difference(self) -> float:
        """Ours minus the paper's."""
        return self.ours.mean - self.paper

    @property
    def chosen(self) -> str:
        """What validation data chose, seed by seed where they differ."""
        return ", ".join(dict.fromkeys(row.selected for row in self.rows if row.selected))

    @property
    def within(self) -> bool:
        """Whether the paper's number is in the range of our last ten evaluations, widened by .01."""
        return self.low - WIDER <= self.paper <= self.high + WIDER

    @property
    def agrees(self) -> bool | None:
        """Whether the paper's number is as close as .0155, or within the range of our last ten evaluations over all
        seeds, widened by .01; None where one of the two is missing."""
        if not self.made or not isfinite(self.paper):
            return None
        return abs(self.difference) <= CLOSE or self.within


def compared(rows: Iterable[Row]) -> list[Compared]:
    """Rows by cell, in their order."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.table, *row.key), []).append(row)
    return [
        Compared(
            table=its[0].table, dataset=its[0].dataset, method=its[0].method, where=its[0].where, rows=tuple(its)
        )
        for its in groups.values()
    ]  # fmt: skip


def of_folder(folder: Path) -> list[Compared]:
    """Every cell that the CSV files of a folder have."""
    paths = (folder / f"{name}.csv" for name in TABLES)
    return compared(row for path in paths if path.is_file() for row in read(path))


def tally(cells: Sequence[Compared]) -> str:
    """How many cells agree, in a sentence."""
    told = [cell.agrees for cell in cells if cell.agrees is not None]
    missing = sum(not cell.made for cell in cells)
    said = (
        f"{sum(told)} of {len(told)} cells agree with the paper" if told else "No cell can be compared with the paper"
    )
    return said + (f"; {missing} are not decidable here." if missing else ".")
