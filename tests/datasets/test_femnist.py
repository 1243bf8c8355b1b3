"""FEMNIST from LEAF's JSON, parquet and HDF5: the same federation from each, and a sentence for a damaged file."""

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dittofl import Federation, InputError, Split
from dittofl.cli import answer
from dittofl.datasets import femnist
from tests.datasets import broken, made

WRITERS = made.writers(9, 3, 20, 5, 4)


def as_leaf(folder: Path) -> Path:
    return made.as_json(folder / "all_data_0.json", made.leaf_images(WRITERS))


def as_gzip(folder: Path) -> Path:
    return made.as_json(folder / "all_data" / "all_data_0.json.gz", made.leaf_images(WRITERS))


def as_parquet(folder: Path) -> Path:
    return made.as_parquet(folder / "train-00000-of-00001.parquet", made.table(WRITERS), row_group_size=7)


def as_hdf5(folder: Path) -> Path:
    return made.as_hdf5(folder / "fed_emnist_train.h5", made.hdf5_images(WRITERS))


FORMATS: dict[str, Callable[[Path], Path]] = {"leaf": as_leaf, "gzip": as_gzip, "parquet": as_parquet, "hdf5": as_hdf5}


def floats(images: Any) -> Any:
    return (images / 255).astype(np.float32)[:, None]


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_holds_what_was_written(tmp_path: Path, form: str) -> None:
    FORMATS[form](tmp_path)
    found = femnist(devices=None, split=Split(), seed=3, data=str(tmp_path))
    given = Federation.of({user: (floats(x), y) for user, (x, y) in WRITERS.items()}, seed=3)
    assert found.fingerprint == given.fingerprint


@pytest.mark.parametrize("form", FORMATS)
def test_writers_are_drawn_and_their_samples_parted_80_to_20(tmp_path: Path, form: str) -> None:
    FORMATS[form](tmp_path)
    found = femnist(devices=3, least=4, data=str(tmp_path))
    assert len(found.ids) == 3
    assert "f0001_01" not in found.ids  # of 3 samples
    for user in found.ids:
        x, y = WRITERS[user]
        n = len(y)
        parts = [found.part(user, part) for part in ("train", "test")]
        assert [len(part[1]) for part in parts] == [8 * n // 10, n - 8 * n // 10]
        rows = torch.cat([part[0].reshape(-1, 784) for part in parts]).numpy()  # type: ignore[union-attr]
        order = [int((rows == row).all(1).argmax()) for row in floats(x).reshape(n, -1)]
        assert sorted(order) == list(range(n))
        assert torch.cat([part[1] for part in parts])[order].tolist() == y.tolist()
    seeds = {femnist(devices=2, seed=seed, data=str(tmp_path)).ids for seed in range(8)}
    assert len(seeds) > 2


def test_train_and_test_parts_stand(tmp_path: Path) -> None:
    halves = [{user: (x[i::2], y[i::2]) for user, (x, y) in WRITERS.items()} for i in (0, 1)]
    for part, half in zip(("train", "test"), halves, strict=True):
        made.as_json(tmp_path / "leaf" / part / f"all_data_niid_{part}_9.json", made.leaf_images(half))
        made.as_hdf5(tmp_path / "hdf5" / f"fed_emnist_{part}.h5", made.hdf5_images(half))
    given = Federation.from_parts(
        **{part: {u: (floats(x), y) for u, (x, y) in half.items()} for part, half in zip(("train", "test"), halves)}  # type: ignore[arg-type] # noqa: B905
    )
    for form in ("leaf", "hdf5"):
        folder = str(tmp_path / form)
        assert femnist(devices=None, data=folder).fingerprint == given.fingerprint
        assert femnist(devices=None, validation=0.1, data=folder).fingerprint == given.hold_out(0.1).fingerprint
        with pytest.raises(InputError, match="train and test parts: leave split out"):
            femnist(split=Split(), data=folder)


def test_users_and_rows_may_be_spread_over_files(tmp_path: Path) -> None:
    users = list(WRITERS)
    for i, some in enumerate((users[:2], users[2:])):
        made.as_json(tmp_path / "leaf" / f"all_data_{i}.json", made.leaf_images({user: WRITERS[user] for user in some}))
    columns = made.table(WRITERS)
    for i in (0, 1):
        part = {name: values[20 * i : 20 * i + 20 + i] for name, values in columns.items()}
        made.as_parquet(tmp_path / "parquet" / "data" / f"train-{i}.parquet", part, row_group_size=3)
    as_hdf5(tmp_path / "hdf5")
    prints = {femnist(devices=None, data=str(tmp_path / form)).fingerprint for form in ("leaf", "parquet", "hdf5")}
    assert len(prints) == 1


def test_mistakes_in_parameters(tmp_path: Path) -> None:
    as_hdf5(tmp_path)
    folder = str(tmp_path)
    for wrong, match in (
        ({}, "5 devices with as many samples, expected 205"),
        ({"devices": 0}, "devices ≥ 1"),
        ({"devices": 2, "least": 1}, "least ≥ 2"),
        ({"devices": 4, "least": 6}, "hold 2 devices"),
        ({"devices": 2, "validation": 1.0}, "0 ≤ validation < 1"),
        ({"devices": 2, "validation": 0.1, "split": Split()}, "split= sets validation apart"),
        ({"devices": 2, "split": 0.8}, "needs split=Split"),
        ({"devices": 2, "seed": "a"}, "seed"),
    ):
        with pytest.raises(InputError, match=match):
            femnist(data=folder, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="hold 0 devices with as many samples, expected 1 or more"):
        femnist(devices=None, least=100, data=folder)
    with pytest.raises(InputError, match=r"femnist: found no .*all_data"):
        femnist()


EXTRAS = (("parquet", "pyarrow", "parquet"), ("parquet", "PIL.Image", "images"), ("hdf5", "h5py", "hdf5"))


@pytest.mark.parametrize(("form", "module", "extra"), EXTRAS)
def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, module: str, extra: str
) -> None:
    FORMATS[form](tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"pip install 'dittofl\[{extra}\]'"):
        femnist(devices=None, data=str(tmp_path))


# Damage. Every copy is loaded whole, so that nothing goes by unread.


def load(folder: Path) -> Callable[[], object]:
    return lambda: femnist(devices=None, data=str(folder))


@pytest.fixture(scope="module", params=FORMATS)
def whole_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FORMATS[request.param](tmp_path_factory.mktemp(request.param))


def test_a_file_that_breaks_off(whole_file: Path, tmp_path: Path) -> None:
    raw = whole_file.read_bytes()
    path = tmp_path / whole_file.name
    for beginning in broken.cuts(raw, 60).values():
        path.write_bytes(beginning)
        broken.refused(load(tmp_path), path.name)


@pytest.mark.parametrize("form", FORMATS)
def test_bytes_at_random(tmp_path: Path, form: str) -> None:
    broken.survived(FORMATS[form](tmp_path), load(tmp_path))


USER = list(WRITERS)[1]
PLACES: dict[str, tuple[Any, ...]] = {
    "users": ("users",),
    "a user": ("users", 1),
    "sizes": ("num_samples",),
    "a size": ("num_samples", 1),
    "data": ("user_data",),
    "a user's data": ("user_data", USER),
    "x": ("user_data", USER, "x"),
    "an image": ("user_data", USER, "x", 1),
    "a pixel": ("user_data", USER, "x", 1, 5),
    "y": ("user_data", USER, "y"),
    "a label": ("user_data", USER, "y", 1),
}
OBJECT = made.leaf_images({user: (x[:3], y[:3]) for user, (x, y) in WRITERS.items()})
EDITS = dict(broken.edits(OBJECT, PLACES, (None, "text", -1, 62.5, [], {}, [[1.0]], float("nan"))))
TEXT = json.dumps(OBJECT)
TEXTS: dict[str, bytes] = {
    "another object behind": f"{TEXT}{{}}".encode(),
    "a comma behind": f"{TEXT},".encode(),
    "a comma too many": TEXT.replace('"num_samples"', ', "num_samples"').encode(),
    "a comma missing": TEXT.replace('], "num_samples"', '] "num_samples"').encode(),
    "a comma at the end": f"{TEXT[:-1]},}}".encode(),
    "no colon": TEXT.replace('"x":', '"x"', 1).encode(),
    "no quote": TEXT.replace('"y":', '"y:', 1).encode(),
    "no name": TEXT.replace('"y":', "1:", 1).encode(),
    "x twice": TEXT.replace('"y":', '"x":', 1).encode(),
    "a user twice": TEXT.replace('"f0002_02": {', '"f0001_01": {').encode(),
    "a user listed twice": TEXT.replace('"f0002_02",', '"f0001_01",').encode(),
    "data of users twice": TEXT.replace('"num_samples"', '"users"').encode(),
    "a bracket of the other kind": TEXT.replace("]]", "]}", 1).encode(),
    "a bracket too many": TEXT.replace("]]", "]]]", 1).encode(),
    "a bracket too few": TEXT.replace("[[", "[", 1).encode(),
    "no text of UTF-8": TEXT.encode().replace(b"f0001", b"f\xff001"),
    "UTF-16": TEXT.encode("utf-16"),
    "an infinite pixel": TEXT.replace("[[1.0", "[[Infinity", 1).encode(),
    "a number cut in two": TEXT.replace("[[1.0", "[[1.", 1).encode(),
    "a number of 10,000 digits": TEXT.replace("[[1.0", f"[[{'1' * 10_000}", 1).encode(),
    "brackets without end": b"[" * 100_000,
    "objects without end": b'{"users":' * 100_000,
    "a list": b"[1, 2]",
    "a number": b"1",
    "nothing": b"",
    "spaces": b" \n" * 10,
    "zeros": bytes(100),
    "gzip that is none": b"\x1f\x8b" + TEXT.encode(),
    "gzip of half": gzip.compress(TEXT.encode()[: len(TEXT) // 2]),
    "gzip and more": gzip.compress(TEXT.encode()) + b"more",
}


def test_the_undamaged_object_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "all_data_0.json").write_text(TEXT)
    load(tmp_path)()


def test_other_orders_and_further_entries_are_taken(tmp_path: Path) -> None:
    turned = {"hierarchies": ["a", {"b": [1]}], **dict(reversed(OBJECT.items()))}
    users = {user: {"more": [[]], **dict(reversed(its.items()))} for user, its in OBJECT["user_data"].items()}
    prints = set()
    for folder, one in (("as it is", OBJECT), ("turned", {**turned, "user_data": users})):
        made.as_json(tmp_path / folder / "all_data_0.json", one)
        prints.add(femnist(devices=None, data=str(tmp_path / folder)).fingerprint)
    assert len(prints) == 1


@pytest.mark.parametrize("name", EDITS)
def test_leaf_with_another_value(tmp_path: Path, name: str) -> None:
    path = made.as_json(tmp_path / "all_data_0.json", EDITS[name])
    broken.refused(load(tmp_path), path.name)


@pytest.mark.parametrize("name", TEXTS)
def test_leaf_that_is_no_json(tmp_path: Path, name: str) -> None:
    (tmp_path / "all_data_0.json").write_bytes(TEXTS[name])
    broken.refused(load(tmp_path), "all_data_0.json")


def test_the_preset_runs(tmp_path: Path) -> None:
    as_hdf5(tmp_path)
    options = ["--set", f"data.data={tmp_path}", "--set", "data.devices=3", "--set", "cohort=2", "--rounds", "2"]
    assert answer(["run", "femnist", *options, "--quiet", "--out", str(tmp_path / "runs")]) == 0
