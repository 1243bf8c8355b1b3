"""HDF5 as TensorFlow Federated lays it out: examples/<client>/<what>, a data set a kind of value, a row a sample."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dittofl.datasets.reading import damaged, intact, package, whole

Array = NDArray[Any]
CACHE = 1 << 21  # bytes of what tells where things are, which HDF5 would let grow to 32 MB


class Column(NamedTuple):
    """A data set of a client, of which rows can be read."""

    where: str  # the file and the place in it, for messages
    shape: tuple[int, ...]
    texts: bool
    data: Any

    def rows(self, start: int = 0, stop: int | None = None) -> Array:
        """Some rows; texts as objects."""
        with whole(self.where):
            return np.asarray(self.data[start:stop])


class Clients:
    """The clients of a file that is open."""

    def __init__(self, path: Path, group: Any) -> None:
        self.path, self._group = path, group

    def names(self, most: int | None = None) -> list[str]:
        """All names, or the first, in their order: no more are held, and TFF's StackOverflow has 342,477."""
        found: list[bytes] = []

        def taken(name: bytes) -> bool | None:
            found.append(name)
            return True if len(found) == most else None  # None: go on

        with whole(self.path):
            self._group.id.links.iterate(taken)
            return [name.decode() for name in found]

    def column(self, client: str, what: str) -> Column:
        """A client's data set."""
        h5py = package("h5py", extra="hdf5", what="HDF5")
        its = _member(self._group, client, h5py.Group, f"{self.path}, examples")
        found = _member(its, what, h5py.Dataset, f"{self.path}, examples/{client}")
        where = f"{self.path}, examples/{client}/{what}"
        with whole(where):
            texts = h5py.check_string_dtype(found.dtype) is not None
            shape = tuple(found.shape or ())
        intact(shape, f"{where} is one value or none, expected one a sample")
        return Column(where, shape, texts, found)


@contextmanager
def examples(path: Path) -> Iterator[Clients]:
    """The clients of a file."""
    h5py = package("h5py", extra="hdf5", what=f"{path}, HDF5,")
    with whole(path):
        file = h5py.File(path, "r")
        cached = file.id.get_mdc_config()
        cached.max_size = cached.initial_size = max(CACHE, cached.min_size)
        file.id.set_mdc_config(cached)
    with file:
        yield Clients(path, _member(file, "examples", h5py.Group, str(path)))


def _member(group: Any, name: str, kind: type, where: str) -> Any:
    with whole(f"{where}/{name}"):
        found = group.get(name)
    if not isinstance(found, kind):
        raise damaged(f"{where} has no {kind.__name__.lower()} {name}")
    return found
