"""Cells as tidy CSV: one line a cell and seed, ours beside the paper's."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from math import isnan, nan
from pathlib import Path
from typing import Any

from dittofl.experiment.files import as_csv, read_csv, reading, write
from dittofl.reproduce.column import Column
from dittofl.reproduce.ended import ended
from dittofl.reproduce.paper import printed
from dittofl.reproduce.plan import Cell, done
from dittofl.reproduce.trajectory import Trajectory

RUNS = "runs.csv"
foreign = partial(reading, what="is no table of a reproduction", advice="restore it, or remove it")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A cell for a seed; without a run of ours only the paper's number stands there."""

    table: str
    dataset: str
    method: str
    attack: str
    ratio: float
    seed: int | None = None
    weighted_mean: float = nan  # the headline: every test sample of benign devices counts once
    mean: float = nan
    std: float = nan
    paper_mean: float = nan
    paper_std: float = nan
    last10_min: float = nan  # of the weighted mean over the last ten evaluations
    last10_max: float = nan
    rounds: int | None = None
    scale: float = 1.0
    selected: str = ""  # what validation data chose
    run: str = ""  # the identity of the run, as in runs.csv
    remark: str = ""

    @property
    def where(self) -> Column:
        return Column(self.attack, self.ratio)

    @property
    def key(self) -> tuple[Any, ...]:
        return self.dataset, self.method, self.attack, self.ratio

    @property
    def made(self) -> bool:
        return self.seed is not None


COLUMNS = tuple(field.name for field in fields(Row))


def row(cell: Cell, out: Path) -> Row:
    """A cell as its run says, or with the paper's number alone."""
    bench, its = cell.section.bench, printed(cell.table, cell.section.bench.name, cell.line.label, cell.where)
    known: dict[str, Any] = {
        "table": cell.table, "dataset": bench.name, "method": cell.line.label, "attack": cell.where.attack,
        "ratio": cell.where.ratio, "paper_mean": nan if its is None else its.mean,
        "paper_std": nan if its is None or its.std is None else its.std,
        "remark": "; ".join(filter(None, (_ours(cell), bench.remarks))),
    }  # fmt: skip
    one = cell.chosen(out)
    run = None if one is None else cell.run(one, held=cell.line.held)
    if one is None or run is None or not done(run, out):
        return Row(**known, scale=cell.scale)
    found = ended(run.path(out))
    score = found.score(one.model)
    return Row(
        **known, seed=cell.seed, weighted_mean=score.weighted_mean, mean=score.mean, std=score.std,
        last10_min=score.low, last10_max=score.high, rounds=run.rounds, scale=cell.scale,
        selected=one.name if cell.trials() else "", run=found.run,
    )  # fmt: skip


def _ours(cell: Cell) -> str:
    """Whether the paper has such a cell; a figure of ours has the paper's numbers of another table."""
    if not cell.section.ours:
        return ""
    return "ours: not in the paper" if cell.table.startswith("table") else "the figure's data set is our choice"


def text(rows: Iterable[Row]) -> str:
    """As CSV; what is not known is empty, what is not a number says nan."""
    lines = ([_told(key, value, one.made) for key, value in asdict(one).items()] for one in rows)
    return as_csv([COLUMNS, *lines])


OURS = ("weighted_mean", "mean", "std", "last10_min", "last10_max")


def _told(key: str, value: Any, made: bool) -> str:
    if value is None or (isinstance(value, float) and isnan(value) and not (made and key == "weighted_mean")):
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def read(path: Path) -> list[Row]:
    """The rows of a file; a damaged one is refused."""
    with foreign(path):
        rows = [Row(**{key: _parsed(key, line[key]) for key in COLUMNS}) for line in read_csv(path, COLUMNS)]
        for row in rows:
            _sound(row)
        if len({(one.table, *one.key, one.seed) for one in rows}) < len(rows):
            raise ValueError("it has a cell twice for the same seed")
        return rows


def _sound(row: Row) -> None:
    """Refuses what no reproduction writes: another number of the paper's, an accuracy that is none."""
    its = printed(row.table, row.dataset, row.method, row.where)
    theirs, there = _both(*((nan, nan) if its is None else (its.mean, its.std))), _both(row.paper_mean, row.paper_std)
    where = f"{row.method} at {row.where.name}"
    if theirs != there:
        raise ValueError(f"the paper has {theirs} for {where}, not {there}")
    if not all(isnan(value) or 0 <= value <= 1 for key, value in asdict(row).items() if key in OURS):
        raise ValueError(f"{where} has an accuracy outside 0 to 1")


def _both(mean: float, std: float | None) -> str:
    return " ± ".join(f"{value:.6g}" for value in (mean, std) if value is not None and not isnan(value)) or "no number"


def _parsed(key: str, value: str) -> Any:
    if key in ("seed", "rounds"):
        return int(value) if value else None
    if key in ("ratio", "scale", "paper_mean", "paper_std", *OURS):
        return float(value) if value else nan
    return value


def merged(old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """The new rows, and those of the old that they do not replace: cells made elsewhere, or for other seeds.

    Where any seed of a cell is made, the row that has the paper's number alone goes.
    """
    kept: dict[tuple[Any, ...], Row] = {(*one.key, one.seed): one for one in old if one.made}
    kept |= {(*one.key, one.seed): one for one in new if one.made}
    made = {key[:-1] for key in kept}
    bare = {one.key: one for one in (*old, *new) if not one.made and one.key not in made}
    order = {key: i for i, key in enumerate(dict.fromkeys(one.key for one in (*new, *old)))}
    every = [*kept.values(), *bare.values()]
    return sorted(every, key=lambda one: (order[one.key], -1 if one.seed is None else one.seed))


def save(path: Path, new: Sequence[Row]) -> list[Row]:
    """Puts rows into a file beside those that it has."""
    rows = merged(read(path) if path.is_file() else [], new)
    write(path, text(rows).encode())
    return rows


PROVENANCE = (
    "run", "name", "identity", "fingerprint", "seed", "rounds", "seconds", "device", "precision", "threads", "torch",
    "python", "dittofl", "dittofl_git",
)  # fmt: skip


def recorded(path: Path) -> list[dict[str, str]]:
    """The lines of runs.csv; a damaged one is refused."""
    with foreign(path):
        found = read_csv(path, PROVENANCE)
        if not all(float(line["seconds"]) >= 0 for line in found):
            raise ValueError("a run has no time")
        return found


def record(out: Path, runs: Iterable[Trajectory]) -> None:
    """runs.csv: where every number is from, a line for each run, beside what the file has."""
    path, lines = out / RUNS, dict[str, Mapping[str, Any]]()
    if path.is_file():
        lines = {line["run"]: line for line in recorded(path)}
    for run in runs:
        its = ended(run.path(out))
        known = its.facts | its.summary | {"run": its.run, "name": run.name}
        lines[known["run"]] = {key: known.get(key) for key in PROVENANCE}
    ordered = sorted(lines.values(), key=lambda line: str(line["name"]))
    write(path, as_csv([PROVENANCE, *([line[key] for key in PROVENANCE] for line in ordered)]).encode())
