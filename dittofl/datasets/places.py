"""Where data sets lie: in a named folder, $DITTOFL_DATA, the user's cache, a distribution's package, or on the web."""

import contextlib
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs

from dittofl.datasets.fetch import Content, fetch
from dittofl.errors import InputError, require, short

VARIABLE = "DITTOFL_DATA"
log = logging.getLogger("dittofl")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A data set's files: what they are called, where they may lie, and where they come from.

    `forms` are lists of files, each a name or a pattern; a folder, or its folder called `name`, holds the data where it
    has all files of one form. Files whose `contents` are known and that have an address are downloaded into the cache
    where no folder holds them.

    >>> Source(name="none", forms=(("a.gz",),), advice="make one").folder("/")
    Traceback (most recent call last):
    dittofl.errors.InputError: none: / holds no a.gz, and no folder none with it: make one
    """

    name: str
    advice: str  # how to get them
    forms: tuple[tuple[str, ...], ...] = ()
    module: str = ""  # the Python package that brings the data, in place of files
    packaged: str | None = None  # the folder of a distribution's package
    addresses: tuple[str, ...] = ()  # folders on the web, tried in turn
    contents: Mapping[str, Content] = field(default_factory=dict)  # of every file, where they are known
    origin: str = ""  # who made it
    licence: str = ""
    fingerprints: Mapping[str, str] = field(default_factory=dict)  # of the federations made of it, by name, by default

    @property
    def wanted(self) -> str:
        """The files in words."""
        return ", or ".join(", ".join(files) for files in self.forms)

    @property
    def places(self) -> dict[str, Path]:
        """The folders that are looked at where none is named, in order, by what they are."""
        named = os.environ.get(VARIABLE)
        these = {f"${VARIABLE}": named, "the cache": str(cache()), "a package": self.packaged}
        return {what: _expanded(path) for what, path in these.items() if path}

    def found(self, data: str | Path | None = None) -> Path | None:
        """The first folder that holds the files; where one is named, that or none."""
        if self.module:
            its = importlib.util.find_spec(self.module)
            return Path(str(its.origin)).parent if its else None
        told = f"{self.name} needs data=, the folder of its files, got {short(data)}"
        require(data is None or isinstance(data, str | Path), f"{told}: give a path as text, or leave it out")
        places = self.places.values() if data is None else (_expanded(data),)
        held = (place for folder in places for place in (folder, folder / self.name) if self._in(place))
        return next(held, None)

    def _in(self, place: Path) -> bool:
        with contextlib.suppress(OSError):  # a name that is too long, a folder that cannot be looked into
            return any(all(files(place, pattern) for pattern in form) for form in self.forms)
        return False

    def folder(self, data: str | Path | None = None) -> Path:
        """The folder of the files, which are downloaded if need be and possible; refused with advice."""
        place = self.found(data)
        if place is not None:
            return place
        if data is not None:
            raise InputError(
                f"{self.name}: {data} holds no {self.wanted}, and no folder {self.name} with it: {self.advice}"
            )
        if self.addresses:
            log.warning("%s is in no folder here: downloading it into %s", self.name, cache() / self.name)
            return fetch(self.name, self.addresses, self.contents, cache() / self.name, advice=self.advice)
        named = os.environ.get(VARIABLE)
        asked = f"${VARIABLE} is {named}" if named else f"${VARIABLE} is not set"
        raise InputError(f"{self.name}: found no {self.wanted} ({asked}, the cache is {cache()}): {self.advice}")


def files(place: Path, pattern: str) -> tuple[Path, ...]:
    """Those of a pattern, in order, without hidden ones: archives from a Mac bring a ._name beside each name."""
    return tuple(sorted(path for path in place.glob(pattern) if not path.name.startswith(".")))


def _expanded(path: str | Path) -> Path:
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path's own fails where there is no such user


def cache() -> Path:
    """The user's cache of data sets: ~/.cache/dittofl, or what the platform and $XDG_CACHE_HOME say."""
    return platformdirs.user_cache_path("dittofl", appauthor=False)


def source(maker: Callable[..., Any]) -> Source | None:
    """What the file of a data set says of its files, if it does."""
    found = getattr(sys.modules[maker.__module__], "SOURCE", None)
    return found if isinstance(found, Source) else None
