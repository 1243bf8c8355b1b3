"""What a class or function takes: the keys that a table may have, their defaults, and how a spec writes those."""

import dataclasses
import inspect
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from dittofl.errors import InputError
from dittofl.experiment.names import known, nearest

KIND = "kind"
IMPLICIT = ("seed",)  # given by the run where a spec does not
Table = dict[str, Any]
Parameter = inspect.Parameter


def name_of(kind: Any) -> str:
    return str(getattr(kind, "__name__", kind))


def signature(kind: Any) -> list[Parameter] | None:
    """The parameters of a class or function; None where it takes whatever it is given, or a builtin tells none."""
    try:
        its = list(inspect.signature(kind).parameters.values())
    except (TypeError, ValueError):
        return None
    return None if any(one.kind is one.VAR_KEYWORD for one in its) else its


def takes(kind: Any, given: Mapping[str, Any], where: str) -> Table:
    """The parameters by name with their defaults (None: none); keys that are no parameter are refused.

    >>> from dittofl.server import Add
    >>> takes(Add, {}, "method.server")
    {'lr': 1.0}
    """
    its = signature(kind)
    if its is None:
        return dict.fromkeys(given)
    found: Table = {one.name: None if one.default is one.empty else one.default for one in its} | _factories(kind)
    for key in given:
        if key not in found:
            raise InputError(f"{where}: {name_of(kind)} has no parameter {key!r}: {nearest(key, found)}")
    return found


def lacking(kind: Any, given: Mapping[str, Any]) -> list[str]:
    """The parameters without a default that are not given."""
    various = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    its = [one for one in signature(kind) or () if one.default is one.empty and one.kind not in various]
    return [one.name for one in its if one.name not in given and one.name not in IMPLICIT]


def meant(kind: Any, key: str, value: Any, where: str) -> Any:
    """What a word means to a parameter: a member of its Enum, or a call without arguments of the piece of that name.

    >>> from dittofl.attack import MinMax
    >>> meant(MinMax, "along", "std", "attack.update"), meant(MinMax, "omniscient", True, "attack.update")
    ('std', True)
    """
    if isinstance(value, list | tuple):
        return [meant(kind, key, one, where) for one in value]
    if not isinstance(value, str):
        return value
    hint = next((one.annotation for one in signature(kind) or () if one.name == key), Parameter.empty)
    if words := members(hint):
        if value.lower() not in words:
            raise InputError(
                f"{where}: {key} must be one of {', '.join(words)}, got {value!r}: {nearest(value, words)}"
            )
        return value.lower()
    text = hint is Parameter.empty or re.search(r"\bstr\b", str(hint))
    return value if text or value not in known() else {KIND: value}


def optional(kind: Any, key: str) -> bool:
    """Whether a parameter may be None.

    >>> from dittofl.method import Method
    >>> optional(Method, "batch"), optional(Method, "local")
    (True, False)
    """
    hint = next((one.annotation for one in signature(kind) or () if one.name == key), Parameter.empty)
    return hint is Parameter.empty or re.search(r"\bNone\b", str(hint)) is not None


def members(hint: Any) -> dict[str, Enum]:
    """The members of an Enum as a spec writes them."""
    return {one.name.lower(): one for one in hint} if inspect.isclass(hint) and issubclass(hint, Enum) else {}


def enumerated(kind: Any, given: Mapping[str, Any]) -> Table:
    """The same arguments with words of an Enum as its members."""
    hints = {one.name: members(one.annotation) for one in signature(kind) or ()}
    return {key: hints.get(key, {}).get(its, its) if isinstance(its, str) else its for key, its in given.items()}


def _factories(kind: Any) -> Table:
    """Defaults that a dataclass makes anew each time; a signature shows only that there is one."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return {field.name: field.default_factory() for field in fields if field.default_factory is not dataclasses.MISSING}


def described(value: Any) -> Any:
    """A default as a spec writes it; None where it is left out.

    >>> from dittofl.types import Epochs
    >>> described((Epochs(count=2),)), described(print)
    ([{'kind': 'Epochs', 'count': 2}], None)
    """
    if isinstance(value, tuple | list):
        return [described(one) for one in value]
    if isinstance(value, Mapping):
        return {key: described(one) for key, one in value.items()}
    if isinstance(value, Enum):
        return value.name.lower()
    name = type(value).__name__
    ours: Any = known().get(name)
    if dataclasses.is_dataclass(value) and ours is type(value):
        fields = {field.name: described(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {KIND: name} | {key: its for key, its in fields.items() if its is not None}
    return value if isinstance(value, bool | int | float | str) else None
