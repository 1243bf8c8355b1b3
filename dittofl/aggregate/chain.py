"""What defences share that leave some rows, or shorter ones, to another aggregator; to be named in a class body."""

from typing import Protocol, runtime_checkable

from dittofl.aggregate import ranks
from dittofl.aggregate.cohort import Cohort, passed
from dittofl.errors import an_instance, require, short
from dittofl.types import Aggregator, State, Vector


@runtime_checkable
class Limited(Protocol):
    """An aggregator that needs some number of reports, and more of them for what is proven of it."""

    @property
    def least(self) -> int:
        """A run with fewer in its cohort is refused. Where some are dropped fewer arrive, and it does its best."""

    def guaranteed(self, m: int) -> bool:
        """Whether what is proven holds for m reports."""


class Passing(Protocol):
    """A rule that leaves something to another."""

    @property
    def then(self) -> Aggregator: ...


class Defence(Passing, Protocol):
    """A cohort to a part of it, which `then` gets."""

    def reduce(self, cohort: Cohort) -> Cohort: ...


class Dropping(Defence, ranks.Assuming, Protocol):
    """A defence that goes by f, and has something proven of it for some m."""

    def proven(self, m: int) -> bool: ...
    def left(self, m: int) -> int:
        """How many of m rows are left."""


def begin(self: Passing, w0: Vector) -> State:
    """`init`: it has no memory of its own."""
    return self.then.init(w0)


def combine(self: Defence, cohort: Cohort, state: State) -> tuple[Vector, State]:
    return passed(self.then, self.reduce(cohort), state)


def check(self: Passing) -> None:
    """`__post_init__` of those without f."""
    require(
        an_instance(self.then, Aggregator),
        f"{type(self).__name__} needs then= to be an aggregator such as Mean(), got {short(self.then)}: "
        "Stateless(rule) makes one of a function",
    )


def check_f(self: Dropping) -> None:
    """`__post_init__` of those with f."""
    ranks.check(self)
    check(self)


def least(rule: Aggregator) -> int:
    """Of how many reports an aggregator can be made at least."""
    return rule.least if isinstance(rule, Limited) else 1


def more_than_f(self: Dropping) -> int:
    """`least`: f, and what the next one needs."""
    return (self.f or 0) + least(self.then)


def vouched(rule: Aggregator, m: int) -> bool:
    """Whether an aggregator's guarantee holds for m reports, or it needs none."""
    return rule.guaranteed(m) if isinstance(rule, Limited) else True


def guaranteed(self: Dropping, m: int) -> bool:
    """Its own and that of what is behind it."""
    return self.proven(m) and vouched(self.then, self.left(m))
