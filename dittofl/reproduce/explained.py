"""Why cells deviate: a file of explanations, each of some cells, that must cover every deviation and nothing else."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from dittofl.errors import InputError, require, short
from dittofl.reproduce.compared import Compared

WHO = ("ours", "the paper", "the data", "chance")


@dataclass(frozen=True, kw_only=True)
class Explained:
    """Whose deviation it is, and why; `methods` and `columns` may hold * and ?."""

    tables: tuple[str, ...]
    dataset: str
    methods: tuple[str, ...]
    columns: tuple[str, ...]
    who: str
    why: str

    def covers(self, cell: Compared) -> bool:
        """Whether it speaks of a cell."""
        return (
            cell.table in self.tables
            and cell.dataset == self.dataset
            and any(fnmatchcase(cell.method, one) for one in self.methods)
            and any(fnmatchcase(cell.where.name, one) for one in self.columns)
        )


def read(path: Path) -> tuple[Explained, ...]:
    """The explanations of a file; a damaged one is refused."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))["explained"]
        entries = tuple(Explained(**{key: _tuple(value) for key, value in one.items()}) for one in found)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is no file of explanations ({short(error)}): correct it") from error
    for one in entries:
        require(one.who in WHO, f"{path}: who must be one of {', '.join(WHO)}, got {one.who!r}: correct it")
    return entries


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def deviating(cells: Iterable[Compared]) -> list[Compared]:
    """The cells beyond noise; figures show cells of the tables again."""
    return [cell for cell in cells if cell.agrees is False and cell.table.startswith("table")]


def check(cells: Sequence[Compared], entries: Sequence[Explained]) -> list[str]:
    """What is wrong: a deviation without an explanation, or an explanation of no deviation."""
    off = deviating(cells)
    bare = [cell for cell in off if not any(one.covers(cell) for one in entries)]
    stale = [one for one in entries if not any(one.covers(cell) for cell in off)]
    return [
        *(f"{c.table}, {c.dataset}: {c.method} at {c.where.name} deviates and is not explained" for c in bare),
        *(f"{one.tables[0]}, {one.dataset}: {', '.join(one.methods)} explains no deviation" for one in stale),
    ]
