"""FEMNIST's parquet and HDF5 with another column, value or picture: told in one sentence."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow
import pytest
from PIL import Image

from dittofl import InputError
from dittofl.datasets import femnist
from tests.datasets import broken, made

WRITERS = made.writers(3, 4, 2)
USER = "f0001_01"
COLUMNS = made.table(WRITERS)
ROWS = len(COLUMNS["character"])
WHITE = np.full((28, 28), 255, np.uint8)
PNG = made.picture(WRITERS[USER][0][0])


def load(folder: Path) -> Callable[[], object]:
    return lambda: femnist(devices=None, data=str(folder))


def pictured(raw: bytes | None) -> list[Any]:
    """The column of pictures with another one in row 4."""
    return [*COLUMNS["image"][:4], {"bytes": raw, "path": None}, *COLUMNS["image"][5:]]


def told(column: str, value: Any) -> list[Any]:
    return [*COLUMNS[column][:4], value, *COLUMNS[column][5:]]


def column(name: str, values: Any) -> dict[str, Any]:
    return {**COLUMNS, name: values}


def saved(image: Image.Image, kind: str = "PNG") -> bytes:
    image.save(file := io.BytesIO(), kind)
    return file.getvalue()


def changed(at: int) -> bytes:
    return PNG[:at] + bytes([PNG[at] ^ 0x55]) + PNG[at + 1 :]


PARQUET: dict[str, dict[str, Any]] = {
    **{
        f"{name} lost": {key: values for key, values in COLUMNS.items() if key != name}
        for name in ("image", "writer_id", "character")
    },
    **{f"no {name} in a row": column(name, told(name, None)) for name in ("image", "writer_id", "character")},
    **{f"the label {y}": column("character", told("character", y)) for y in (-1, 62, 10**12)},
    **{
        f"labels that are {name}": column("character", values)
        for name, values in {
            "texts": [str(y) for y in COLUMNS["character"]],
            "floats": [float(y) for y in COLUMNS["character"]],
            "truths": [True] * ROWS,
            "lists": [[y] for y in COLUMNS["character"]],
            "nulls": pyarrow.nulls(ROWS),
        }.items()
    },
    **{
        f"names that are {name}": column("writer_id", values)
        for name, values in {
            "numbers": list(range(ROWS)),
            "bytes": [user.encode() for user in COLUMNS["writer_id"]],
            "lists": [[user] for user in COLUMNS["writer_id"]],
        }.items()
    },
    **{
        f"images that are {name}": column("image", pyarrow.array(values))
        for name, values in {
            "texts": ["a.png"] * ROWS,
            "bytes": [PNG] * ROWS,
            "paths": [{"path": "a.png"}] * ROWS,
            "texts in bytes": [{"bytes": "a", "path": "a.png"}] * ROWS,
            "numbers": WHITE[0, :ROWS].tolist(),
        }.items()
    },
    **{f"a PNG cut at {n}": column("image", pictured(PNG[:n])) for n in range(0, len(PNG) - 60, 30)},
    **{f"a PNG with another byte at {n}": column("image", pictured(changed(n))) for n in (0, 9, 14, 18, 22, 26, 38)},
    **{
        f"a picture that is {name}": column("image", pictured(raw))
        for name, raw in {
            "missing": None,
            "a JPEG": saved(Image.fromarray(WHITE), "JPEG"),
            "in colour": saved(Image.fromarray(WHITE).convert("RGB")),
            "of indices": saved(Image.fromarray(WHITE).convert("P")),
            "of bits": saved(Image.fromarray(WHITE).convert("1")),
            "of two bytes a pixel": saved(Image.fromarray(WHITE.astype(np.uint16))),
            "too low": saved(Image.fromarray(WHITE[:27])),
            "too wide": saved(Image.fromarray(np.hstack([WHITE, WHITE]))),
            "a text": b"picture",
        }.items()
    },
    "no rows": {name: values[:0] for name, values in COLUMNS.items()},
}


def test_the_undamaged_table_is_loaded(tmp_path: Path) -> None:
    made.as_parquet(tmp_path / "a.parquet", COLUMNS)
    assert femnist(devices=None, data=str(tmp_path)).K == 3


@pytest.mark.parametrize("name", PARQUET)
def test_parquet_with_another_column(tmp_path: Path, name: str) -> None:
    path = made.as_parquet(tmp_path / "a.parquet", PARQUET[name])
    broken.refused(load(tmp_path), path.name)


def test_names_may_be_coded(tmp_path: Path) -> None:
    """As pandas writes categories; large strings are those of polars, as views may be."""
    prints = set()
    for kind in ("string", "large_string", "string_view", "dictionary"):
        names = pyarrow.array(COLUMNS["writer_id"], None if kind == "dictionary" else kind)
        coded = names.dictionary_encode() if kind == "dictionary" else names
        made.as_parquet(tmp_path / kind / "a.parquet", column("writer_id", coded))
        prints.add(femnist(devices=None, data=str(tmp_path / kind)).fingerprint)
    assert len(prints) == 1


def test_files_that_are_no_parquet(tmp_path: Path) -> None:
    for name, raw in {"text": b"writer_id,image", "marks": b"PAR1PAR1", "zeros": bytes(1000)}.items():
        (tmp_path / f"{name}.parquet").write_bytes(raw)
        broken.refused(load(tmp_path), f"{name}.parquet")
        (tmp_path / f"{name}.parquet").unlink()


Change = Callable[[h5py.Group], object]
PIXELS, LABEL = made.hdf5_images(WRITERS)[USER].values()


def replaced(what: str, values: Any) -> Change:
    def change(group: h5py.Group) -> None:
        del group[what]
        if values is not None:
            group[what] = values

    return change


def pixel(value: float) -> Change:
    def change(group: h5py.Group) -> None:
        group["pixels"][2, 3, 4] = value

    return change


def group_instead(what: str) -> Change:
    def change(group: h5py.Group) -> None:
        del group[what]
        group.create_group(what)

    return change


CLIENT: dict[str, Change] = {
    **{f"{what} lost": replaced(what, None) for what in ("pixels", "label")},
    **{f"{what} a group": group_instead(what) for what in ("pixels", "label")},
    **{f"a pixel of {value}": pixel(value) for value in (float("nan"), float("inf"), -0.01, 1.01, 255)},
    **{
        f"pixels {name}": replaced("pixels", values)
        for name, values in {
            "too few": PIXELS[:-1],
            "too many": np.concatenate([PIXELS, PIXELS[:1]]),
            "none": PIXELS[:0],
            "27 wide": PIXELS[:, :, :27],
            "27 high": PIXELS[:, :27],
            "in colour": np.stack([PIXELS] * 3, -1),
            "of one image": PIXELS[0],
            "one number": 0.5,
            "of 783 numbers": PIXELS.reshape(len(PIXELS), -1)[:, :-1],
            "texts": np.array([b"a"] * len(PIXELS)),
            "complex": PIXELS.astype(np.complex64),
            "of bytes": (PIXELS * 255).astype(np.uint8),
        }.items()
    },
    **{
        f"labels {name}": replaced("label", values)
        for name, values in {
            "too few": LABEL[:-1],
            "too many": np.append(LABEL, 0),
            "none": LABEL[:0],
            "in two columns": np.stack([LABEL, LABEL], 1),
            "one number": 3,
            "halves": LABEL + 0.5,
            "not finite": LABEL + np.inf,
            "truths": LABEL > 3,
            "texts": np.array([b"a"] * len(LABEL)),
            "of −1": np.append(LABEL[:-1], -1),
            "of 62": np.append(LABEL[:-1], 62),
        }.items()
    },
}


def hdf5(folder: Path) -> Path:
    return made.as_hdf5(folder / "fed_emnist_train.h5", made.hdf5_images(WRITERS))


@pytest.mark.parametrize("name", CLIENT)
def test_hdf5_with_another_client(tmp_path: Path, name: str) -> None:
    path = hdf5(tmp_path)
    load(tmp_path)()
    with h5py.File(path, "r+") as file:
        CLIENT[name](file["examples"][USER])
    broken.refused(load(tmp_path), path.name)


FILE: dict[str, Change] = {
    "examples lost": lambda file: file.pop("examples"),
    "examples elsewhere": lambda file: file.move("examples", "data"),
    "examples a data set": replaced("examples", [1.0]),
    "no client": lambda file: [file["examples"].pop(user) for user in WRITERS],
    "a client that is a data set": lambda file: replaced(USER, [1.0])(file["examples"]),
    "a link to nowhere": lambda file: file["examples"].__setitem__("f9", h5py.SoftLink("/nowhere")),
    "a link to another file": lambda file: file["examples"].__setitem__("f9", h5py.ExternalLink("b.h5", "/")),
}


@pytest.mark.parametrize("name", FILE)
def test_hdf5_laid_out_otherwise(tmp_path: Path, name: str) -> None:
    path = hdf5(tmp_path)
    with h5py.File(path, "r+") as file:
        FILE[name](file)
    broken.refused(load(tmp_path), path.name)


def test_images_may_lie_flat_and_labels_in_a_column(tmp_path: Path) -> None:
    as_published = made.hdf5_images(WRITERS)
    flat = {
        user: {"pixels": its["pixels"].reshape(-1, 784), "label": its["label"][:, None]}
        for user, its in as_published.items()
    }
    made.as_hdf5(tmp_path / "flat" / "fed_emnist_train.h5", flat)
    hdf5(tmp_path)
    prints = {femnist(devices=None, data=str(folder)).fingerprint for folder in (tmp_path, tmp_path / "flat")}
    assert len(prints) == 1


def stored(folder: Path, **options: Any) -> Path:
    """Client groups as other programs write them: options of h5py's create_dataset, other number formats."""
    path = folder / "fed_emnist_train.h5"
    folder.mkdir()
    with h5py.File(path, "w", libver=options.pop("libver", None)) as file:
        for user, its in made.hdf5_images(WRITERS).items():
            for what, values in its.items():
                swapped = values.astype(values.dtype.newbyteorder(">")) if options.get("shuffle") else values
                file.create_dataset(f"examples/{user}/{what}", data=swapped, chunks=(1, *values.shape[1:]), **options)
            file[f"examples/{user}/more"] = h5py.Empty("f4")
    return path


def test_data_sets_may_be_chunked_and_compressed(tmp_path: Path) -> None:
    hdf5(tmp_path)
    stored(tmp_path / "gzip", compression="gzip", shuffle=True, fletcher32=True)
    stored(tmp_path / "lzf", compression="lzf", libver="latest", maxshape=None)
    prints = {femnist(devices=None, data=str(tmp_path / one)).fingerprint for one in (".", "gzip", "lzf")}
    assert len(prints) == 1


def test_the_file_of_digits_alone_is_another_data_set(tmp_path: Path) -> None:
    """TFF unpacks both into one folder, and that name comes first."""
    digits = made.hdf5_images({user: (x, y % 10) for user, (x, y) in WRITERS.items()})
    made.as_hdf5(tmp_path / "fed_emnist_digitsonly_train.h5", digits)
    with pytest.raises(InputError, match=r"holds no .*fed_emnist_train\.h5"):
        load(tmp_path)()
    hdf5(tmp_path / "alone")
    hdf5(tmp_path)
    prints = {femnist(devices=None, data=str(folder)).fingerprint for folder in (tmp_path, tmp_path / "alone")}
    assert len(prints) == 1
