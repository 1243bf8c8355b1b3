"""What the readers of files share: files that may be gzipped, damage told in one sentence, packages of an extra."""

import gzip
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from dittofl.errors import InputError, short


@contextmanager
def whole(where: object) -> Iterator[None]:
    """Whatever fails within is damage to a file, told with its name and the place in it; the cause is kept.

    >>> with whole("a.json"):
    ...     {}["x"]
    Traceback (most recent call last):
    dittofl.errors.InputError: a.json cannot be read (KeyError: 'x'): get it again
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise damaged(f"{where} cannot be read ({short(error)})") from error


def damaged(what: str) -> InputError:
    """The one advice there is for a file that is not what it should be."""
    return InputError(f"{what}: get it again")


def intact(condition: object, what: str) -> None:
    """Refuses a file unless the condition holds."""
    if not condition:
        raise damaged(what)


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, gunzipped where it is gzipped."""
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path)) if zipped else path.open("rb")


def package(module: str, *, extra: str, what: str) -> Any:
    """A module that comes with an extra of ours, imported where it is needed.

    >>> package("no_such", extra="parquet", what="parquet")
    Traceback (most recent call last):
    dittofl.errors.InputError: parquet is read with no_such, which is not installed: pip install 'dittofl[parquet]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.split(".")[0]
        missing = f"{what} is read with {name}, which is not installed: pip install 'dittofl[{extra}]'"
        raise InputError(missing) from error
