"""Small files in the formats of the real data sets, from samples made up here."""

import gzip
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Writers = Mapping[str, tuple[Array, Array]]  # uint8 images [n, 28, 28] and labels [n] by writer


def writers(*sizes: int, seed: int = 0) -> dict[str, tuple[Array, Array]]:
    """f0000, f0001, … with that many images: paper with a few dark strokes, as FEMNIST's are."""
    rng = np.random.default_rng(seed)
    found = {}
    for k, n in enumerate(sizes):
        x = np.where(rng.random((n, 28, 28)) < 0.2, rng.integers(0, 255, (n, 28, 28)), 255)
        found[f"f{k:04}_{k:02}"] = (x.astype(np.uint8), rng.integers(0, 62, n))
    return found


def leaf(users: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    """LEAF's object, of plain lists."""
    data = {user: {"x": x, "y": y} for user, (x, y) in users.items()}
    return {"users": list(data), "num_samples": [len(one["y"]) for one in data.values()], "user_data": data}


def leaf_images(given: Writers) -> dict[str, Any]:
    return leaf({user: ((x.reshape(len(x), -1) / 255).tolist(), y.tolist()) for user, (x, y) in given.items()})


def as_json(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = json.dumps(value).encode()
    path.write_bytes(gzip.compress(raw, 1) if path.suffix == ".gz" else raw)
    return path


def picture(pixels: Array, kind: str = "PNG") -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def table(given: Writers) -> dict[str, list[Any]]:
    """The columns of flwrlabs/femnist."""
    rows = [(picture(image), user, int(c)) for user, (x, y) in given.items() for image, c in zip(x, y, strict=True)]
    return {
        "image": [{"bytes": raw, "path": None} for raw, _, _ in rows],
        "writer_id": [user for _, user, _ in rows],
        "hsf_id": [0 for _ in rows],
        "character": [c for *_, c in rows],
    }


def as_parquet(path: Path, columns: Mapping[str, Any], **options: Any) -> Path:
    import pyarrow
    from pyarrow import parquet

    picture = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    arrays = {
        name: pyarrow.array(values, picture) if name == "image" and isinstance(values, list) else values
        for name, values in columns.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table(arrays), path, **options)
    return path


def as_hdf5(path: Path, clients: Mapping[str, Mapping[str, Any]]) -> Path:
    """TFF's layout: examples/<client>/<what>."""
    import h5py

    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for client, columns in clients.items():
            group = file.create_group(f"examples/{client}")
            for what, values in columns.items():
                group[what] = values
    return path


def hdf5_images(given: Writers) -> dict[str, dict[str, Array]]:
    return {
        user: {"pixels": (x / 255).astype(np.float32), "label": y.astype(np.int32)} for user, (x, y) in given.items()
    }


def as_mat(path: Path, cells: Mapping[str, list[Array]], *, compressed: bool = True) -> Path:
    """MATLAB's version 5: cell arrays of one column."""
    import scipy.io

    columns = {name: np.empty((len(its), 1), dtype=object) for name, its in cells.items()}
    for name, its in cells.items():
        for i, matrix in enumerate(its):
            columns[name][i, 0] = matrix
    scipy.io.savemat(path, columns, do_compression=compressed)
    return path


def as_mat73(path: Path, cells: Mapping[str, list[Array]]) -> Path:
    """MATLAB's version 7.3: HDF5 behind a block of text, with references to transposed matrices."""
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        for name, its in cells.items():
            found = file.create_dataset(name, (1, len(its)), dtype=h5py.ref_dtype)
            for i, matrix in enumerate(its):
                file[f"#refs#/{name}{i}"] = matrix.T
                found[0, i] = file[f"#refs#/{name}{i}"].ref
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512))
    return path
