"""The samples of a chunk of devices as one batch: filled up to one width, what fills it up with weight 0."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dittofl.batches import Batch
from dittofl.engine.samples import FEW
from dittofl.engine.setting import Setting
from dittofl.federation import Part, place
from dittofl.inputs import Inputs, each, parts, rebuilt
from dittofl.seeds import Keys
from dittofl.types import Ints


class Feed(NamedTuple):
    """Samples of each device of the chunk: x [c, B, …], y [c, B, …], weights [c, B] that sum to 1, keys [c]."""

    x: Inputs
    y: Tensor
    weight: Tensor
    key: Tensor | None


class Lazy:
    """Feeds that are gathered when they are asked for; the last few are held."""

    def __init__(self, gather: Callable[[Any], Feed]) -> None:
        self.gather = lru_cache(maxsize=FEW)(gather)

    def __getitem__(self, key: Any) -> Feed:
        return self.gather(key)


class Feeds:
    """Gathers samples on the computing device; `static` shapes do not depend on the cohort."""

    def __init__(self, setting: Setting, *, static: bool) -> None:
        self.setting = setting
        self.least = int(setting.stream.width.max()) if static else 0

    def minibatch(self, batch: Batch) -> Feed:
        """The minibatches of some devices."""
        places, width, key = batch
        columns = places.shape[1]
        x, y = self._gather(places)
        if self.setting.objective.task.transform is not None:
            x = self._augmented(x, width, key)
        if columns < self.least and self.setting.objective.paddable:
            x, y = each(x, lambda part: _filled(part, self.least, 1)), _filled(y, self.least, 1)
            columns = self.least
        return Feed(x, y, self._weights(width, columns), self.setting.put(key.astype(np.int64)))

    def part(self, ids: Ints, part: Part) -> Feed:
        """All samples of the devices' part; one without any shows its first train sample twice, with weight 0."""
        width = self.setting.federation.sizes(part)[ids]
        columns = int(width.max()) or 2
        bounds = self.setting.federation.bounds
        first = np.where(width > 0, bounds[ids, place(part)], bounds[ids, 0])
        places = first[:, None] + np.arange(columns) % np.maximum(width, 1)[:, None]
        return Feed(*self._gather(places), self._weights(width, columns), None)

    def _gather(self, places: Ints) -> tuple[Inputs, Tensor]:
        flat = self.setting.put(places.reshape(-1))
        x = each(self.setting.inputs(flat), lambda part: part.view(*places.shape, *part.shape[1:]))
        y = self.setting.y.index_select(0, flat)
        return x, y.view(*places.shape, *y.shape[1:])

    def _weights(self, width: Ints, columns: int) -> Tensor:
        share = (np.arange(columns) < width[:, None]) / np.maximum(width, 1)[:, None]
        return self.setting.put(share).to(self.setting.objective.w0.dtype)

    def _augmented(self, x: Inputs, width: Ints, keys: Keys) -> Inputs:
        """The transform sees each device's real minibatch alone, as on the loop engine."""
        columns = parts(x)[0].shape[1]
        devices = [
            self.setting.augmented(each(x, lambda part, a=a: part[a, : width[a]]), key)  # type: ignore[misc]
            for a, key in enumerate(keys)
        ]
        return _stacked([each(one, lambda part: _filled(part, columns, 0)) for one in devices])


def _filled(x: Tensor, columns: int, axis: int) -> Tensor:
    """The last entry along an axis again and again."""
    last = x.narrow(axis, x.shape[axis] - 1, 1)
    missing = columns - x.shape[axis]
    return torch.cat([x, *[last] * missing], axis) if missing else x


def _stacked(inputs: list[Inputs]) -> Inputs:
    columns = [torch.stack(one) for one in zip(*map(parts, inputs), strict=True)]
    return rebuilt(inputs[0], columns)
