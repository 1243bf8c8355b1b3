"""The samples that the plain engine evaluates on, one device at a time."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from torch import Tensor

from dittofl.batches import Batch
from dittofl.engine.setting import PART_OF, Plan, Setting
from dittofl.federation import Part
from dittofl.inputs import Inputs, each, parts, rebuilt
from dittofl.types import Ask, Ints

GATHERED = 2**22  # elements of forward passes whose samples are gathered ahead
FEW = 4  # minibatches that are held where they are gathered as they are asked for


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


def gathered(setting: Setting, places: Tensor, key: np.uint64 | None = None) -> Samples:
    """The samples at these places, in the module's dtype."""
    return Samples(setting.inputs(places), setting.y.index_select(0, places), key)


def whole(setting: Setting, k: int, part: Part) -> Samples:
    """Device k's part."""
    return gathered(setting, setting.put(setting.span(k, part)))


def minibatches(setting: Setting, batch: Batch) -> list[Samples]:
    """Every device's minibatch, gathered for all of them at once."""
    width = batch.width.tolist()
    everyone = gathered(setting, setting.put(np.concatenate([batch.of(a) for a in range(len(width))])))
    columns = [part.split(width) for part in parts(everyone.x)]
    x = [rebuilt(everyone.x, one) for one in zip(*columns, strict=True)]
    return list(map(Samples, x, everyone.y.split(width), batch.key))


class Turn(NamedTuple):
    """Evaluation i of a solver on one device."""

    name: str
    i: int
    ask: Ask
    samples: Samples


class Shelf:
    """What the evaluations of a visit see, however many they are and however wide a sample is.

    All minibatches of a group of devices are gathered ahead and at once where that is little; where it is much for one
    device alone, they are gathered as they are asked for, and the last few are held.
    """

    def __init__(self, setting: Setting, plan: Plan) -> None:
        self.setting, self.plan = setting, plan
        self.turns = [
            (name, i, asks[i], None if asks[i].on in PART_OF else plan.feed(name, i))
            for i in range(max(map(len, plan.asks.values())))
            for name, asks in plan.asks.items()
            if i < len(asks)
        ]
        several, width = len({feed for *_, feed in self.turns}), int(setting.stream.width[plan.ids].max())
        self.most = GATHERED // max(1, several * width * setting.objective.activations)  # devices of a group

    def group(self, chosen: Ints) -> Callable[[int], Iterator[Turn]]:
        """The turns of the a-th of some devices, which are chosen together."""
        fetch = lru_cache(None if self.most else FEW)(
            lambda feed: minibatches(self.setting, self.plan.batch(feed, chosen))
        )

        def turns(a: int) -> Iterator[Turn]:
            k, lengths = int(self.plan.ids[chosen[a]]), {name: n[chosen[a]] for name, n in self.plan.lengths.items()}
            for name, i, ask, feed in self.turns:
                if i < lengths[name]:
                    samples = whole(self.setting, k, PART_OF[ask.on]) if feed is None else fetch(feed)[a]
                    yield Turn(name, i, ask, samples)

        return turns
