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
        name = table.get(KIND, _implied(where))
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
        head = {KIND: value[KIND]} if value.get(KIND, _implied(where)) != _implied(where) else {}
        if meant_itself(kind, where, given):
            return head
        takes = parameters(kind, given, where)
        left_out = (*given, *IMPLICIT)
        rest = {key: described(default) for key, default in takes.items() if key not in left_out}
        # Filled in turn, lest a default look otherwise than the same value written out.
        return head | given | {key: self.filled(its, under(where, key)) for key, its in rest.items() if its is not None}

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
        if meant_itself(kind, where, given):
            return kind
        takes = parameters(kind, given, where)
        return call(kind, where, {key: one for key, one in extra.items() if key in takes} | given)

    def arguments(self, table: Mapping[str, Any], where: str) -> Table:
        """What a table gives to its call, each an object."""
        return {key: self.built(one, under(where, key)) for key, one in table.items() if key != KIND}


def _implied(where: str) -> str | None:
    return IMPLIED.get(where.rsplit(".", 1)[-1])


CALLED = ("data", "model", "loss")  # where "file:name" alone means a call of it


def meant_itself(kind: Any, where: str, given: Mapping[str, Any]) -> bool:
    """Whether a name means what it names, and no call of it: a loss of outputs and y, data or a model already made."""
    if where not in CALLED or given or inspect.isclass(kind):
        return False
    if not inspect.isroutine(kind):
        return True
    return where == "loss" and len(_needed(kind)) > 1


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
    needed = [name for name in _needed(kind) if name not in given and name not in IMPLICIT]
    if needed:
        raise InputError(f"{where}: {getattr(kind, '__name__', kind)} needs {needed[0]} = …: add it")
    return takes


def _needed(kind: Callable[..., Any]) -> list[str]:
    """The parameters without a default."""
    try:
        signature = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        return []
    various = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in signature if one.default is one.empty and one.kind not in various]


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
