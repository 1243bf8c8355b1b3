"""The one exception a user's mistake raises: what we got, what was expected, what to do."""

import math
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np


class InputError(ValueError):
    """A mistake in data, module or parameters, told in one sentence that names the culprit."""


class StoppedError(Exception):
    """The user stopped something that has saved its state."""


def require(condition: object, sentence: str) -> None:
    """Raise InputError(sentence) unless the condition holds.

    >>> require(2 + 2 == 4, "never said")
    """
    if not condition:
        raise InputError(sentence)


def short(value: object) -> str:
    """A value or an exception on one line, cut where it is long.

    >>> short(ValueError("first line\\nsecond line")), short("text")
    ('ValueError: first line', "'text'")
    """
    if isinstance(value, Exception):
        return cut(f"{type(value).__name__}: {str(value).strip() or 'no message'}")
    return cut(repr(value))


def cut(text: str, most: int = 150) -> str:
    """The first line of a text, cut where it is long."""
    line = next(iter(text.strip().splitlines()), "")
    return line if len(line) <= most else line[: most - 1] + "…"


@contextmanager
def blamed(what: str, where: str = "") -> Iterator[None]:
    """Whatever fails within is told as a mistake in `what`, which the user gave; its cause is kept."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        what += f" fails{where and ' on ' + where}"
        raise InputError(f"{what}: {short(error)}: correct {_culprit(error)}") from error


def _culprit(error: Exception) -> str:
    """The innermost line of a user's own file that an exception came through."""
    places = [str(Path(__file__).parent), *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))]
    frames = traceback.extract_tb(error.__traceback__)
    mine = [one for one in frames if not one.filename.startswith(("<", *places))]
    return f"line {mine[-1].lineno} of {Path(mine[-1].filename).name}" if mine else "it"


def _truth(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def finite(value: Any) -> bool:
    """Whether this is a finite number; True and False are none."""
    try:
        return not _truth(value) and isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def positive(owner: str, name: str, value: Any) -> None:
    """0 < value < ∞."""
    require(finite(value) and value > 0, f"{owner} needs {name} > 0, got {name}={short(value)}")


def nonnegative(owner: str, name: str, value: Any) -> None:
    """0 ≤ value < ∞."""
    require(finite(value) and value >= 0, f"{owner} needs 0 ≤ {name} < ∞, got {name}={short(value)}")


def fraction(owner: str, name: str, value: Any) -> None:
    """0 ≤ value < 1."""
    require(finite(value) and 0 <= value < 1, f"{owner} needs 0 ≤ {name} < 1, got {name}={short(value)}")


def is_whole(value: Any, least: int) -> bool:
    """Whether this is a whole number of at least `least`; True and False are none."""
    return not _truth(value) and isinstance(value, Integral) and int(value) >= least


def is_text(name: str) -> bool:
    """Whether it can be written as UTF-8: half of a surrogate pair cannot."""
    return name.encode(errors="ignore").decode() == name


def whole(owner: str, name: str, value: Any, least: int) -> None:
    """value ∈ {least, least + 1, …}."""
    require(is_whole(value, least), f"{owner} needs {name} ≥ {least}, a whole number, got {name}={short(value)}")


def flag(owner: str, name: str, value: Any) -> None:
    """value ∈ {False, True}; "no" and 0 count as neither."""
    require(isinstance(value, bool), f"{owner} needs {name}=True or False, got {name}={short(value)}")


def as_seed(value: Any) -> int:
    """Any whole number as one of Python's, which do not overflow where a seed is wrapped to 64 bits."""
    require(
        not _truth(value) and isinstance(value, Integral),
        f"got seed={short(value)}, expected a whole number: choose one",
    )
    return int(value)


def an_instance(value: object, kind: Any) -> bool:
    """Whether this is a thing of a kind, and not a class of that kind."""
    return isinstance(value, kind) and not isinstance(value, type)
