"""IDX, the format of MNIST and its kin: a magic number, the shape, unsigned bytes."""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dittofl.errors import InputError, require

MOST = 8  # dimensions


def read(path: Path) -> NDArray[np.uint8]:
    """The array of an IDX file, gzipped or not; a damaged one is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "labels"
    ...     _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]))
    ...     read(path).tolist()
    [7, 9]
    """
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error}): get it again") from error
    dims = raw[3] if len(raw) > 3 else 0
    require(
        raw[:3] == b"\x00\x00\x08" and 1 <= dims <= MOST and len(raw) >= 4 + 4 * dims,
        f"{path} is no IDX file of unsigned bytes: get it again",
    )
    shape = tuple(np.frombuffer(raw, ">i4", dims, 4).tolist())
    body = np.frombuffer(raw, np.uint8, offset=4 + 4 * dims)
    wanted = math.prod(shape)
    require(
        min(shape, default=0) >= 0 and len(body) == wanted,
        f"{path} holds {len(body)} bytes, its header says {wanted}: get it again",
    )
    return body.reshape(shape)
