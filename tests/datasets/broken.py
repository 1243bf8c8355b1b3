"""Damage to files and to what is in them, made by rule, and the proof that it is told in one sentence."""

import copy
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


def copied(source: Path, target: Path, change: Callable[[bytes], bytes] = bytes) -> Path:
    target.write_bytes(change(source.read_bytes()))
    return target
