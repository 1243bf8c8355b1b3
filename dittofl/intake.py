"""What users give, turned into tensors: a mistake in the data is found here and told in one sentence.

Here x and y are `members`, one flat dict by the names that messages use: x, or x[0], or x['ids'], and last y.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dittofl.arrays import HELD, check_values, tensor
from dittofl.errors import InputError, is_text, require, short
from dittofl.inputs import Inputs

Features = Sequence[str] | None  # None: all columns but the device's and the label's
MISSING = frozenset({"None", "nan", "NaN", "NaT", "<NA>"})  # how Python, numpy and pandas write a missing name


class Piece(NamedTuple):
    """The n samples of one device, or of one part of it, in the dtypes in which they came."""

    name: str
    x: Inputs
    members: dict[str, Tensor]
    n: int


def members(x: Any, y: Any) -> dict[str, Any]:
    """All arrays of (x, y) by name: {'x[0]': a, 'x[1]': b, 'y': y} for x = (a, b)."""
    parts = x.items() if isinstance(x, Mapping) else enumerate(x) if isinstance(x, tuple) else None
    return ({"x": x} if parts is None else {f"x[{key!r}]": part for key, part in parts}) | {"y": y}


def rebuild(like: Any, named: Mapping[str, Any]) -> Any:
    """The x among `members`, in the structure of another x."""
    if isinstance(like, Mapping):
        return {key: named[f"x[{key!r}]"] for key in like}
    return tuple(named[f"x[{i}]"] for i in range(len(like))) if isinstance(like, tuple) else named["x"]


def entries(data: Any) -> dict[str, Any]:
    """Values by the device's name as text, from a mapping or an iterable of pairs (id, value).

    >>> entries([(1, "one"), ("b", "two")])
    {'1': 'one', 'b': 'two'}
    """
    want = "expected a mapping {id: (x, y)} or an iterable of (id, (x, y)): name every device"
    require(isinstance(data, Iterable) and not isinstance(data, str), f"the data is a {type(data).__name__}, {want}")
    found: dict[str, Any] = {}
    for i, entry in enumerate(data.items() if isinstance(data, Mapping) else data):
        named = isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[0], Hashable)
        require(named and not isinstance(entry[0], Tensor), f"entry {i} of the data is no pair (id, value), {want}")
        name, present = str(entry[0]), isinstance(entry[0], str) or str(entry[0]) not in MISSING
        require(present, f"the name of device number {i} is {name}, expected a name: fill in or drop missing names")
        require(is_text(name), f"the id {name!r} is half a character, expected text: read the ids in their encoding")
        if name in found:
            both = f"{found[name][0]!r} and {entry[0]!r}"
            raise InputError(f"the ids {both} name one device {name!r}, expected one id a device: rename or merge them")
        found[name] = entry
    return {name: entry[1] for name, entry in found.items()}


def piece(name: str, value: object) -> Piece:
    """The samples of one device, checked on their own.

    >>> piece("device 'a'", ([[1.0], [2.0]], [0, 1])).n
    2
    """
    x, y = pair(name, value)
    if isinstance(x, Mapping | tuple):
        named = len(x) > 0 and all(isinstance(key, str) for key in x if isinstance(x, Mapping))
        require(named, f"{name}: x is a {type(x).__name__} without members or text keys, expected both: add or rename")
    found = {what: tensor(name, what, given) for what, given in members(x, y).items()}
    n = len(found["y"])
    for what, values in found.items():
        lengths = f"{len(values)} samples and y has {n}"
        require(len(values) == n, f"{name}: {what} has {lengths}, expected as many: give every sample its label")
        check_values(name, what, values)
    return Piece(name, rebuild(x, found), found, n)


def pair(name: str, value: Any) -> tuple[Any, Any]:
    """(x, y) as given, or collected from the samples of a dataset."""
    kind, want = type(value).__name__, "expected a pair (x, y) of arrays or a dataset of pairs"
    if isinstance(value, tuple | list):
        require(len(value) == 2, f"{name} is a {kind} of length {len(value)}, {want}: give it as (x, y)")
        return value[0], value[1]
    lone = isinstance(value, Tensor | np.ndarray | str | bytes | Mapping) or not hasattr(value, "__getitem__")
    require(isinstance(value, Sized) and not lone, f"{name} is of type {kind}, {want}: give it as (x, y)")
    x: Any = []
    samples: list[dict[str, Any]] = []
    for i in range(len(value)):
        which = f"{name}: sample {i} of its {kind}"
        try:
            one = value[i]
        except Exception as error:
            raise InputError(f"{which} fails ({short(error)}), expected a pair (x, y): correct the dataset") from error
        its = type(one).__name__ + (f" of {short(list(one))}" if isinstance(one, Mapping) else "")
        paired = isinstance(one, tuple | list) and len(one) == 2
        require(paired, f"{which} is of type {its} and no pair, {want}: return (x, y)")
        x, y = one
        samples.append(members(x, y))
        got, first = ", ".join(samples[i]), ", ".join(samples[0])
        require(got == first, f"{name}: sample {i} of its {kind} has {got}, expected {first}: give all of them")
    listed = {what: [each[what] for each in samples] for what in (samples[0] if samples else ("x", "y"))}
    return rebuild(x, listed), listed["y"]


def check_alike(pieces: Sequence[Piece]) -> None:
    """There are some, with the same members, each in one kind of number and one shape of sample."""
    require(pieces, "got no devices, expected at least one: check that the data is not empty or an exhausted iterator")
    first: dict[str, str] = {}
    for each in pieces:
        kinds = {what: str(HELD[what[0]][part.dtype])[6:].rstrip("0123456789") for what, part in each.members.items()}
        found = {what: f"{kind} of shape {tuple(each.members[what].shape[1:])}" for what, kind in kinds.items()}
        first = first or found
        for what in () if found == first else found | first:
            got, wanted = found.get(what, "nothing"), first.get(what, "nothing")
            both = f"{each.name}: {what} holds {got}, but {wanted} in {pieces[0].name}"
            require(got == wanted, f"{both}, expected one kind and shape: convert or reshape one")


def join(pieces: Sequence[Piece], orders: Sequence[Any]) -> tuple[Inputs, Tensor]:
    """The pieces side by side, each in its order: the one copy that a federation makes."""
    whole = {}
    for what in pieces[0].members:
        parts = [each.members[what] for each in pieces]
        dtype = reduce(torch.promote_types, {HELD[what[0]][part.dtype] for part in parts})
        whole[what] = torch.empty((sum(map(len, parts)), *parts[0].shape[1:]), dtype=dtype)
        for place, part, order in zip(whole[what].split([len(part) for part in parts]), parts, orders, strict=True):
            place.copy_(part[order])
    return rebuild(pieces[0].x, whole), whole["y"]


def rows(table: Any, device: str, label: str, features: Features) -> Iterable[tuple[Any, Any]]:
    """The rows of a table by device, in the order in which the devices first appear."""
    structured: Any = getattr(getattr(table, "dtype", None), "names", None)
    columns = list(table) if isinstance(table, Mapping) else list(structured or getattr(table, "columns", ()))
    require(columns, f"the table is a {type(table).__name__}, expected a frame or a dict of columns: convert it")
    listed = isinstance(features, Sequence) and not isinstance(features, str)
    require(features is None or listed, f"features are {features!r}, expected a list of names: put it into one")
    chosen = [name for name in columns if name not in (device, label)] if features is None else list(features)
    lost = [name for name in (device, label, *chosen) if name not in columns]
    require(not lost, f"the table has no column {lost}, expected names among {columns}: correct them")
    require(chosen and label not in chosen, f"features are {chosen}, expected columns other than the label: name some")
    y = tensor(f"column {label!r}", "y", table[label])
    found = {name: tensor(f"column {name!r}", "x", table[name]) for name in chosen}
    column = table[device].tolist() if isinstance(table[device], Tensor) else table[device]
    owners = list(column) if isinstance(column, Iterable) else [column]
    require(all(isinstance(o, Hashable) for o in owners), f"column {device!r} has lists, expected names: convert them")
    for name, values in (*found.items(), (label, y)):
        shapes = f"column {name!r} has shape {tuple(values.shape)}, expected one number for each of {len(owners)} names"
        require(values.shape == (len(owners),), f"{shapes} in column {device!r}: make the columns equally long")
    dtype = reduce(torch.promote_types, (HELD["x"][values.dtype] for values in found.values()))
    x = torch.stack([values.to(dtype) for values in found.values()], dim=1)
    places: dict[Any, int] = {}
    owner = np.array([places.setdefault(name, len(places)) for name in owners], dtype=np.int64)
    order, n = torch.from_numpy(np.argsort(owner, kind="stable")), np.bincount(owner).tolist()
    return zip(places, zip(x[order].split(n), y[order].split(n), strict=True), strict=True)
