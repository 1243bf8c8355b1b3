"""Fashion-MNIST on 500 devices of five classes, as Li et al. 2021 partition it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from dittofl.datasets import idx
from dittofl.datasets.fetch import Content
from dittofl.datasets.gather import shuffled
from dittofl.datasets.places import Source
from dittofl.errors import fraction, require, whole
from dittofl.federation import Federation, ends

CONTENTS = {
    "train-images-idx3-ubyte.gz": Content(
        47_040_016, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"
    ),
    "train-labels-idx1-ubyte.gz": Content(60_008, "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"),
    "t10k-images-idx3-ubyte.gz": Content(7_840_016, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"),
    "t10k-labels-idx1-ubyte.gz": Content(10_008, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"),
}
SOURCE = Source(
    name="fashion",
    advice="install Debian's package dataset-fashion-mnist, or give the folder of the four files",
    forms=(tuple(CONTENTS),),
    packaged="/usr/share/datasets/fashion-mnist",
    addresses=(
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets",
    ),
    contents=CONTENTS,
    origin="Xiao, Rasul, Vollgraf 2017, https://github.com/zalandoresearch/fashion-mnist",
    licence="MIT",
    fingerprints={
        "fashion": "bd713bc895ce2c9d945220989fd039992a11a1ca887ad29ce588bb073420e600",
        "fashion_images": "9bab4464d17d2f0c4bbbd1057fc5354a5aa56560e42f74a6e9e04f43b5235ba6",
    },
)
BLOCK = 4096  # images in float64 at a time
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class Pictures(NamedTuple):
    """The content of two files."""

    images: Bytes  # [n, 28, 28]
    labels: Bytes  # [n]


def fashion(*, devices: int = 500, validation: float = 0.0, data: str | None = None) -> Federation:
    """500 devices of five classes: the authors' partition, replayed exactly. Official test images test.

    Pixels are standardised one by one with the train images' mean and std + .001. `validation` holds out that share of
    each device's train part at random: the last of its shuffled samples, as the authors do (.1) before they choose λ.
    """
    whole("fashion", "devices", devices, 1)
    fraction("fashion", "validation", validation)
    train, test = _files(SOURCE.folder(data))
    mine = partition(train.labels, test.labels, devices)
    if not validation:
        return _federation(train, test, mine)
    # They are dealt class by class, so that the last ones are of one class.
    mixed = [(its[shuffled(str(u), len(its), 0)], test_its) for u, (its, test_its) in enumerate(mine)]
    return _federation(train, test, mixed).hold_out(validation)


def fashion_images(*, data: str | None = None) -> Federation:
    """Fashion-MNIST as it is published, on one device: for `partitioned`, and to train in one place."""
    train, test = _files(SOURCE.folder(data))
    return _federation(train, test, [(np.arange(len(train.labels)), np.arange(len(test.labels)))])


def _federation(train: Pictures, test: Pictures, mine: Sequence[tuple[Ints, Ints]]) -> Federation:
    """Every device's samples to train and to test, each standardised straight to its place."""
    mean = train.images.mean(0, dtype=np.float64)
    # Line by line of an image: for all of them at once numpy would hold every image in float64, several times.
    std = np.stack([train.images[:, i].std(0, dtype=np.float64) for i in range(28)]) + 0.001
    bounds = ends(np.array([(len(a), 0, len(b)) for a, b in mine]))
    x = np.empty((bounds[-1, 3], 1, 28, 28), dtype=np.float32)
    y = np.empty(len(x), dtype=np.int64)
    for starts, samples in zip(bounds[:, [0, 2]].tolist(), mine, strict=True):
        for start, its, pictures in zip(starts, samples, (train, test), strict=True):
            y[start : start + len(its)] = pictures.labels[its]
            for at in range(0, len(its), BLOCK):
                block = its[at : at + BLOCK]
                x[start + at : start + at + len(block), 0] = (pictures.images[block] - mean) / std
    return Federation(tuple(map(str, range(len(mine)))), torch.from_numpy(x), torch.from_numpy(y), bounds)


def _files(folder: Path) -> list[Pictures]:
    """Those to train and those to test."""
    found = []
    for part in ("train", "t10k"):
        images, labels = (idx.read(folder / f"{part}-{what}-ubyte.gz") for what in ("images-idx3", "labels-idx1"))
        proper = images.shape[1:] == (28, 28) and labels.shape == images.shape[:1] and labels.max(initial=0) < 10
        require(proper, f"fashion: {folder} holds {part} images {images.shape} and labels {labels.shape}: get it again")
        found.append(Pictures(images, labels))
    return found


def partition(train_y: Bytes, test_y: Bytes, devices: int = 500) -> list[tuple[Ints, Ints]]:
    """Each device's train and test samples: sizes and class shares by numpy's legacy generator of seed 233.

    Device u holds the classes (u + j) mod 10, j = 0 … 4; the samples of a class are dealt in order, from the start
    again where a device's share would run over the end.
    """
    rng = np.random.RandomState(233)
    sizes = rng.lognormal(3, 1, devices) + 10
    sizes = sizes / sizes.sum() * len(train_y)
    pools = [[np.flatnonzero(labels == c) for c in range(10)] for labels in (train_y, test_y)]
    at = np.zeros((2, 10), dtype=int)
    given = []
    for u in range(devices):
        shares = rng.lognormal(1, 1, 5)
        mine: tuple[list[Ints], list[Ints]] = ([], [])
        for j, share in enumerate(shares / shares.sum()):
            c = (u + j) % 10
            for part, wanted in enumerate((int(share * sizes[u]) + 1, int(share * sizes[u] / 6) + 1)):
                pool = pools[part][c]
                at[part, c] = 0 if at[part, c] + wanted > len(pool) else at[part, c]
                mine[part].append(pool[at[part, c] : at[part, c] + wanted])
                at[part, c] += wanted
        given.append((np.concatenate(mine[0]), np.concatenate(mine[1])))
    return given
