"""`dittofl reproduce`: the missing runs of some tables and figures, and what they then say."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dittofl.errors import InputError, require
from dittofl.experiment.files import read_csv, told, write
from dittofl.experiment.names import nearest
from dittofl.reproduce import drawings, plan, special, tidy
from dittofl.reproduce.bench import missing
from dittofl.reproduce.board import Board
from dittofl.reproduce.compared import Compared, compared, of_folder, tally
from dittofl.reproduce.making import How, Made
from dittofl.reproduce.page import of_cells, of_records
from dittofl.reproduce.plan import Cell
from dittofl.reproduce.render import NOTES, grids, heading, latex, listed
from dittofl.reproduce.special import SPECIALS, Special
from dittofl.reproduce.tables import TABLES, Table
from dittofl.reproduce.trajectory import Trajectory
from dittofl.reproduce.work import work
from dittofl.theory import figures


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is to be reproduced."""

    tables: tuple[Table, ...]
    specials: tuple[Special, ...] = ()
    seeds: tuple[int, ...] = (0,)
    only: tuple[str, ...] = ()
    scale: float = 1.0

    def cells(self, *, everything: bool = False) -> list[Cell]:
        """The cells that are meant; with `everything` also those that `only` leaves out."""
        only = () if everything else self.only
        return [cell for table in self.tables for cell in plan.cells(table, self.seeds, self.scale, only)]

    def runs(self) -> list[Trajectory]:
        """The runs of what is not made of cells, where their data are here and `only` does not leave them out."""
        return [run for run in dict.fromkeys(self._meant()) if missing(run.bench) is None]

    def _meant(self) -> Iterator[Trajectory]:
        for run in (run for its in self.specials for run in its.runs(self.seeds, self.scale)):
            if not self.only or any(plan.names(word, run.bench) for word in self.only):
                yield run

    def lacks(self) -> list[str]:
        """A sentence for each data set or global method that is meant and cannot be run here."""
        told = [*plan.lacks(self.cells()), *(missing(run.bench) for run in self._meant())]
        return [sentence for sentence in dict.fromkeys(told) if sentence is not None]

    def check(self) -> None:
        """Refuses a word of `only` that means nothing."""
        every = self.cells(everything=True)
        data = [run.bench for its in self.specials for run in its.runs((0,), self.scale)]
        known = {
            "rows": [cell.line.label for cell in every], "columns": [cell.where.name for cell in every],
            "data sets": [one.name for one in (*(cell.section.bench for cell in every), *data)],
        }  # fmt: skip
        told = "; the ".join(f"{what} are {', '.join(dict.fromkeys(its))}" for what, its in known.items() if its)
        for word in self.only:
            met = any(plan.means(word, cell) for cell in every) or any(plan.names(word, one) for one in data)
            require(met, f"--only names no cell, got {word!r}: {'the ' + told if told else 'leave it out'}")


def asked(names: Sequence[str], **more: Any) -> Asked:
    """What these names mean."""
    known = {**TABLES, **SPECIALS}
    for name in names:
        if name not in known:
            raise InputError(f"there is no table or figure {name!r}: {nearest(name, known)}")
    unique = list(dict.fromkeys(names))
    what = Asked(
        tables=tuple(TABLES[name] for name in unique if name in TABLES),
        specials=tuple(SPECIALS[name] for name in unique if name in SPECIALS), **more,
    )  # fmt: skip
    what.check()
    return what


def place(out: Path, scale: float, *, new: bool = True) -> Path:
    """Where a reproduction writes; a scaled one keeps apart. Without `new` it must be there."""
    there = out if scale == 1 else out / f"scale-{scale:g}"
    require(
        new or there.is_dir(),
        f"--as-is writes what the runs in --out say, and there is no folder {there}: name the one that has them",
    )
    with told(there):
        there.mkdir(parents=True, exist_ok=True)
    return there


def make(what: Asked, how: How, board: Board) -> Made:
    """Every run that is missing and possible here."""
    wanted, more = list(plan.runnable(what.cells())), what.runs()

    def following(taken: set[str]) -> Trajectory | None:
        known = [*plan.todo(wanted, how.out), *(run for run in more if not plan.done(run, how.out))]
        left = [run for run in known if run.name not in taken]
        board.plan(board.ended + len(known), sum(run.rounds for run in known))
        return left[0] if left else None

    return work(following, how, board)


def written(what: Asked, out: Path) -> list[str]:
    """Every table in every form, from the runs that have ended and what the CSV has already; a sentence of each."""
    cells = what.cells(everything=True)
    found = {
        table.name: compared(
            tidy.save(out / f"{table.name}.csv", [tidy.row(one, out) for one in cells if one.table == table.name])
        )
        for table in what.tables
    }
    every = of_folder(out) if what.tables else []
    said = [_table(table, found[table.name], every, out) for table in what.tables]
    said += [_special(its, what, out) for its in what.specials]
    runs = [run for cell in cells for run in plan.made_of(cell, out)]
    runs += [run for its in what.specials for run, _ in special.made(its, out, what.seeds, what.scale)]
    tidy.record(out, runs)
    return said


def _table(table: Table, cells: Sequence[Compared], every: Sequence[Compared], out: Path) -> str:
    path = partial(_path, out, table.name)
    write(path("md"), "\n\n".join([*(one.markdown() for one in grids(table, cells)), *NOTES]).encode())
    write(path("tex"), latex(table, cells).encode())
    write(path("html"), of_cells(table, cells, every, drawings.of_cells(table.name, cells)).encode())
    return f"{heading(table.name)}: {tally(cells)} {path('csv')}, .md, .tex, .html"


def _special(its: Special, what: Asked, out: Path) -> str:
    path = partial(_path, out, its.name)
    records = _kept(path("csv"), list(its.records(special.made(its, out, what.seeds, what.scale))))
    table = listed(its, records)
    write(path("csv"), special.text(records).encode())
    write(path("md"), table.markdown().encode())
    with tidy.foreign(path("csv")):
        charts = drawings.of_records(its.name, records)
    draw = {"figure2": figures.figure2, "figure3": figures.figure3}.get(its.name)
    if draw is not None:
        draw(path("png"))
        charts = [drawings.pictured(its.title, path("png").read_bytes())]
    write(path("html"), of_records(its, table, charts).encode())
    return f"{heading(its.name)}: {len(records)} records. {path('csv')}, .md, .html" + (", .png" if draw else "")


def _path(out: Path, name: str, ending: str) -> Path:
    return out / f"{name}.{ending}"


def _kept(path: Path, new: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """New records, and those that the file has of data sets and seeds that they lack: made elsewhere."""
    if not path.is_file() or (new and "dataset" not in new[0]):
        return new
    with tidy.foreign(path):
        old = read_csv(path)
        if old and new and tuple(old[0]) != tuple(new[0]):
            raise ValueError(f"its columns are {', '.join(old[0])}")
        fresh, known = _grouped(new), _grouped(old)
        order = list(dict.fromkeys(dataset for dataset, _ in (*fresh, *known)))
        known |= {key: its for key, its in fresh.items() if key not in known or not special.lacking(its[0])}
        keys = sorted(known, key=lambda key: (order.index(key[0]), key[1]))
        return [one for key in keys for one in known[key]]


def _grouped(records: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], list[Mapping[str, Any]]]:
    """By data set and seed."""
    groups: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for one in records:
        groups.setdefault((one["dataset"], int(one.get("seed", 0))), []).append(one)
    return groups
