"""JSON pulled piece by piece gives what Python's own reader gives, wherever a file is cut into chunks."""

import json
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dittofl import InputError
from dittofl.datasets import stream
from dittofl.datasets.stream import Pull
from tests.datasets import made

NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=5)
INDENTS = st.sampled_from([None, 0, 3])


@contextmanager
def begun(raw: bytes, chunk: int) -> Iterator[Pull]:
    """A file that is read in chunks of so many bytes."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "CHUNK", chunk)
        path = Path(folder) / "a.json"
        path.write_bytes(raw)
        yield Pull(path)


def pulled(raw: bytes, chunk: int, skipped: set[int]) -> dict[str, Any]:
    """The object in a file, without what is skipped."""
    found = {}
    with begun(raw, chunk) as text:
        for i, name in enumerate(text.names()):
            if i in skipped:
                text.skip()
            else:
                found[name] = text.value()
        text.end()
    return found


@given(OBJECTS, st.integers(1, 40), INDENTS, st.booleans(), st.sets(st.integers(0, 4)))
@example({"a": 1.5e300, "b": -12}, 1, None, True, set())
@example({"a": 'with "quotes" \\ and ]}', "b": ["]", {"}": "["}]}, 3, None, False, {1})
@example({"é\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"): ["☃" * 30]}, 1, 3, False, {0})
def test_values_are_those_of_json(
    given: dict[str, Any], chunk: int, indent: int | None, ascii_: bool, skipped: set[int]
) -> None:
    raw = json.dumps(given, indent=indent, ensure_ascii=ascii_).encode("utf-8", "replace")
    wanted = json.loads(raw)
    kept = {name: value for i, (name, value) in enumerate(wanted.items()) if i not in skipped}
    assert pulled(raw, chunk, skipped) == kept


@given(OBJECTS, st.integers(1, 40), st.data())
def test_whatever_is_cut_off_is_missed(given: dict[str, Any], chunk: int, data: st.DataObject) -> None:
    raw = json.dumps(given).encode()
    end = data.draw(st.integers(0, len(raw) - 1))
    with pytest.raises(InputError, match="get it again"):
        pulled(raw[:end], chunk, data.draw(st.sets(st.integers(0, 4))))


@given(st.lists(VALUES, max_size=6), st.integers(1, 40))
def test_items_of_an_array(given: list[Any], chunk: int) -> None:
    with begun(json.dumps(given).encode(), chunk) as text:
        assert [text.value() for _ in text.items()] == given
        text.end()


def test_memory_holds_a_value_and_not_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "CHUNK", 2**14)
    path = tmp_path / "a.json"
    made.as_json(path, {"x": [[0.25] * 100] * 2000})
    assert path.stat().st_size > 50 * stream.CHUNK
    tracemalloc.start()
    text = Pull(path)
    for _ in text.names():
        assert sum(len(text.value()) for _ in text.items()) == 2000 * 100
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * stream.CHUNK
