"""Fair objectives as weights."""

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from dittofl.aggregate.cohort import Cohort, Rule
from dittofl.errors import an_instance, require, short
from dittofl.types import State, Vector


class Weights(NamedTuple):
    """δ = Σ_k p_k c_k Δ_k: how much a device counts, and how long its row is taken."""

    p: Tensor  # [m], ≥ 0, of sum 1
    c: Tensor  # [m]


@runtime_checkable
class Weighting(Rule, Protocol):
    """A rule δ = Σ_k p_k c_k Δ_k: a fair objective. A defence may put another average in place of this one."""

    def weigh(self, cohort: Cohort, state: State) -> tuple[Weights, State]:
        """The weights and the next state."""


def average(self: Weighting, cohort: Cohort, state: State) -> tuple[Vector, State]:
    """`combine` of every weighting."""
    weights, state = self.weigh(cohort, state)
    return cohort.scaled(weights.c).sum(weights.p), state


def nothing(self: object, w0: Vector) -> tuple[()]:
    """`init` of a rule without memory."""
    return ()


def ones(cohort: Cohort) -> Tensor:
    """c = 1: rows as they are."""
    return cohort.c.new_ones(len(cohort))


def equal(cohort: Cohort) -> Tensor:
    """p = 1/m."""
    return cohort.c.new_full((len(cohort),), 1 / len(cohort))


def shares(amounts: Tensor) -> Tensor:
    """p in proportion to amounts ≥ 0; all alike where forged ones leave nobody any."""
    amounts = amounts.clamp(min=0)
    return amounts / amounts.sum() if bool(amounts.any()) else torch.full_like(amounts, 1 / len(amounts))


class By(Protocol):
    """A rule that puts another average in place of the weighted mean."""

    @property
    def by(self) -> Weighting: ...


def begin_by(self: By, w0: Vector) -> State:
    """`init` of one without memory of its own."""
    return self.by.init(w0)


def check_by(self: By) -> None:
    """`__post_init__`."""
    require(
        an_instance(self.by, Weighting),
        f"{type(self).__name__} needs by= to be a fair objective such as Tilt(t=1), got {short(self.by)}",
    )
