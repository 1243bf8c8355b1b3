"""FEMNIST dealt out by class: five consecutive classes a device, as Li et al. 2021 skew it."""

from collections.abc import Iterator, Sequence

import numpy as np

from dittofl.datasets import gather
from dittofl.datasets.gather import Labels, Moves, Share
from dittofl.datasets.handwriting import CLASSES, IMAGE, SOURCE, stores
from dittofl.errors import require, whole
from dittofl.federation import Federation, Split
from dittofl.seeds import Purpose, keys, tag
from dittofl.types import Ints

__all__ = ["SOURCE", "femnist_skewed"]

EACH = 5  # classes on a device
LOWER_CASE = 36  # the class of a


def femnist_skewed(
    *, devices: int = 100, first: int = LOWER_CASE, classes: int = 10, validation: float = 0.0,
    split: Split | None = None, seed: int = 0, data: str | None = None,
) -> Federation:  # fmt: skip
    """FEMNIST dealt out by class: device u holds first + (u + j) mod classes, j = 0 … 4.

    These are of the letters a … j, or, with first=0 and classes=62, of all. The paper tells of 100 devices with 5
    classes, no more. Sizes are those of FedProx's script for the same letters, lognormal(4, 1) + 5 samples a device, as
    many of each class; these are dealt in order from a shuffled pool, from its start again where a device's share would
    run over the end. ⌊0.8 n⌋ of a device's samples train, or as `split` says; `validation` holds out that share of each
    train part, as the authors do (.1) before they choose λ.

    >>> femnist_skewed(first=60, classes=10)
    Traceback (most recent call last):
    dittofl.errors.InputError: femnist_skewed got the classes 60 … 69, expected some of 0 … 61: lower first or classes
    """
    whole("femnist_skewed", "devices", devices, 1)
    whole("femnist_skewed", "first", first, 0)
    whole("femnist_skewed", "classes", classes, EACH)
    got = f"femnist_skewed got the classes {first} … {first + classes - 1}, expected some of 0 … {CLASSES - 1}"
    require(first + classes <= CLASSES, f"{got}: lower first or classes")
    gather.checked("femnist_skewed", validation, split, seed)
    files = stores(data)
    found = [file.labels() for file in files]
    needed = {(u + j) % classes for u in range(min(devices, classes)) for j in range(EACH)}
    pools = [pooled(found if c in needed else (), first + c, seed) for c in range(classes)]
    mine = {f"device {u}": its for u, its in enumerate(dealt(pools, devices, first, seed))}
    bounds, (order,) = gather.split_at_random({id: its[:, 2] for id, its in mine.items()}, list(mine), split, seed)
    rows = np.empty((int(bounds[-1, 3]), 3), dtype=np.int64)
    for id, (samples, places) in order.items():
        rows[places] = mine[id][samples]
    shares = [Share(files[i], found[i], moves) for i, moves in enumerate(by_writer(found, rows))]
    return gather.held_out(gather.assembled(list(mine), bounds, IMAGE, shares), validation)


def pooled(found: Sequence[Labels], c: int, seed: int) -> Ints:
    """(file, writer, sample) of every image of a class [m, 3], in random order."""
    rows, drawn = [np.empty((0, 3), dtype=np.int64)], [np.empty(0, dtype=np.uint64)]
    for file, labels in enumerate(found):
        for k, (writer, y) in enumerate(labels.items()):
            samples = np.flatnonzero(y == c)
            rows.append(np.column_stack([np.full((len(samples), 2), (file, k)), samples]))
            drawn.append(keys(seed, Purpose.PARTITION, tag(writer), file, samples))
    return np.concatenate(rows)[np.argsort(np.concatenate(drawn))]


def dealt(pools: Sequence[Ints], devices: int, first: int, seed: int) -> Iterator[Ints]:
    """Every device's rows of the pools."""
    rng = np.random.default_rng(int(keys(seed, Purpose.PARTITION)[0]))
    at = np.zeros(len(pools), dtype=np.int64)
    for u, size in enumerate(rng.lognormal(4, 1, devices) + 5):
        n = int(size / EACH)
        its = []
        for c in ((u + j) % len(pools) for j in range(EACH)):
            held = f"femnist_skewed: the files hold {len(pools[c])} images of class {first + c}"
            require(n <= len(pools[c]), f"{held}, expected the {n} that device {u} is to have: get the whole data")
            at[c] = 0 if at[c] + n > len(pools[c]) else at[c]
            its.append(pools[c][at[c] : at[c] + n])
            at[c] += n
        yield np.concatenate(its)


def by_writer(found: Sequence[Labels], rows: Ints) -> Iterator[dict[str, Moves]]:
    """Where the samples of each file's writers go, from (file, writer, sample) of every place."""
    for file, labels in enumerate(found):
        mine = np.flatnonzero(rows[:, 0] == file)
        mine = mine[np.argsort(rows[mine, 1], kind="stable")]
        held = np.bincount(rows[mine, 1], minlength=len(labels))
        parts = zip(labels, np.split(mine, held.cumsum()[:-1]), strict=True)
        yield {writer: Moves(rows[places, 2], places) for writer, places in parts if len(places)}
