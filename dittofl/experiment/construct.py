"""Tables of a spec to objects, and the defaults of what they name back to tables.

A table with a `kind` is a call: {kind = "Ditto", lam = 1.0, lr = 0.1} ↔ Ditto(lam=1.0, lr=0.1). Its other keys are the
parameters of that class or function, so that a spec knows whatever the package exports, and nothing is declared twice.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dittofl.errors import InputError, short
from dittofl.experiment.names import REFERENCE, found, known, nearest

KIND = "kind"
IMPLIED = {"method": "Method", "split": "Split"}  # tables whose key says what they are
Table = dict[str, Any]


def under(where: str, key: str) -> str:
    """The place of a key in a spec: method.personal.ditto."""
    return f"{where}.{key}" if where else key


@dataclass(frozen=True)
class Names:
    """Finds what tables name; `folder` holds the user's own files."""

    folder: Path = Path()

    def kind(self, table: Mapping[str, Any], where: str) -> Any:
        """What a table calls, or None where it is a plain mapping."""
        name = table.get(KIND, IMPLIED.get(where.rsplit(".", 1)[-1]))
        if name is not None and not isinstance(name, str):
            raise InputError(f'{where}.kind must be a name, got {short(name)}: write kind = "SGD", say')
        return None if name is None else found(name, f"{where}.kind", self.folder)

    def filled(self, value: Any, where: str) -> Any:
        """The same value with every default written out; wrong keys are refused here."""
        if isinstance(value, list | tuple):
            return [self.filled(one, f"{where}[{i}]") for i, one in enumerate(value)]
        if not isinstance(value, Mapping):
            return value
        given = {key: self.filled(one, under(where, key)) for key, one in value.items() if key != KIND}
        kind = self.kind(value, where)
        if kind is None:
            return given
        rest = {key: described(default) for key, default in parameters(kind, given, where).items()}
        head = {KIND: value[KIND]} if KIND in value else {}
        left_out = (*given, *IMPLICIT)
        return head | given | {key: its for key, its in rest.items() if its is not None and key not in left_out}

    def built(self, value: Any, where: str, **extra: Any) -> Any:
        """The object that a value stands for; `extra` goes to its own call, where that takes it and lacks it."""
        if isinstance(value, list | tuple):
            return tuple(self.built(one, f"{where}[{i}]") for i, one in enumerate(value))
        if isinstance(value, str) and REFERENCE.fullmatch(value):
            return self.built({KIND: value}, where, **extra) if where in CALLED else found(value, where, self.folder)
        if not isinstance(value, Mapping):
            return value
        given, kind = self.arguments(value, where), self.kind(value, where)
        if kind is None:
            return given
        takes = parameters(kind, given, where)
        return call(kind, where, {key: one for key, one in extra.items() if key in takes} | given)

    def arguments(self, table: Mapping[str, Any], where: str) -> Table:
        """What a table gives to its call, each an object."""
        return {key: self.built(one, under(where, key)) for key, one in table.items() if key != KIND}


CALLED = ("data", "model", "loss")  # where "file:name" alone means a call of it


def call(kind: Callable[..., Any], where: str, given: Mapping[str, Any]) -> Any:
    """kind(**given), whose mistakes are told with the place in the spec."""
    try:
        return kind(**given)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    except Exception as error:
        raise InputError(f"{where}: {getattr(kind, '__name__', kind)} fails: {short(error)}: correct it") from error


def parameters(kind: Callable[..., Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The parameters of a class or function with their defaults (None: none); keys it lacks are refused."""
    try:
        signature = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        return dict.fromkeys(given)
    if any(one.kind is one.VAR_KEYWORD for one in signature):
        return dict.fromkeys(given)
    takes: Table = {one.name: None if one.default is one.empty else one.default for one in signature}
    takes |= _factories(kind)
    for key in given:
        if key not in takes:
            name = getattr(kind, "__name__", str(kind))
            raise InputError(f"{where}: {name} has no parameter {key!r}: {nearest(key, takes)}")
    needed = [
        one.name for one in signature
        if one.default is one.empty and one.name not in given and one.name not in IMPLICIT
        and one.kind is not one.VAR_POSITIONAL
    ]  # fmt: skip
    if needed:
        raise InputError(f"{where}: {getattr(kind, '__name__', kind)} needs {needed[0]} = …: add it")
    return takes


IMPLICIT = ("seed",)  # given by the run where a spec does not


def _factories(kind: Any) -> Table:
    """Defaults that a dataclass makes anew each time; a signature shows only that there is one."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return {field.name: field.default_factory() for field in fields if field.default_factory is not dataclasses.MISSING}


def described(value: Any) -> Any:
    """A default as a spec writes it; None where it is left out."""
    if isinstance(value, tuple | list):
        return [described(one) for one in value]
    if isinstance(value, Mapping):
        return {key: described(one) for key, one in value.items()}
    name = type(value).__name__
    ours: Any = known().get(name)
    if dataclasses.is_dataclass(value) and ours is type(value):
        fields = {field.name: described(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {KIND: name} | {key: its for key, its in fields.items() if its is not None}
    return value if isinstance(value, bool | int | float | str) else None
