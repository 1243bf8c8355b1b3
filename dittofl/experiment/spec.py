"""A spec: a TOML file that says what is run. Read, changed, filled with every default, and given an identity."""

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

import tomli_w

from dittofl.errors import InputError, finite, require, short
from dittofl.experiment.assign import assign, merge
from dittofl.experiment.construct import Names
from dittofl.experiment.keys import Experiment
from dittofl.experiment.names import REFERENCE, nearest
from dittofl.experiment.place import anywhere
from dittofl.experiment.signature import Table
from dittofl.experiment.sources import source_file, user_files

SPEC = "spec.toml"  # a run folder's own
CODE = "code"  # and the user's files that it names
LOSS = "CrossEntropyLoss"


@dataclass(frozen=True)
class Spec:
    """An experiment, where its user's files are, and its canonical table: every default written out."""

    experiment: Experiment
    table: Table
    folder: Path

    @property
    def names(self) -> Names:
        return Names(self.folder)

    def files(self) -> dict[str, Path]:
        """The user's files that it names, and what those import from beside them."""
        sources = {one.rsplit(":", 1)[0] for one in _references(self.table)}
        found = [source_file(source, "the spec", self.folder) for source in sorted(sources)]
        return user_files([file for file in found if file is not None], self.folder)

    @property
    def identity(self) -> str:
        """SHA-256 of the canonical table, as JSON with sorted keys, and of the user's files; not of where data lie."""
        code = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in self.files().items()}
        text = json.dumps(
            [_plain(self.table | {"data": anywhere(self.table["data"])}), code],
            sort_keys=True,
            ensure_ascii=False,
            default=str,
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def toml(self) -> str:
        """The canonical table as TOML."""
        return tomli_w.dumps(self.table)


def presets() -> dict[str, Path]:
    """The specs that come with the package, by name."""
    folder = Path(str(resources.files("dittofl") / "presets"))
    return {file.stem: file for file in sorted(folder.glob("*.toml"))}


def load(source: str, changes: Sequence[Mapping[str, Any]] = (), assignments: Sequence[str] = ()) -> Spec:
    """A spec from a file, a run folder or a preset's name, with keys replaced and `a.b.c=value` assigned."""
    path, folder = _place(source)
    table = _based(path)
    table.setdefault("name", path.stem)
    for change in changes:
        table |= change
    for assignment in assignments:
        assign(table, assignment)
    return resolve(table, folder)


def resolve(table: Mapping[str, Any], folder: Path = Path()) -> Spec:
    """A table with every default, checked key by key."""
    keys = [field.name for field in fields(Experiment)]
    for key in table:
        require(key in keys, f"a spec has no key {key!r}: {nearest(key, keys)}")
    for key in ("data", "model", "method", "rounds"):
        require(key in table, f"the spec lacks {key}: add it, or see `dittofl new`")
    given = {"loss": LOSS} | dict(table)
    filled = Names(folder).filled(given, "")
    experiment = Experiment(**filled)
    scalars = {field.name: getattr(experiment, field.name) for field in fields(Experiment)}
    whole = {key: value for key, value in (scalars | filled).items() if value is not None}
    return Spec(experiment, _rounded(whole), folder)


def _based(path: Path, heirs: tuple[Path, ...] = ()) -> Table:
    """A file's table, over that of the preset or file that it names as `base`."""
    require(path not in heirs, f"{path} is based on itself: name another base")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {short(error)}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}: correct it") from error
    base = table.pop("base", None)
    if base is None:
        return table
    require(isinstance(base, str), f"{path}: base must name a preset or a file, got {short(base)}")
    beside = path.parent / str(base)
    below = _based(_place(str(beside) if beside.is_file() else str(base))[0], (*heirs, path))
    merge(below, table)
    return below


def _place(source: str) -> tuple[Path, Path]:
    """The TOML file and the folder of the user's files."""
    path = Path(source)
    if path.is_dir():
        require((path / SPEC).is_file(), f"{source} is a folder without {SPEC}: name a run folder, a spec or a preset")
        return path / SPEC, path / CODE if (path / CODE).is_dir() else path
    if path.is_file():
        own = path.name == SPEC and (path.parent / CODE).is_dir()
        return path, path.parent / CODE if own else path.parent
    if source in presets():
        return presets()[source], Path()
    raise InputError(f"there is no file and no preset {source!r}: {nearest(source, presets())}")


def _references(value: Any) -> Iterator[str]:
    """Every `file:name` in it."""
    if isinstance(value, str) and REFERENCE.fullmatch(value):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _references(one)


def _rounded(value: Any) -> Any:
    """Tuples as TOML's lists."""
    if isinstance(value, Mapping):
        return {str(key): _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    """1.0 and 1 are the same number."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return int(value) if isinstance(value, float) and finite(value) and value.is_integer() else value
