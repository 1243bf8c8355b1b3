"""Samples of chosen devices out of files into the arrays of a federation, each straight to its place, held once.

A `Store` is read twice: its labels, which say what there is; then the chosen samples, block by block. Between the two
every sample gets its place, so that nothing is held in two copies.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from dittofl.datasets.reading import intact
from dittofl.errors import fraction, is_whole, require, short
from dittofl.federation import Federation, Split, ends, portion
from dittofl.seeds import Purpose, keys, tag
from dittofl.types import Ints

Array = NDArray[Any]
Labels = Mapping[str, Ints]  # of every device, in the order of its samples


def classes(where: str, y: Array, C: int) -> Ints:
    """Labels [n] in 0 … C−1, which some files write as 0.0."""
    proper = y.dtype.kind in "iuf" and y.ndim == 1 and len(y) and np.isfinite(y).all() and not (y % 1).any()
    intact(proper, f"{where} has labels {y.dtype} {y.shape}, expected whole numbers, one a sample")
    wrong = np.flatnonzero((y < 0) | (y >= C))
    intact(not len(wrong), f"{where} has the labels {y[wrong[:3]]} at samples {wrong[:3]}, expected 0 … {C - 1}")
    return y.astype(np.int64)


class Store(Protocol):
    """Files in one format that hold the samples of devices."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files."""

    def labels(self) -> Labels:
        """What there is."""

    def samples(self, devices: Container[str]) -> Iterator[tuple[str, int, Array]]:
        """(device, number of the first sample, the next few) of the wanted devices, each in its own order."""


class Moves(NamedTuple):
    """Samples of one device of a store, by number, and the places that they go to."""

    samples: Ints
    places: Ints


class Share(NamedTuple):
    """What one store gives to a federation."""

    store: Store
    labels: Labels
    moves: Mapping[str, Moves]


def train_part(n: Ints) -> Ints:
    """⌊0.8 n⌋, at least 1: what LEAF's programs and the authors' train on."""
    return np.maximum(portion(n, 0.8), 1)


def bounds_of(n: Ints, split: Split | None) -> Ints:
    """Bounds of devices with n samples, parted as `split` says, or 80/20 [K, 4]."""
    if split is not None:
        require(int(n.min()) >= 2, f"split= needs 2 samples on every device, got {int(n.min())} on one: leave it out")
        return ends(split.counts(n))
    train = train_part(n)
    return ends(np.stack([train, 0 * n, n - train], axis=1))


def shuffled(device: str, n: int, seed: int) -> Ints:
    """The random order of a device's samples, that of `Federation.of`."""
    return np.argsort(keys(seed, Purpose.SPLIT, tag(device), np.arange(n)))


def chosen(owner: str, found: Mapping[str, int], count: int | None, seed: int) -> list[str]:
    """As many devices, drawn without replacement, and in the order of their names; None: all, and one at least."""
    names = sorted(found)
    wanted = max(len(names), 1) if count is None else count
    enough = f"{owner}: the files hold {len(names)} devices with as many samples, expected {wanted} or more"
    require(wanted <= len(names), f"{enough}: ask for fewer, or get the whole data")
    drawn = np.argsort(keys(seed, Purpose.PARTITION, np.array([tag(name) for name in names], dtype=np.uint64)))
    return [names[k] for k in sorted(drawn[:wanted].tolist())]


def split_at_random(
    labels: Labels, ids: Sequence[str], split: Split | None, seed: int
) -> tuple[Ints, list[dict[str, Moves]]]:
    """Bounds, and where the samples of one store go: shuffled by device, then parted as `split` says, or 80/20."""
    bounds = bounds_of(np.array([len(labels[id]) for id in ids], dtype=np.int64), split)
    at = dict(zip(ids, bounds[:, 0].tolist(), strict=True))
    return bounds, [{id: Moves(shuffled(id, k := len(labels[id]), seed), at[id] + np.arange(k)) for id in ids}]


def given_parts(train: Labels, test: Labels, ids: Sequence[str]) -> tuple[Ints, list[dict[str, Moves]]]:
    """Bounds, and where the samples of two stores go: the one trains, the other tests."""
    n = np.array([(len(train[id]), 0, len(test[id])) for id in ids], dtype=np.int64)
    bounds = ends(n)
    moves = [
        {id: Moves(np.arange(k), start + np.arange(k)) for id, k, start in zip(ids, counts, starts, strict=True)}
        for counts, starts in ((n[:, 0], bounds[:, 0]), (n[:, 2], bounds[:, 2]))
    ]
    return bounds, moves


def filled(x: Array, share: Share) -> None:
    """Puts samples of a store, which are as many as their labels, where they go."""
    held = dict.fromkeys(share.moves, 0)
    for device, start, block in share.store.samples(share.moves):
        held[device] = start + len(block)
        samples, places = share.moves[device]
        here = (samples >= start) & (samples < held[device])
        x[places[here]] = block[samples[here] - start]
    for device, n in held.items():
        got = f"{n} samples and {len(share.labels[device])} labels of device {device!r}"
        intact(n == len(share.labels[device]), f"{named(share.store)} holds {got}")


def named(store: Store) -> str:
    """Its files, for messages."""
    first, *more = store.paths
    return f"{first}, one of {len(store.paths)} files," if more else str(first)


def federation(
    owner: str, stores: Sequence[Store], choose: Callable[[Mapping[str, int]], Sequence[str]], like: Array, *,
    split: Split | None, validation: float, seed: int,
) -> Federation:  # fmt: skip
    """The chosen devices' samples, each `like` one: of one store split at random, of two as train and test part."""
    checked(owner, validation, split, seed)
    require(split is None or len(stores) == 1, f"{owner}: the files are train and test parts: leave split out")
    found = [store.labels() for store in stores]
    intact(found[0], f"{named(stores[0])} holds no devices")
    strays = sorted(found[0].keys() ^ found[-1].keys())
    told = f"{named(stores[0])} and {named(stores[-1])} do not both hold devices {strays[:3]}"
    require(not strays, f"{told}: part each device's samples (LEAF's preprocess.sh -t sample), or get them again")
    ids = choose({id: sum(len(its[id]) for its in found) for id in found[0]})
    if len(found) == 1:
        bounds, moves = split_at_random(found[0], ids, split, seed)
    else:
        bounds, moves = given_parts(found[0], found[1], ids)
    return held_out(assembled(ids, bounds, like, list(map(Share, stores, found, moves))), validation)


def assembled(ids: Sequence[str], bounds: Ints, like: Array, shares: Sequence[Share]) -> Federation:
    """The samples of all stores at their places."""
    x = np.empty((int(bounds[-1, 3]), *like.shape), like.dtype)
    y = np.empty(len(x), dtype=np.int64)
    for share in shares:
        filled(x, share)
        for id, (samples, places) in share.moves.items():
            y[places] = share.labels[id][samples]
    return Federation(tuple(ids), torch.from_numpy(x), torch.from_numpy(y), bounds)


def held_out(whole: Federation, validation: float) -> Federation:
    """The last `validation` of each train part set apart, which the authors do (.1) before they choose λ."""
    return whole.hold_out(validation) if validation else whole


def checked(owner: str, validation: float, split: Split | None, seed: int) -> None:
    """Refuses what is no setting, and settings that contradict each other."""
    fraction(owner, "validation", validation)
    require(is_whole(seed, -(2**63)), f"{owner} needs a whole number as its seed, got seed={short(seed)}")
    require(split is None or isinstance(split, Split), f"{owner} needs split=Split(…) or None, got {short(split)}")
    apart = split is None or not split.validation or not validation
    require(apart, f"{owner}: split= sets validation apart already: leave validation out")
