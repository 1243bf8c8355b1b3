"""A federation in training: Algorithm 1, one round at a time."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from dittofl.attack import Attack
from dittofl.attack.backdoor import triggered
from dittofl.engine import Auto, Engine, Loop, Setting, Visit, Vmap, tried
from dittofl.engine.rows import MemoryRows
from dittofl.errors import blamed, cut, require
from dittofl.evaluate import Evaluation, chosen, evaluate
from dittofl.federation import Part
from dittofl.inputs import aligned, each
from dittofl.measure import BACKDOOR, device_losses
from dittofl.method import GLOBAL, Method
from dittofl.optimiser import check_rates
from dittofl.reports import begun, combined, guaranteed, kept_of, restored, sound, stepped
from dittofl.types import Aggregator, Down, Ints, Report, Sent

How = Auto | Loop | Vmap

TOGETHER = 32  # devices that a final visit takes at a time


class Drawn(NamedTuple):
    """What a round saw."""

    cohort: Ints
    malicious: int  # how many of them are
    dropped: int  # reports that were not finite
    guaranteed: bool = True  # whether what is proven of the aggregator holds for as many reports as were left


class Saved(NamedTuple):
    """A run between two rounds, as a checkpoint holds it."""

    t: int
    state: Mapping[str, Tensor]  # `Federated.state`
    rows: Mapping[str, Iterable[tuple[Ints, Tensor]]]  # of each solver what its devices put, oldest first


def probing(engine: Engine, attack: Attack | None) -> Engine | None:
    """The engine on the samples that tell a backdoor's success; None without a backdoor."""
    if attack is None or attack.backdoor is None:
        return None
    setting = engine.setting
    federation = triggered(attack.backdoor, setting.federation)
    if setting.objective.lonely:  # a device with one such sample cannot be measured
        bounds = federation.bounds.copy()
        bounds[federation.sizes("test") == 1, 3] -= 1
        federation = replace(federation, bounds=bounds)
    x, y = each(federation.x, lambda part: part.to(setting.device)), federation.y.to(setting.device)
    return engine.on(replace(setting, federation=federation, x=x, y=y))


class Federated:
    """A federation in training: w, every device's rows, and what was drawn. `federate` yields it after each round."""

    def __init__(self, setting: Setting, how: How, method: Method, attack: Attack | None, seed: int) -> None:
        self.setting, self.method, self.attack, self.seed = setting, method, attack, seed
        self.federation, self.objective = setting.federation, setting.objective
        self.aggregator = cast(Aggregator, method.aggregate)  # `Method` has lifted plain functions
        self.engine = tried(how, setting) if isinstance(how, Vmap) else how.bind(setting)
        self.probe = probing(self.engine, attack)
        self.t, self.w, self.w0 = 0, self.objective.w0, self.objective.w0
        self.solvers = {GLOBAL: method.local, **method.personal}
        K = self.federation.K
        self.rows = {name: MemoryRows(K, solver.init(self.w0)) for name, solver in self.solvers.items()}
        self.visits = np.zeros(K, dtype=np.int64)
        self.malicious = np.zeros(K, dtype=np.bool_) if attack is None else attack.malicious(K, seed)
        self.aggregator_state = begun(self.aggregator, method.server, self.w0)
        self.server_state = method.server.init(self.w0, K)
        self.history: list[Drawn] = []
        for name, solver in {**self.solvers, **method.final}.items():
            with blamed(f"{name!r}, asked for its model,"):
                solver.model(solver.init(self.w0), self.down())

    def down(self) -> Down:
        """What goes down to a device now."""
        return Down(self.w, self.method.server.down(self.server_state), self.t, 0, self.objective.layout)

    def round(self, ids: Ints) -> None:
        """One round of Algorithm 1 with this cohort."""
        self._forget()
        check_rates(self.solvers, self.t)
        down = self.down()
        sent = cast(Sent, self.engine.visit(Visit(ids, self.visits[ids], self.solvers, self.rows, GLOBAL, down)))
        size = torch.from_numpy(self.federation.sizes("train")[ids]).to(self.w.device)
        loss = device_losses(self, self.w, ids, "train") if self.aggregator.losses else None
        report = Report(sent.delta, size, loss, sent.extra, torch.from_numpy(ids).to(self.w.device))
        if self.attack is not None:
            who = torch.from_numpy(self.malicious[ids]).to(self.w.device)
            report = self.attack.rewrite(report, who, self.federation.tags[ids], self.t, self.seed)
        report, dropped = sound(report)
        server = self.method.server
        if len(report.delta):
            delta, self.aggregator_state = combined(self.aggregator, server, report, self.aggregator_state)
            self.w, self.server_state = stepped(server, self.w, delta, report, self.server_state)
        self.visits[ids] += 1
        self.t += 1
        proven = guaranteed(self.aggregator, server, report)
        self.history.append(Drawn(ids, int(self.malicious[ids].sum()), dropped, proven))

    def finish(self) -> None:
        """Visits every device with the method's `final` solvers, from v_k = w^t.

        Their models are then evaluated beside the others until the next round, which forgets them: they are of this
        w. Nothing else changes, so that a run may be finished at several rounds and go on.
        """
        self._forget()
        check_rates(self.method.final, self.t)
        final, down, K = dict(self.method.final), self.down(), self.federation.K
        rows = {name: MemoryRows(K, solver.init(self.w)) for name, solver in final.items()}
        # Devices of like size together: the mapped engine works as long as the largest of them does.
        order = np.argsort(self.federation.sizes("train"), kind="stable")
        for ids in np.split(order, range(TOGETHER, K, TOGETHER)) if final else ():
            self.engine.visit(Visit(ids, np.zeros_like(ids), final, rows, None, down, once=True))
        self.solvers |= final
        self.rows |= rows

    def _forget(self) -> None:
        for name in self.method.final:
            self.solvers.pop(name, None)
            self.rows.pop(name, None)

    def state(self) -> dict[str, Tensor]:
        """All that the next round depends on, but for t and the devices' rows: w, w⁰, visits, what the server keeps."""
        kept = kept_of("aggregator", self.aggregator_state) | kept_of("server", self.server_state)
        return {"w": self.w, "w0": self.w0, "visits": torch.from_numpy(self.visits), **kept}

    def restore(self, saved: Saved) -> None:
        """Goes on where an equal run was saved."""

        def like(name: str, here: Tensor) -> Tensor:
            there = saved.state.get(name)
            # What an aggregator remembers may grow from round to round.
            grows = name.startswith("aggregator.") and there is not None and there.dim() == here.dim()
            fits = there is not None and (grows or there.shape == here.shape) and there.dtype == here.dtype
            require(fits, f"the saved {name} does not belong to this run: start anew")
            return aligned(there.to(here.device))  # type: ignore[union-attr]

        mine = self.state()
        require(mine.keys() == saved.state.keys(), "the saved state has other parts than this run's: start anew")
        found = {name: like(name, tensor) for name, tensor in mine.items()}
        self.t, self.w, self.w0, self.visits = saved.t, found["w"], found["w0"], found["visits"].numpy().copy()
        self.aggregator_state = restored("aggregator", self.aggregator_state, found)
        self.server_state = restored("server", self.server_state, found)
        for name, store in self.rows.items():
            store.first = self.solvers[name].init(self.w0)
            for ids, values in saved.rows.get(name, ()):
                store.put(ids, values.to(store.first))

    @property
    def choices(self) -> list[str]:
        """The method's choices, but for those among final rows that are not made."""
        return [name for name, choice in self.method.choose.items() if all(row in self.solvers for row in choice.among)]

    @property
    def metrics(self) -> list[str]:
        """What every model is measured by."""
        own = [*(["accuracy"] if self.objective.accurate else []), "loss", *self.objective.task.metrics]
        return own if self.probe is None else [*own, BACKDOOR]

    def evaluate(self, *parts: Part) -> Evaluation:
        """Metrics of w and every personal model on every device, on these parts (default: test); of final ones too
        after `finish`."""
        return evaluate(self, parts or ("test",))

    def row(self, name: str, device: object) -> Tensor:
        """What a device serves under a model's name: `global`, a personal solver's, or a choice among those."""
        names = [*self.solvers, *self.choices]
        unmade = [its for its in (*self.method.final, *self.method.choose) if its not in names]
        require(name not in unmade, f"{name!r} is made by finish(): call it first")
        require(name in names, f"no model is called {name!r}: there are {cut(', '.join(names))}")
        ids = np.array([self.federation.index(str(device))])
        if name in self.method.choose:
            name = chosen(self, name, ids)[0]
        return self.engine.models(self.solvers[name], self.rows[name], ids, self.down())[0].clone()

    def model(self, name: str = GLOBAL, device: object | None = None) -> nn.Module:
        """The same as a module of the user's own class; `global` needs no device."""
        require(device is not None or name == GLOBAL, f"{name!r} is a personal model: say whose, device=…")
        return self.objective.module_of(self.w if device is None else self.row(name, device))
