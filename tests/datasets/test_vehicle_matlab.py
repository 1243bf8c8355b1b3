"""Vehicle from the original file of MATLAB, in both of its versions."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from dittofl import InputError
from dittofl.datasets import vehicle
from dittofl.datasets.matlab import cells as cells_of
from dittofl.datasets.vehicle import standardised, train_size
from tests.datasets import broken, made

# Facts of the authors' own file.
TRAIN = [59, 8, 20, 156, 17, 13, 43, 25, 71, 388, 21, 13, 534, 84, 147, 36, 7, 13, 15, 130, 20, 30, 10]
Cells = dict[str, list[Any]]


def cells() -> Cells:
    rng = np.random.default_rng(0)
    n = [size + 2 + i % 3 for i, size in enumerate(TRAIN)]
    x = [np.round(rng.normal(rng.normal(), 3, (k, 100)), 3) for k in n]
    x[4][:, 7] = 0.0  # never changes
    return {"X": x, "Y": [rng.choice([-1.0, 1.0], (k, 1)) for k in n]}


GIVEN = cells()
VERSIONS: dict[str, Callable[[Path], Path]] = {
    "5": lambda path: made.as_mat(path, GIVEN),
    "5 uncompressed": lambda path: made.as_mat(path, GIVEN, compressed=False),
    "7.3": lambda path: made.as_mat73(path, GIVEN),
}


def test_the_authors_sizes() -> None:
    assert [train_size(i) for i in range(23)] == TRAIN


def test_features_are_standardised_on_each_device() -> None:
    x = standardised(GIVEN["X"][4])
    assert np.allclose(np.delete(x, 7, 1).mean(0), 0)
    assert np.allclose(np.delete(x, 7, 1).std(0), 1)
    assert (x[:, 7] == 0).all()


@pytest.mark.parametrize("version", VERSIONS)
def test_both_versions_hold_every_sample_once(tmp_path: Path, version: str) -> None:
    VERSIONS[version](tmp_path / "vehicle.mat")
    found = vehicle(data=str(tmp_path), seed=5)
    assert found.sizes("train").tolist() == TRAIN
    for i, user in enumerate(found.ids):
        x, y = (np.concatenate([found.part(user, part)[j] for part in ("train", "test")]) for j in (0, 1))
        wanted = np.column_stack([standardised(GIVEN["X"][i]).astype(np.float32), GIVEN["Y"][i]])
        assert np.array_equal(np.unique(np.column_stack([x, y]), axis=0), np.unique(wanted, axis=0))
    assert found.fingerprint == vehicle(data=str(tmp_path), seed=5).fingerprint
    assert found.fingerprint != vehicle(data=str(tmp_path), seed=6).fingerprint
    assert vehicle(data=str(tmp_path), validation=0.1).sizes("validation")[0] == 59 - 53
    with pytest.raises(InputError, match="whole number as its seed"):
        vehicle(data=str(tmp_path), seed="a")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float32", "float64"])
def test_every_kind_of_number(tmp_path: Path, kind: str) -> None:
    """MATLAB stores a matrix in the smallest kind that holds its numbers."""
    x = [
        np.arange(6).reshape(3, 2).astype(kind),
        np.zeros((0, 4), kind),
        np.array([[7]], kind),
        np.eye(1, 5, dtype=kind),
    ]
    path = made.as_mat(tmp_path / "a.mat", {"other": [np.array(["text"])], "a_long_name": x, "b": x[:1]})
    found = cells_of(path, "b", "a_long_name")
    assert [len(its) for its in found] == [1, 4]
    for one, given in zip(found[1], x, strict=True):
        assert np.array_equal(one, given)


def train_json(rows: dict[int, Any]) -> dict[str, Any]:
    """The authors' train.json of those rows of each device."""
    users = {}
    for i in range(23):
        x, y = standardised(GIVEN["X"][i])[rows[i]], GIVEN["Y"][i][rows[i]]
        users[f"f_{i:05}"] = (x.tolist(), y.tolist())
    return made.leaf(users)


def test_beside_the_authors_train_samples_all_others_test(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = {i: rng.permutation(len(x))[: TRAIN[i]] for i, x in enumerate(GIVEN["X"])}
    made.as_mat(tmp_path / "vehicle.mat", GIVEN)
    made.as_json(tmp_path / "train.json.gz", train_json(rows))
    found = vehicle(data=str(tmp_path))
    for i, user in enumerate(found.ids):
        x, y = standardised(GIVEN["X"][i]).astype(np.float32), GIVEN["Y"][i][:, 0]
        left = np.setdiff1d(np.arange(len(x)), rows[i])
        for part, its in (("train", rows[i]), ("test", left)):
            assert np.array_equal(found.part(user, part)[0], x[its])  # type: ignore[arg-type]
            assert np.array_equal(found.part(user, part)[1], y[its])  # type: ignore[arg-type]
    other = train_json(rows)
    other["user_data"]["f_00003"]["x"][2][5] += 0.01
    made.as_json(tmp_path / "train.json.gz", other)
    with pytest.raises(InputError, match=r"lacks sample 2 of the train\.json beside it"):
        vehicle(data=str(tmp_path))
    made.as_json(tmp_path / "train.json.gz", made.leaf({"a": ([[0.0] * 100], [1])}))
    with pytest.raises(InputError, match=r"other users than f_00000 … f_00022"):
        vehicle(data=str(tmp_path))


def load(folder: Path) -> Callable[[], object]:
    return lambda: vehicle(data=str(folder))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_that_breaks_off(tmp_path: Path, version: str) -> None:
    path = VERSIONS[version](tmp_path / "vehicle.mat")
    for beginning in broken.cuts(path.read_bytes(), 40).values():
        path.write_bytes(beginning)
        broken.refused(load(tmp_path), path.name)


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_at_random(tmp_path: Path, version: str) -> None:
    broken.survived(VERSIONS[version](tmp_path / "vehicle.mat"), load(tmp_path))


def other(name: str, i: int, change: Callable[[Any], Any]) -> Cells:
    return {**GIVEN, name: [change(one) if k == i else one for k, one in enumerate(GIVEN[name])]}


def with_value(value: float) -> Callable[[Any], Any]:
    def change(matrix: Any) -> Any:
        matrix = matrix.copy()
        matrix[3, 0] = value
        return matrix

    return change


DAMAGES: dict[str, Cells] = {
    **{f"{name} lost": {key: its for key, its in GIVEN.items() if key != name} for name in GIVEN},
    **{f"a cell of {name} lost": {**GIVEN, name: GIVEN[name][:-1]} for name in GIVEN},
    **{f"a sample of {name} lost": other(name, 5, lambda one: one[:-1]) for name in GIVEN},
    **{f"{name} transposed": other(name, 5, lambda one: one.T) for name in ("X",)},
    **{f"text in {name}": other(name, 5, lambda _: np.array(["text"])) for name in GIVEN},
    **{f"nothing in {name}": other(name, 5, lambda one: one[:0]) for name in GIVEN},
    **{f"NaN in {name}": other(name, 5, with_value(float("nan"))) for name in GIVEN},
    **{f"infinity in {name}": other(name, 5, with_value(float("inf"))) for name in GIVEN},
    "complex numbers": other("X", 5, lambda one: one * 1j),
    "a feature too many": other("X", 5, lambda one: np.hstack([one, one[:, :1]])),
    "a label of 0": other("Y", 5, with_value(0)),
    "a label of 2": other("Y", 5, with_value(2)),
    "no sample left to test": {name: [one[: TRAIN[k]] for k, one in enumerate(its)] for name, its in GIVEN.items()},
    "cells in a cell": other("X", 5, lambda one: np.array([[one], [one]], dtype=object)),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_other_cells(tmp_path: Path, name: str) -> None:
    broken.refused(load(made.as_mat(tmp_path / "vehicle.mat", DAMAGES[name]).parent), "vehicle.mat")
    plain = all(one.dtype.kind in "fc" for its in DAMAGES[name].values() for one in its)
    if plain:
        broken.refused(load(made.as_mat73(tmp_path / "vehicle.mat", DAMAGES[name]).parent), "vehicle.mat")


def test_matrices_where_cells_are_expected(tmp_path: Path) -> None:
    import scipy.io

    path = tmp_path / "vehicle.mat"
    scipy.io.savemat(path, {"X": GIVEN["X"][0], "Y": GIVEN["Y"][0]})
    broken.refused(load(tmp_path), path.name)
    with h5py.File(path, "w") as file:
        file["X"], file["Y"] = GIVEN["X"][0], GIVEN["Y"][0]
    broken.refused(load(tmp_path), path.name)
    with h5py.File(path, "w") as file:  # references to nothing
        for name in ("X", "Y"):
            file.create_dataset(name, (1, 23), dtype=h5py.ref_dtype)
    broken.refused(load(tmp_path), path.name)


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("5", "7.3"):
        (tmp_path / version).mkdir()
        VERSIONS[version](tmp_path / version / "vehicle.mat")
    monkeypatch.setitem(sys.modules, "h5py", None)
    load(tmp_path / "5")()
    with pytest.raises(InputError, match=r"pip install 'dittofl\[hdf5\]'"):
        vehicle(data=str(tmp_path / "7.3"))
