"""Fashion-MNIST on 500 devices of five classes, as Li et al. 2021 partition it."""

import numpy as np
from numpy.typing import NDArray

from dittofl.datasets import idx
from dittofl.datasets.places import located
from dittofl.errors import require, whole
from dittofl.federation import Federation

PARTS = ("train", "t10k")
FILES = tuple(f"{part}-{what}-ubyte.gz" for part in PARTS for what in ("images-idx3", "labels-idx1"))
Ints = NDArray[np.int64]


def fashion(*, devices: int = 500, validation: float = 0.0, data: str | None = None) -> Federation:
    """The authors' partition, replayed exactly for 500 devices: official train images train, official test images test.

    Pixels are standardised one by one with the train images' mean and std + .001. `validation` holds out that share of
    each device's train part, its last samples, as the authors do (.1) before they choose λ.
    """
    whole("fashion", "devices", devices, 1)
    require(
        isinstance(validation, int | float) and 0 <= validation < 1,
        f"fashion needs 0 ≤ validation < 1, got validation={validation!r}",
    )
    folder = located(
        "fashion", FILES, data=data, packaged="/usr/share/datasets/fashion-mnist",
        advice="install Debian's package dataset-fashion-mnist, or give the folder of the four files as data=",
    )  # fmt: skip
    (train, train_y), (test, test_y) = (
        [idx.read(folder / file) for file in FILES[place : place + 2]] for place in (0, 2)
    )
    for images, labels, part in ((train, train_y, "train"), (test, test_y, "test")):
        proper = images.shape[1:] == (28, 28) and labels.shape == images.shape[:1] and labels.max(initial=0) < 10
        require(proper, f"fashion: {folder} holds {part} images {images.shape} and labels {labels.shape}: get it again")
    mean, std = train.mean(0, dtype=np.float64), train.std(0, dtype=np.float64) + 0.001
    x, z = (((images - mean) / std).astype(np.float32)[:, None] for images in (train, test))
    mine = partition(train_y, test_y, devices)
    federation = Federation.from_parts(
        train={u: (x[a], train_y[a].astype(np.int64)) for u, (a, _) in enumerate(mine)},
        test={u: (z[b], test_y[b].astype(np.int64)) for u, (_, b) in enumerate(mine)},
    )
    return federation.hold_out(validation) if validation else federation


def partition(train_y: NDArray[np.uint8], test_y: NDArray[np.uint8], devices: int = 500) -> list[tuple[Ints, Ints]]:
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
