"""The batched engine: the cohort's rows are stacked, and each evaluation of all of them is one batched gradient."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from dittofl.engine.chunks import Chunks
from dittofl.engine.columns import columned
from dittofl.engine.compiler import compiled_answer, compiled_walk, compiles
from dittofl.engine.feeds import Feed, Feeds, Lazy
from dittofl.engine.lockstep import Turn, answer, mapped, script, walk
from dittofl.engine.pages import keep_pages
from dittofl.engine.rows import Rows
from dittofl.engine.setting import PART_OF, Key, Plan, Setting, Visit, ranges
from dittofl.errors import flag, whole
from dittofl.federation import Part
from dittofl.objective import Objective
from dittofl.seeds import Purpose
from dittofl.types import Down, Epochs, Ints, On, Sent, Solver

FEW_TURNS = 32  # up to which a visit is compiled as a whole, which writes all of them out


@dataclass(frozen=True, kw_only=True)
class Vmap:
    """Stacked rows, one batched gradient.

    `chunk` devices at a time (None: as many as fit). With `fuse` w_k and every v_k share one call; without, w's is
    its own, so that w is bitwise independent of personal solvers. `compile` visits with torch.compile, as a whole or
    turn by turn (None: on a GPU).
    """

    chunk: int | None = None
    fuse: bool = True
    compile: bool | None = None

    def __post_init__(self) -> None:
        if self.chunk is not None:
            whole("Vmap", "chunk", self.chunk, 1)
        flag("Vmap", "fuse", self.fuse)
        if self.compile is not None:
            flag("Vmap", "compile", self.compile)

    def bind(self, setting: Setting) -> "VmapEngine":
        return VmapEngine(self, setting)


class VmapEngine:
    """Chunks of devices, each run in lockstep."""

    def __init__(self, how: Vmap, setting: Setting) -> None:
        self.how, self.setting, self.objective = how, setting, setting.objective
        self.compiled = compiles(how.compile, setting.device.type)
        if self.compiled:
            self.objective = replace(self.objective, module=columned(self.objective.module))
        self.feeds = Feeds(setting, static=self.compiled)
        self.chunks = Chunks(setting, how.chunk)
        self.alike = not np.ptp(setting.stream.per_epoch)  # whether an epoch is as many steps for all devices
        if setting.device.type == "cpu":
            keep_pages()

    def on(self, setting: Setting) -> "VmapEngine":
        return VmapEngine(self.how, setting)

    def probe(self) -> None:
        """One mapped gradient on two devices, uncompiled; it fails where module or loss cannot be mapped."""
        stream, w = self.setting.stream, self.objective.w0
        ids = np.array([0, self.setting.federation.K - 1])
        of = np.full(2, stream.width.argmax()) if self.objective.mixes else ids
        batch = stream.take(Purpose.ROUND, of, np.zeros(2, dtype=np.int64))
        if not self.objective.mixes:  # one sample will do
            batch = batch._replace(places=batch.places[:, :1], width=np.ones_like(batch.width))
        turn = Turn(0, On.NEXT, (0, b""), None, True, ())
        answer(self.objective, turn, w.expand(2, 1, -1), self.feeds.minibatch(batch), w)
        self.outputs(w.expand(2, -1), ids, "train")

    def visit(self, visit: Visit) -> Sent | None:
        if self.how.fuse or visit.lead is None:
            return self._visit(visit, Plan(self.setting, visit))
        lead = {visit.lead: visit.solvers[visit.lead]}
        plan = Plan(self.setting, visit)
        sent = self._visit(visit._replace(solvers=lead), plan)
        others = {name: solver for name, solver in visit.solvers.items() if name != visit.lead}
        if others:
            self._visit(visit._replace(solvers=others, lead=None), plan)
        return sent

    def _visit(self, visit: Visit, plan: Plan) -> Sent | None:
        pieces: list[tuple[Ints, dict[str, Tensor]]] = []
        turns = script(plan, visit.solvers)
        at_once = self._at_once(visit, turns)
        for chosen in self.chunks.of_visit(visit, turns, at_once=at_once):
            kept, sent = self._walk(visit, plan, turns, chosen, at_once=at_once)
            for name, rows in kept.items():
                visit.rows[name].put(visit.ids[chosen], rows)
            pieces.append((chosen, sent))
        if visit.lead is None:
            return None
        if len(pieces) == 1:
            return Sent(**pieces[0][1])
        back = self.setting.put(np.argsort(np.concatenate([chosen for chosen, _ in pieces])))
        return Sent(**{key: torch.cat([sent[key] for _, sent in pieces])[back] for key in pieces[0][1]})

    def _at_once(self, visit: Visit, turns: tuple[Turn, ...]) -> bool:
        """Whether a visit is compiled as a whole: its turns are few, and as many for every cohort."""
        steady = self.alike or not any(isinstance(its.steps, Epochs) for its in visit.solvers.values())
        return self.compiled and not visit.once and steady and len(turns) <= FEW_TURNS

    def _walk(
        self, visit: Visit, plan: Plan, turns: tuple[Turn, ...], chosen: Ints, *, at_once: bool
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """All solvers of some devices, from their rows to what they keep and send."""
        ids = visit.ids[chosen]
        samples = {turn.feed: turn.on for turn in turns}

        def gather(feed: Key) -> Feed:
            part = PART_OF.get(samples[feed])
            return self.feeds.minibatch(plan.batch(feed, chosen)) if part is None else self.feeds.part(ids, part)

        feeds = {feed: gather(feed) for feed in samples} if at_once else Lazy(gather)
        rows = {name: visit.rows[name].get(ids) for name in visit.solvers}
        n = self._n(ids)
        active = {
            (turn.i, name): self.setting.put(turn.i < plan.lengths[name][chosen])
            for turn in turns for name in turn.names if (plan.lengths[name] <= turn.i).any()
        }  # fmt: skip
        down, solvers = visit.down, dict(visit.solvers)
        if not at_once:
            return walk(self._answer, self.objective, solvers, visit.lead, turns, down, n, rows, feeds, active)
        # A Python number would be compiled in; schedules take a 0-d tensor as well. Strides are compiled in too.
        down = down._replace(t=self.setting.put(np.array(down.t, dtype=np.float64)))
        rows = {name: row.contiguous() for name, row in rows.items()}
        torch.compiler.cudagraph_mark_step_begin()  # what the last replay gave may be overwritten from here on
        go = compiled_walk(self.setting.device.type)
        kept, sent = go(answer, self.objective, solvers, visit.lead, turns, down, n, rows, feeds, active)
        return kept, {key: value.clone() for key, value in sent.items()}

    def _answer(
        self, objective: Objective, turn: Turn, points: Tensor, feed: Feed, w: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """A turn of a visit that is not compiled as a whole, itself compiled where all of a visit have one shape."""
        if not (self.compiled and turn.on is On.NEXT and objective.paddable):
            return answer(self.setting.objective, turn, points, feed, w)
        turn = turn._replace(i=0, feed=(0, b""), names=())  # of which nothing may be compiled in
        result: tuple[Tensor, Tensor | None] = compiled_answer(points.device.type)(objective, turn, points, feed, w)
        return result

    def _n(self, ids: Ints) -> Tensor:
        """Sample counts as float64, so that arithmetic with them is not rounded to single precision."""
        return self.setting.put(self.setting.stream.n[ids].astype(np.float64))

    def models(self, solver: Solver, rows: Rows, ids: Ints, down: Down) -> Tensor:
        served: Tensor = mapped(lambda row, n: solver.model(row, down._replace(n=n)), rows.get(ids), self._n(ids))
        return served

    @torch.no_grad()
    def outputs(self, models: Tensor, ids: Ints, part: Part) -> Tensor:
        sizes = self.setting.federation.sizes(part)[ids]
        if models.dim() == 1 and not self.objective.mixes:  # one model for all: its convolutions are plain ones
            plain = self.setting.objective
            plain.module.eval()
            index = self.setting.places(ids, part)
            several = self.setting.put(index).split(plain.piece(len(index)))
            return torch.cat([plain.forward(models, self.setting.inputs(one)) for one in several])
        self.objective.module.eval()
        first, pieces, places = np.cumsum(sizes) - sizes, [], []
        for chosen in self.chunks.by_size(sizes):
            feed = self.feeds.part(ids[chosen], part)
            rows = models.expand(len(chosen), -1) if models.dim() == 1 else models[self.setting.put(chosen)]
            answers = vmap(self.objective.forward)(rows, feed.x)
            real = np.arange(answers.shape[1]) < sizes[chosen][:, None]
            pieces.append(answers.flatten(0, 1)[self.setting.put(np.flatnonzero(real))])
            places.append(ranges(first[chosen], sizes[chosen]))
        return torch.cat(pieces)[self.setting.put(np.argsort(np.concatenate(places)))]
