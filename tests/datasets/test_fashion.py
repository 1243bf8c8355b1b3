"""Fashion-MNIST: the authors' partition replayed, and the loader on files made in the same format."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dittofl import InputError
from dittofl.datasets import fashion
from dittofl.datasets.fashion import partition
from tests.datasets.garments import idx, labels, written


def test_the_authors_partition() -> None:
    """It depends on how many there are of a class, 6,000 and 1,000, and so can be replayed without an image."""
    train_y, test_y = labels(6000), labels(1000, 1)
    mine = partition(train_y, test_y)
    train, test = (np.array([len(part[i]) for part in mine]) for i in (0, 1))
    assert (len(mine), train.sum(), test.sum()) == (500, 61_251, 11_254)
    assert train[:5].tolist() == [161, 95, 51, 66, 74]
    assert test[:5].tolist() == [29, 20, 10, 13, 15]
    assert (train.min(), train.max(), np.median(train)) == (31, 1378, 88)
    assert (test.min(), test.max(), np.median(test)) == (7, 231, 17)
    assert len(np.unique(np.concatenate([part[0] for part in mine]))) == 58_825


def test_devices_hold_five_consecutive_classes_dealt_out_in_order() -> None:
    given = labels(6000), labels(1000, 1)
    mine = partition(*given)
    for part, y in enumerate(given):
        at, wraps = np.zeros(10, dtype=int), np.zeros(10, dtype=int)
        pools = [np.flatnonzero(y == c) for c in range(10)]
        for u, samples in enumerate(its[part] for its in mine):
            held = y[samples]
            assert set(held.tolist()) == {(u + j) % 10 for j in range(5)}
            for c in set(held.tolist()):
                its = samples[held == c]
                wraps[c] += at[c] + len(its) > len(pools[c])
                at[c] = 0 if at[c] + len(its) > len(pools[c]) else at[c]
                assert np.array_equal(its, pools[c][at[c] : at[c] + len(its)])
                at[c] += len(its)
        assert wraps.max() == 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path)


def test_images_are_standardised_by_the_train_images(folder: Path) -> None:
    data = fashion(data=str(folder), devices=4)
    x, y = data.part("1", "train")
    raw = {
        part: gzip.decompress((folder / f"{part}-images-idx3-ubyte.gz").read_bytes())[16:] for part in ("train", "t10k")
    }
    train, test = (np.frombuffer(its, np.uint8).reshape(-1, 28, 28).astype(float) for its in raw.values())
    mean, std = train.mean(0), train.std(0) + 0.001
    mine = partition(labels(10), labels(10, 1), 4)[1]
    assert y.tolist() == labels(10)[mine[0]].tolist()
    assert np.array_equal(x, ((train[mine[0]] - mean) / std).astype(np.float32)[:, None])
    assert np.array_equal(data.part("1", "test")[0], ((test[mine[1]] - mean) / std).astype(np.float32)[:, None])


def test_a_tenth_held_out(folder: Path) -> None:
    whole, held = fashion(data=str(folder), devices=4), fashion(data=str(folder), devices=4, validation=0.1)
    n = whole.sizes("train")
    assert held.sizes("train").tolist() == [int(0.9 * its) for its in n]
    assert (held.sizes("validation") + held.sizes("train")).tolist() == n.tolist()
    assert held.sizes("test").tolist() == whole.sizes("test").tolist()


def test_what_is_held_out_is_of_all_classes(folder: Path) -> None:
    """They are dealt class by class, so that the last fifth would be of the last class alone."""
    whole, held = fashion(data=str(folder), devices=1), fashion(data=str(folder), devices=1, validation=0.2)
    before, after = (its.y[: its.bounds[0, 2]].tolist() for its in (whole, held))
    assert sorted(before) == sorted(after)
    assert len(after) == 50
    assert set(after[40:]) == set(before)


@pytest.mark.parametrize("file", ["train-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"])
@pytest.mark.parametrize("damage", ["truncated", "empty", "no gzip", "another shape"])
def test_damage_is_refused_in_one_sentence(folder: Path, file: str, damage: str) -> None:
    raw = (folder / file).read_bytes()
    if damage == "another shape":
        idx(folder / file, np.zeros((7, 28, 28) if "images" in file else 7, dtype=np.uint8))
    else:
        (folder / file).write_bytes({"truncated": raw[:-50], "empty": b"", "no gzip": b"\x1f\x8b" + raw}[damage])
    with pytest.raises(InputError, match="get it again"):
        fashion(data=str(folder), devices=4)


def test_every_bit_of_a_header_counts_and_so_does_every_byte_that_is_lost(folder: Path) -> None:
    draws = np.random.default_rng(1)
    for file, header in (("t10k-images-idx3-ubyte.gz", 16), ("train-labels-idx1-ubyte.gz", 8)):
        whole = (folder / file).read_bytes()
        raw = gzip.decompress(whole)
        flipped = [(i // 8, 1 << i % 8) for i in range(8 * header)]
        damaged = [raw[:i] + bytes([raw[i] ^ bit]) + raw[i + 1 :] for i, bit in flipped]
        damaged += [raw[: int(n)] for n in draws.integers(0, len(raw), 20)]
        damaged += [whole[: int(n)] for n in draws.integers(0, len(whole), 20)]
        for bad in damaged:
            (folder / file).write_bytes(bad)  # IDX files need not be gzipped
            with pytest.raises(InputError, match="get it again"):
                fashion(data=str(folder), devices=4)
        (folder / file).write_bytes(raw)
        assert fashion(data=str(folder), devices=4).K == 4


@pytest.mark.parametrize("wrong", [{"devices": 0}, {"validation": 1.0}, {"validation": -0.1}])
def test_wrong_parameters(folder: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"fashion needs .*{next(iter(wrong))}"):
        fashion(data=str(folder), **wrong)
