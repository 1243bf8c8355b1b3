"""Why claims do not hold here that the paper makes: explanations that must cover every one of them and nothing else.

A claim that the paper's own numbers do not meet either needs none.
"""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dittofl.errors import require
from dittofl.experiment.files import reading
from dittofl.reproduce.compared import Compared
from dittofl.reproduce.decided import verdicts
from dittofl.reproduce.explained import WHO, typed

KEYS = ("claims", "dataset", "who", "why")


@dataclass(frozen=True, kw_only=True)
class Unmet:
    """Whose it is that claims do not hold on a data set, and why."""

    claims: tuple[str, ...]
    dataset: str
    who: str
    why: str

    def covers(self, claim: str, dataset: str) -> bool:
        return claim in self.claims and dataset == self.dataset


def read(path: Path) -> tuple[Unmet, ...]:
    """The entries [[unmet]] of a file of explanations; a damaged one is refused."""
    with reading(path, "is no file of explanations", f"expected entries [[unmet]] of {', '.join(KEYS)}: correct it"):
        found = tomllib.loads(path.read_text(encoding="utf-8")).get("unmet", [])
        entries = tuple(Unmet(**{key: typed(key, value) for key, value in one.items()}) for one in found)
    for one in entries:
        require(one.who in WHO, f"{path}: who must be one of {', '.join(WHO)}, got {one.who!r}: correct it")
    return entries


def failing(cells: Sequence[Compared]) -> list[tuple[str, str]]:
    """Claims that do not hold by our cells, on data sets whose numbers in the paper do not deny them."""
    return [
        (claim.name, name)
        for claim, name, mine, theirs in verdicts(cells)
        if mine.holds is False and theirs.holds is not False
    ]


def check(cells: Sequence[Compared], entries: Sequence[Unmet]) -> list[str]:
    """What is wrong: a claim that fails without an explanation, or an explanation of none that does."""
    off = failing(cells)
    bare = [one for one in off if not any(entry.covers(*one) for entry in entries)]
    stale = [entry for entry in entries if not any(entry.covers(*one) for one in off)]
    return [
        *(f"the claim {name!r} does not hold on {dataset} and is not explained" for name, dataset in bare),
        *(f"{entry.claims[0]!r} on {entry.dataset} explains no claim that fails" for entry in stale),
    ]


def told(cells: Sequence[Compared], entries: Sequence[Unmet]) -> Iterator[str]:
    """Each explanation with the claims that it covers."""
    for entry in entries:
        its = [name for name, dataset in failing(cells) if entry.covers(name, dataset)]
        yield f"- **{entry.who[0].upper()}{entry.who[1:]}**: {entry.why} ({entry.dataset}: {'; '.join(its)})"
