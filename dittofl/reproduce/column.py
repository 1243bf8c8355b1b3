"""The columns of the paper's tables: an attack and the share of malicious devices."""

from dataclasses import dataclass
from fractions import Fraction

from dittofl.errors import InputError

CLEAN = "clean"


@dataclass(frozen=True, order=True)
class Column:
    """An attack, or none, and the share of devices that are malicious.

    >>> Column("A1", 0.2).name, Column().name, Column("A1", 0.2).word
    ('A1 20%', 'clean', 'A1-20')
    """

    attack: str = CLEAN
    ratio: float = 0.0

    @property
    def name(self) -> str:
        """As tables head it."""
        return self.attack if self.attack == CLEAN else f"{self.attack} {100 * self.ratio:.0f}%"

    @property
    def word(self) -> str:
        """As folders are called."""
        return self.name.replace(" ", "-").removesuffix("%")

    def malicious(self, K: int) -> int:
        """⌊ratio K⌋, of the decimal that the ratio was written as.

        >>> Column("A1", 0.29).malicious(100)
        29
        """
        return int(Fraction(str(self.ratio)) * K)


def column(name: str) -> Column:
    """The column of that name.

    >>> column("A3 10%"), column("clean")
    (Column(attack='A3', ratio=0.1), Column(attack='clean', ratio=0.0))
    """
    if name == CLEAN:
        return Column()
    attack, _, percent = name.partition(" ")
    try:
        return Column(attack, int(percent.removesuffix("%")) / 100)
    except ValueError as error:
        raise InputError(f"a column is 'clean' or such as 'A1 20%', got {name!r}: write it so") from error


def columns(*ratios: int) -> tuple[Column, ...]:
    """Clean, A1 and A2 at 20, 50 and 80 %, A3 at the given per cents."""
    shares = {"A1": (20, 50, 80), "A2": (20, 50, 80), "A3": ratios}
    return (Column(), *(Column(attack, its / 100) for attack, all_ in shares.items() for its in all_))
