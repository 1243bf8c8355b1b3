"""What is run: a global solver, an aggregator, a server, and any number of personal solvers beside them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dittofl.aggregate import Stateless, mean
from dittofl.errors import require
from dittofl.server import Add
from dittofl.solver.choose import Choose
from dittofl.types import Aggregator, GlobalSolver, Report, Server, Solver, Vector

GLOBAL = "global"  # the name of w in results; also how a solver that keeps nothing is asked for its model


@dataclass(frozen=True, kw_only=True)
class Method:
    """Algorithm 1: `local` solves G's subproblem (line 5), `personal` solve h_k (line 6), `aggregate` is line 7.

    w never depends on a personal solver, so any number runs beside one global trajectory. `choose` names selections
    among personal rows, made by each device on its own validation data.

    >>> from dittofl.solver import SGD, Ditto
    >>> sorted(Method(local=SGD(lr=0.1), personal={"ditto": Ditto(lam=1.0, lr=0.1)}).personal)
    ['ditto']
    """

    local: GlobalSolver
    personal: Mapping[str, Solver] = field(default_factory=dict)
    choose: Mapping[str, Choose] = field(default_factory=dict)
    aggregate: Aggregator | Callable[[Report], Vector] = mean
    server: Server = field(default_factory=Add)
    batch: int | None = 32  # None: all of a device's train samples

    def __post_init__(self) -> None:
        require(
            isinstance(self.local, GlobalSolver) and not isinstance(self.local, type),
            f"local= must be a solver that sends, such as SGD(lr=.1), got {self.local!r}: others go into personal=",
        )
        for name, solver in self.personal.items():
            require(
                isinstance(solver, Solver) and not isinstance(solver, type),
                f"personal[{name!r}] must be a solver such as Ditto, got {solver!r}",
            )
            require(
                isinstance(name, str) and name and name != GLOBAL,
                f"a personal model cannot be called {name!r}: rename it",
            )
        for name, choice in self.choose.items():
            require(isinstance(choice, Choose), f"choose[{name!r}] must be a Choose(among=…, few=…), got {choice!r}")
            require(
                name not in (GLOBAL, *self.personal), f"choose[{name!r}] takes the name of another model: rename it"
            )
            unknown = [row for row in choice.among if row not in self.personal]
            require(
                not unknown,
                f"choose[{name!r}] is among {unknown}, which personal= does not train: it has {sorted(self.personal)}",
            )
        require(
            self.batch is None
            or (isinstance(self.batch, int) and not isinstance(self.batch, bool) and self.batch >= 1),
            f"batch must be a whole number ≥ 1, or None for all samples, got batch={self.batch!r}",
        )
        require(
            callable(self.aggregate),
            f"aggregate must be an aggregator or a function of a report, got {self.aggregate!r}",
        )
        if not isinstance(self.aggregate, Aggregator):
            object.__setattr__(self, "aggregate", Stateless(self.aggregate))
        require(isinstance(self.server, Server), f"server must be a server such as Add(), got {self.server!r}")
