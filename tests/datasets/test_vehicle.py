"""Vehicle from files in the authors' format."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dittofl import InputError
from dittofl.cli import answer
from dittofl.datasets import vehicle
from tests.datasets import broken

SIZES = {"f_00000": (9, 4), "f_00001": (5, 6)}


def content(part: int) -> dict[str, Any]:
    rng = np.random.default_rng(part)
    data = {
        user: {"y": rng.choice([-1, 1], (n[part], 1)).tolist(), "x": rng.normal(size=(n[part], 100)).tolist()}
        for user, n in SIZES.items()
    }
    return {"num_samples": [n[part] for n in SIZES.values()], "users": list(SIZES), "user_data": data}


def written(folder: Path, *, test: bool = True, ending: str = "") -> Path:
    for part, name in enumerate(["train", "test"][: 1 + test]):
        raw = json.dumps(content(part)).encode()
        (folder / f"{name}.json{ending}").write_bytes(gzip.compress(raw) if ending else raw)
    return folder


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_the_authors_two_files(tmp_path: Path, ending: str) -> None:
    data = vehicle(data=str(written(tmp_path, ending=ending)))
    assert data.ids == tuple(SIZES)
    for user in SIZES:
        for part, name in enumerate(("train", "test")):
            x, y = data.part(user, name)  # type: ignore[arg-type]
            assert np.array_equal(x, np.float32(content(part)["user_data"][user]["x"]))  # type: ignore[arg-type]
            assert y.tolist() == np.ravel(content(part)["user_data"][user]["y"]).tolist()


def test_devices_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    """The authors' own file has another, and their program sorts."""
    for part, name in enumerate(("train", "test")):
        its = content(part)
        its["users"], its["num_samples"] = its["users"][::-1], its["num_samples"][::-1]
        (tmp_path / f"{name}.json").write_text(json.dumps(its), encoding="utf-8")
    assert vehicle(data=str(tmp_path)).ids == tuple(sorted(SIZES))


def test_the_authors_folders(tmp_path: Path) -> None:
    written(tmp_path)
    for part in ("train", "test"):
        (tmp_path / "theirs" / part).mkdir(parents=True)
        broken.copied(tmp_path / f"{part}.json", tmp_path / "theirs" / part / f"my{part}.json")
    assert vehicle(data=str(tmp_path / "theirs")).fingerprint == vehicle(data=str(tmp_path)).fingerprint


def test_a_tenth_held_out(tmp_path: Path) -> None:
    data = vehicle(data=str(written(tmp_path)), validation=0.1)
    assert data.sizes("validation").tolist() == [1, 1]  # of 9: 8 stay, of 5: 4
    assert data.sizes("test").tolist() == [4, 6]


def test_one_file_is_split_by_the_seed(tmp_path: Path) -> None:
    folder = str(written(tmp_path, test=False))
    data = vehicle(data=folder)
    assert data.sizes("test").tolist() == [2, 1]
    assert (data.bounds[:, 3] - data.bounds[:, 0]).tolist() == [9, 5]
    assert data.fingerprint == vehicle(data=folder, seed=0).fingerprint != vehicle(data=folder, seed=1).fingerprint


def damage(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def applied(path: Path) -> None:
        whole = json.loads(path.read_bytes())
        change(whole)
        path.write_text(json.dumps(whole))

    return applied


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-200]),
    "empty": lambda path: path.write_bytes(b""),
    "no gzip": lambda path: path.write_bytes(b"\x1f\x8b" + path.read_bytes()),
    "a list": lambda path: path.write_text("[]"),
    "a user without data": damage(lambda whole: whole["user_data"].pop("f_00001")),
    "data without a user": damage(lambda whole: whole["users"].pop()),
    "a size lost": damage(lambda whole: whole["num_samples"].pop()),
    "a wrong size": damage(lambda whole: whole["num_samples"].__setitem__(0, 8)),
    "a feature lost": damage(lambda whole: whole["user_data"]["f_00000"]["x"][0].pop()),
    "a label of 2": damage(lambda whole: whole["user_data"]["f_00000"]["y"].__setitem__(0, [2])),
    "a label lost": damage(lambda whole: whole["user_data"]["f_00000"]["y"].pop()),
    "text": damage(lambda whole: whole["user_data"]["f_00000"]["x"].__setitem__(0, ["a"] * 100)),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    DAMAGES[name](written(tmp_path) / "train.json")
    with pytest.raises(InputError, match="get it again"):
        vehicle(data=str(tmp_path))


def test_files_of_other_users_and_no_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"train\.json"):
        vehicle(data=str(tmp_path))
    damage(lambda whole: [whole[key].pop() for key in ("users", "num_samples")] and whole["user_data"].pop("f_00001"))(
        written(tmp_path) / "test.json"
    )
    with pytest.raises(InputError, match="other users"):
        vehicle(data=str(tmp_path))


def test_the_preset_runs(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    written(tmp_path / "data")
    options = ["--set", f"data.data={tmp_path / 'data'}", "--set", "cohort=2", "--rounds", "2", "--quiet"]
    assert answer(["run", "vehicle", *options, "--out", str(tmp_path / "runs")]) == 0
