"""HDF5 as TensorFlow Federated lays it out: examples/<client>/<what>, a data set a kind of value, a row a sample."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dittofl.datasets.reading import damaged, intact, package, whole

Array = NDArray[Any]


@contextmanager
def examples(path: Path) -> Iterator[Any]:
    """The group that holds a group for every client."""
    h5py = package("h5py", extra="hdf5", what=f"{path}, HDF5,")
    with whole(path):
        file = h5py.File(path, "r")
    with file:
        found = _member(file, "examples", h5py.Group, str(path))
        yield found


def column(group: Any, client: str, what: str) -> Any:
    """A client's data set, of which rows can be read."""
    h5py = package("h5py", extra="hdf5", what="HDF5")
    where = group.file.filename
    its = _member(group, client, h5py.Group, f"{where}, examples")
    found = _member(its, what, h5py.Dataset, f"{where}, examples/{client}")
    intact(found.ndim, f"{where}, examples/{client}/{what} is one value, expected one a sample")
    return found


def rows(found: Any, start: int = 0, stop: int | None = None) -> Array:
    """Rows of a data set; of a kind that numpy has no number for, such as texts, as objects."""
    with whole(place(found)):
        return np.asarray(found[start:stop])


def place(found: Any) -> str:
    """The file and the path in it, for messages."""
    return f"{found.file.filename}, {found.name.lstrip('/')}"


def _member(group: Any, name: str, kind: type, where: str) -> Any:
    with whole(f"{where}/{name}"):
        found = group.get(name)
    if not isinstance(found, kind):
        raise damaged(f"{where} has no {kind.__name__.lower()} {name}")
    return found
