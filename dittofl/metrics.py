"""Per-device numbers to summaries: fairness is about how a metric is spread over devices, not about its mean alone."""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dittofl.errors import require
from dittofl.types import Numbers


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A metric over devices: every device counts once, except in `weighted_mean`, where every sample does.

    Without a device all numbers are NaN and `devices` is 0.
    """

    mean: float  # (1/K) Σ xₖ
    weighted_mean: float  # Σ nₖ xₖ / Σ nₖ
    std: float  # √variance
    variance: float  # (1/K) Σ (xₖ − mean)², the paper's measure of fairness
    mean_minus_std: float
    worst10: float  # mean of the worst ⌈K/10⌉ devices
    best10: float  # mean of the best ⌈K/10⌉ devices
    min: float  # the smallest value, also where lower is better
    devices: int  # K, the devices that are summarised

    def as_dict(self) -> dict[str, float]:
        """The numbers by name, for a log or a table."""
        return asdict(self)


def summarise(
    values: NDArray[np.floating[Any]],
    sizes: NDArray[np.integer[Any]],
    which: NDArray[np.bool_] | None = None,
    *,
    lower_is_better: bool = False,
) -> Summary:
    """mean = (1/K) Σ xₖ,  weighted mean = Σ nₖ xₖ / Σ nₖ,  variance = (1/K) Σ (xₖ − mean)²

    over the devices in `which` (default: all) that have samples: a device with nₖ = 0 has no value (it is NaN) and is
    left out. A device that has samples and a value that is not finite is a model that diverged; it is not hidden, and
    makes every number NaN. The result does not depend on the order of devices, to the last bit.

    >>> accuracy, n = np.array([0.5, 1.0, np.nan]), np.array([30, 10, 0])
    >>> s = summarise(accuracy, n)
    >>> s.mean, s.weighted_mean, s.std, s.worst10, s.devices
    (0.75, 0.625, 0.25, 0.5, 2)
    """
    which = np.ones(len(sizes), dtype=np.bool_) if which is None else which
    _check(values, sizes, which)
    kept = which & (sizes > 0)
    x, n = values[kept].astype(np.float64), sizes[kept].astype(np.float64)
    if len(x) == 0 or not np.isfinite(x).all():
        return replace(_summary(np.array([np.nan]), np.ones(1), lower_is_better), devices=len(x))
    order = np.lexsort((n, x))
    with np.errstate(over="ignore"):  # the variance of values near the largest float is inf
        return _summary(x[order], n[order], lower_is_better)


def _check(values: NDArray[Any], sizes: NDArray[Any], which: NDArray[Any]) -> None:
    shapes = [array.shape for array in (values, sizes, which)]
    require(
        values.ndim == 1 and len(set(shapes)) == 1,
        f"values, sizes and which hold one entry a device, got shapes {', '.join(map(str, shapes))}",
    )
    require(which.dtype == np.bool_, f"which says of every device whether it counts, got {which.dtype}: pass booleans")


def _summary(x: Numbers, n: Numbers, lower_is_better: bool) -> Summary:
    """The summary of x, ascending."""
    tenth = (len(x) + 9) // 10
    mean, low, high = _mean(x), _mean(x[:tenth]), _mean(x[-tenth:])
    variance = float(np.mean(np.square(x - mean)))
    std = math.sqrt(variance)
    return Summary(
        mean=mean,
        weighted_mean=_mean(x, n),
        std=std,
        variance=variance,
        mean_minus_std=mean - std,
        worst10=high if lower_is_better else low,
        best10=low if lower_is_better else high,
        min=float(x[0]),
        devices=len(x),
    )


def _mean(x: Numbers, n: Numbers | None = None) -> float:
    """x₀ + Σ nₖ (xₖ − x₀) / Σ nₖ: exactly that value where all are equal, so that their variance is 0."""
    return float(x[0] + np.average(x - x[0], weights=n))
