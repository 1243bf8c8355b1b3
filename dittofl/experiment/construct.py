"""Tables of a spec to objects, and the defaults of what they name back to tables.

A table with a `kind` is a call: {kind = "Ditto", lam = 1.0, lr = 0.1} ↔ Ditto(lam=1.0, lr=0.1). Its other keys are the
parameters of that class or function, so that a spec knows whatever the package exports, and nothing is declared twice.
Where a piece is expected a name alone means the call without arguments. A function of the user's that is called by the
engine and not by the spec (a rule, a metric, a loss) stands for itself, with the parameters that its table gives.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dittofl.errors import InputError, blamed, short
from dittofl.experiment.names import REFERENCE, found
from dittofl.experiment.signature import (
    IMPLICIT,
    KIND,
    Table,
    described,
    enumerated,
    lacking,
    meant,
    name_of,
    optional,
    takes,
)  # fmt: skip

NONE = "none"  # as TOML has no null
IMPLIED = {"method": "Method", "split": "Split"}  # tables whose key says what they are
# The keys under which a piece is expected, by the table that they stand in; "" is the spec itself, * is any key.
MADE: Mapping[str, tuple[str, ...]] = {  # what a call makes
    "": ("data", "model", "attack", "engine", "target"), "method": ("local", "server"),
    "method.personal": ("*",), "method.final": ("*",), "method.choose": ("*",), "data": ("of",),
}  # fmt: skip
FUNCTIONS: Mapping[str, tuple[str, ...]] = {  # what a call makes, or a function
    "": ("loss", "sampling", "penalty", "transform"), "method": ("aggregate",), "metrics": ("*",),
    "data": ("by",),
}  # fmt: skip


def under(where: str, key: str) -> str:
    """The place of a key in a spec: method.personal.ditto."""
    return f"{where}.{key}" if where else key


def _expected(where: str, key: str, *among: Mapping[str, tuple[str, ...]]) -> bool:
    return any(key in keys or "*" in keys for keys in (one.get(where, ()) for one in among))


@dataclass(frozen=True)
class Names:
    """Finds what tables name; `folder` holds the user's own files."""

    folder: Path = Path()

    def kind(self, table: Mapping[str, Any], where: str) -> Any:
        """What a table calls, or None where it is a plain mapping."""
        name = table.get(KIND, _implied(where))
        if name is not None and not isinstance(name, str):
            raise InputError(f'{where}.kind must be a name, got {short(name)}: write kind = "SGD", say')
        return None if name is None else found(name, where, self.folder)

    def filled(self, value: Any, where: str, *, made: bool = False) -> Any:
        """The same value with every default written out; wrong keys are refused here."""
        if isinstance(value, list | tuple):
            return [self.filled(one, f"{where}[{i}]") for i, one in enumerate(value)]
        if not isinstance(value, Mapping):
            return value
        kind = self.kind(value, where)
        given = {key: self._inner(kind, key, one, where) for key, one in value.items() if key != KIND}
        if kind is None:
            return given
        head = {KIND: value[KIND]} if value.get(KIND, _implied(where)) != _implied(where) else {}
        defaults = takes(kind, given, where)
        given = {key: its for key, its in given.items() if its != NONE or defaults[key] is not None}
        if itself(kind, given, where, made=made):
            return head | given
        rest = {key: described(its) for key, its in defaults.items() if key not in (*given, *IMPLICIT)}
        # Filled in turn, lest a default look otherwise than the same value written out.
        return head | given | {key: self.filled(its, under(where, key)) for key, its in rest.items() if its is not None}

    def _inner(self, kind: Any, key: str, value: Any, where: str) -> Any:
        """A value below a table, whatever short form it has."""
        if isinstance(value, str) and _expected(where, key, MADE, FUNCTIONS):
            value = {KIND: value}
        elif kind is not None:
            value = meant(kind, key, value, where)
        return self.filled(value, under(where, key), made=_expected(where, key, MADE))

    def built(self, value: Any, where: str, *, made: bool | None = None, **extra: Any) -> Any:
        """The object that a value stands for; `extra` goes to its own call, where that takes it and lacks it."""
        if isinstance(value, list | tuple):
            return tuple(self.built(one, f"{where}[{i}]") for i, one in enumerate(value))
        if isinstance(value, str) and REFERENCE.fullmatch(value):
            its = found(value, where, self.folder)
            return call(its, where, {}) if inspect.isclass(its) else its
        if not isinstance(value, Mapping):
            return value
        kind, given = self.kind(value, where), self.arguments(value, where)
        if kind is None:
            return given
        accepted = takes(kind, given, where)
        if itself(kind, given, where, made=_expected("", where, MADE) if made is None else made):
            return partial(kind, **given) if given else kind
        return call(kind, where, {key: its for key, its in extra.items() if key in accepted} | enumerated(kind, given))

    def arguments(self, table: Mapping[str, Any], where: str) -> Table:
        """What a table gives to its call, each an object."""
        kind = self.kind(table, where)
        given = {
            key: self.built(one, under(where, key), made=_expected(where, key, MADE))
            for key, one in table.items() if key != KIND
        }  # fmt: skip
        return {key: None if its == NONE and optional(kind, key) else its for key, its in given.items()}


def _implied(where: str) -> str | None:
    return IMPLIED.get(where.rsplit(".", 1)[-1])


def itself(kind: Any, given: Mapping[str, Any], where: str, *, made: bool) -> bool:
    """Whether a name means what it names, and no call of it; a call that lacks parameters is refused.

    An object is itself. So is a function of the user's with parameters that nobody gives, unless a call must be `made`.
    """
    if inspect.isclass(kind):
        needed = lacking(kind, given)
    elif not inspect.isroutine(kind):
        if given:
            raise InputError(f"{where}: {next(iter(given))} is given to {short(kind)}, which is no class: take it out")
        return True
    else:
        needed = lacking(kind, given)
        ours = str(kind.__module__).split(".")[0] == "dittofl"
        if needed and not made and (not ours or where == "loss"):
            return True
    if needed:
        raise InputError(f"{where}: {name_of(kind)} needs {needed[0]} = …: add it")
    return False


def call(kind: Callable[..., Any], where: str, given: Mapping[str, Any]) -> Any:
    """kind(**given), whose mistakes are told with the place in the spec."""
    try:
        with blamed(f"{where}: {name_of(kind)}"):
            return kind(**given)
    except InputError as error:
        told = str(error)
        raise InputError(told if told.startswith(f"{where}: ") else f"{where}: {told}") from error
