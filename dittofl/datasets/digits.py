"""scikit-learn's handwritten digits: real data that need no download."""

import numpy as np

from dittofl.datasets.places import Source
from dittofl.errors import InputError, whole
from dittofl.federation import PAPER, Federation, Split
from dittofl.seeds import Purpose, keys

SOURCE = Source(
    name="digits",
    advice="pip install 'dittofl[digits]'",
    module="sklearn",
    origin="Alpaydin, Kaynak 1998, UCI repository; in scikit-learn",
    licence="CC BY 4.0",
    fingerprints={"digits": "a4f99e40a545ef14b4f1ec59f3c48a95eef89363b0044d43c984d17e65768a3e"},
)


def digits(*, devices: int = 25, split: Split = PAPER, seed: int = 0) -> Federation:
    """1,797 images of 8 × 8 pixels in [0, 1] on devices of two or three consecutive classes each.

    A class is dealt out in equal parts to the devices that hold it (Alpaydin, Kaynak 1998; UCI repository).

    >>> digits(devices=25).K
    25
    """
    whole("digits", "devices", devices, 10)
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise InputError(f"digits come with scikit-learn, which is not installed: {SOURCE.advice}") from error
    x, y = load_digits(return_X_y=True)
    shuffled = np.argsort(keys(seed, Purpose.SPLIT, np.arange(len(y))))
    parts: list[list[np.ndarray]] = [[] for _ in range(devices)]
    for label in range(10):
        holders = [k for k in range(devices) if (label - k) % 10 < 2 + k % 2]
        mine = shuffled[y[shuffled] == label]
        for k, part in zip(holders, np.array_split(mine, len(holders)), strict=True):
            parts[k].append(part)
    rows = [np.concatenate(its) for its in parts]
    data = {f"device {k}": ((x[its] / 16).astype(np.float32), y[its]) for k, its in enumerate(rows)}
    return Federation.of(data, split=split, seed=seed)
