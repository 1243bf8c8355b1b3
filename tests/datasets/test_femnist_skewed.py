"""FEMNIST dealt out by class."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dittofl import Federation, InputError, Split
from dittofl.cli import answer
from dittofl.datasets import femnist_skewed
from tests.datasets import broken, made

PER_CLASS = 240


def writers(labels: Any) -> made.Writers:
    """As many images of each of these classes; the first two pixels of an image tell its number."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(labels, PER_CLASS))
    x = np.full((len(y), 28, 28), 255, np.uint8)
    x[:, 0, 0], x[:, 0, 1] = np.arange(len(y)) // 256, np.arange(len(y)) % 256
    parts = np.split(np.arange(len(y)), np.sort(rng.integers(0, len(y), 20)))
    return {f"f{k:04}_00": (x[its], y[its]) for k, its in enumerate(parts) if len(its)}


LETTERS = writers(np.arange(36, 46))
Y = np.concatenate([y for _, y in LETTERS.values()])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("skewed")
    made.as_hdf5(path / "fed_emnist_train.h5", made.hdf5_images(LETTERS))
    return str(path)


def numbers(found: Federation) -> Any:
    """Which image lies where."""
    first, second = (np.rint(255 * found.x[:, 0, 0, j].numpy()).astype(int) for j in (0, 1))  # type: ignore[index]
    return 256 * first + second


def test_every_device_has_five_consecutive_letters_in_equal_parts(folder: str) -> None:
    found = femnist_skewed(data=folder)
    assert found.K == 100
    n = found.bounds[:, 3] - found.bounds[:, 0]
    assert found.sizes("train").tolist() == (8 * n // 10).tolist()
    assert np.array_equal(Y[numbers(found)], found.y.numpy())
    for u in range(100):
        y = found.y[found.bounds[u, 0] : found.bounds[u, 3]]
        letters, counts = y.unique(return_counts=True)
        assert sorted(letters.tolist()) == sorted(36 + (u + j) % 10 for j in range(5))
        assert len(counts.unique()) == 1
    # lognormal(4, 1) + 5: median 60, and 5 can be left over
    assert 45 < np.median(n) < 75
    assert n.max() > 3 * np.median(n)


def test_samples_are_dealt_once_until_a_pool_is_empty(folder: str) -> None:
    few = femnist_skewed(devices=10, data=folder)
    assert len(np.unique(numbers(few))) == len(few.y)
    all_of_them = femnist_skewed(data=folder)
    assert len(np.unique(numbers(all_of_them))) < len(all_of_them.y)
    for u in range(100):
        its = numbers(all_of_them)[all_of_them.bounds[u, 0] : all_of_them.bounds[u, 3]]
        assert len(np.unique(its)) == len(its)


def test_all_62_classes(tmp_path: Path) -> None:
    made.as_hdf5(tmp_path / "fed_emnist_train.h5", made.hdf5_images(writers(np.arange(62))))
    found = femnist_skewed(first=0, classes=62, devices=70, data=str(tmp_path), split=Split())
    for u in (0, 1, 60, 69):
        y = found.y[found.bounds[u, 0] : found.bounds[u, 3]]
        assert sorted(y.unique().tolist()) == sorted((u + j) % 62 for j in range(5))
    assert found.sizes("validation").sum() > 0


def test_formats_and_seeds(folder: str, tmp_path: Path) -> None:
    made.as_json(tmp_path / "leaf" / "all_data.json", made.leaf_images(LETTERS))
    made.as_parquet(tmp_path / "parquet" / "a.parquet", made.table(LETTERS))
    folders = (folder, tmp_path / "leaf", tmp_path / "parquet")
    prints = {femnist_skewed(devices=5, data=str(one)).fingerprint for one in folders}
    assert len(prints) == 1
    assert prints != {femnist_skewed(devices=5, seed=1, data=folder).fingerprint}


def test_parts_are_pooled(tmp_path: Path) -> None:
    for i, part in enumerate(("train", "test")):
        half = {user: (x[i::2], y[i::2]) for user, (x, y) in LETTERS.items()}
        made.as_hdf5(tmp_path / f"fed_emnist_{part}.h5", made.hdf5_images(half))
    found = femnist_skewed(data=str(tmp_path))
    assert torch.equal(torch.from_numpy(Y[numbers(found)]), found.y)
    assert len(np.unique(numbers(found))) > len(Y) * 0.9


def test_mistakes(folder: str, tmp_path: Path) -> None:
    for wrong, match in (
        ({"first": 0, "classes": 62}, "hold 0 images of class 0, expected the"),
        ({"classes": 4}, "classes ≥ 5"),
        ({"devices": 0}, "devices ≥ 1"),
        ({"first": 60}, "classes 60 … 69"),
        ({"seed": None}, "whole number as its seed"),
    ):
        with pytest.raises(InputError, match=match):
            femnist_skewed(data=folder, **wrong)  # type: ignore[arg-type]
    path = tmp_path / "fed_emnist_train.h5"
    for beginning in broken.cuts((Path(folder) / path.name).read_bytes(), 5).values():
        path.write_bytes(beginning)
        broken.refused(lambda: femnist_skewed(data=str(tmp_path)), path.name)


def test_the_preset_runs(folder: str, tmp_path: Path) -> None:
    options = ["--set", f"data.data={folder}", "--set", "data.devices=2", "--set", "cohort=2", "--rounds", "1"]
    assert answer(["run", "femnist-skewed", *options, "--quiet", "--out", str(tmp_path)]) == 0
