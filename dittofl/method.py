"""What is run: a global solver, an aggregator, a server, and any number of personal solvers beside them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dittofl.aggregate import Stateless, mean
from dittofl.errors import an_instance, is_whole, require, short
from dittofl.server import Add
from dittofl.solver.choose import Choose
from dittofl.types import Aggregator, GlobalSolver, NeedsServer, NeedsSolver, Report, Server, Solver, Vector

GLOBAL = "global"  # the name of w in results; also how a solver that keeps nothing is asked for its model


@dataclass(frozen=True, kw_only=True)
class Method:
    """Algorithm 1: `local` solves G's subproblem (line 5), `personal` solve h_k (line 6), `aggregate` is line 7.

    w never depends on a personal solver, so any number runs beside one global trajectory. `final` solvers visit every
    device once, from v_k = w^t, when `Federated.finish` is called: `Local` is then plain fine-tuning, `Ditto` the
    paper's fine-tuning solver. `choose` names selections among personal and final rows, made by each device on its
    own validation data.

    >>> from dittofl.solver import SGD, Ditto
    >>> sorted(Method(local=SGD(lr=0.1), personal={"ditto": Ditto(lam=1.0, lr=0.1)}).personal)
    ['ditto']
    """

    local: GlobalSolver
    personal: Mapping[str, Solver] = field(default_factory=dict)
    final: Mapping[str, Solver] = field(default_factory=dict)
    choose: Mapping[str, Choose] = field(default_factory=dict)
    aggregate: Aggregator | Callable[[Report], Vector] = mean
    server: Server = field(default_factory=Add)
    batch: int | None = 32  # None: all of a device's train samples

    def __post_init__(self) -> None:
        require(
            an_instance(self.local, GlobalSolver),
            f"local= must be a solver that sends, such as SGD(lr=.1), got {short(self.local)}: not for personal=",
        )
        for field_name, given in (("personal", self.personal), ("final", self.final), ("choose", self.choose)):
            require(isinstance(given, Mapping), f"{field_name} must be a dict by name, got {short(given)}")
        for field_name, solvers in (("personal", self.personal), ("final", self.final)):
            for name, solver in solvers.items():
                self._check_solver(field_name, name, solver)
        for name, choice in self.choose.items():
            self._check_choice(name, choice)
        require(
            self.batch is None or is_whole(self.batch, 1),
            f"batch must be a whole number ≥ 1, or None for all samples, got batch={short(self.batch)}",
        )
        self._check_server_side()
        self._check_pairing()

    def _check_solver(self, field_name: str, name: Any, solver: Any) -> None:
        require(
            an_instance(solver, Solver), f"{field_name}[{name!r}] must be a solver such as Ditto, got {short(solver)}"
        )
        taken = (GLOBAL, *self.personal) if field_name == "final" else (GLOBAL,)
        require(isinstance(name, str) and name and name not in taken, f"a model cannot be called {name!r}: rename it")

    def _check_choice(self, name: Any, choice: Any) -> None:
        require(an_instance(choice, Choose), f"choose[{name!r}] must be a Choose(among=…, few=…), got {short(choice)}")
        require(
            isinstance(name, str) and name and name not in (GLOBAL, *self.personal, *self.final),
            f"choose[{name!r}] is no name, or that of another model: rename it",
        )
        rows = {**self.personal, **self.final}
        unknown = [row for row in choice.among if row not in rows]
        require(
            not unknown,
            f"choose[{name!r}] is among {unknown}, which personal= does not train: got {short(sorted(rows))}",
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

    def _check_pairing(self) -> None:
        """Solvers and servers that only work together."""
        for solver in (self.local, *self.personal.values(), *self.final.values()):
            if isinstance(solver, NeedsServer):
                name, wanted = type(solver).__name__, solver.server
                require(
                    isinstance(self.server, wanted),
                    f"{name} works with the server {wanted.__name__} alone, got {short(self.server)}: give Method "
                    f"server={wanted.__name__}(…)",
                )
        if isinstance(self.server, NeedsSolver):
            require(
                isinstance(self.local, NeedsServer) and isinstance(self.server, self.local.server),
                f"the server {type(self.server).__name__} reads what {self.server.solver} sends: give Method "
                f"local={self.server.solver}(…), got {short(self.local)}",
            )
