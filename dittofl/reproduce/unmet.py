"""Why claims do not hold here that the paper makes: explanations that must cover every one of them and nothing else.

A claim that the paper's own numbers do not meet either needs none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dittofl.reproduce.compared import Compared
from dittofl.reproduce.decided import verdicts
from dittofl.reproduce.explained import entries, sentence

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
    advice = f"expected entries [[unmet]] of {', '.join(KEYS)}: correct it"
    return entries(path, lambda file: file.get("unmet", []), Unmet, advice)


def failing(cells: Sequence[Compared]) -> list[tuple[str, str]]:
    """Claims that do not hold by our cells, on data sets whose numbers in the paper do not deny them."""
    return [
        (claim.name, name)
        for claim, name, mine, theirs in verdicts(cells)
        if mine.holds is False and theirs.holds is not False
    ]


def check(cells: Sequence[Compared], reasons: Sequence[Unmet]) -> list[str]:
    """What is wrong: a claim that fails without an explanation, or an explanation of none that does."""
    off = failing(cells)
    bare = [one for one in off if not any(entry.covers(*one) for entry in reasons)]
    stale = [entry for entry in reasons if not any(entry.covers(*one) for one in off)]
    return [
        *(f"the claim {name!r} does not hold on {dataset} and is not explained" for name, dataset in bare),
        *(f"{entry.claims[0]!r} on {entry.dataset} explains no claim that fails" for entry in stale),
    ]


def told(cells: Sequence[Compared], reasons: Sequence[Unmet]) -> Iterator[str]:
    """Each explanation with the claims that it covers."""
    off = failing(cells)
    for entry in reasons:
        its = "; ".join(name for name, dataset in off if entry.covers(name, dataset))
        yield sentence(entry, [f"{entry.dataset}: {its}"])
