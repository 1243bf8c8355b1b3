"""Damage to files and to what is in them, made by rule, and the proof that it is told in one sentence."""

import copy
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dittofl import InputError

Change = Callable[[Any], object]
LOST = object()  # in place of a value: its key is taken away


def refused(load: Callable[[], object], *named: str) -> None:
    """Loading ends in one sentence that names the file and says what to do."""
    with pytest.raises(InputError) as caught:
        load()
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert any(name in sentence for name in named), sentence
    assert sentence.endswith("get it again"), sentence


def cuts(raw: bytes, count: int) -> dict[str, bytes]:
    """The beginnings of a file, none of them whole."""
    return {f"cut at {n} of {len(raw)}": raw[:n] for n in (len(raw) * i // count for i in range(count))}


def edits(whole: Any, places: Mapping[str, Sequence[Any]], values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Copies of nested lists and dicts with one place taken away, or replaced by a value."""
    for name, (*way, last) in places.items():
        for value in (LOST, *values):
            one = copy.deepcopy(whole)
            at = one
            for step in way:
                at = at[step]
            if value is LOST:
                at.pop(last)
            else:
                at[last] = value
            yield f"{name} {'lost' if value is LOST else repr(value)}", one


def struck(raw: bytes, count: int) -> Iterator[bytes]:
    """Copies in which a few bytes, more often than not near the beginning, are others, lost, or too many."""
    rng = random.Random(len(raw))
    for _ in range(count):
        copy_ = bytearray(raw)
        for _ in range(rng.choice((1, 1, 3, 10))):
            at = min(len(copy_) - 1, rng.randrange(len(copy_)) if rng.random() < 0.5 else int(rng.expovariate(1 / 200)))
            some = rng.randbytes(rng.randrange(1, 8))
            copy_[at : at + rng.choice((0, len(some), 20))] = rng.choice((some, some, b"", b"\xff" * 8))
        yield bytes(copy_)


def survived(path: Path, load: Callable[[], object], count: int = 100) -> None:
    """Whatever happened to its bytes, a file is loaded or told to be damaged; that some copies are whole is luck."""
    told = 0
    for raw in struck(path.read_bytes(), count):
        path.write_bytes(raw)
        try:
            load()
        except InputError as error:
            told += 1
            if "\n" in str(error):
                raise AssertionError("more than a sentence") from error
    assert told > count / 4


def copied(source: Path, target: Path, change: Callable[[bytes], bytes] = bytes) -> Path:
    target.write_bytes(change(source.read_bytes()))
    return target
