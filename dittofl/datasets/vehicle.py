"""Vehicle sensors (Duarte, Hu 2004) on 23 devices, as the authors of Ditto prepared them."""

from pathlib import Path

import numpy as np

from dittofl.datasets import leaf
from dittofl.datasets.places import located
from dittofl.errors import InputError, fraction, require
from dittofl.federation import PAPER, Federation, Split

FEATURES = 100


def vehicle(*, data: str | None = None, validation: float = 0.0, split: Split = PAPER, seed: int = 0) -> Federation:
    """Two kinds of vehicles, y = ±1, by 100 features that each device has standardised: train.json and test.json.

    `validation` holds out that share of each train part, its last samples, as the authors do (.1) before they choose λ.
    Without a test.json `split` and `seed` divide the one file's samples: other test rows than the paper's.
    """
    fraction("vehicle", "validation", validation)
    folder, ending = _folder(data)
    train = _samples(folder / f"train.json{ending}")
    if not (folder / f"test.json{ending}").is_file():
        require(not validation, f"vehicle: {folder} has no test.json, so that split= sets validation apart: leave it 0")
        return Federation.of(train, split=split, seed=seed)
    test = _samples(folder / f"test.json{ending}")
    require(
        train.keys() == test.keys(), f"vehicle: train.json and test.json in {folder} name other users: get them again"
    )
    federation = Federation.from_parts(train=train, test=test)
    return federation.hold_out(validation) if validation else federation


def _folder(data: str | None) -> tuple[Path, str]:
    advice = "give the folder of the authors' train.json and test.json (gzipped or not) as data="
    try:
        return located("vehicle", ["train.json.gz"], data=data, advice=advice), ".gz"
    except InputError:
        return located("vehicle", ["train.json"], data=data, advice=advice), ""


def _samples(path: Path) -> dict[str, leaf.Samples]:
    found = {}
    for user, (x, y) in leaf.read(path).items():
        y = y.reshape(-1)
        proper = x.shape == (len(y), FEATURES) and bool((np.abs(y) == 1).all())
        require(proper, f"vehicle: {path} has x {x.shape} and labels other than ±1 for {user!r}: get it again")
        found[user] = (x.astype(np.float32), y.astype(np.int64))
    return found
