"""What w and every personal model are worth to each device."""

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dittofl.errors import blamed, cut, require, short
from dittofl.federation import Part
from dittofl.method import GLOBAL
from dittofl.metrics import Summary, summarise

if TYPE_CHECKING:
    from dittofl.federated import Federated

Numbers = NDArray[np.float64]
Scores = dict[str, Numbers]  # metric → [K], NaN where a device has no samples in the part
Ids = NDArray[np.int64]

HELD = 2**28  # elements of rows or outputs held at a time


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Metrics after round t: `values[model, part][metric]` has one number a device."""

    t: int
    ids: tuple[str, ...]
    malicious: NDArray[np.bool_]
    visits: Ids
    sizes: dict[Part, Ids]
    values: dict[tuple[str, Part], Scores]
    choices: dict[str, NDArray[np.str_]]  # which row each device chose, for every choice of the method
    lower: frozenset[str]  # metrics where less is better

    def summary(
        self, model: str = GLOBAL, metric: str = "accuracy", part: Part = "test", whom: str = "benign"
    ) -> Summary:
        """A metric of a model over `benign` devices, or over `all`."""
        there = ", ".join(f"{m!r} on {p!r}" for m, p in self.values)
        require(
            isinstance(model, str) and (model, part) in self.values,
            f"{model!r} on {part!r} was not evaluated: there are {cut(there)}",
        )
        scores = self.values[model, part]
        require(
            isinstance(metric, str) and metric in scores,
            f"no metric is called {metric!r}: there are {', '.join(scores)}",
        )
        require(whom in ("benign", "all"), f"whom must be 'benign' or 'all', got {whom!r}")
        which = ~self.malicious if whom == "benign" else np.ones_like(self.malicious)
        return summarise(scores[metric], self.sizes[part], which, lower_is_better=metric in self.lower)

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
        yield f"{'model':<16}{'part':<11}{'metric':<10}{'mean':>8}{'std':>8}{'worst10':>9}{'weighted':>10}"
        for (model, part), scores in self.values.items():
            for metric in scores:
                s = self.summary(model, metric, part)
                numbers = f"{s.mean:>8.4f}{s.std:>8.4f}{s.worst10:>9.4f}{s.weighted_mean:>10.4f}"
                yield f"{model:<16}{part:<11}{metric:<10}{numbers}"


def evaluate(run: "Federated", parts: tuple[Part, ...]) -> Evaluation:
    """Scores every model on every device; where the method chooses among rows, on validation data too."""
    for part in parts:
        require(part in ("train", "validation", "test"), f"a part is 'train', 'validation' or 'test', got {part!r}")
    everyone = np.arange(run.federation.K)
    values = {(model, part): scores(run, model, everyone, part) for part in parts for model in run.solvers}
    choices = {name: chosen(run, name, everyone) for name in run.method.choose}
    for name, picks in choices.items():
        for part in parts:
            among = {model: values[model, part] for model in run.method.choose[name].among}
            metrics = next(iter(among.values()))
            values[name, part] = {
                metric: np.array([among[pick][metric][k] for k, pick in enumerate(picks)]) for metric in metrics
            }
    lower = {name for name in run.objective.task.metrics if run.objective.task.metric(name).lower_is_better}
    sizes: dict[Part, Ids] = {part: run.federation.sizes(part) for part in parts}
    return Evaluation(
        run.t, run.federation.ids, run.malicious, run.visits.copy(), sizes, values, choices, frozenset(lower | {"loss"})
    )


def chosen(run: "Federated", name: str, ids: Ids) -> NDArray[np.str_]:
    """The row that each device chooses on its own validation data."""
    choice = run.method.choose[name]
    candidates = [scores(run, model, ids, "validation") for model in choice.among]
    accuracy = np.stack([one["accuracy"] for one in candidates]) if "accuracy" in candidates[0] else None
    picks = choice.pick(
        run.federation.sizes("validation")[ids], accuracy, np.stack([one["loss"] for one in candidates])
    )
    return np.array(choice.among)[picks]


def scores(run: "Federated", model: str, ids: Ids, part: Part) -> Scores:
    """Every metric of one model on the devices' part."""
    per = max(1, HELD // max(run.objective.layout.P, 1 + int(run.federation.sizes(part).max()) * run.objective.width))
    pieces = [_scores(run, model, ids[a : a + per], part) for a in range(0, len(ids), per)]
    return {metric: np.concatenate([piece[metric] for piece in pieces]) for metric in pieces[0]}


def _scores(run: "Federated", model: str, ids: Ids, part: Part) -> Scores:
    solver, rows, down = run.solvers[model], run.rows[model], run.down()
    # Most global solvers serve w itself, which is scored on all samples at once.
    shared = solver.model(rows.first, down) is down.w
    models = run.w if shared else run.engine.models(solver, rows, ids, down)
    return measured(run, models, ids, part)


def measured(run: "Federated", models: Tensor, ids: Ids, part: Part) -> Scores:
    """Accuracy (where the target has one), loss and the user's metrics of given rows, one number a device."""
    objective, sizes = run.objective, run.federation.sizes(part)[ids]
    metrics = [*(["accuracy"] if objective.accurate else []), "loss", *objective.task.metrics]
    if not sizes.any():
        return {metric: np.full(len(ids), np.nan) for metric in metrics}
    out = run.engine.outputs(models, ids, part)
    index = run.setting.put(np.concatenate([run.setting.span(int(k), part) for k in ids]))
    y = run.setting.y.index_select(0, index)
    diverged = _means(~out.reshape(len(out), -1).isfinite().all(1), sizes) > 0
    first = np.cumsum(sizes) - sizes
    spans = np.column_stack([first, first + np.where(diverged, 0, sizes)])
    with torch.no_grad():
        result = {"accuracy": _means(objective.right(out, y), sizes)} if objective.accurate else {}
        result["loss"] = _means(objective.losses(out, y), sizes) + _penalties(run, models, len(ids))
        for name in objective.task.metrics:
            result[name] = _of_user(name, objective.task.metric(name).of, out, y, spans)
    # The argmax of NaN is a class, and right by chance.
    return {metric: np.where(diverged, np.nan, values) for metric, values in result.items()}


def device_losses(run: "Federated", w: Tensor, ids: Ids, part: Part) -> Tensor:
    """F_k(w) of some devices, as a report carries it."""
    return torch.from_numpy(measured(run, w, ids, part)["loss"]).to(w)


def _means(values: Tensor | None, sizes: Ids) -> Numbers:
    """Per-device means in float64, in the order of the samples."""
    numbers = np.zeros(0) if values is None else values.detach().double().cpu().numpy()
    total = np.bincount(np.repeat(np.arange(len(sizes)), sizes), weights=numbers, minlength=len(sizes))
    means: Numbers = np.divide(total, sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)
    return means


def _penalties(run: "Federated", models: Tensor, count: int) -> Numbers | float:
    objective = run.objective
    if objective.task.penalty is None:
        return 0.0
    rows = [models] if models.dim() == 1 else list(models)
    return np.array([float(objective.task.penalty(objective.layout.named(row))) for row in rows])


def _of_user(name: str, of: Any, out: Tensor, y: Tensor, spans: Ids) -> Numbers:
    numbers = np.full(len(spans), np.nan)
    for k, (a, b) in enumerate(spans.tolist()):
        if b > a:
            with blamed(f"metric {name!r}"):
                given = of(out[a:b], y[a:b])
            number = isinstance(given, Tensor | np.ndarray | Real)
            value = torch.as_tensor(given).double() if number else torch.empty(0)
            require(
                number and (value.dim() == 0 or value.shape == (b - a,)),
                f"metric {name!r} must give one number, or one per sample [{b - a}], got "
                + (f"shape {tuple(value.shape)}" if number else short(given)),
            )
            numbers[k] = float(value.mean())
    return numbers
