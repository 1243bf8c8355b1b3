"""Keys of a spec replaced from the command line."""

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from dittofl.errors import InputError, require, short
from dittofl.experiment.construct import under
from dittofl.experiment.names import nearest
from dittofl.experiment.signature import KIND, Table


def assign(table: Table, assignment: str) -> None:
    """Sets `a.b.c=value` in a table, the value as TOML or as plain text.

    >>> table = {"method": {"batch": 16}}
    >>> assign(table, "method.batch=32"); table
    {'method': {'batch': 32}}
    """
    key, equals, value = assignment.partition("=") if '"' not in assignment else _quoted(assignment)
    require(key.strip() and equals, f"--set needs key=value, got {assignment!r}: write method.batch=32, say")
    change = None
    for text in (value, _number(value), json.dumps(value)):
        try:
            change = tomllib.loads(f"{key} = {text}")
            break
        except tomllib.TOMLDecodeError:
            continue
    if change is None:
        raise InputError(f"--set cannot read {assignment!r}: write key=value with TOML's dotted keys")
    _known(table, change, "")
    merge(table, change)


def _number(value: str) -> str:
    """.5 as TOML writes it: 0.5."""
    try:
        return repr(float(value))
    except ValueError:
        return value


def _quoted(assignment: str) -> tuple[str, str, str]:
    """key, =, value where a quoted key may hold a dot or an equals sign."""
    inside = False
    for i, letter in enumerate(assignment):
        inside ^= letter == '"'
        if letter == "=" and not inside:
            return assignment[:i], "=", assignment[i + 1 :]
    return assignment, "", ""


def _known(table: Mapping[str, Any], change: Mapping[str, Any], where: str) -> None:
    """Refuses a path that leads nowhere, where what is there has a like name."""
    for key, value in change.items():
        inner = table.get(key)
        if isinstance(value, Mapping) and KIND not in value and key not in table and table and where:
            raise InputError(f"--set: {where} has no {key!r}: {nearest(key, table)}")
        if isinstance(value, Mapping) and isinstance(inner, Mapping):
            _known(inner, value, under(where, key))


def merge(table: Table, change: Mapping[str, Any]) -> None:
    """Puts a table over another, key by key; a table with a kind of its own replaces what was there."""
    for key, value in change.items():
        there = {KIND: table[key]} if isinstance(table.get(key), str) else table.get(key)
        if isinstance(value, Mapping) and KIND not in value and there is not None:
            require(isinstance(there, dict), f"{key} is {short(there)}, which has no parts, got {short(value)}")
            table[key] = there
            merge(there, value)
        else:
            table[key] = dict(value) if isinstance(value, Mapping) else value
