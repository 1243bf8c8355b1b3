"""What given rows are worth on the devices' samples."""

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dittofl.engine import Engine
from dittofl.errors import blamed, require, short
from dittofl.federation import Part
from dittofl.types import Ints, Numbers

if TYPE_CHECKING:
    from dittofl.federated import Federated

Scores = dict[str, Numbers]  # metric → [K], NaN where a device has no samples in the part

BACKDOOR = "backdoor"  # the metric of an attack's success: the share of its samples predicted as it wants


def succeeded(probe: Engine, models: Tensor, ids: Ints) -> Numbers:
    """The share of each device's backdoor samples that its model predicts as the attacker wants."""
    sizes = probe.setting.federation.sizes("test")[ids]
    if not sizes.any():
        return np.full(len(ids), np.nan)
    out = probe.outputs(models, ids, "test")
    wanted = probe.setting.y[:1].expand(len(out), *probe.setting.y.shape[1:])
    return np.where(_diverged(out, sizes), np.nan, _means(probe.setting.objective.right(out, wanted), sizes))


def measured(run: "Federated", models: Tensor, ids: Ints, part: Part) -> Scores:
    """Accuracy (where the target has one), loss and the user's metrics of given rows, one number a device."""
    objective, sizes = run.objective, run.federation.sizes(part)[ids]
    metrics = [*(["accuracy"] if objective.accurate else []), "loss", *objective.task.metrics]
    if not sizes.any():
        return {metric: np.full(len(ids), np.nan) for metric in metrics}
    out = run.engine.outputs(models, ids, part)
    index = run.setting.put(run.setting.places(ids, part))
    y = run.setting.y.index_select(0, index)
    diverged = _diverged(out, sizes)
    first = np.cumsum(sizes) - sizes
    spans = np.column_stack([first, first + np.where(diverged, 0, sizes)])
    with torch.no_grad():
        result = {"accuracy": _means(objective.right(out, y), sizes)} if objective.accurate else {}
        result["loss"] = _means(objective.losses(out, y), sizes) + _penalties(run, models, len(ids))
        for name in objective.task.metrics:
            result[name] = _of_user(name, objective.task.metric(name).of, out, y, spans)
    return {metric: np.where(diverged, np.nan, values) for metric, values in result.items()}


def device_losses(run: "Federated", w: Tensor, ids: Ints, part: Part) -> Tensor:
    """F_k(w) of some devices, as a report carries it."""
    return torch.from_numpy(measured(run, w, ids, part)["loss"]).to(w)


def _diverged(out: Tensor, sizes: Ints) -> NDArray[np.bool_]:
    """Which devices have outputs that are not finite: the argmax of NaN is a class too, and right by chance."""
    return _means(~out.reshape(len(out), -1).isfinite().all(1), sizes) > 0


def _means(values: Tensor | None, sizes: Ints) -> Numbers:
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


def _of_user(name: str, of: Any, out: Tensor, y: Tensor, spans: Ints) -> Numbers:
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
