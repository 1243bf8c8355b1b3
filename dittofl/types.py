"""What passes between devices, server and engine, and the protocols of the pieces.

Device code is written for ONE device, on vectors; server code for the cohort, on a matrix. The engine is the map
between them. A solver holds no training loop: it says where it wants losses and gradients (`asks`, `points`) and what
to do with them (`step`), so that an engine may evaluate all solvers of all devices in one batched call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from dittofl.layout import Layout

Ints = NDArray[np.int64]  # devices, samples, or how many of them
Numbers = NDArray[np.float64]

Row = Tensor  # [P], or [0] for a solver that keeps nothing; a few numbers beside a model may follow it
Vector = Tensor  # [P]
State = Any  # a pytree (tuples, named tuples, dicts) of tensors
Counter = int | Tensor  # a Python number on the loop engine, a 0-d tensor inside a mapped one


class On(Enum):
    """The samples of an evaluation."""

    NEXT = "next minibatch"
    SAME = "the last minibatch again"
    TRAIN = "the whole train part"
    VALIDATION = "the whole validation part"


Criterion = Callable[[Tensor, Tensor, Tensor], Tensor]  # (outputs, y, outputs of w^t on the same x) → losses [B]


class Ask(NamedTuple):
    """One evaluation a solver wants: at its points, on these samples, of F_k or of another objective (no penalty)."""

    on: On = On.NEXT
    of: Criterion | None = None
    grad: bool = True


class Down(NamedTuple):
    """What came down to the device for this visit."""

    w: Vector  # w^t
    extra: Tensor | None  # whatever the server sends beside w (SCAFFOLD's c, the centres of IFCA)
    t: Counter  # the round
    n: Counter  # how many train samples the device holds
    layout: Layout  # which part of a row is which parameter


class Sent(NamedTuple):
    """What leaves the device."""

    delta: Vector  # Δ_k = w_k − w^t
    extra: Tensor | None = None


@dataclass(frozen=True, kw_only=True)
class Epochs:
    """Local work counted in passes over the train part instead of minibatch steps."""

    count: int = 1


Steps = int | Epochs


@runtime_checkable
class Solver(Protocol):
    """One model's path through a visit, on one device. A personal solver is exactly this: it has no way to send."""

    @property
    def steps(self) -> Steps:
        """Local steps of one visit."""

    def init(self, w0: Vector) -> Row:
        """What the device keeps before its first visit: `w0`, or `w0[:0]` for nothing."""

    def asks(self, steps: int) -> tuple[Ask, ...]:
        """Every evaluation of a visit in order; fewer steps ask for a prefix of it."""

    def start(self, row: Row, down: Down) -> State:
        """Where the visit begins."""

    def points(self, s: State, down: Down, i: int) -> tuple[Vector, ...]:
        """Where evaluation i is wanted."""

    def step(self, s: State, down: Down, i: int, f: Tensor, g: Any) -> State:
        """The paper's update line, from losses f [points] and gradients g [points, P] of evaluation i.

        g is None where `asks` wants no gradient; a solver that always asks for one may declare a Tensor.
        """

    def keep(self, s: State, row: Row, down: Down) -> Row:
        """What stays on the device."""

    def model(self, row: Row, down: Down) -> Vector:
        """What the device serves."""


@runtime_checkable
class NeedsServer(Protocol):
    """A solver that works with one kind of server only."""

    @property
    def server(self) -> type:
        """That kind."""


@runtime_checkable
class GlobalSolver(Solver, Protocol):
    """A solver of G: what it sends is all that the server ever sees."""

    def send(self, s: State, row: Row, down: Down) -> Sent:
        """Line 7 of Algorithm 1 for one device."""


class Report(NamedTuple):
    """All that leaves the cohort: one row a device."""

    delta: Tensor  # [m, P]
    size: Tensor  # [m] train samples
    loss: Tensor | None = None  # [m] F_k(w^t) on the whole train part, where the aggregator asks for it
    extra: Tensor | None = None  # [m, ...]
    place: Tensor | None = None  # [m] which devices: their places 0 … K−1 in the federation, as the server drew them

    def rows(self, which: Tensor) -> "Report":
        """The reports of some devices."""
        return Report(*(None if field is None else field[which] for field in self))  # type: ignore[arg-type]


@runtime_checkable
class Aggregator(Protocol):
    """Line 7, AGGREGATE: the cohort's matrix to one update."""

    @property
    def losses(self) -> bool:
        """Whether it needs F_k(w^t) of every report."""

    def init(self, w0: Vector) -> State:
        """What the server remembers for it between rounds."""

    def __call__(self, report: Report, state: State) -> tuple[Vector, State]:
        """δ and the next state."""


@runtime_checkable
class Server(Protocol):
    """What the server does with δ."""

    def init(self, w0: Vector, K: int) -> State:
        """Its state before round 0."""

    def down(self, state: State) -> Tensor | None:
        """What it sends to the cohort beside w."""

    def step(self, w: Vector, delta: Vector, report: Report, state: State) -> tuple[Vector, State]:
        """w^{t+1} and the next state."""


@runtime_checkable
class NeedsSolver(Protocol):
    """A server that reads what only certain solvers send beside Δ: those whose `server` it is."""

    @property
    def solver(self) -> str:
        """The name of one, for who gave another."""


@runtime_checkable
class Receiving(Protocol):
    """A server that reads every report in its own way before they are aggregated."""

    def receive(self, report: Report) -> Report:
        """The reports as the aggregator sees them."""


@runtime_checkable
class Grouping(Protocol):
    """A server of several models: every group's reports are aggregated apart, and its δ is [groups, P]."""

    @property
    def groups(self) -> int:
        """How many."""

    def group(self, report: Report) -> Tensor:
        """The group of each report, [m]."""
