"""The plain engine: one device after the other. The oracle of every test, and the fastest for convolutions on a CPU."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dittofl.dropout import Masks
from dittofl.engine.rows import Ids, Rows
from dittofl.engine.setting import PART_OF, Plan, Setting, Visit
from dittofl.federation import Part
from dittofl.inputs import Inputs
from dittofl.module import call, trained
from dittofl.types import Ask, Down, Sent, Solver


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A plain for over devices."""

    def bind(self, setting: Setting) -> "LoopEngine":
        return LoopEngine(setting)


class Samples(NamedTuple):
    """The samples of one evaluation on one device."""

    places: Tensor
    key: np.uint64 | None  # of a minibatch, for augmentation and dropout; None for a whole part


class LoopEngine:
    """Algorithm 1's inner loop, written out."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.objective = setting, setting.objective
        self.module = setting.objective.module
        self.parameters = [parameter for _, parameter in trained(self.module)]
        self.one = torch.ones_like(self.objective.w0[0])

    def visit(self, visit: Visit) -> Sent | None:
        plan = Plan(self.setting, visit)
        samples = {name: [self._samples(plan, name, i) for i in range(len(plan.asks[name]))] for name in visit.solvers}
        sent = Sent(visit.down.w[:0])
        for a, k in enumerate(visit.ids):
            down = visit.down._replace(n=int(self.setting.stream.n[k]))
            here = visit.ids[a : a + 1]
            for name, solver in visit.solvers.items():
                row = visit.rows[name].get(here)[0]
                s = solver.start(row, down)
                for i, ask in enumerate(plan.asks[name][: plan.lengths[name][a]]):
                    f, g = self._answer(solver.points(s, down, i), ask, down, samples[name][i](a))
                    s = solver.step(s, down, i, f, g)
                if name == visit.lead:
                    sent = _collected(sent, visit.sender().send(s, row, down), a, len(visit.ids))
                visit.rows[name].put(here, solver.keep(s, row, down)[None])
        return None if visit.lead is None else sent

    def _samples(self, plan: Plan, name: str, i: int) -> Callable[[int], Samples]:
        """Which samples evaluation i of a solver sees on the a-th device."""
        part = PART_OF.get(plan.asks[name][i].on)
        if part is not None:
            return lambda a: Samples(self.setting.put(self.setting.span(int(plan.ids[a]), part)), None)
        batch = plan.batch(plan.feed(name, i))
        places, width = self.setting.put(batch.places), batch.width.tolist()
        return lambda a: Samples(places[a, : width[a]], batch.key[a])

    def _answer(
        self, points: tuple[Tensor, ...], ask: Ask, down: Down, samples: Samples
    ) -> tuple[Tensor, Tensor | None]:
        """Losses f [points] and gradients g [points, P]."""
        with torch.set_grad_enabled(ask.grad):
            value = self._whole if samples.key is None else self._minibatch
            answers = [value(point, ask, down, samples) for point in points]
        f, g = zip(*answers, strict=True)
        return _stack(f), _stack(g) if ask.grad else None

    def _minibatch(self, point: Tensor, ask: Ask, down: Down, samples: Samples) -> tuple[Tensor, Tensor]:
        """F(point) and ∇F(point) on one minibatch, in training mode."""
        x = self.setting.inputs(samples.places)
        if samples.key is not None:
            x = self.setting.augmented(x, samples.key)
        losses = self._losses(point, ask, down, x, samples)
        return self._differentiated(self._penalised(losses.mean(), 1.0), ask)

    def _whole(self, point: Tensor, ask: Ask, down: Down, samples: Samples) -> tuple[Tensor, Tensor]:
        """The same over a whole part, in evaluation mode and by pieces; a part without samples has loss 0."""
        f, g, n = point.new_zeros(()), torch.zeros_like(point), len(samples.places)
        for piece in samples.places.split(self.objective.piece(n)) if n else ():
            losses = self._losses(point, ask, down, self.setting.inputs(piece), Samples(piece, None))
            of_piece = self._differentiated(self._penalised(losses.sum() / n, len(piece) / n), ask)
            f, g = f + of_piece[0], g + of_piece[1]
        return f, g

    def _losses(self, point: Tensor, ask: Ask, down: Down, x: Inputs, samples: Samples) -> Tensor:
        y = self.setting.y.index_select(0, samples.places)
        if ask.of is None:
            return self.objective.losses(self._forward(point, x, samples.key), y)
        with torch.no_grad():
            anchor = self._forward(down.w, x, samples.key)
        return self.objective.other(ask.of, self._forward(point, x, samples.key), y, anchor)

    def _penalised(self, value: Tensor, share: float) -> Tensor:
        penalty = self.objective.task.penalty
        return value if penalty is None else value + share * penalty(dict(trained(self.module)))

    def _differentiated(self, value: Tensor, ask: Ask) -> tuple[Tensor, Tensor]:
        """The loss and its gradient as a row."""
        if not ask.grad:
            return value, value
        grads = torch.autograd.grad((value,), self.parameters, (self.one,), allow_unused=True)
        flat = [torch.zeros_like(p) if g is None else g for g, p in zip(grads, self.parameters, strict=True)]
        return value.detach(), torch.cat([g.reshape(-1) for g in flat])

    def _forward(self, row: Tensor, x: Inputs, key: np.uint64 | None = None) -> Tensor:
        """The module's outputs with a row as its parameters; a key means training mode."""
        if self.module.training != (key is not None):
            self.module.train(key is not None)
        for parameter, view in zip(self.parameters, self.objective.layout.split(row), strict=True):
            parameter.data = view if view.dim() != 4 else view.contiguous(memory_format=torch.channels_last)
        if key is None or not self.objective.drops:
            return call(self.module, self.objective.fed(x))
        with Masks(torch.tensor(key.astype(np.int64), device=self.setting.device)):
            return call(self.module, self.objective.fed(x))

    def models(self, solver: Solver, rows: Rows, ids: Ids, down: Down) -> Tensor:
        n = self.setting.stream.n
        return torch.stack(
            [solver.model(row, down._replace(n=int(n[k]))) for row, k in zip(rows.get(ids), ids, strict=True)]
        )

    @torch.no_grad()
    def outputs(self, models: Tensor, ids: Ids, part: Part) -> Tensor:
        out = []
        for a, k in enumerate(ids):
            index = self.setting.put(self.setting.span(int(k), part))
            row = models if models.dim() == 1 else models[a]
            for piece in index.split(self.objective.piece(len(index))) if len(index) else ():
                out.append(self._forward(row, self.setting.inputs(piece)))
        return torch.cat(out)


def _stack(values: tuple[Tensor, ...]) -> Tensor:
    return values[0][None] if len(values) == 1 else torch.stack(values)


def _matrix(m: int, row: Tensor) -> Tensor:
    """Room for m rows. On a CPU numpy allocates it, which asks for huge pages: a tenth of the time in page faults."""
    if row.device.type != "cpu":
        return row.new_empty(m, *row.shape)
    return torch.from_numpy(np.empty((m, *row.shape), dtype=row.numpy().dtype))


def _collected(sent: Sent, one: Sent, a: int, m: int) -> Sent:
    """The cohort's matrix with its a-th row filled in, so that no second copy of it is ever held."""
    if a == 0:
        sent = Sent(_matrix(m, one.delta), None if one.extra is None else _matrix(m, one.extra))
    for rows, part in zip(sent, one, strict=True):
        if rows is not None and part is not None:
            rows[a] = part
    return sent
