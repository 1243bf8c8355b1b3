"""MATLAB's files: cell arrays of matrices, from version 5 (by scipy) and from version 7.3, which is HDF5 (by h5py)."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dittofl.datasets.reading import intact, package, whole

Array = NDArray[Any]
SIGNATURE = b"\x89HDF\r\n\x1a\n"
USER_BLOCK = 512  # bytes that MATLAB puts before HDF5


def cells(path: Path, *names: str) -> list[list[Array]]:
    """Of each named cell array its cells, which are matrices of finite numbers."""
    with whole(path), path.open("rb") as file:
        head = file.read(USER_BLOCK + len(SIGNATURE))
    version_73 = head.startswith(SIGNATURE) or head.endswith(SIGNATURE)
    found = (_of_73 if version_73 else _of_5)(path, names)
    for name, its in zip(names, found, strict=True):
        for i, matrix in enumerate(its):
            numbers = isinstance(matrix, np.ndarray) and matrix.dtype.kind in "iuf" and matrix.ndim == 2
            intact(numbers and np.isfinite(matrix).all(), f"{path}, {name}{{{i + 1}}}, is no matrix of finite numbers")
    return found


def _of_5(path: Path, names: tuple[str, ...]) -> list[list[Array]]:
    scipy = package("scipy.io", extra="matlab", what=f"{path}, a file of MATLAB,")
    with whole(path):
        found = scipy.loadmat(path, variable_names=names)
    for name in names:
        intact(found.get(name, np.empty(0)).dtype.kind == "O", f"{path} has no cell array {name}")
    return [list(found[name].ravel()) for name in names]


def _of_73(path: Path, names: tuple[str, ...]) -> list[list[Array]]:
    h5py = package("h5py", extra="matlab", what=f"{path}, a file of MATLAB 7.3,")
    with whole(path), h5py.File(path, "r") as file:
        for name in names:
            kind = getattr(file.get(name), "dtype", None)
            intact(kind == h5py.ref_dtype, f"{path} has no cell array {name}")
        # HDF5 counts from the other end: matrices lie transposed.
        return [[np.asarray(file[one]).T for one in np.ravel(file[name][()])] for name in names]
