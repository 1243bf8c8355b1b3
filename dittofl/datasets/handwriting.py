"""FEMNIST's files in the three formats that they are found in, read as labels and images by writer.

A class is 0 … 9 for a digit, 10 … 35 for A … Z, 36 … 61 for a … z; a pixel is in [0, 1], and paper is 1.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dittofl.datasets import hdf5, leaf, parquet, pictures
from dittofl.datasets.gather import Array, Store, classes
from dittofl.datasets.places import Source, files
from dittofl.datasets.reading import intact
from dittofl.types import Ints

SIDE, CLASSES = 28, 62
IMAGE = np.zeros((1, SIDE, SIDE), dtype=np.float32)  # what one sample is like
SHADES = (np.arange(256) / 255).astype(np.float32)
BLOCK = 1024  # images
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Leaf:
    """LEAF's JSON: x holds 784 numbers a sample."""

    paths: tuple[Path, ...]

    def labels(self) -> Mapping[str, Ints]:
        return leaf.labels(self.paths, characters)

    def samples(self, devices: Container[str]) -> Iterator[tuple[str, int, Array]]:
        return leaf.samples(self.paths, devices, images)


@dataclass(frozen=True)
class Parquet:
    """Hugging Face's flwrlabs/femnist: image.bytes (a PNG), writer_id, character."""

    paths: tuple[Path, ...]

    def labels(self) -> Mapping[str, Ints]:
        found: dict[str, list[Array]] = {}
        for path in self.paths:
            columns = {"writer_id": "is_string", "character": "is_integer"}
            for start, (writers, coded) in parquet.batches(path, columns):
                y = characters(f"{path}, column character, from row {start},", coded.to_numpy(zero_copy_only=False))
                for writer, rows in by_writer(writers):
                    found.setdefault(writer, []).append(y[rows])
        return {writer: np.concatenate(found.pop(writer)) for writer in list(found)}

    def samples(self, devices: Container[str]) -> Iterator[tuple[str, int, Array]]:
        seen: dict[str, int] = {}
        for path in self.paths:
            columns = {"writer_id": "is_string", "image.bytes": "is_binary"}
            for start, (writers, pictured) in parquet.batches(path, columns):
                for writer, rows in by_writer(writers):
                    first = seen.get(writer, 0)
                    seen[writer] = first + len(rows)
                    if writer in devices:
                        pngs = {f"{path}, row {start + row}, image": pictured[row].as_py() for row in rows.tolist()}
                        block = np.stack([pictures.gray(where, png, SIDE) for where, png in pngs.items()])
                        yield writer, first, SHADES[block][:, None]


@dataclass(frozen=True)
class Hdf5:
    """TensorFlow Federated's fed_emnist: examples/<writer>/pixels [n, 28, 28] and label [n]."""

    paths: tuple[Path, ...]

    def labels(self) -> Mapping[str, Ints]:
        with hdf5.examples(self.paths[0]) as clients:
            # One by one, as each data set that is open takes some 10 KB.
            found = ((client, labelled(clients, client)) for client in clients.names())
            return {client: y for client, y in found if len(y)}

    def samples(self, devices: Container[str]) -> Iterator[tuple[str, int, Array]]:
        with hdf5.examples(self.paths[0]) as clients:
            for client in clients.names():
                if client in devices:
                    pixels, label = (clients.column(client, what) for what in ("pixels", "label"))
                    told = f"{pixels.where} is of shape {pixels.shape}"
                    intact(pixels.shape[0] == label.shape[0], f"{told}, expected {label.shape[0]} images")
                    for start in range(0, pixels.shape[0], BLOCK):
                        block = pixels.rows(start, start + BLOCK)
                        yield client, start, images(pixels.where, start, block)


characters = partial(classes, C=CLASSES)
FORMATS: tuple[tuple[Callable[[tuple[Path, ...]], Store], tuple[tuple[str, ...], ...]], ...] = (
    (Leaf, (("train/*.json*", "test/*.json*"), ("all_data/*.json*",), ("all_data*.json*",))),
    (Parquet, (("*.parquet",), ("data/*.parquet",))),
    (Hdf5, (("fed_emnist_train.h5", "fed_emnist_test.h5"), ("fed_emnist_train.h5",))),
)
SOURCE = Source(
    name="femnist",
    advice="give the folder of LEAF's JSON, of flwrlabs/femnist's parquet, or of fed_emnist_train.h5",
    forms=tuple(form for _, forms in FORMATS for form in forms),
    origin="Caldas et al. 2018, https://leaf.cmu.edu, from NIST Special Database 19",
    licence="BSD-2-Clause",
)


def stores(data: str | None) -> list[Store]:
    """The files of the first format that the folder holds: one store, or one to train and one to test."""
    folder = SOURCE.folder(data)
    for store, forms in FORMATS:
        for form in forms:
            found = [files(folder, pattern) for pattern in form]
            if all(found):
                return [store(paths) for paths in found]
    return []


def images(where: str, start: int, block: Array) -> Floats:
    """Pixels [n, 1, 28, 28] from [n, 784] or [n, 28, 28], checked."""
    proper = block.dtype.kind in "iuf" and block.shape[1:] in ((SIDE * SIDE,), (SIDE, SIDE))
    intact(proper, f"{where} has images {block.dtype} {block.shape[1:]}, expected {SIDE * SIDE} numbers each")
    fine = ((block >= 0) & (block <= 1)).reshape(len(block), -1).all(axis=1)
    intact(fine.all(), f"{where} has pixels that are not in [0, 1] at sample {start + int(fine.argmin())}")
    return block.reshape(-1, *IMAGE.shape).astype(np.float32)


def labelled(clients: hdf5.Clients, client: str) -> Ints:
    """Classes [n], which may stand in a column [n, 1]; none of a client without samples."""
    column = clients.column(client, "label")
    y = column.rows()
    if not len(y):
        intact(not clients.column(client, "pixels").shape[0], f"{column.where} is empty, but there are images")
        return np.empty(0, dtype=np.int64)
    return characters(column.where, y[:, 0] if y.shape == (len(y), 1) else y)


def by_writer(writers: Any) -> Iterator[tuple[str, Ints]]:
    """The rows of each writer in a column of names."""
    rows: dict[str, list[int]] = {}
    for row, writer in enumerate(writers.to_numpy(zero_copy_only=False)):
        rows.setdefault(writer, []).append(row)
    return ((writer, np.array(its)) for writer, its in rows.items())
