"""MATLAB's files: cell arrays of matrices, from versions 5 to 7, and from version 7.3, which is HDF5.

The former are read here: scipy's reader says of itself that it is not hardened, and damaged files end the process.
A file is a header and elements (kind, size, content); a matrix is the elements flags, sides, name, numbers, column by
column; a cell array has its cells, which are matrices, in place of numbers; an element may be compressed.
"""

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dittofl.datasets.reading import intact, package, whole

Array = NDArray[Any]
SIGNATURE = b"\x89HDF\r\n\x1a\n"
USER_BLOCK = 512  # bytes that MATLAB puts before HDF5
HEADER = 128
LITTLE = b"IM"  # what the header ends with where the low byte of a number comes first, as everywhere today
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
MATRIX, COMPRESSED = 14, 15
CELLS, NUMERIC, COMPLEX = 1, range(6, 16), 0x800  # classes of matrices, and a flag


class Matrix(NamedTuple):
    """A matrix whose content is not yet looked at."""

    name: str
    flags: int
    sides: tuple[int, ...]
    content: bytes


def cells(path: Path, *names: str) -> list[list[Array]]:
    """Of each named cell array its cells, which are matrices of finite numbers."""
    with whole(path), path.open("rb") as file:
        head = file.read(USER_BLOCK + len(SIGNATURE))
    of_73 = head.startswith(SIGNATURE) or head.endswith(SIGNATURE)
    found = (_of_73 if of_73 else _of_5)(path, names)
    for name, its in zip(names, found, strict=True):
        for i, matrix in enumerate(its):
            numbers = matrix.dtype.kind in "iuf" and matrix.ndim == 2 and np.isfinite(matrix).all()
            intact(numbers, f"{path}, {name}{{{i + 1}}}, is no matrix of finite numbers")
    return found


def _of_5(path: Path, names: tuple[str, ...]) -> list[list[Array]]:
    found: dict[str, list[Array]] = {}
    with whole(path):
        raw = path.read_bytes()
        intact(raw[HEADER - 2 : HEADER] == LITTLE, f"{path} is no file of MATLAB 5 to 7.3")
        for matrix in _matrices(raw[HEADER:]):
            if matrix.name in names and matrix.flags & 0xFF == CELLS:
                found[matrix.name] = [_numbers(one) for one in _matrices(matrix.content)]
                many = f"{len(found[matrix.name])} cells {matrix.name}, expected {matrix.sides}"
                intact(len(found[matrix.name]) == np.prod(matrix.sides), f"{path} has {many}")
    for name in names:
        intact(name in found, f"{path} has no cell array {name}")
    return [found[name] for name in names]


def _matrices(raw: bytes) -> Iterator[Matrix]:
    for kind, content in _elements(raw):
        if kind == COMPRESSED:
            packed = zlib.decompressobj()
            yield from _matrices(packed.decompress(content))
            _expect(packed.eof, "compressed content breaks off")
        elif kind == MATRIX:
            flags, sides, name, *_ = parts = list(_elements(content, 3))
            (number,) = struct.unpack("<I", flags[1][:4])
            begun = len(content) - len(parts[3][1])
            yield Matrix(name[1].decode(), number, tuple(_values(*sides).tolist()), content[begun:])


def _elements(raw: bytes, most: int | None = None) -> Iterator[tuple[int, bytes]]:
    """(kind, content) of elements side by side; after `most` of them what is left, as one."""
    at = 0
    while at < len(raw) and most != 0:
        kind, size = struct.unpack_from("<II", raw, at)
        if kind >> 16:  # up to four bytes stand within the head
            kind, size, start, end = kind & 0xFFFF, kind >> 16, at + 4, at + 8
        else:
            start = at + 8
            end = start + (size if kind == COMPRESSED else -(-size // 8) * 8)
        _expect(start + size <= min(end, len(raw)), f"an element of {size} bytes breaks off")
        yield kind, raw[start : start + size]
        at, most = end, None if most is None else most - 1
    if most is not None:
        yield 0, raw[at:]


def _numbers(matrix: Matrix) -> Array:
    """A real matrix; of another class an empty one of another kind."""
    if matrix.flags & 0xFF not in NUMERIC or matrix.flags & COMPLEX:
        return np.empty(0, dtype=object)
    found = [_values(kind, content) for kind, content in _elements(matrix.content)]
    return np.concatenate(found).reshape(matrix.sides, order="F")


def _values(kind: int, content: bytes) -> Array:
    return np.frombuffer(content, f"<{NUMBERS[kind]}")


def _expect(condition: object, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)


def _of_73(path: Path, names: tuple[str, ...]) -> list[list[Array]]:
    h5py = package("h5py", extra="hdf5", what=f"{path}, a file of MATLAB 7.3,")
    with whole(path), h5py.File(path, "r") as file:
        for name in names:
            intact(getattr(file.get(name), "dtype", None) == h5py.ref_dtype, f"{path} has no cell array {name}")
        # HDF5 counts from the other end: matrices lie transposed.
        return [[np.asarray(file[one]).T for one in np.ravel(file[name][()])] for name in names]
