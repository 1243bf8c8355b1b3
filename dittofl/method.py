"""What is run: a global solver, an aggregator, a server, and any number of personal solvers beside them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dittofl.aggregate import Stateless, mean
from dittofl.errors import an_instance, is_whole, require, short
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
            an_instance(self.local, GlobalSolver),
            f"local= must be a solver that sends, such as SGD(lr=.1), got {short(self.local)}: not for personal=",
        )
        for field_name, given in (("personal", self.personal), ("choose", self.choose)):
            require(isinstance(given, Mapping), f"{field_name} must be a dict by name, got {short(given)}")
        for name, solver in self.personal.items():
            require(
                an_instance(solver, Solver), f"personal[{name!r}] must be a solver such as Ditto, got {short(solver)}"
            )
            require(isinstance(name, str) and name and name != GLOBAL, f"a model cannot be called {name!r}: rename it")
        for name, choice in self.choose.items():
            self._check_choice(name, choice)
        require(
            self.batch is None or is_whole(self.batch, 1),
            f"batch must be a whole number ≥ 1, or None for all samples, got batch={short(self.batch)}",
        )
        self._check_server_side()

    def _check_choice(self, name: Any, choice: Any) -> None:
        require(an_instance(choice, Choose), f"choose[{name!r}] must be a Choose(among=…, few=…), got {short(choice)}")
        require(
            isinstance(name, str) and name and name not in (GLOBAL, *self.personal),
            f"choose[{name!r}] is no name, or that of another model: rename it",
        )
        unknown = [row for row in choice.among if row not in self.personal]
        require(
            not unknown,
            f"choose[{name!r}] is among {unknown}, which personal= does not train: got {short(sorted(self.personal))}",
        )

    def _check_server_side(self) -> None:
        rule = self.aggregate
        require(
            callable(rule) and not isinstance(rule, type),
            f"aggregate must be an aggregator or a function of a report, got {short(rule)}",
        )
        if not isinstance(rule, Aggregator):
            object.__setattr__(self, "aggregate", Stateless(rule))
        require(an_instance(self.server, Server), f"server must be a server such as Add(), got {short(self.server)}")
