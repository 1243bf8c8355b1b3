"""Minibatches without state: batch j of a device is a slice of the permutation f(seed, device, epoch).

    B_k = min(B, n_k),  e = ⌊j / ⌊n_k/B_k⌋⌋,  batch j = π_{k,e}[(j mod ⌊n_k/B_k⌋) B_k : … + B_k]

As in the authors' programs an epoch ends where less than a whole batch is left, and a device with fewer samples than
a batch uses all of them each time (Li et al. 2021, experiments). Permutations are kept until a device's next epoch;
they are a cache, not a state: any batch can be drawn at any time.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dittofl.federation import Federation
from dittofl.seeds import Keys, Purpose, extend, keys
from dittofl.types import Ints


class Batch(NamedTuple):
    """One minibatch for each device of a cohort."""

    places: Ints  # [m, B] rows of the federation's x and y; beyond a device's width its own last sample again
    width: Ints  # [m] how many of the B are real
    key: Keys  # [m] for dropout masks and augmentation

    def of(self, device: int) -> Ints:
        """The minibatch of one device, without what fills it up."""
        return self.places[device, : self.width[device]]


class Stream:
    """The minibatches of every device of a federation."""

    def __init__(self, federation: Federation, seed: int, size: int | None) -> None:
        self.first, self.n = federation.bounds[:, 0], federation.sizes("train")
        self.tags, self.seed = federation.tags, seed
        self.width = self.n if size is None else np.minimum(self.n, min(size, int(self.n.max())))
        self.per_epoch = self.n // self.width
        self.offset = np.concatenate([[0], np.cumsum(self.n)])
        self._cache: dict[Purpose, tuple[NDArray[np.int32], Ints]] = {}

    def take(self, purpose: Purpose, ids: Ints, j: Ints) -> Batch:
        """Batch j[i] of device ids[i], from the stream of a purpose."""
        epoch, place = np.divmod(j, self.per_epoch[ids])
        order = self._permutations(purpose, ids, epoch)
        width = self.width[ids]
        column = np.minimum(np.arange(width.max()), width[:, None] - 1)
        slot = (self.offset[ids] + place * width)[:, None] + column
        key = extend(extend(keys(self.seed, Purpose.DROPOUT, int(purpose)), self.tags[ids]), j)
        return Batch(self.first[ids][:, None] + order[slot], width, key)

    def _permutations(self, purpose: Purpose, ids: Ints, epoch: Ints) -> NDArray[np.int32]:
        if purpose not in self._cache:
            inner = np.arange(self.offset[-1]) - np.repeat(self.offset[:-1], self.n)
            self._cache[purpose] = (inner.astype(np.int32), np.full(len(self.n), -1))
        order, current = self._cache[purpose]
        # A batch that holds the whole device needs no shuffling.
        stale = np.flatnonzero((current[ids] != epoch) & (self.width[ids] < self.n[ids]))
        if len(stale):
            device, length = ids[stale], self.n[ids[stale]]
            segment = np.repeat(np.arange(len(device)), length)
            inner = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
            seeds = extend(extend(keys(self.seed, purpose), self.tags[device]), epoch[stale])
            order[self.offset[device][segment] + inner] = _shuffled(extend(seeds[segment], inner), inner, length)
            current[device] = epoch[stale]
        return order


def _shuffled(draws: Keys, inner: Ints, length: Ints) -> Ints:
    """0 … length − 1 of each device, in the order of its draws."""
    if len(inner) * 2 < len(length) * (longest := int(length.max())):
        return inner[np.lexsort((draws, np.repeat(np.arange(len(length)), length)))]
    rows = np.full((len(length), longest), np.iinfo(np.uint64).max)  # devices of about one size are sorted side by side
    there = np.arange(longest) < length[:, None]
    rows[there] = draws
    return np.argsort(rows, axis=1, kind="stable")[there]
