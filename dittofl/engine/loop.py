"""The plain engine: one device after the other. The oracle of every test, and the fastest for convolutions on a CPU."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dittofl.dropout import Masks
from dittofl.engine.pages import keep_pages
from dittofl.engine.rows import Rows
from dittofl.engine.samples import Samples, Shelf, Turn, whole
from dittofl.engine.setting import Plan, Setting, Visit
from dittofl.federation import Part
from dittofl.inputs import LINE, Inputs, aligned, each
from dittofl.module import call, trained
from dittofl.types import Ask, Down, Ints, Sent, Solver, State

GROUP = 2**22  # elements of rows that are fetched at a time


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A plain for over devices."""

    def bind(self, setting: Setting) -> "LoopEngine":
        return LoopEngine(setting)


class LoopEngine:
    """Algorithm 1's inner loop, written out."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.objective = setting, setting.objective
        self.module = setting.objective.module
        self.parameters = [parameter for _, parameter in trained(self.module)]
        self.weights: dict[tuple[int, int], Tensor] = {}
        if setting.device.type == "cpu":
            keep_pages()

    def on(self, setting: Setting) -> "LoopEngine":
        return LoopEngine(setting)

    @torch.enable_grad()
    def visit(self, visit: Visit) -> Sent | None:
        plan = Plan(self.setting, visit)
        shelf = Shelf(self.setting, plan)
        w, extra, t, _, layout = visit.down
        sent: list[Sent] = []
        for group in self._groups(len(visit.ids), shelf.most):
            ids, turns = visit.ids[group], shelf.group(group)
            n = self.setting.stream.n[ids].tolist()
            stores = {name: visit.rows[name].get(ids).unbind() for name in visit.solvers}
            kept: dict[str, list[Tensor]] = {name: [] for name in stores}
            for b, a in enumerate(group.tolist()):
                down = Down(w, extra, t, n[b], layout)
                rows = {name: its[b] for name, its in stores.items()}
                states = self._walk(visit.solvers, rows, down, turns(b))
                if visit.lead is not None:
                    _collect(sent, visit.sender().send(states[visit.lead], rows[visit.lead], down), a, len(visit.ids))
                for name, solver in visit.solvers.items():
                    kept[name].append(solver.keep(states[name], rows[name], down))
            for name, own in kept.items():
                visit.rows[name].put(ids, _stack(own))
        return sent[0] if sent else None

    def _walk(
        self, solvers: Mapping[str, Solver], rows: dict[str, Tensor], down: Down, turns: Iterable[Turn]
    ) -> dict[str, State]:
        """Where all solvers of one device end. They take turns, so that the samples of one turn serve them all."""
        states = {name: solver.start(rows[name], down) for name, solver in solvers.items()}
        for name, i, ask, samples in turns:
            solver, s = solvers[name], states[name]
            f, g = self._answer(solver.points(s, down, i), ask, down, samples)
            states[name] = solver.step(s, down, i, f, g)
        return states

    def _groups(self, m: int, most: int) -> list[Ints]:
        """Places in the cohort whose rows and samples are fetched together: many small ones, or one large."""
        size = max(1, min(GROUP // self.objective.layout.P + 1, most))
        return np.split(np.arange(m), range(size, m, size))

    def _answer(
        self, points: tuple[Tensor, ...], ask: Ask, down: Down, samples: Samples
    ) -> tuple[Tensor, Tensor | None]:
        """Losses f [points] and gradients g [points, P]."""
        value = self._whole if samples.key is None else self._minibatch
        if len(points) == 1 and ask.grad:  # what most solvers ask, without a copy
            f, g = value(points[0], ask, down, samples)
            return f[None], g[None]
        with torch.set_grad_enabled(ask.grad):
            fs, gs = zip(*[value(point, ask, down, samples) for point in points], strict=True)
        return torch.stack(fs), torch.stack(gs) if ask.grad else None

    def _minibatch(self, point: Tensor, ask: Ask, down: Down, samples: Samples) -> tuple[Tensor, Tensor]:
        """F(point) and ∇F(point) on one minibatch, in training mode."""
        return self._differentiated(self._losses(point, ask, down, samples), samples.y.shape[0], 1.0, ask)

    def _whole(self, point: Tensor, ask: Ask, down: Down, samples: Samples) -> tuple[Tensor, Tensor]:
        """The same over a whole part, in evaluation mode and by pieces; a part without samples has loss 0."""
        f, g, n = point.new_zeros(()), torch.zeros_like(point), len(samples.y)
        for piece in samples.pieces(self.objective.piece(n)):
            of_piece = self._differentiated(self._losses(point, ask, down, piece), n, len(piece.y) / n, ask)
            f, g = f + of_piece[0], g + of_piece[1]
        return f, g

    def _losses(self, point: Tensor, ask: Ask, down: Down, samples: Samples) -> Tensor:
        x, y, key = samples
        x = x if key is None else self.setting.augmented(x, key)
        if ask.of is None:
            return self.objective.losses(self._forward(point, x, key), y)
        with torch.no_grad():
            anchor = self._forward(down.w, x, key)
        return self.objective.other(ask.of, self._forward(point, x, key), y, anchor)

    def _differentiated(self, losses: Tensor, n: int, share: float, ask: Ask) -> tuple[Tensor, Tensor]:
        """Σ losses / n + share · penalty, and its gradient as a row."""
        weight = self._weights(losses.shape[0], n)
        f, outputs, weights = losses.detach().to(weight) @ weight, [losses], [weight]
        if self.objective.task.penalty is not None and ask.of is None:
            penalty = torch.as_tensor(share * self.objective.task.penalty(dict(trained(self.module))))
            f = f + penalty.detach()
            if penalty.requires_grad:
                outputs, weights = [losses, penalty], [*weights, torch.ones_like(penalty)]
        if not ask.grad:
            return f, f
        # The mean's gradient is given, not traced: one node less for autograd to walk.
        grads = torch.autograd.grad(outputs, self.parameters, weights, allow_unused=True)
        pairs = zip(grads, self.parameters, strict=True)
        return f, torch.cat([(torch.zeros_like(p) if g is None else g).reshape(-1) for g, p in pairs])

    def _weights(self, count: int, n: int) -> Tensor:
        """1/n for each sample; made once, as minibatches have few sizes."""
        if (count, n) not in self.weights:
            self.weights[count, n] = torch.full(
                (count,), 1 / n, dtype=self.objective.w0.dtype, device=self.setting.device
            )
        return self.weights[count, n]

    def _forward(self, row: Tensor, x: Inputs, key: np.uint64 | None = None) -> Tensor:
        """The module's outputs with a row as its parameters; a key means training mode."""
        if self.module.training != (key is not None):
            self.module.train(key is not None)
        x = each(x, aligned)
        for parameter, view in zip(self.parameters, self.objective.layout.split(aligned(row)), strict=True):
            parameter.data = view if view.dim() != 4 else channels_last(view)
        if key is None or not self.objective.drops:
            return call(self.module, self.objective.fed(x))
        with Masks(torch.tensor(key.astype(np.int64), device=self.setting.device)):
            return call(self.module, self.objective.fed(x))

    def models(self, solver: Solver, rows: Rows, ids: Ints, down: Down) -> Tensor:
        n = self.setting.stream.n
        return torch.stack(
            [solver.model(row, down._replace(n=int(n[k]))) for row, k in zip(rows.get(ids), ids, strict=True)]
        )

    @torch.no_grad()
    def outputs(self, models: Tensor, ids: Ints, part: Part) -> Tensor:
        out = []
        for a, k in enumerate(ids):
            samples, row = whole(self.setting, int(k), part), models if models.dim() == 1 else models[a]
            for piece in samples.pieces(self.objective.piece(len(samples.y))):
                out.append(self._forward(row, piece.x))
        return torch.cat(out)


def channels_last(kernel: Tensor) -> Tensor:
    """A convolution's kernel [o, c, h, w] with its channels innermost, said in its strides also where c = 1 and torch
    sees no difference: its choice of memory format for all that follows goes by strides (a tenth of the Fashion CNN's
    step, in pooling)."""
    _, c, h, w = kernel.shape
    return kernel.contiguous(memory_format=torch.channels_last).as_strided(kernel.shape, (c * h * w, 1, w * c, c))


def _matrix(m: int, row: Tensor) -> Tensor:
    """Room for m rows. On a CPU numpy allocates it, which asks for huge pages: a tenth of the time in page faults; and
    a little more of it, so that the rows begin where a cache line does."""
    if row.device.type != "cpu":
        return row.new_empty(m, *row.shape)
    size, count = row.element_size(), m * row.numel()
    room = torch.from_numpy(np.empty(count + LINE // size, dtype=row.numpy().dtype))
    skip = -room.data_ptr() % LINE // size
    return room[skip : skip + count].view(m, *row.shape)


def _collect(sent: list[Sent], one: Sent, a: int, m: int) -> None:
    """Fills in the a-th row of the cohort's matrix, so that no second copy of it is ever held."""
    if not sent:
        sent.append(Sent(_matrix(m, one.delta), None if one.extra is None else _matrix(m, one.extra)))
    sent[0].delta[a] = one.delta
    if sent[0].extra is not None and one.extra is not None:
        sent[0].extra[a] = one.extra


def _stack(rows: list[Tensor]) -> Tensor:
    return rows[0][None] if len(rows) == 1 else torch.stack(rows)
