"""What every engine is bound to, and which minibatch each evaluation of a visit sees."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dittofl.batches import Batch, Stream
from dittofl.engine.rows import Rows
from dittofl.errors import require
from dittofl.federation import Federation, Part, place
from dittofl.inputs import Inputs, each
from dittofl.objective import Objective, prepared
from dittofl.seeds import Purpose
from dittofl.types import Down, Epochs, GlobalSolver, Ints, On, Sent, Solver

Key = tuple[int, bytes]  # the identity of a minibatch within a visit

PART_OF: dict[On, Part] = {On.TRAIN: "train", On.VALIDATION: "validation"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """Objective and data on the computing device; y is what devices train on, poisoned where they are malicious."""

    objective: Objective
    federation: Federation
    x: Inputs
    y: Tensor
    stream: Stream

    @property
    def device(self) -> torch.device:
        return self.objective.w0.device

    def inputs(self, index: Tensor) -> Inputs:
        """Samples in the module's dtype."""
        return each(self.x, lambda part: prepared(part.index_select(0, index), self.objective.w0.dtype))

    def put(self, array: NDArray[Any]) -> Tensor:
        """An array on the computing device, without waiting for what that is doing."""
        return torch.from_numpy(array).to(self.device, non_blocking=True)

    def span(self, k: int, part: Part) -> Ints:
        """Where device k's part lies."""
        first = place(part)
        return np.arange(*self.federation.bounds[k, first : first + 2])

    def places(self, ids: Ints, part: Part) -> Ints:
        """Where the parts of several devices lie, one device after the other."""
        return ranges(self.federation.bounds[ids, place(part)], self.federation.sizes(part)[ids])

    def augmented(self, x: Inputs, key: np.uint64) -> Inputs:
        """The task's transform of one device's minibatch, with a generator of that minibatch's own."""
        transform = self.objective.task.transform
        if transform is None:
            return x
        return transform(
            each(x, torch.clone), torch.Generator(self.device).manual_seed(int(key ^ np.uint64(Purpose.AUGMENT)) >> 1)
        )


def ranges(first: Ints, size: Ints) -> Ints:
    """a, a + 1, …, a + n − 1 for each first a and size n, one after the other.

    >>> ranges(np.array([7, 0]), np.array([2, 3])).tolist()
    [7, 8, 0, 1, 2]
    """
    return np.repeat(first - (np.cumsum(size) - size), size) + np.arange(int(size.sum()))


class Visit(NamedTuple):
    """One visit to a cohort: which solvers run on whose rows, and what came down to them."""

    ids: Ints
    visits: Ints  # [m] how often each was visited before
    solvers: Mapping[str, Solver]
    rows: Mapping[str, Rows]
    lead: str | None  # the solver that sends, if any; its minibatches are the round's
    down: Down
    once: bool = False  # long, and made once: not worth compiling as a whole, or holding

    def sender(self) -> GlobalSolver:
        """The lead; `Method` has made sure that it can send."""
        return cast(GlobalSolver, self.solvers[cast(str, self.lead)])


class Engine(Protocol):
    """The map from what one device does to a cohort."""

    setting: Setting

    def on(self, setting: Setting) -> "Engine":
        """The same engine on other data."""

    def visit(self, visit: Visit) -> Sent | None:
        """Runs the solvers, keeps their rows, and returns what the lead sends, [m, …]."""

    def models(self, solver: Solver, rows: Rows, ids: Ints, down: Down) -> Tensor:
        """What devices serve, [m, P]."""

    def outputs(self, models: Tensor, ids: Ints, part: Part) -> Tensor:
        """Outputs on all samples of the devices' parts, one after the other; models is w [P] or one row each [m, P]."""


class Plan:
    """The minibatches of a visit. A solver's q-th draw is the round's q-th batch while the lead still draws (q < R_k),

        j = c_k R_k + q,    then    j = c_k (Q_k − R_k) + q − R_k

    of a stream of its own, c_k counting the device's visits and Q_k the solver's draws in one: no draw of the lead
    depends on which personal solvers run beside it.
    """

    def __init__(self, setting: Setting, visit: Visit) -> None:
        self.stream, self.ids, self.visits = setting.stream, visit.ids, visit.visits
        self.steps = {name: self._steps(solver) for name, solver in visit.solvers.items()}
        self.asks = {name: solver.asks(int(self.steps[name].max())) for name, solver in visit.solvers.items()}
        self.drawn = {name: list(accumulate(ask.on is On.NEXT for ask in asks)) for name, asks in self.asks.items()}
        self.draws = {name: self._draws(solver, self.steps[name]) for name, solver in visit.solvers.items()}
        self.lead = np.zeros(len(self.ids), dtype=np.int64) if visit.lead is None else self.draws[visit.lead]
        self._shared, self._names = int(self.lead.min()), {name: its.tobytes() for name, its in self.draws.items()}
        self.lengths = {name: self._lengths(solver, self.steps[name]) for name, solver in visit.solvers.items()}

    def _steps(self, solver: Solver) -> Ints:
        if isinstance(solver.steps, Epochs):
            return solver.steps.count * self.stream.per_epoch[self.ids]
        return np.full(len(self.ids), solver.steps, dtype=np.int64)

    def _lengths(self, solver: Solver, steps: Ints) -> Ints:
        return _per_unique(steps, lambda count: len(solver.asks(count)))

    def _draws(self, solver: Solver, steps: Ints) -> Ints:
        return _per_unique(steps, lambda count: sum(ask.on is On.NEXT for ask in solver.asks(count)))

    def feed(self, name: str, i: int) -> Key:
        """The identity of the minibatch that evaluation i of a solver sees: equal keys, equal samples."""
        q = self.drawn[name][i] - 1
        require(q >= 0, f"{name!r} asks for the same minibatch before its first")
        return q, b"" if q < self._shared else self._names[name]

    def batch(self, feed: Key, chosen: Ints) -> Batch:
        """The minibatches of a feed for some devices of the cohort."""
        q, draws = feed
        ids, visits, lead = self.ids[chosen], self.visits[chosen], self.lead[chosen]
        of_round = q < lead
        round_batch = self.stream.take(Purpose.ROUND, ids, visits * lead + np.minimum(q, np.maximum(lead - 1, 0)))
        if not draws:
            return round_batch
        beyond = np.maximum(np.frombuffer(draws, dtype=np.int64)[chosen] - lead, 0)
        further = self.stream.take(Purpose.FURTHER, ids, visits * beyond + np.maximum(q - lead, 0))
        places = np.where(of_round[:, None], round_batch.places, further.places)
        return Batch(places, further.width, np.where(of_round, round_batch.key, further.key))


def _per_unique(values: Ints, count: Callable[[int], int]) -> Ints:
    table = {value: count(value) for value in np.unique(values).tolist()}
    return np.array([table[value] for value in values.tolist()], dtype=np.int64)
