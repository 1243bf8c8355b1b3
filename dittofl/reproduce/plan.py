"""Which runs a table needs, and what is chosen where it has candidates."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dittofl.errors import InputError
from dittofl.reproduce.bench import BENCHES, Bench, missing
from dittofl.reproduce.column import Column, columns
from dittofl.reproduce.ended import ended
from dittofl.reproduce.family import family
from dittofl.reproduce.line import Candidate, Line, Section
from dittofl.reproduce.tables import Table
from dittofl.reproduce.trajectory import Machine, Trajectory


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A row and a column of a table, for one seed."""

    table: str
    section: Section
    line: Line
    where: Column
    seed: int
    scale: float = 1.0

    def run(self, candidate: Candidate, *, held: bool) -> Trajectory:
        """The run that a candidate's number is of."""
        return Trajectory(
            bench=self.section.bench, family=family(candidate.family), where=self.where, held=held, seed=self.seed,
            scale=self.scale,
        )  # fmt: skip

    def trials(self) -> list[tuple[Candidate, Trajectory]]:
        """What is tried on validation data before the cell's own run; nothing where there is no choice."""
        where = self.line.chosen_at or self.where
        there = replace(self, where=where)
        return [(one, there.run(one, held=True)) for one in self.line.among] if len(self.line.among) > 1 else []

    def chosen(self, out: Path) -> Candidate | None:
        """The candidate of highest accuracy on benign devices' validation data, the earliest of equals; None as long
        as a trial is to be run."""
        trials = self.trials()
        if not trials:
            return self.line.among[0]
        if not all(done(run, out) for _, run in trials):
            return None
        scores = [ended(run.path(out)).validation(one.model) for one, run in trials]
        return trials[scores.index(max(scores))][0]

    def needs(self, out: Path) -> list[Trajectory]:
        """The runs that are missing and can be told by now: the trials, then the cell's own."""
        ahead = [run for _, run in self.trials() if not done(run, out)]
        own = [self.run(one, held=self.line.held) for one in self.line.among]
        if len({run.name for run in own}) > 1:  # which of them it is, the trials tell
            one = self.chosen(out)
            own = [] if one is None else [self.run(one, held=self.line.held)]
        return [*(run for run in own[:1] if not done(run, out)), *ahead]


def done(run: Trajectory, out: Path) -> bool:
    """Whether a run has ended; once it has, it stays so."""
    key = (run.name, run.scale, out)
    if key not in _DONE and run.ended(out):
        _DONE.add(key)
    return key in _DONE


_DONE: set[tuple[str, float, Path]] = set()


def cells(table: Table, seeds: Sequence[int], scale: float, only: Sequence[str] = ()) -> list[Cell]:
    """Every cell, or those that `only` names: ROW, COLUMN or ROW,COLUMN."""
    found = [
        Cell(table=table.name, section=section, line=line, where=where, seed=seed, scale=scale)
        for section in table.sections for line in section.lines for where in section.columns for seed in seeds
    ]  # fmt: skip
    return [cell for cell in found if not only or any(means(word, cell) for word in only)]


def names(word: str, data: Bench) -> bool:
    """Whether `--only` means all that there is of a data set."""
    return word.strip().lower() == data.name.lower()


def means(word: str, cell: Cell) -> bool:
    """[DATA SET,][ROW,][COLUMN], each optional: `Vehicle,Ditto,A1 20%`, `Ditto, lambda=1`, `clean`; a row's beginning
    is enough."""
    parts, data, where = [part.strip().lower() for part in word.split(",")], None, None
    if parts[0] in {bench.name.lower() for bench in BENCHES}:
        data = parts.pop(0)
    if parts and parts[-1] in {its.name.lower() for its in (*columns(10, 20, 50), *columns(10, 15, 20))}:
        where = parts.pop()
    mine = data in (None, cell.section.bench.name.lower()) and where in (None, cell.where.name.lower())
    return bool(word.strip()) and mine and cell.line.matches(", ".join(parts))


def lacks(wanted: Iterable[Cell]) -> Iterator[str]:
    """A sentence for each data set or global method that cannot be run here."""
    told = set[str]()
    for cell in wanted:
        for one in cell.line.among:
            sentence = lacking(cell, one)
            if sentence is not None and sentence not in told:
                told.add(sentence)
                yield sentence


def runnable(wanted: Iterable[Cell]) -> Iterator[Cell]:
    """The cells whose data and methods are here."""
    return (cell for cell in wanted if all(lacking(cell, one) is None for one in cell.line.among))


def lacking(cell: Cell, one: Candidate) -> str | None:
    """Why a candidate's run cannot be made here; None where it can."""
    if (sentence := missing(cell.section.bench)) is not None:
        return sentence
    try:
        cell.run(one, held=cell.line.held).spec(Machine())
    except InputError as error:
        return f"{one.family} is not here: {error}"
    return None


def made_of(cell: Cell, out: Path) -> list[Trajectory]:
    """The runs behind a cell that have ended: its own, and those that chose."""
    one = cell.chosen(out)
    own = [] if one is None else [cell.run(one, held=cell.line.held)]
    return [run for run in (*own, *(its for _, its in cell.trials())) if done(run, out)]


def todo(wanted: Iterable[Cell], out: Path) -> list[Trajectory]:
    """Every missing run that can be told by now, each once, in the order of the table."""
    return list({run.name: run for cell in wanted for run in cell.needs(out)}.values())
