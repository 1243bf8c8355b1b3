"""Small files in Fashion-MNIST's format."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np


def labels(each: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """As many of each of the ten classes, in any order."""
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(10, dtype=np.uint8), each))


def idx(path: Path, array: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
    shape = np.array(array.shape, dtype=">i4").tobytes()
    path.write_bytes(gzip.compress(bytes([0, 0, 8, array.ndim]) + shape + array.tobytes(), 1))


def written(folder: Path) -> Path:
    """Ten images of each class to train and ten to test: those of one class are alike but for noise."""
    draws = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for part, seed in (("train", 0), ("t10k", 1)):
        y = labels(10, seed)
        idx(folder / f"{part}-labels-idx1-ubyte.gz", y)
        x = 20 * y[:, None, None] + draws.integers(20, size=(len(y), 28, 28), dtype=np.uint8)
        idx(folder / f"{part}-images-idx3-ubyte.gz", x.astype(np.uint8))
    return folder
