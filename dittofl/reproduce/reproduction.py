"""`dittofl reproduce`: the missing runs of some tables, and what they then say."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dittofl.errors import InputError, require
from dittofl.experiment.files import write
from dittofl.experiment.names import nearest
from dittofl.reproduce import plan, tidy
from dittofl.reproduce.board import Board
from dittofl.reproduce.compared import Compared, compared
from dittofl.reproduce.page import page
from dittofl.reproduce.plan import Cell
from dittofl.reproduce.render import NOTES, grids, latex
from dittofl.reproduce.tables import TABLES, Table
from dittofl.reproduce.trajectory import Trajectory
from dittofl.reproduce.work import How, Made, work


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is to be reproduced."""

    tables: tuple[Table, ...]
    seeds: tuple[int, ...] = (0,)
    only: tuple[str, ...] = ()
    scale: float = 1.0

    def cells(self, *, everything: bool = False) -> list[Cell]:
        """The cells that are meant; with `everything` also those that `only` leaves out."""
        only = () if everything else self.only
        found = [cell for table in self.tables for cell in plan.cells(table, self.seeds, self.scale, only)]
        rows = dict.fromkeys(row.label for table in self.tables for part in table.sections for row in part.lines)
        require(found, f"--only names no cell, got {', '.join(map(repr, only))}: the rows are {', '.join(rows)}")
        return found


def tables(names: Sequence[str]) -> tuple[Table, ...]:
    """The tables of those names."""
    for name in names:
        if name not in TABLES:
            raise InputError(f"there is no table or figure {name!r}: {nearest(name, TABLES)}")
    require(names, "name a table or figure: table7, say")
    return tuple(TABLES[name] for name in dict.fromkeys(names))


def place(out: Path, scale: float) -> Path:
    """Where a reproduction writes; a scaled one keeps apart."""
    return out if scale == 1 else out / f"scale-{scale:g}"


def make(asked: Asked, how: How, board: Board) -> Made:
    """Every run that is missing and possible here."""
    wanted = list(plan.runnable(asked.cells()))

    def following(taken: set[str]) -> Trajectory | None:
        left = [run for run in plan.todo(wanted, how.out) if run.name not in taken]
        known = plan.todo(wanted, how.out)
        board.plan(board.ended + len(known), sum(run.rounds for run in known))
        return left[0] if left else None

    return work(following, how, board)


def written(asked: Asked, out: Path) -> dict[str, list[Compared]]:
    """Every table as CSV, Markdown, LaTeX and a page, from the runs that have ended and what the CSV has already."""
    cells = asked.cells(everything=True)
    found = {}
    for table in asked.tables:
        rows = tidy.save(out / f"{table.name}.csv", [tidy.row(one, out) for one in cells if one.table == table.name])
        found[table.name] = compared(rows)
    tidy.record(out, cells)
    for table in asked.tables:
        its = found[table.name]
        told = [*(one.markdown() for one in grids(table, its)), *NOTES]
        write(out / f"{table.name}.md", "\n\n".join(told).encode())
        write(out / f"{table.name}.tex", latex(table, its).encode())
        write(out / f"{table.name}.html", page(table, its).encode())
    return found
