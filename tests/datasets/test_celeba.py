"""CelebA in LEAF's layout: the authors' mixture of celebrities, and a sentence for a damaged file."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from dittofl import Federation, InputError
from dittofl.cli import answer
from dittofl.datasets import celeba
from tests.datasets import broken, made

SIZES = {"11": 26, "12": 31, "13": 28, "21": 5, "22": 14, "23": 9, "31": 4, "32": 15, "33": 25}
RNG = np.random.default_rng(0)
NAMES = [f"{i:06}.jpg" for i in range(sum(SIZES.values()))]
SMILES = RNG.integers(0, 2, len(NAMES)).tolist()
PIXELS = [np.kron(RNG.integers(0, 256, (4, 3, 3), dtype=np.uint8), np.ones((6, 6, 1), np.uint8)) for _ in NAMES]
JPEGS = dict(zip(NAMES, (made.picture(pixels, "JPEG") for pixels in PIXELS), strict=True))


def celebrities() -> dict[str, tuple[list[str], list[int]]]:
    starts = dict(zip(SIZES, np.cumsum([0, *SIZES.values()]).tolist(), strict=False))
    return {id: (NAMES[(k := starts[id]) : k + n], SMILES[k : k + n]) for id, n in SIZES.items()}


GIVEN = celebrities()
ALL = {"many": 3, "few": 3}


def images(folder: Path) -> None:
    (folder / "raw/img_align_celeba").mkdir(parents=True)
    for name, raw in JPEGS.items():
        (folder / "raw/img_align_celeba" / name).write_bytes(raw)


@pytest.fixture(scope="module")
def leaf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("celeba")
    images(folder)
    made.as_json(folder / "all_data" / "all_data.json", made.leaf(GIVEN))
    return folder


def portrait(name: str) -> Any:
    """Its pixels as LEAF's program reads them, channels first."""
    number = NAMES.index(name)
    decoded = np.asarray(Image.open(io.BytesIO(JPEGS[name])).convert("RGB").resize((84, 84)))
    assert abs(decoded.astype(int).mean() - PIXELS[number].mean()) < 8
    return decoded.transpose(2, 0, 1)


def test_celebrities_of_many_and_of_few_images(leaf: Path) -> None:
    found = celeba(data=str(leaf), **ALL)
    assert found.ids == ("11", "12", "13", "21", "22", "23")
    n = np.array([SIZES[id] for id in found.ids])
    assert found.sizes("train").tolist() == (8 * n // 10).tolist() == [20, 24, 22, 4, 11, 7]
    assert found.sizes("test").tolist() == (n - 8 * n // 10).tolist()
    assert found.x.dtype == torch.uint8  # type: ignore[union-attr]
    few = {celeba(data=str(leaf), many=1, few=2, seed=seed).ids for seed in range(6)}
    assert len(few) > 2
    assert all(SIZES[one] >= 26 and SIZES[b] < 15 and SIZES[c] < 15 for one, b, c in few)


def test_images_are_resized_and_keep_their_labels(leaf: Path) -> None:
    found = celeba(data=str(leaf), **ALL)
    for id in ("11", "21"):
        x, y = (torch.cat([found.part(id, part)[j] for part in ("train", "test")]) for j in (0, 1))  # type: ignore[misc]
        got = {(row.numpy().tobytes(), int(label)) for row, label in zip(x, y, strict=True)}
        assert got == {(portrait(name).tobytes(), label) for name, label in zip(*GIVEN[id], strict=True)}


def test_the_authors_train_and_test_parts_stand(tmp_path: Path) -> None:
    images(tmp_path)
    parts = {}
    for part, its in (("train", slice(0, None, 2)), ("test", slice(1, None, 2))):
        half = {id: (x[its], [float(one) for one in y[its]]) for id, (x, y) in GIVEN.items()}  # LEAF's y / 2
        made.as_json(tmp_path / part / f"all_data_niid_1_keep_25_{part}_8.json", made.leaf(half))
        parts[part] = {id: (np.stack([portrait(name) for name in x]), np.int64(y)) for id, (x, y) in half.items()}
    chosen = ("11", "12", "13", "21", "22", "23")
    given = Federation.from_parts(**{part: {id: its[id] for id in chosen} for part, its in parts.items()})  # type: ignore[arg-type]
    assert celeba(data=str(tmp_path), **ALL).fingerprint == given.fingerprint


def test_mistakes_in_parameters(leaf: Path, tmp_path: Path) -> None:
    for wrong, match in (
        ({}, "3 devices with as many samples, expected 328"),
        ({"many": 1, "few": 4}, "3 devices with as many samples, expected 4"),
        ({"many": -1}, "many ≥ 0"),
    ):
        with pytest.raises(InputError, match=match):
            celeba(data=str(leaf), **wrong)  # type: ignore[arg-type]
    made.as_json(tmp_path / "all_data.json", made.leaf(GIVEN))
    with pytest.raises(InputError, match="img_align_celeba"):
        celeba(data=str(tmp_path))


def test_a_missing_extra_is_named(leaf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(InputError, match=r"pip install 'dittofl\[images\]'"):
        celeba(data=str(leaf), **ALL)


def test_the_preset_runs(leaf: Path, tmp_path: Path) -> None:
    options = ["--set", f"data.data={leaf}", "--set", "data.many=1", "--set", "data.few=1", "--set", "cohort=2"]
    assert answer(["run", "celeba", *options, "--rounds", "1", "--quiet", "--out", str(tmp_path)]) == 0


# Damage


@pytest.fixture
def folder(leaf: Path, tmp_path: Path) -> Path:
    (tmp_path / "raw").symlink_to(leaf / "raw")
    return tmp_path


def load(folder: Path) -> Callable[[], object]:
    return lambda: celeba(data=str(folder), many=0, few=1)


SMALL = made.leaf({"21": GIVEN["21"]})
PLACES: dict[str, tuple[Any, ...]] = {
    "users": ("users",),
    "sizes": ("num_samples",),
    "a size": ("num_samples", 0),
    "data": ("user_data",),
    "x": ("user_data", "21", "x"),
    "an image": ("user_data", "21", "x", 1),
    "y": ("user_data", "21", "y"),
    "a label": ("user_data", "21", "y", 1),
}
EDITS = dict(
    broken.edits(
        SMALL, PLACES, (None, "999999.jpg", "../img_align_celeba/000001.jpg", "", "a\n", "\ud800", -1, 0.5, 2, [], {})
    )
)


def test_the_undamaged_object_is_loaded(folder: Path) -> None:
    made.as_json(folder / "all_data.json", SMALL)
    load(folder)()


@pytest.mark.parametrize("name", EDITS)
def test_json_with_another_value(folder: Path, name: str) -> None:
    made.as_json(folder / "all_data.json", EDITS[name])
    broken.refused(load(folder), "all_data.json", "999999.jpg")


def test_json_that_breaks_off(folder: Path) -> None:
    path = folder / "all_data.json.gz"
    for kind in (path, path.with_suffix("")):
        raw = made.as_json(kind, SMALL).read_bytes()
        for beginning in broken.cuts(raw, 30).values():
            kind.write_bytes(beginning)
            broken.refused(load(folder), kind.name)
        kind.unlink()


def test_damaged_images(leaf: Path, tmp_path: Path) -> None:
    name = GIVEN["21"][0][2]
    (tmp_path / "raw/img_align_celeba").mkdir(parents=True)
    for other in GIVEN["21"][0]:
        broken.copied(leaf / "raw/img_align_celeba" / other, tmp_path / "raw/img_align_celeba" / other)
    made.as_json(tmp_path / "all_data.json", SMALL)
    load(tmp_path)()
    raw = JPEGS[name]
    damaged = broken.cuts(raw[:-40], 30) | {"text": b"a face", "a GIF": made.picture(PIXELS[0], "GIF")}
    for content in damaged.values():
        (tmp_path / "raw/img_align_celeba" / name).write_bytes(content)
        broken.refused(load(tmp_path), name)
    (tmp_path / "raw/img_align_celeba" / name).unlink()
    broken.refused(load(tmp_path), name)
