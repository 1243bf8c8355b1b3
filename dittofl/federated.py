"""A federation in training: Algorithm 1, one round at a time."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from dittofl.attack import Attack
from dittofl.engine import Auto, Loop, Setting, Visit, Vmap, tried
from dittofl.engine.rows import MemoryRows
from dittofl.errors import cut, require
from dittofl.evaluate import Evaluation, chosen, device_losses, evaluate
from dittofl.federation import Part
from dittofl.method import GLOBAL, Method
from dittofl.optimiser import check_rates
from dittofl.reports import aggregated, sound, stepped
from dittofl.sampling import Ids
from dittofl.types import Aggregator, Down, Report, Sent

How = Auto | Loop | Vmap


class Drawn(NamedTuple):
    """What a round saw."""

    cohort: Ids
    malicious: int  # how many of them are
    dropped: int  # reports that were not finite


class Saved(NamedTuple):
    """A run between two rounds, as a checkpoint holds it."""

    t: int
    state: Mapping[str, Tensor]  # `Federated.state`
    rows: Mapping[str, Iterable[tuple[Ids, Tensor]]]  # of each solver what its devices put, oldest first


class Federated:
    """A federation in training: w, every device's rows, and what was drawn. `federate` yields it after each round."""

    def __init__(self, setting: Setting, how: How, method: Method, attack: Attack | None, seed: int) -> None:
        self.setting, self.method, self.attack, self.seed = setting, method, attack, seed
        self.federation, self.objective = setting.federation, setting.objective
        self.aggregator = cast(Aggregator, method.aggregate)  # `Method` has lifted plain functions
        self.engine = tried(how, setting) if isinstance(how, Vmap) else how.bind(setting)
        self.t, self.w, self.w0 = 0, self.objective.w0, self.objective.w0
        self.solvers = {GLOBAL: method.local, **method.personal}
        K = self.federation.K
        self.rows = {name: MemoryRows(K, solver.init(self.w0)) for name, solver in self.solvers.items()}
        self.visits = np.zeros(K, dtype=np.int64)
        self.malicious = np.zeros(K, dtype=np.bool_) if attack is None else attack.malicious(K, seed)
        self.aggregator_state = self.aggregator.init(self.w0)
        self.server_state = method.server.init(self.w0, K)
        self.history: list[Drawn] = []

    def down(self) -> Down:
        """What goes down to a device now."""
        return Down(self.w, self.method.server.down(self.server_state), self.t, 0, self.objective.layout)

    def round(self, ids: Ids) -> None:
        """One round of Algorithm 1 with this cohort."""
        check_rates(self.solvers, self.t)
        down = self.down()
        sent = cast(Sent, self.engine.visit(Visit(ids, self.visits[ids], self.solvers, self.rows, GLOBAL, down)))
        size = torch.from_numpy(self.federation.sizes("train")[ids]).to(self.w.device)
        loss = device_losses(self, self.w, ids, "train") if self.aggregator.losses else None
        report = Report(sent.delta, size, loss, sent.extra)
        if self.attack is not None:
            who = torch.from_numpy(self.malicious[ids]).to(self.w.device)
            report = self.attack.rewrite(report, who, self.federation.tags[ids], self.t, self.seed)
        report, dropped = sound(report)
        if len(report.delta):
            delta, self.aggregator_state = aggregated(self.aggregator, report, self.aggregator_state)
            self.w, self.server_state = stepped(self.method.server, self.w, delta, report, self.server_state)
        self.visits[ids] += 1
        self.t += 1
        self.history.append(Drawn(ids, int(self.malicious[ids].sum()), dropped))

    def state(self) -> dict[str, Tensor]:
        """All that the next round depends on, but for t and the devices' rows: w, w⁰, visits, what the server keeps."""
        kept = {"aggregator": self.aggregator_state, "server": self.server_state}
        leaves = {f"{name}.{i}": leaf for name, its in kept.items() for i, leaf in enumerate(pytree.tree_leaves(its))}
        return {"w": self.w, "w0": self.w0, "visits": torch.from_numpy(self.visits), **leaves}

    def restore(self, saved: Saved) -> None:
        """Goes on where an equal run was saved."""

        def like(name: str, here: Tensor) -> Tensor:
            there = saved.state.get(name)
            fits = there is not None and there.shape == here.shape and there.dtype == here.dtype
            require(fits, f"the saved {name} does not belong to this run: start anew")
            return there.to(here.device)  # type: ignore[union-attr]

        mine = self.state()
        found = {name: like(name, tensor) for name, tensor in mine.items()}
        self.t, self.w, self.w0, self.visits = saved.t, found["w"], found["w0"], found["visits"].numpy().copy()
        self.aggregator_state, self.server_state = (
            pytree.tree_unflatten([leaf for key, leaf in found.items() if key.startswith(f"{name}.")], spec)
            for name, spec in (
                ("aggregator", pytree.tree_structure(self.aggregator_state)),
                ("server", pytree.tree_structure(self.server_state)),
            )
        )
        for name, store in self.rows.items():
            store.first = self.solvers[name].init(self.w0)
            for ids, values in saved.rows.get(name, ()):
                store.put(ids, values.to(store.first))

    @property
    def metrics(self) -> list[str]:
        """What every model is measured by."""
        return [*(["accuracy"] if self.objective.accurate else []), "loss", *self.objective.task.metrics]

    def evaluate(self, *parts: Part) -> Evaluation:
        """Metrics of w and every personal model on every device, on these parts (default: test)."""
        return evaluate(self, parts or ("test",))

    def row(self, name: str, device: object) -> Tensor:
        """What a device serves under a model's name: `global`, a personal solver's, or a choice among those."""
        names = [GLOBAL, *self.method.personal, *self.method.choose]
        require(name in names, f"no model is called {name!r}: there are {cut(', '.join(names))}")
        ids = np.array([self.federation.index(str(device))])
        if name in self.method.choose:
            name = chosen(self, name, ids)[0]
        return self.engine.models(self.solvers[name], self.rows[name], ids, self.down())[0].clone()

    def model(self, name: str = GLOBAL, device: object | None = None) -> nn.Module:
        """The same as a module of the user's own class; `global` needs no device."""
        require(device is not None or name == GLOBAL, f"{name!r} is a personal model: say whose, device=…")
        return self.objective.module_of(self.w if device is None else self.row(name, device))
