"""LEAF's JSON: {"users": […], "num_samples": […], "user_data": {user: {"x": […], "y": […]}}}, gzipped or not."""

from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dittofl.datasets.reading import intact, whole
from dittofl.datasets.stream import Pull
from dittofl.errors import is_whole

Array = NDArray[Any]
Samples = tuple[Array, Array]
BLOCK = 1024  # samples that are held beside what becomes of them
PARTS = ("x", "y")


def read(path: Path) -> dict[str, Samples]:
    """Every user's x and y, all at once; a file that contradicts itself is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.json"
    ...     text = '{"users": ["u"], "num_samples": [2], "user_data": {"u": {"x": [[1], [2]], "y": [0, 1]}}}'
    ...     _ = path.write_text(text)
    ...     read(path)["u"][1].tolist()
    [0, 1]
    """
    found: dict[str, dict[str, Array]] = {}
    declared: dict[str, int] = {}
    for user, part, text in fields(path, declared):
        found.setdefault(user, {})[part] = array(f"{path}, user {user!r}, {part}", text.value())
    for user, its in found.items():
        x, y, n = its["x"], its["y"], declared.get(user, 0)
        intact(len(x) == len(y) == n, f"{path} has x {x.shape} and y {y.shape} for the {n} samples of {user!r}")
    return {user: (found[user]["x"], found[user]["y"]) for user in declared}


def labels(paths: Sequence[Path], checked: Callable[[str, Array], Array]) -> dict[str, Array]:
    """Every user's y, `checked(where, y)`, of those who have any; x is passed over."""
    found: dict[str, Array] = {}
    for path in paths:
        declared: dict[str, int] = {}
        counted: dict[str, int] = {}
        for user, part, text in fields(path, declared):
            if part == "y":
                where = f"{path}, user {user!r}, y"
                y = array(where, text.value())
                counted[user] = len(y)
                if len(y):
                    intact(user not in found, f"{where} follows another y of theirs in a file before it")
                    found[user] = checked(where, y)
            else:
                text.skip()
        for user, held in counted.items():
            n = declared.get(user, 0)
            intact(held == n, f"{path} has {held} labels for the {n} samples of {user!r}")
    return found


def samples(
    paths: Sequence[Path], users: Container[str], checked: Callable[[str, int, Array], Array]
) -> Iterator[tuple[str, int, Array]]:
    """(user, start, `checked(where, start, the next samples of x)`) of the wanted users, in the order of the files."""
    for path in paths:
        for user, part, text in fields(path, {}):
            if part == "x" and user in users:
                where = f"{path}, user {user!r}, x"
                for start, rows in _blocks(where, text):
                    mixed = len({row.dtype.kind == "U" for row in rows}) > 1
                    intact(not mixed, f"{where} mixes numbers and texts from sample {start}")
                    with whole(where):
                        block = np.stack(rows)
                    yield user, start, checked(where, start, block)
            else:
                text.skip()


def _blocks(where: str, text: Pull) -> Iterator[tuple[int, list[Array]]]:
    rows: list[Array] = []
    start = 0
    for i in text.items():
        if len(rows) == BLOCK:
            yield start, rows
            start, rows = i, []
        rows.append(array(f"{where}, sample {i},", text.value(), least=0))
    yield start, rows


def array(where: str, value: object, least: int = 1) -> Array:
    """Numbers or texts, in lists at `least` so deep and equally long."""
    with whole(where):
        found = np.array(value)
    proper = found.ndim >= least and found.dtype.kind in "ifU"
    intact(proper, f"{where} is no list of numbers or names, all of one shape")
    return found


def fields(path: Path, declared: dict[str, int]) -> Iterator[tuple[str, str, Pull]]:
    """(user, "x" or "y", the text at that value, which is to be read or skipped); `declared` gets the users' sizes.

    Users who are not declared have no samples: LEAF's program that parts samples so leaves those who had but one.
    """
    text = Pull(path)
    head: dict[str, Any] = {}
    held: set[str] = set()
    for key in text.names():
        if key == "user_data":
            for user in text.names():
                held.add(user)
                yield from _parts(user, text)
        elif key in ("users", "num_samples"):
            head[key] = text.value()
        else:
            text.skip()
    text.end()
    declared.update(_sizes(path, head.get("users"), head.get("num_samples"), held))


def _sizes(path: Path, users: Any, sizes: Any, held: set[str]) -> dict[str, int]:
    """The number of samples that the file says each user has, all of whom it holds data of."""
    listed = isinstance(users, list) and isinstance(sizes, list) and all(isinstance(user, str) for user in users)
    intact(listed, f"{path} has no lists users and num_samples")
    told = f"{path} names {len(users)} users with {len(sizes)} sizes"
    intact(len(users) == len(set(users)) == len(sizes), f"{told}, expected as many different ones")
    lacking = sorted(set(users) - held)
    intact(not lacking, f"{told} and holds data of {len(held)}, but not of {lacking[:3]}")
    intact(all(is_whole(n, 0) for n in sizes), f"{path} has sizes in num_samples that are no whole numbers")
    return dict(zip(users, sizes, strict=True))


def _parts(user: str, text: Pull) -> Iterator[tuple[str, str, Pull]]:
    missing = set(PARTS)
    for part in text.names():
        if part in missing:
            missing.discard(part)
            yield user, part, text
        else:
            text.skip()
    intact(not missing, f"{text.path}, user {user!r}, has no {' and no '.join(sorted(missing))}")
