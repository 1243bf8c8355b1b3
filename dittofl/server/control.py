"""The server of SCAFFOLD."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from dittofl.aggregate import mean
from dittofl.errors import an_instance, require, short
from dittofl.server.add import Add
from dittofl.types import Aggregator, Grouping, NeedsSolver, Report, Server, State, Vector

ADD = Add()


class Controlled(NamedTuple):
    c: Tensor
    K: Tensor
    rule: State  # of `aggregate`
    then: State


@dataclass(frozen=True, kw_only=True)
class Control:
    """c ← c + (m/K) A(Δc_1, …, Δc_m),  A the mean;  w^{t+1} by the server `then`, from δ as ever.

    Karimireddy et al. 2020, Algorithm 1: c is the mean of all devices' c_k, however few of them were visited, and goes
    down beside w. Goes with the solver `Scaffold`. The method's aggregator sees Δw alone, so that Δc has a rule A of
    its own, `aggregate`: under the mean one forged Δc moves c anywhere. Reports that are malicious or dropped leave c
    another mean for good.

    >>> server, w = Control(), torch.zeros(1)
    >>> report = Report(torch.ones(2, 1), torch.ones(2), extra=torch.ones(2, 1))
    >>> server.down(server.step(w, w, report, server.init(w, 8))[1])
    tensor([0.2500])
    """

    then: Server = ADD
    aggregate: Aggregator = mean
    solver: ClassVar[str] = "Scaffold"

    def __post_init__(self) -> None:
        plain = an_instance(self.then, Server) and not isinstance(self.then, Grouping | NeedsSolver)
        require(plain, f"Control needs then= to be a server that goes with SGD, such as Add(), got {short(self.then)}")
        fits = an_instance(self.aggregate, Aggregator) and not self.aggregate.losses
        require(fits, f"Control needs aggregate= a rule without losses, such as Mean(), got {short(self.aggregate)}")

    def init(self, w0: Vector, K: int) -> Controlled:
        return Controlled(torch.zeros_like(w0), w0.new_tensor(K), self.aggregate.init(w0), self.then.init(w0, K))

    def down(self, state: Controlled) -> Tensor:
        return state.c

    def step(self, w: Vector, delta: Vector, report: Report, state: Controlled) -> tuple[Vector, Controlled]:
        require(report.extra is not None, "Control needs Δc beside every Δ: use the solver Scaffold")
        change, rule = self.aggregate(report._replace(delta=report.extra, extra=None), state.rule)  # type: ignore[arg-type]
        w, then = self.then.step(w, delta, report, state.then)
        return w, Controlled(state.c + len(report.delta) / state.K * change, state.K, rule, then)
