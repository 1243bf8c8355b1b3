"""Files that are there whole or not at all, and logs that can be cut back to a length."""

import csv
import errno
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dittofl.errors import InputError, require, short


class DiskFullError(OSError):
    """The disk is full: told in one sentence, and nothing that was saved is lost."""


@contextmanager
def told(path: Path) -> Iterator[None]:
    """What goes wrong in writing below a path, told in one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(
                f"the disk of {path} is full: free some space and go on with --resume, the last checkpoint is whole"
            ) from error
        raise InputError(f"{path} cannot be written: {short(error)}: choose another --out") from error


@contextmanager
def reading(path: Path, what: str, advice: str) -> Iterator[None]:
    """What goes wrong in reading a file, told in one sentence."""
    try:
        yield
    except InputError:
        raise
    except (OSError, LookupError, TypeError, ValueError, AttributeError, StopIteration, csv.Error) as error:
        raise InputError(f"{path} {what} ({short(error)}): {advice}") from error


def read_csv(path: Path, columns: Iterable[str] | None = None) -> list[dict[str, str]]:
    """The lines of a CSV file by column; a ValueError where it has other ones, or a line too many or too few."""
    reader = csv.DictReader(path.read_text(encoding="utf-8").splitlines(), strict=True)
    found, there = list(reader), tuple(reader.fieldnames or ())
    if columns is not None and there != tuple(columns):
        raise ValueError(f"its columns are {', '.join(there) or 'none'}")
    for i, line in enumerate(found):
        if None in line or None in line.values():
            raise ValueError(f"line {i + 2} has too many or too few values")
    return found


def as_csv(rows: Iterable[Iterable[object]]) -> str:
    """Rows as a CSV file has them, the names of its columns first; None is empty.

    >>> as_csv([("device", "loss"), ("a", 0.5), ("b", None)])
    'device,loss\\na,0.5\\nb,\\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def write(path: Path, content: bytes) -> None:
    """The whole content under that name, or what was there before."""
    scratch = path.with_name(path.name + ".tmp")
    with told(path):
        try:
            with scratch.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(path)
        finally:
            scratch.unlink(missing_ok=True)
        flush_folder(path.parent)


def place(path: Path) -> None:
    """Makes the folder that a file is to stand in."""
    with told(path):
        path.parent.mkdir(parents=True, exist_ok=True)


def flush_folder(folder: Path) -> None:
    """Makes renames in a folder last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, value: Any) -> None:
    """As JSON; NaN and ∞, which JSON lacks, are null."""
    write(path, (json.dumps(_jsonable(value), indent=1, ensure_ascii=False) + "\n").encode())


def read_json(path: Path, *keys: str) -> dict[str, Any]:
    """The object in a JSON file; a missing or damaged one, or one without these keys, is refused."""
    advice = "restore it, or start anew in another --out"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({short(error)}): is it a run folder, and has it ended?") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged ({short(error)}): {advice}") from error
    whole = isinstance(found, dict) and all(key in found for key in keys)
    require(whole, f"{path} is damaged, it holds {short(found)}: {advice}")
    its: dict[str, Any] = found
    return its


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _jsonable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Log:
    """A CSV file that grows, and whose length is part of a checkpoint."""

    def __init__(self, path: Path, columns: Sequence[str], length: int = 0) -> None:
        """Cuts the file back to `length` bytes; an empty one gets the columns' names."""
        self.path, self.pending = path, io.StringIO()
        there = path.stat().st_size if path.is_file() else 0
        shorter = f"{path} is shorter than its checkpoint says: restore it, or start anew in another --out"
        require(there >= length, shorter)
        with told(path), path.open("ab") as file:
            file.truncate(length)
        self.writer = csv.writer(self.pending, lineterminator="\n")
        if length == 0:
            self.writer.writerow(columns)

    def add(self, row: Sequence[object]) -> None:
        """One more row, held until `flush`."""
        self.writer.writerow(row)

    def flush(self, *, last: bool = False) -> int:
        """Writes what is held; the length of the file. With `last` it is on the disk for good."""
        with told(self.path), self.path.open("ab") as file:
            file.write(self.pending.getvalue().encode())
            file.flush()
            if last:
                os.fsync(file.fileno())
            length = file.tell()
        self.pending.seek(0)
        self.pending.truncate()
        return length
