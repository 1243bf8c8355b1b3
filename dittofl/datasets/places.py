"""Where data sets lie: a folder that is named, $DITTOFL_DATA, the user's cache, a distribution's package."""

import os
from collections.abc import Sequence
from pathlib import Path

from dittofl.errors import InputError, require


def located(name: str, files: Sequence[str], *, data: str | None, packaged: str | None = None, advice: str) -> Path:
    """The first of those folders that holds all files, itself or in a folder called `name`; refused with advice.

    >>> located("none", ["a.gz"], data="/", advice="make one")
    Traceback (most recent call last):
    dittofl.errors.InputError: none: / holds no a.gz, and no folder none with it: make one
    """
    wanted = ", ".join(files)
    if data is not None:
        found = _holding(Path(data).expanduser(), name, files)
        require(found, f"{name}: {data} holds no {wanted}, and no folder {name} with it: {advice}")
        return found  # type: ignore[return-value]
    named = os.environ.get("DITTOFL_DATA")
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "dittofl"
    for folder in (named, cache, packaged):
        found = None if folder is None else _holding(Path(folder).expanduser(), name, files)
        if found is not None:
            return found
    asked = "$DITTOFL_DATA is not set" if named is None else f"$DITTOFL_DATA is {named}"
    raise InputError(f"{name}: found no {wanted} ({asked}, the cache is {cache}): {advice}")


def _holding(folder: Path, name: str, files: Sequence[str]) -> Path | None:
    for place in (folder, folder / name):
        if all((place / file).is_file() for file in files):
            return place
    return None
