"""Vehicle sensors (Duarte, Hu 2004) on 23 devices, as the authors of Ditto prepared them."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dittofl.datasets import leaf, matlab
from dittofl.datasets.gather import checked, shuffled
from dittofl.datasets.places import Source
from dittofl.datasets.reading import intact
from dittofl.errors import InputError, require
from dittofl.federation import PAPER, ById, Federation, Split
from dittofl.types import Ints

FEATURES, DEVICES = 100, 23
MAT = "vehicle.mat"
HUGE = 1e15  # whose square is still a number of single precision
Floats = NDArray[np.float32]
SOURCE = Source(
    name="vehicle",
    advice=f"give the folder of the authors' train.json and test.json (gzipped or not), or of {MAT}",
    forms=(("train.json*",), ("train/mytrain.json",), (MAT,)),
    origin="Duarte, Hu 2004; Smith et al. 2017",
)


def vehicle(*, data: str | None = None, validation: float = 0.0, split: Split = PAPER, seed: int = 0) -> Federation:
    """Two kinds of vehicles, y = ±1, by 100 features that each device has standardised.

    From train.json and test.json, or from vehicle.mat: the authors' number of a device's samples train, drawn by the
    seed, all others test; where train.json lies beside it, its very samples train. With train.json alone `split` and
    `seed` divide it: other test rows than the paper's. `validation` holds out that share of each train part, its last
    samples, as the authors do (.1) before they choose λ.
    """
    checked("vehicle", validation, None, seed)
    folder = SOURCE.folder(data)
    train_file, test_file = (_json(folder, part) for part in ("train", "test"))
    train = _samples(train_file) if train_file else None
    if train is not None and test_file:
        test = _samples(test_file)
        intact(train.keys() == test.keys(), f"{train_file} and {test_file} name other users")
        found = Federation.from_parts(train=train, test=test)
    elif (folder / MAT).is_file():
        found = Federation.from_parts(**_from_matlab(folder / MAT, train, seed))
    else:
        require(not validation, f"vehicle: {folder} has no test.json, so that split= sets validation apart: leave it 0")
        return Federation.of(train or {}, split=split, seed=seed)
    return found.hold_out(validation) if validation else found


def _json(folder: Path, part: str) -> Path | None:
    """train.json, train.json.gz, or as the authors' program writes it."""
    names = (f"{part}.json.gz", f"{part}.json", f"{part}/my{part}.json")
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _samples(path: Path) -> dict[str, leaf.Samples]:
    """By user, in the order of their names, as the authors' program numbers them; their files have another."""
    found = leaf.read(path)
    return {user: _checked(f"{path}, user {user!r},", *found[user]) for user in sorted(found)}


def _checked(where: str, x: NDArray[Any], y: NDArray[Any]) -> leaf.Samples:
    y = y.reshape(-1)
    proper = x.shape == (len(y), FEATURES) and x.dtype.kind in "if" and len(y)
    intact(proper, f"{where} has x {x.dtype} {x.shape}, expected {len(y)} samples of {FEATURES} numbers")
    intact((np.abs(x) < HUGE).all(), f"{where} has features that are no numbers below {HUGE:g}")
    intact(y.dtype.kind in "if" and bool((np.abs(y) == 1).all()), f"{where} has labels other than ±1")
    return x.astype(np.float32), y.astype(np.int64)


def _from_matlab(path: Path, train: ById | None, seed: int) -> dict[str, Any]:
    """Every device's train and test samples."""
    x, y = matlab.cells(path, "X", "Y")
    intact(len(x) == len(y) == DEVICES, f"{path} has {len(x)} cells X and {len(y)} cells Y, expected {DEVICES}")
    users = [f"f_{i:05}" for i in range(DEVICES)]
    other = f"{path.parent} holds a train.json of other users than {users[0]} … {users[-1]}"
    intact(train is None or train.keys() == set(users), other)
    parts: dict[str, Any] = {"train": {}, "test": {}}
    for i, (user, raw, labels) in enumerate(zip(users, x, y, strict=True)):
        where = f"{path}, X{{{i + 1}}},"
        _checked(where, raw, labels)
        its = _checked(where, standardised(raw), labels)
        rows = (
            shuffled(user, len(raw), seed)[: train_size(i)] if train is None else _matched(where, its[0], train[user])
        )
        left = np.delete(np.arange(len(raw)), rows)
        intact(len(left), f"{where} has {len(raw)} samples, expected more than the {len(rows)} to train")
        for part, chosen in (("train", rows), ("test", left)):
            parts[part][user] = tuple(values[chosen] for values in its)
    return parts


def standardised(x: NDArray[Any]) -> NDArray[np.float64]:
    """(x − mean) / std of every feature over all of a device's samples; 0 where it never changes."""
    centred, std = x - x.mean(axis=0), x.std(axis=0)
    return np.asarray(np.divide(centred, std, out=np.zeros(x.shape), where=std > 0))


def train_size(i: int) -> int:
    """⌊lognormal(3, 1.2)⌋ + 5 by numpy's legacy generator of seed 666 + i.

    >>> [train_size(i) for i in range(5)]
    [59, 8, 20, 156, 17]
    """
    return int(np.random.RandomState(666 + i).lognormal(3, 1.2)) + 5


def _matched(where: str, x: Floats, train: leaf.Samples) -> Ints:
    """Which of the samples the authors train on, each found once."""
    free = np.ones(len(x), dtype=bool)
    rows = np.empty(len(train[0]), dtype=np.int64)
    for i, sample in enumerate(train[0]):
        far = np.where(free, np.abs(x - sample).max(axis=1), np.inf)
        rows[i] = far.argmin()
        if not far[rows[i]] < 1e-4:
            raise InputError(f"{where} lacks sample {i} of the train.json beside it: take one of the two files away")
        free[rows[i]] = False
    return rows
