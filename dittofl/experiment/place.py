"""Where a spec's data lie: the folder that a data set of ours is given. It is no part of what is run."""

import copy
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dittofl.errors import require
from dittofl.experiment.names import sections
from dittofl.experiment.signature import KIND, Table

FOLDER = "data"  # the parameter of a data set that is read from files


def placed(table: Mapping[str, Any]) -> Iterator[Any]:
    """The tables in a spec's data that name a data set of ours in files: itself, or what it is made of.

    >>> [one["kind"] for one in placed({"kind": "partitioned", "of": {"kind": "fashion"}})]
    ['fashion']
    """
    maker = sections()["datasets"].get(str(table.get(KIND)))
    if maker is not None and FOLDER in inspect.signature(maker).parameters:
        yield table
    for one in table.values():
        if isinstance(one, Mapping):
            yield from placed(one)


def at(table: Table, folder: Path) -> Table:
    """The same data in a folder."""
    moved = copy.deepcopy(table)
    its = list(placed(moved))
    require(its, f"{table.get(KIND)} is not read from files: leave --data out")
    for one in its:
        one[FOLDER] = str(folder.expanduser().absolute())
    return moved


def anywhere(table: Table) -> Table:
    """The same data without a word on where they lie."""
    moved = copy.deepcopy(table)
    for one in placed(moved):
        one.pop(FOLDER, None)
    return moved
