"""LEAF's JSON: {"users": […], "num_samples": […], "user_data": {user: {"x": […], "y": […]}}}, gzipped or not."""

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dittofl.errors import InputError, require, short

Samples = tuple[NDArray[Any], NDArray[Any]]


def read(path: Path) -> dict[str, Samples]:
    """Every user's x and y; a file that contradicts itself is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.json"
    ...     text = '{"users": ["u"], "num_samples": [2], "user_data": {"u": {"x": [[1], [2]], "y": [0, 1]}}}'
    ...     _ = path.write_text(text)
    ...     read(path)["u"][1].tolist()
    [0, 1]
    """
    try:
        raw = path.read_bytes()
        whole = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        users, counts, data = whole["users"], whole["num_samples"], whole["user_data"]
        found = {user: (np.array(data[user]["x"]), np.array(data[user]["y"])) for user in users}
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is no whole file of LEAF's JSON ({short(error)}): get it again") from error
    require(
        len(users) == len(counts) == len(found) == len(data),
        f"{path} names {len(users)} users with {len(counts)} sizes and holds {len(data)}: get it again",
    )
    for user, n in zip(users, counts, strict=True):
        x, y = found[user]
        proper = x.dtype.kind in "if" and y.dtype.kind in "if" and x.ndim > 0 < y.ndim and len(x) == len(y) == n
        require(proper, f"{path} has x {x.shape} and y {y.shape} for the {n} samples of {user!r}: get it again")
    return found
