"""Files that are whole but unusual, as published programs write them, and damage that would take for ever to read."""

import copy
import gzip
import json
import struct
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from dittofl import InputError
from dittofl.datasets import femnist, hdf5, idx, vocabulary
from tests.datasets import broken, made

WRITERS = made.writers(4, 3, 5)
WHOLE = made.leaf_images(WRITERS)
EMPTY: dict[str, Any] = {"x": [], "y": []}


def fingerprint(folder: Path) -> str:
    return femnist(devices=None, data=str(folder)).fingerprint


def test_leaf_leaves_those_of_one_sample_without_any(tmp_path: Path) -> None:
    """Its program that parts samples keeps their names in user_data alone, and all hierarchies."""
    for folder, further in (("plain", {}), ("leaf", {"f9999_99": EMPTY})):
        for part, rows in (("train", slice(0, -1)), ("test", slice(-1, None))):
            its = made.leaf_images({user: (x[rows], y[rows]) for user, (x, y) in WRITERS.items()})
            its["user_data"] = {**further, **its["user_data"]}
            its["hierarchies"] = ["a"] * 4
            made.as_json(tmp_path / folder / part / f"all_data_0_{part}_8.json", its)
    assert fingerprint(tmp_path / "plain") == fingerprint(tmp_path / "leaf")


def test_a_user_without_samples_is_no_device(tmp_path: Path) -> None:
    its = copy.deepcopy(WHOLE)
    its["users"].append("none")
    its["num_samples"].append(0)
    its["user_data"]["none"] = EMPTY
    made.as_json(tmp_path / "leaf" / "all_data_0.json", its)
    none = {"pixels": np.ones((0, 28, 28), np.float32), "label": np.zeros(0, np.int32)}
    made.as_hdf5(tmp_path / "hdf5" / "fed_emnist_train.h5", {"none": none, **made.hdf5_images(WRITERS)})
    made.as_hdf5(tmp_path / "fed_emnist_train.h5", made.hdf5_images(WRITERS))
    assert len({fingerprint(folder) for folder in (tmp_path, tmp_path / "leaf", tmp_path / "hdf5")}) == 1


def test_parts_of_other_users_are_told_what_to_do(tmp_path: Path) -> None:
    """LEAF parts the users, where it is asked to."""
    users = list(WRITERS)
    for part, some in (("train", users[:2]), ("test", users[2:])):
        made.as_json(tmp_path / part / "all_data_0.json", made.leaf_images({user: WRITERS[user] for user in some}))
    with pytest.raises(InputError, match=r"do not both hold devices \['f0000_00', .*part each device's samples"):
        fingerprint(tmp_path)


def test_hidden_files_are_none_of_them(tmp_path: Path) -> None:
    """Archives made on a Mac bring a ._name beside each name."""
    made.as_json(tmp_path / "plain" / "all_data" / "all_data_0.json", WHOLE)
    path = made.as_json(tmp_path / "mac" / "all_data" / "all_data_0.json", WHOLE)
    for other in (path.with_name("._all_data_0.json"), path.parent.with_name("._all_data.json")):
        other.write_bytes(b"\x00\x05\x16\x07")
    assert fingerprint(tmp_path / "plain") == fingerprint(tmp_path / "mac")
    path.unlink()
    with pytest.raises(InputError, match="holds no"):
        fingerprint(tmp_path / "mac")


def test_data_of_users_that_are_not_named_is_damage(tmp_path: Path) -> None:
    its = copy.deepcopy(WHOLE)
    its["users"].pop()
    its["num_samples"].pop()
    path = made.as_json(tmp_path / "all_data_0.json", its)
    broken.refused(lambda: fingerprint(tmp_path), path.name)


@pytest.mark.parametrize("name", ["é", "😀", "e\u0301", "a\nb", "", "\u0000"])
def test_names_of_any_characters(tmp_path: Path, name: str) -> None:
    users = {name: WRITERS["f0000_00"], **WRITERS}
    for folder, ascii in (("escaped", True), ("plain", False)):
        (tmp_path / folder).mkdir()
        text = json.dumps(made.leaf_images(users), ensure_ascii=ascii)
        (tmp_path / folder / "all_data_0.json").write_text(text, encoding="utf-8")
        assert name in femnist(devices=None, data=str(tmp_path / folder)).ids
    assert fingerprint(tmp_path / "escaped") == fingerprint(tmp_path / "plain")


def test_half_a_character_is_no_name(tmp_path: Path) -> None:
    path = made.as_json(tmp_path / "all_data_0.json", made.leaf_images({"a\ud83d": WRITERS["f0000_00"]}))
    broken.refused(lambda: fingerprint(tmp_path), path.name)


def test_gzip_of_several_members(tmp_path: Path) -> None:
    """As appended files and parallel compressors have them."""
    raw = json.dumps(WHOLE).encode()
    for folder, packed in (("one", gzip.compress(raw)), ("more", gzip.compress(raw[:999]) + gzip.compress(raw[999:]))):
        (tmp_path / folder / "all_data").mkdir(parents=True)
        (tmp_path / folder / "all_data" / "all_data_0.json.gz").write_bytes(packed)
    assert fingerprint(tmp_path / "one") == fingerprint(tmp_path / "more")


def test_images_that_are_said_to_be_a_billion(tmp_path: Path) -> None:
    path = made.as_hdf5(tmp_path / "fed_emnist_train.h5", made.hdf5_images(WRITERS))
    with h5py.File(path, "r+") as file:
        del file["examples/f0000_00/pixels"]
        file.create_dataset("examples/f0000_00/pixels", (10**9, 28, 28), "f4", chunks=(1, 28, 28))
    broken.refused(lambda: fingerprint(tmp_path), path.name)


@pytest.mark.parametrize("shape", [(2**16,) * 4, (1,) * 200, (-1, -1), ()])
def test_idx_of_a_shape_that_is_none(tmp_path: Path, shape: tuple[int, ...]) -> None:
    """The product of the first is 2^64, which 64 bits hold as 0."""
    path = tmp_path / "labels"
    path.write_bytes(bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}i", *shape) + b"a" * (len(shape) != 4))
    broken.refused(lambda: idx.read(path), path.name)


def test_idx_in_gzip_of_several_members(tmp_path: Path) -> None:
    path = tmp_path / "labels"
    path.write_bytes(gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 3])) + gzip.compress(b"ab") + gzip.compress(b"c"))
    assert idx.read(path).tobytes() == b"abc"


def test_few_of_many_words_are_held(tmp_path: Path) -> None:
    """TFF's file of words has millions; any order gives the same, equal counts in the file's."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 50, 20_000).tolist()
    path = tmp_path / "stackoverflow.word_count"
    path.write_text("".join(f"w{i}\t{n}\n" for i, n in enumerate(counts)))
    held = vocabulary.word_counts(path, 30)
    assert len(held) <= 4 * 30 + vocabulary.SLACK
    order = sorted(range(len(counts)), key=lambda i: -counts[i])[:30]
    assert list(vocabulary.index(held, 30, path)) == [f"w{i}".encode() for i in order]


@pytest.mark.parametrize("options", [{}, {"libver": "latest"}, {"libver": "latest", "track_order": True}])
def test_the_first_clients_by_name(tmp_path: Path, options: dict[str, Any]) -> None:
    """Whatever the order in which they were written, and that in which HDF5 keeps them."""
    names = [f"{k:04}é" for k in np.random.default_rng(0).permutation(300)]
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", **options) as file:
        examples = file.create_group("examples", track_order=options.get("track_order"))
        for name in names:
            examples.create_group(name)
    with hdf5.examples(path) as clients:
        assert clients.names() == sorted(names)
        assert clients.names(7) == sorted(names)[:7]
        assert clients.names(999) == sorted(names)
