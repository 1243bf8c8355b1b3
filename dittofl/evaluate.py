"""What w and every personal model are worth to each device."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dittofl.errors import cut, require
from dittofl.federation import Part
from dittofl.measure import BACKDOOR, Scores, measured, succeeded
from dittofl.method import GLOBAL
from dittofl.metrics import Summary, summarise
from dittofl.types import Ints

if TYPE_CHECKING:
    from dittofl.federated import Federated

HELD = 2**28  # elements of rows or outputs held at a time


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Metrics after round t: `values[model, part][metric]` has one number a device."""

    t: int
    ids: tuple[str, ...]
    malicious: NDArray[np.bool_]
    visits: Ints
    sizes: dict[Part, Ints]
    values: dict[tuple[str, Part], Scores]
    choices: dict[str, NDArray[np.str_]]  # which row each device chose, for every choice of the method
    lower: frozenset[str]  # metrics where less is better
    probes: Ints | None = None  # how many samples a backdoor's success is measured on

    def summary(
        self, model: str = GLOBAL, metric: str = "accuracy", part: Part = "test", whom: str = "benign"
    ) -> Summary:
        """A metric of a model over `benign` devices, or over `all`."""
        there = ", ".join(f"{m!r} on {p!r}" for m, p in self.values)
        require(
            isinstance(model, str) and isinstance(part, str) and (model, part) in self.values,
            f"{model!r} on {part!r} was not evaluated: there are {cut(there)}",
        )
        scores = self.values[model, part]
        require(
            isinstance(metric, str) and metric in scores,
            f"no metric is called {metric!r}: there are {', '.join(scores)}",
        )
        require(whom in ("benign", "all"), f"whom must be 'benign' or 'all', got {whom!r}")
        which = ~self.malicious if whom == "benign" else np.ones_like(self.malicious)
        sizes = self.probes if metric == BACKDOOR and self.probes is not None else self.sizes[part]
        return summarise(scores[metric], sizes, which, lower_is_better=metric in self.lower)

    @property
    def headline(self) -> Part:
        """Test data, or what was evaluated first."""
        parts = [part for _, part in self.values]
        return "test" if "test" in parts else parts[0]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        benign, never = int((~self.malicious).sum()), int((self.visits == 0).sum())
        unseen = f", {never} never visited" if never else ""
        yield f"round {self.t}, {benign} benign of {len(self.ids)} devices{unseen}"
        yield _row("model", "part", "metric", *(f"{name:>9}" for name in ("mean", "std", "worst10", "weighted")))
        for (model, part), scores in self.values.items():
            for metric in scores:
                s = self.summary(model, metric, part)
                yield _row(
                    model, part, metric, *(f"{its:>9.4f}" for its in (s.mean, s.std, s.worst10, s.weighted_mean))
                )


def _row(model: str, part: str, metric: str, *numbers: str) -> str:
    return " ".join((f"{model:<15} {part:<10} {metric:<9}", *numbers))


def evaluate(run: "Federated", parts: tuple[Part, ...]) -> Evaluation:
    """Scores every model on every device; where the method chooses among rows, on validation data too."""
    for part in parts:
        require(part in ("train", "validation", "test"), f"a part is 'train', 'validation' or 'test', got {part!r}")
    everyone = np.arange(run.federation.K)
    values = {(model, part): scores(run, model, everyone, part) for part in parts for model in run.solvers}
    choices = {name: chosen(run, name, everyone, values) for name in run.choices}
    for name, picks in choices.items():
        for part in parts:
            among = {model: values[model, part] for model in run.method.choose[name].among}
            metrics = next(iter(among.values()))
            values[name, part] = {
                metric: np.array([among[pick][metric][k] for k, pick in enumerate(picks)]) for metric in metrics
            }
    lower = {name for name in run.objective.task.metrics if run.objective.task.metric(name).lower_is_better}
    sizes: dict[Part, Ints] = {part: run.federation.sizes(part) for part in parts}
    probes = None if run.probe is None else run.probe.setting.federation.sizes("test")
    lower |= {"loss", BACKDOOR}
    return Evaluation(
        run.t, run.federation.ids, run.malicious, run.visits.copy(), sizes, values, choices, frozenset(lower), probes
    )


def chosen(
    run: "Federated", name: str, ids: Ints, known: Mapping[tuple[str, Part], Scores] | None = None
) -> NDArray[np.str_]:
    """The row that each device chooses on its own validation data; `known` holds scores that are made already."""
    choice, made = run.method.choose[name], known or {}
    candidates = [made.get((model, "validation")) or scores(run, model, ids, "validation") for model in choice.among]
    accuracy = np.stack([one["accuracy"] for one in candidates]) if "accuracy" in candidates[0] else None
    picks = choice.pick(
        run.federation.sizes("validation")[ids], accuracy, np.stack([one["loss"] for one in candidates])
    )
    return np.array(choice.among)[picks]


def scores(run: "Federated", model: str, ids: Ints, part: Part) -> Scores:
    """Every metric of one model on the devices' part."""
    most = max(
        int(one.federation.sizes(part).max()) for one in (run.setting, *([run.probe.setting] if run.probe else []))
    )
    per = max(1, HELD // max(run.objective.layout.P, 1 + most * run.objective.width))
    pieces = [_scores(run, model, ids[a : a + per], part) for a in range(0, len(ids), per)]
    return {metric: np.concatenate([piece[metric] for piece in pieces]) for metric in pieces[0]}


def _scores(run: "Federated", model: str, ids: Ints, part: Part) -> Scores:
    solver, rows, down = run.solvers[model], run.rows[model], run.down()
    # Most global solvers serve w itself, which is scored on all samples at once. A first row may be w: thus the copy.
    shared = solver.model(rows.first.clone(), down) is down.w
    models = run.w if shared else run.engine.models(solver, rows, ids, down)
    found = measured(run, models, ids, part)
    return found if run.probe is None or part != "test" else {**found, BACKDOOR: succeeded(run.probe, models, ids)}
