"""All solvers of a chunk of devices in lockstep: turn i answers the i-th evaluation of each, in as few calls as can be.

A pure function of tensors, written with the solvers' own one-device code under `vmap`, so that it compiles as a whole.
"""

from collections.abc import Callable, Mapping
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.func import grad_and_value, vmap
from torch.utils import _pytree as pytree

from dittofl.dropout import Masks
from dittofl.engine.feeds import Feed, Lazy
from dittofl.engine.setting import PART_OF, Key, Plan
from dittofl.inputs import Inputs, each
from dittofl.objective import Objective
from dittofl.types import Criterion, Down, GlobalSolver, On, Sent, Solver


class Turn(NamedTuple):
    """Evaluations that share samples and objective, answered by one batched call."""

    i: int
    on: On
    feed: Key  # which minibatch; (-1, …) for a whole part
    of: Criterion | None
    grad: bool
    names: tuple[str, ...]


def script(plan: Plan, solvers: Mapping[str, Solver]) -> tuple[Turn, ...]:
    """The turns of a visit in order."""
    turns: list[Turn] = []
    for i in range(max(len(plan.asks[name]) for name in solvers)):
        groups: dict[tuple[On, Key, Criterion | None, bool], list[str]] = {}
        for name in solvers:
            if i < len(plan.asks[name]):
                ask = plan.asks[name][i]
                whole = ask.on in PART_OF
                feed = (-1, ask.on.name.encode()) if whole else plan.feed(name, i)
                groups.setdefault((On.NEXT if not whole else ask.on, feed, ask.of, ask.grad), []).append(name)
        turns += [Turn(i, on, feed, of, grad, tuple(names)) for (on, feed, of, grad), names in groups.items()]
    return tuple(turns)


def mapped(function: Callable[..., Any], *batched: Any) -> Any:
    """vmap over the chunk's devices; what does not depend on the device is expanded."""
    return vmap(function)(*batched)


Answer = Callable[[Objective, Turn, Tensor, Feed, Tensor], tuple[Tensor, Tensor | None]]


def walk(
    respond: Answer, objective: Objective, solvers: dict[str, Solver], lead: str | None, turns: tuple[Turn, ...],
    down: Down, n: Tensor, rows: dict[str, Tensor], feeds: dict[Key, Feed] | Lazy,
    active: dict[tuple[int, str], Tensor],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:  # fmt: skip
    """From the rows of a chunk to what its devices keep, by solver, and what the lead sends; `respond` is `answer`.

    Between two turns all solvers are mapped at once: a mapping takes longer than the step of a small model.
    """

    def begin(rows: dict[str, Tensor], n: Tensor) -> Any:
        states = {name: solver.start(rows[name], down._replace(n=n)) for name, solver in solvers.items()}
        return states, ahead(states, rows, n, turns[0] if turns else None)

    def ahead(states: dict[str, Any], rows: dict[str, Tensor], n: Tensor, turn: Turn | None) -> Any:
        """The points that a turn asks of; after the last, what a device keeps, and what it sends."""
        own = down._replace(n=n)
        if turn is not None:
            return {name: solvers[name].points(states[name], own, turn.i) for name in turn.names}
        kept = {name: solver.keep(states[name], rows[name], own) for name, solver in solvers.items()}
        return kept, {} if lead is None else _sent(cast(GlobalSolver, solvers[lead]), states[lead], rows[lead], own)

    def onward(
        turn: Turn, following: Turn | None, states: dict[str, Any], rows: dict[str, Tensor], n: Tensor,
        answers: dict[str, tuple[Tensor, ...]], working: dict[str, Tensor],
    ) -> Any:  # fmt: skip
        own = down._replace(n=n)
        for name, its in answers.items():
            new = _stepped(solvers[name], states[name], own, turn.i, *its)
            states = states | {name: _where(working.get(name), new, states[name])}
        return states, ahead(states, rows, n, following)

    states, asked = mapped(begin, rows, n)
    for turn, following in zip(turns, (*turns[1:], None), strict=True):
        points = torch.stack([point for name in turn.names for point in asked[name]], 1)
        f, g = respond(objective, turn, points, feeds[turn.feed], down.w)
        answers, first = {}, 0
        for name in turn.names:
            here = slice(first, first := first + len(asked[name]))
            answers[name] = (f[:, here],) if g is None else (f[:, here], g[:, here])
        working = {name: active[turn.i, name] for name in turn.names if (turn.i, name) in active}
        states, asked = mapped(partial(onward, turn, following), states, rows, n, answers, working)
    kept, sent = asked
    return kept, sent


def _stepped(solver: Solver, state: Any, own: Down, i: int, f: Tensor, g: Tensor | None = None) -> Any:
    return solver.step(state, own, i, f, g)


def _sent(solver: GlobalSolver, state: Any, row: Tensor, own: Down) -> dict[str, Tensor]:
    sent: Sent = solver.send(state, row, own)
    return {key: value for key, value in sent._asdict().items() if value is not None}


def _where(working: Tensor | None, new: Any, old: Any) -> Any:
    """The new state of a device that still works, the old one of one that is done."""
    return new if working is None else pytree.tree_map(lambda a, b: torch.where(working, a, b), new, old)


def answer(objective: Objective, turn: Turn, points: Tensor, feed: Feed, w: Tensor) -> tuple[Tensor, Tensor | None]:
    """Losses f [c, S] and gradients g [c, S, P] at points [c, S, P]: F of each device at each of its points."""
    train = turn.on is On.NEXT
    objective.module.train(train)
    n = feed.weight.shape[1]
    size = n if train else max(1, objective.piece(n) // (1 if objective.mixes else len(points)))
    f, g = points.new_zeros(points.shape[:2]), None
    for a in range(0, n, size):
        here = itemgetter((slice(None), slice(a, a + size)))
        x, y, weight = each(feed.x, here), here(feed.y), here(feed.weight)
        key = feed.key if train and objective.drops else weight.new_zeros(len(points))
        value = _value(objective, turn, w, penalised=a == 0 and turn.of is None)
        one: Callable[..., Any] = grad_and_value(value) if turn.grad else value
        result = _everywhere(one, points, x, y, weight, key)
        if turn.grad:
            f, g = f + result[1], result[0] if g is None else g + result[0]
        else:
            f = f + result
    return f, g


def _everywhere(one: Callable[..., Any], points: Tensor, x: Inputs, y: Tensor, *rest: Any) -> Any:
    """A function of one row and one device's samples, at points [c, S, P]."""
    if points.shape[1] == 1:  # a level of mapping less: a sixth of the time for linear models
        return pytree.tree_map(lambda its: its.unsqueeze(1), vmap(one)(points[:, 0], x, y, *rest))
    # y is mapped over the points too, though the same for all: torch's rules for the regression losses need it.
    shared = y.unsqueeze(1).expand(-1, points.shape[1], *y.shape[1:])
    return vmap(vmap(one, in_dims=(0, None, 0, None, None)))(points, x, shared, *rest)


def _value(objective: Objective, turn: Turn, w: Tensor, *, penalised: bool) -> Callable[..., Tensor]:
    """F(row) of one device on its samples: Σ_b weight_b loss_b + penalty."""

    def outputs(row: Tensor, x: Inputs, key: Tensor) -> Tensor:
        if not (objective.drops and turn.on is On.NEXT):
            return objective.forward(row, x)
        with Masks(key):
            return objective.forward(row, x)

    def value(row: Tensor, x: Inputs, y: Tensor, weight: Tensor, key: Tensor) -> Tensor:
        out = outputs(row, x, key)
        losses = (
            objective.losses(out, y)
            if turn.of is None
            else objective.other(turn.of, out, y, outputs(w, x, key).detach())
        )
        total = torch.where(weight > 0, losses * weight, 0).sum()
        # A part without samples, whose weights are all 0, has loss 0.
        share = (weight.sum() > 0).to(total) if turn.on is On.VALIDATION else 1.0
        return total + share * objective.penalty(lambda: objective.layout.named(row)) if penalised else total

    return value
