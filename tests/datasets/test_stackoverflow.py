"""StackOverflow in TFF's layout: sparse bags of words against dense ones, and a sentence for a damaged file."""

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from dittofl import Federation, InputError, Split
from dittofl.cli import answer
from dittofl.datasets import stackoverflow
from dittofl.datasets.stackoverflow import SOURCE
from tests.datasets import broken, made

VOCABULARY = ["the", "code", "loop", "list", "sort", "résumé", "rare", "never"]
KNOWN = ["python", "java", "c++", "perl"]
COUNTS = {"words": 6, "tags": 3}
TRAIN = "stackoverflow_train.h5"


def users(*sizes: int) -> dict[str, dict[str, list[str]]]:
    """Sentences that tell their number, as words beyond the vocabulary; some without words, titles or tags."""
    rng = np.random.default_rng(0)
    found = {}
    for k, n in enumerate(sizes):
        texts = [" ".join(rng.choice(VOCABULARY, rng.integers(0, 9))) for _ in range(2 * n)]
        tags = ["|".join(rng.permutation(KNOWN)[: rng.integers(0, 4)]) for _ in range(n)]
        found[f"{1000 + 7 * k:08}"] = {
            "tokens": [f"{text} #{k}:{i}" for i, text in enumerate(texts[:n])],
            "title": texts[n:],
            "tags": ["", *tags[1:]],
            "score": list(range(n)),
        }
    return found


GIVEN = users(9, 23, 12, 5)


def written(folder: Path, given: Any = GIVEN, *, vocabularies: bool = True) -> Path:
    folder.mkdir(exist_ok=True)
    if vocabularies:
        lines = (f"{word}\t{1000 - 10 * i}" for i, word in enumerate(VOCABULARY))
        (folder / "stackoverflow.word_count").write_text("\n".join(lines) + "\n", encoding="utf-8")
        counts = {tag: 5 + i for i, tag in enumerate(reversed(KNOWN))}
        (folder / "stackoverflow.tag_count").write_text(json.dumps(counts))
    return made.as_hdf5(folder / TRAIN, given)


def dense(sentence: dict[str, str], words: int) -> Any:
    """The authors' way: the mean of one-hot rows of words + 1 columns, less the last."""
    rows = [VOCABULARY.index(word) if word in VOCABULARY[:words] else words for word in sentence["text"].split()]
    return np.eye(words + 1)[rows].mean(0)[:words]


def samples(user: str) -> list[dict[str, str]]:
    its = GIVEN[user]
    return [
        {"text": f"{tokens} {title}", "tags": tags}
        for tokens, title, tags in zip(its["tokens"], its["title"], its["tags"], strict=True)
    ]


def bags(found: Federation, words: int) -> Any:
    """x as dense rows."""
    ids, weights = found.x
    assert isinstance(ids, torch.Tensor)
    rows = torch.zeros(len(ids), words + 1).scatter_add(1, ids, weights)  # type: ignore[arg-type]
    assert (rows[:, words] == 0).all()
    return rows[:, :words].numpy()


def test_bags_of_words_and_the_most_common_tag(tmp_path: Path) -> None:
    written(tmp_path)
    found = stackoverflow(devices=4, **COUNTS, data=str(tmp_path))
    assert found.ids == tuple(GIVEN)
    rows = np.column_stack([bags(found, 6), found.y.numpy()])
    for k, user in enumerate(found.ids):
        held = rows[found.bounds[k, 0] : found.bounds[k, 3]]
        tags = [next((i for i in range(3) if KNOWN[i] in one["tags"].split("|")), 0) for one in samples(user)]
        wanted = np.column_stack([[dense(one, 6) for one in samples(user)], tags])
        assert np.allclose(held[np.lexsort(held.round(4).T)], wanted[np.lexsort(wanted.round(4).T)])
    n = np.array([9, 23, 12, 5])
    assert found.sizes("train").tolist() == (4 * n // 5).tolist()
    assert found.sizes("test").tolist() == (n - 4 * n // 5).tolist()
    longest = max(len({*one["text"].split()} & {*VOCABULARY[:6]}) for user in GIVEN for one in samples(user))
    assert found.x[0].shape[1] == longest  # type: ignore[index]


def test_several_labels(tmp_path: Path) -> None:
    written(tmp_path)
    single = stackoverflow(devices=4, **COUNTS, data=str(tmp_path))
    found = stackoverflow(devices=4, **COUNTS, multilabel=True, data=str(tmp_path))
    assert found.y.shape == (49, 3)
    assert torch.equal(found.y.argmax(1), single.y)  # of equal ones the first, 0 where there is none
    wanted = sum(len(set(one["tags"].split("|")) & set(KNOWN[:3])) for user in GIVEN for one in samples(user))
    assert found.y.sum() == wanted
    assert torch.equal(found.x[0], single.x[0])  # type: ignore[index]


def test_the_first_users_and_the_last_chunk(tmp_path: Path) -> None:
    written(tmp_path)
    found = stackoverflow(devices=2, **COUNTS, most=10, data=str(tmp_path))
    assert found.ids == tuple(GIVEN)[:2]
    assert (found.bounds[:, 3] - found.bounds[:, 0]).tolist() == [9, 3]  # 23 = 10 + 10 + 3
    whole = stackoverflow(devices=1, **COUNTS, most=9, data=str(tmp_path))
    assert whole.sizes("train").tolist() == [7]  # one whole chunk is kept
    split = stackoverflow(devices=2, **COUNTS, data=str(tmp_path), split=Split(), seed=4)
    assert split.sizes("validation").tolist() == [1, 2]
    assert stackoverflow(devices=2, **COUNTS, data=str(tmp_path), validation=0.1).sizes("validation").tolist() == [1, 2]


def test_words_and_tags_are_counted_where_no_file_tells(tmp_path: Path) -> None:
    told, counted = tmp_path / "told", tmp_path / "counted"
    written(told)
    written(counted, vocabularies=False)
    tokens = {user: {word for text in its["tokens"] for word in text.split()} for user, its in GIVEN.items()}
    tags = {user: {tag for text in its["tags"] for tag in text.split("|")} - {""} for user, its in GIVEN.items()}
    for name, used in (("stackoverflow.word_count", tokens), ("stackoverflow.tag_count", tags)):
        every = sorted({word for words in used.values() for word in words}, key=str.encode)
        counts = {word: sum(word in words for words in used.values()) for word in every}
        ranked = dict(sorted(counts.items(), key=lambda one: -one[1]))
        text = json.dumps(ranked) if "tag" in name else "".join(f"{word} {n}\n" for word, n in ranked.items())
        (told / name).write_text(text, encoding="utf-8")
    prints = {stackoverflow(devices=4, words=9, tags=3, data=str(one)).fingerprint for one in (told, counted)}
    assert len(prints) == 1


def test_mistakes_in_parameters(tmp_path: Path) -> None:
    written(tmp_path)
    for wrong, match in (
        ({"devices": 5}, "holds 4 users, expected 5"),
        ({"devices": 0}, "devices ≥ 1"),
        ({"words": 9}, "holds 8 different ones, expected 9"),
        ({"tags": 5}, "holds 4 different ones, expected 5"),
        ({"tags": 1}, "tags ≥ 2"),
        ({"most": 1}, "most ≥ 2"),
        ({"seed": 0.5}, "whole number as its seed"),
        ({"multilabel": 1}, "multilabel=True or False"),
        ({"most": 22, "split": Split()}, "2 samples on every device"),
    ):
        with pytest.raises(InputError, match=match):
            stackoverflow(**({"devices": 4, **COUNTS, "data": str(tmp_path)} | wrong))  # type: ignore[arg-type]
    assert SOURCE.found(tmp_path) == tmp_path


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match=r"pip install 'dittofl\[hdf5\]'"):
        stackoverflow(devices=4, **COUNTS, data=str(tmp_path))


def test_the_preset_runs(tmp_path: Path) -> None:
    written(tmp_path / "data")
    sizes = ["devices=4", "words=6", "tags=3"]
    changes = [f"data.data={tmp_path / 'data'}", *(f"data.{one}" for one in sizes), "cohort=2", "model.words=6"]
    options = [part for change in (*changes, "model.tags=3") for part in ("--set", change)]
    assert answer(["run", "stackoverflow", *options, "--rounds", "2", "--quiet", "--out", str(tmp_path)]) == 0


# Damage


def load(folder: Path) -> Callable[[], object]:
    return lambda: stackoverflow(devices=4, **COUNTS, data=str(folder))


def test_a_file_that_breaks_off(tmp_path: Path) -> None:
    path = written(tmp_path)
    for beginning in broken.cuts(path.read_bytes(), 60).values():
        path.write_bytes(beginning)
        broken.refused(load(tmp_path), path.name)


def test_bytes_at_random(tmp_path: Path) -> None:
    broken.survived(written(tmp_path), load(tmp_path))


USER = "00001007"
COLUMNS = GIVEN[USER]
TEXTS = ("tokens", "title", "tags")
CLIENT: dict[str, dict[str, Any]] = {
    **{f"{what} lost": {key: its for key, its in COLUMNS.items() if key != what} for what in TEXTS},
    **{
        f"{what} {name}": {**COLUMNS, what: change(COLUMNS[what])}
        for what in TEXTS
        for name, change in {
            "one too few": lambda texts: texts[:-1],
            "one too many": lambda texts: [*texts, "the code"],
            "none": lambda texts: np.array([], dtype="S1"),
            "numbers": lambda texts: list(range(len(texts))),
            "in a column": lambda texts: [[text] for text in texts],
            "one text": lambda texts: texts[0],
            "no UTF-8": lambda texts: [b"\xff\xfe"] * len(texts),
        }.items()
    },
    **{"all none": dict.fromkeys(TEXTS, np.array([], dtype="S1"))},
}


@pytest.mark.parametrize("name", CLIENT)
def test_another_client(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, {**GIVEN, USER: CLIENT[name]})
    broken.refused(load(tmp_path), path.name)


def test_a_client_laid_out_otherwise(tmp_path: Path) -> None:
    path = written(tmp_path)
    with h5py.File(path, "r+") as file:
        del file[f"examples/{USER}/tags"]
        file.create_group(f"examples/{USER}/tags")
    broken.refused(load(tmp_path), path.name)
    with h5py.File(path, "r+") as file:
        del file["examples"]
    broken.refused(load(tmp_path), path.name)


VOCABULARIES: dict[str, tuple[str, bytes]] = {
    **{
        f"words: {name}": ("stackoverflow.word_count", raw)
        for name, raw in {
            "no count": b"the 10\ncode\n",
            "two counts": b"the 10\ncode 9 8\n",
            "no number": b"the 10\ncode many\n",
            "less than none": b"the 10\ncode -1\n",
            "a word twice": b"the 10\nthe 9\n",
            "an empty line": b"the 10\n\ncode 9\n",
            "no UTF-8": b"the 10\n\xff\xfe 9\n",
            "gzip that breaks off": gzip.compress(b"the 10\ncode 9\n" * 20)[:-12],
        }.items()
    },
    **{
        f"tags: {name}": ("stackoverflow.tag_count", raw)
        for name, raw in {
            "cut": b'{"python": 10, "java": ',
            "no object": b'["python", "java"]',
            "no number": b'{"python": 10, "java": "many"}',
            "no whole number": b'{"python": 10, "java": 1.5}',
            "less than none": b'{"python": 10, "java": -1}',
            "a tag twice": b'{"python": 10, "python": 9}',
            "more behind": b'{"python": 10} {}',
            "nothing": b"",
            "no UTF-8": b'{"\xff": 10}',
        }.items()
    },
}


@pytest.mark.parametrize("name", VOCABULARIES)
def test_another_vocabulary(tmp_path: Path, name: str) -> None:
    written(tmp_path)
    file, raw = VOCABULARIES[name]
    (tmp_path / file).write_bytes(raw)
    broken.refused(load(tmp_path), file)
