"""Why cells deviate: a file of explanations, each of some cells, that must cover every deviation and nothing else."""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dittofl.errors import require, short
from dittofl.experiment.files import reading
from dittofl.reproduce.compared import Compared

WHO = ("ours", "the paper", "the data", "chance")


class Because(Protocol):
    """Whose it is that something is not as in the paper, and why."""

    @property
    def who(self) -> str: ...
    @property
    def why(self) -> str: ...


Reason = TypeVar("Reason", bound=Because)


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
    return entries(path, lambda file: file["explained"], Explained, "correct it")


def entries(
    path: Path, of: Callable[[dict[str, Any]], Iterable[Mapping[str, Any]]], kind: Callable[..., Reason], advice: str
) -> tuple[Reason, ...]:
    """Some of the entries of a file of explanations."""
    with reading(path, "is no file of explanations", advice):
        file = tomllib.loads(path.read_text(encoding="utf-8"))
        found = tuple(kind(**{key: _typed(key, value) for key, value in one.items()}) for one in of(file))
    for one in found:
        require(one.who in WHO, f"{path}: who must be one of {', '.join(WHO)}, got {one.who!r}: correct it")
    return found


def sentence(one: Because, covered: Iterable[str]) -> str:
    """An explanation, and what it is of."""
    return f"- **{one.who[0].upper()}{one.who[1:]}**: {one.why} ({'; '.join(covered)})"


def _typed(key: str, value: Any) -> Any:
    """Words, in lists where several may stand; a word alone would be taken for its letters."""
    several = key in ("tables", "methods", "columns", "claims")
    words = value if several else [value]
    if not (isinstance(words, list) and words and all(isinstance(word, str) and word for word in words)):
        raise ValueError(f"{key} must be {'a list of words' if several else 'a word'}, got {short(value)}")
    return tuple(words) if several else value


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
