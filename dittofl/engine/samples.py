"""The samples that the plain engine evaluates on, one device at a time."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from torch import Tensor

from dittofl.batches import Batch
from dittofl.engine.setting import Setting
from dittofl.federation import Part
from dittofl.inputs import Inputs, each, parts, rebuilt

GATHERED = 2**22  # elements of minibatches that are gathered at a time


class Samples(NamedTuple):
    """The samples of one evaluation on one device."""

    x: Inputs
    y: Tensor
    key: np.uint64 | None = None  # of a minibatch, for augmentation and dropout; None for a whole part

    def slice(self, a: int, b: int) -> "Samples":
        """Some of them."""

        def part(whole: Tensor) -> Tensor:
            return whole[a:b]

        return Samples(each(self.x, part), self.y[a:b], self.key)

    def pieces(self, size: int) -> Iterator["Samples"]:
        """All of them, `size` at a time."""
        for a in range(0, len(self.y), size):
            yield self.slice(a, a + size)


Fetch = Callable[[int], Samples]  # the samples of the a-th device of a cohort


def gathered(setting: Setting, places: Tensor, key: np.uint64 | None = None) -> Samples:
    """The samples at these places, in the module's dtype."""
    return Samples(setting.inputs(places), setting.y.index_select(0, places), key)


def whole(setting: Setting, k: int, part: Part) -> Samples:
    """Device k's part."""
    return gathered(setting, setting.put(setting.span(k, part)))


def minibatches(setting: Setting, batch: Batch, *, alone: bool) -> Fetch:
    """Every device's minibatch; small ones are gathered for the whole cohort at once, unless told not to."""
    places, width = setting.put(batch.places), batch.width.tolist()
    if alone or places.numel() * setting.objective.activations > GATHERED:
        return lambda a: gathered(setting, places[a, : width[a]], batch.key[a])
    real = setting.put(np.concatenate([batch.of(a) for a in range(len(width))]))
    everyone = gathered(setting, real)
    columns = [part.split(width) for part in parts(everyone.x)]
    x = [rebuilt(everyone.x, one) for one in zip(*columns, strict=True)]
    return list(map(Samples, x, everyone.y.split(width), batch.key)).__getitem__
