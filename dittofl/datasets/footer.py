"""The footer of a parquet file, a few groups of rows at a time.

pyarrow holds nearly 2 KB for each column of each group, of all at once: 70 MB for the 8,143 groups of Hugging Face's
FEMNIST, which are read one by one. So the list of groups is cut here into short ones, each in a footer of its own. It
is in Thrift's compact protocol: a structure is fields up to a zero, a field is a byte (step in numbers, kind) and a
value.
"""

import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

from dittofl.datasets.reading import intact, whole

T = TypeVar("T")
FEW = 64  # groups
STRETCH = 1 << 20  # bytes of the footer that are held, or as many as one group takes
MARK = b"PAR1"
GROUPS = 4  # the number of the field that lists them
BOOLS, NUMBERS, BINARY, LISTS, STRUCT = (1, 2), (4, 5, 6), 8, (9, 10), 12  # kinds
WIDTHS = {1: 0, 2: 0, 3: 1, 7: 8}  # bytes of a value; a field's truth stands in its kind


def parts(path: Path) -> Iterator[Any]:
    """pyarrow's metadata of the next few groups; one part without any where the file has none."""
    import pyarrow
    from pyarrow import parquet

    with whole(path), path.open("rb") as file:
        first, last = _place(path, file)
        begin, starts = _groups(file, first, last)
        for i in range(0, max(1, len(starts) - 1), FEW):
            some = starts[i : i + FEW + 1]
            before, behind = _read(file, first, begin), _read(file, starts[-1], last)
            one = b"".join([before, _header(len(some) - 1), _read(file, some[0], some[-1]), behind])
            framed = b"".join([MARK, one, struct.pack("<I", len(one)), MARK])
            yield parquet.read_metadata(pyarrow.BufferReader(framed))


def _place(path: Path, file: IO[bytes]) -> tuple[int, int]:
    """Where the footer begins and ends."""
    last = max(0, file.seek(0, 2) - 8)
    end = _read(file, last, last + 8)
    length = int.from_bytes(end[:4], "little")
    proper = end[4:] == MARK and 0 < length <= last - len(MARK)
    intact(proper, f"{path} does not end as parquet does, with the length of its footer and PAR1")
    return last - length, last


def _read(file: IO[bytes], start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)


def _groups(file: IO[bytes], first: int, last: int) -> tuple[int, list[int]]:
    """Where the list of groups begins; where each group does, and the last one ends."""
    begin, count, at = _in_stretch(file, first, last, _head)
    starts = [first + at]
    while len(starts) <= count:
        ends = _in_stretch(file, starts[-1], last, partial(_ends, most=count + 1 - len(starts)))
        starts += [starts[-1] + end for end in ends]
    return first + begin, starts


def _in_stretch(file: IO[bytes], start: int, last: int, look: Callable[[bytes], T]) -> T:
    """What one finds in as many bytes as it takes."""
    size = STRETCH
    while True:
        raw = _read(file, start, min(start + size, last))
        try:
            return look(raw)
        except IndexError:
            if start + size >= last:
                raise
        size *= 2


def _head(raw: bytes) -> tuple[int, int, int]:
    """Where the list of groups begins, how many there are, and where the first of them begins."""
    at = number = 0
    while head := raw[at]:
        number += head >> 4
        if number == GROUPS:
            inner, count, start = _list(raw, at + 1)
            if head & 15 not in LISTS or (count and inner != STRUCT):
                raise ValueError("the groups of rows are no list")
            return at + 1, count, start
        at = _past_field(raw, at)
    raise ValueError("there are no groups of rows")


def _ends(raw: bytes, most: int) -> list[int]:
    """Where each of the next groups ends, up to the first that is not whole."""
    ends = [_past(raw, 0, STRUCT)]
    try:
        while len(ends) < most:
            ends.append(_past(raw, ends[-1], STRUCT))
    except IndexError:
        pass
    return ends


def _past_field(raw: bytes, at: int) -> int:
    """Where a field ends; one whose number is not near the last one's tells it."""
    start = at + 1 if raw[at] >> 4 else _past(raw, at + 1, NUMBERS[0])
    return _past(raw, start, raw[at] & 15)


def _past(raw: bytes, at: int, kind: int) -> int:
    """Where a value ends."""
    if kind in NUMBERS:
        while raw[at] & 0x80:
            at += 1
        return at + 1
    if kind == BINARY:
        length, at = _number(raw, at)
        return at + length
    if kind == STRUCT:
        while raw[at]:
            at = _past_field(raw, at)
        return at + 1
    if kind in LISTS:
        inner, count, at = _list(raw, at)
        if inner in BOOLS:
            return at + count
        for _ in range(count):
            at = _past(raw, at, inner)
        return at
    return at + WIDTHS[kind]


def _list(raw: bytes, at: int) -> tuple[int, int, int]:
    """The kind of its values, how many there are, and where they begin."""
    short = raw[at] >> 4
    count, start = (short, at + 1) if short < 15 else _number(raw, at + 1)
    return raw[at] & 15, count, start


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    end = _past(raw, at, NUMBERS[0])
    return sum((byte & 0x7F) << 7 * i for i, byte in enumerate(raw[at:end])), end


def _header(count: int) -> bytes:
    """That of a list of so few structures."""
    return bytes([count << 4 | STRUCT]) if count < 15 else bytes([15 << 4 | STRUCT, count])
