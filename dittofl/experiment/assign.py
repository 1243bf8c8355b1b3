"""Keys of a spec replaced from the command line."""

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from dittofl.errors import InputError, require, short
from dittofl.experiment.construct import KIND, Table, under
from dittofl.experiment.names import nearest


def assign(table: Table, assignment: str) -> None:
    """Sets `a.b.c=value` in a table, the value as TOML or as plain text.

    >>> table = {"method": {"batch": 16}}
    >>> assign(table, "method.batch=32"); table
    {'method': {'batch': 32}}
    """
    key, equals, value = assignment.partition("=") if '"' not in assignment else _quoted(assignment)
    require(key.strip() and equals, f"--set needs key=value, got {assignment!r}: write method.batch=32, say")
    change = None
    for text in (value, json.dumps(value)):
        try:
            change = tomllib.loads(f"{key} = {text}")
            break
        except tomllib.TOMLDecodeError:
            continue
    if change is None:
        raise InputError(f"--set cannot read {assignment!r}: write key=value with TOML's dotted keys")
    _merge(table, change, "")


def _quoted(assignment: str) -> tuple[str, str, str]:
    """key, =, value where a quoted key may hold a dot or an equals sign."""
    inside = False
    for i, letter in enumerate(assignment):
        inside ^= letter == '"'
        if letter == "=" and not inside:
            return assignment[:i], "=", assignment[i + 1 :]
    return assignment, "", ""


def _merge(table: Table, change: Mapping[str, Any], where: str) -> None:
    for key, value in change.items():
        if isinstance(value, Mapping) and KIND not in value:
            if key not in table and table and where:
                raise InputError(f"--set: {where} has no {key!r}: {nearest(key, table)}")
            inner = table.setdefault(key, {})
            if isinstance(inner, str):
                inner = table[key] = {KIND: inner}
            require(isinstance(inner, dict), f"--set: {under(where, key)} is {short(inner)}, which has no parts")
            _merge(inner, value, under(where, key))
        else:
            table[key] = value
