"""The user's own files: loaded for their names, and found again for a run's identity and its folder."""

import ast
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path, PurePath
from types import ModuleType

from dittofl.errors import InputError, blamed, require


def source_file(source: str, where: str, folder: Path) -> Path | None:
    """The file that `source:name` means, beside the spec or below; None where it is a module's name."""
    path = PurePath(source if source.endswith(".py") else source.replace(".", "/") + ".py")
    if not source.endswith(".py") and "/" not in source and not (folder / path).is_file():
        return None
    require(
        not path.is_absolute() and ".." not in path.parts,
        f"{where}: {source} lies outside the spec's folder, which a run copies: put it beside the spec or below",
    )
    require((folder / path).is_file(), f"{where}: there is no file {folder / path}: write one, or correct the name")
    return Path(os.path.abspath(folder / path))  # noqa: PTH100 - a link is the file's place too


@cache
def loaded(file: Path) -> ModuleType:
    """A user's file as a module; the files beside it can be imported by it."""
    name = f"dittofl_user_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InputError(f"{file} cannot be loaded as Python: give it the ending .py")
    module = importlib.util.module_from_spec(spec)
    sys.path[:] = [str(file.parent), *(place for place in sys.path if place != str(file.parent))]
    _forget(file)
    sys.modules[name] = module  # as dataclasses and pickling look there
    spec.loader.exec_module(module)
    return module


def _forget(file: Path) -> None:
    """Modules of other folders that are called like those beside this file, which means its own."""
    for one in closure(file):
        parts = one.relative_to(file.parent).with_suffix("").parts
        dotted = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        there = getattr(sys.modules.get(dotted), "__file__", None)
        if there is not None and Path(there) != one and dotted.partition(".")[0] not in sys.stdlib_module_names:
            del sys.modules[dotted]


def user_files(files: Iterable[Path], folder: Path) -> dict[str, Path]:
    """These files and all that they import from beside them, by their place in the folder.

    Read from the source alone: what else the process has loaded, or will load later, makes no difference.
    """
    there = os.path.abspath(folder)  # noqa: PTH100
    found = {one for file in files for one in closure(file)}
    return {file.relative_to(there).as_posix(): file for file in sorted(found)}


def closure(file: Path) -> set[Path]:
    """A file and those below its folder that it imports, at any depth."""
    seen, ahead = set[Path](), [file]
    while ahead:
        one = ahead.pop()
        if one not in seen:
            seen.add(one)
            ahead += imported(one, file.parent)
    return seen


def imported(file: Path, root: Path) -> Iterator[Path]:
    """The files that a file's import statements may mean."""
    with blamed(str(file)):
        tree = ast.parse(file.read_bytes(), filename=file.name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _below(root, alias.name)
        elif isinstance(node, ast.ImportFrom):
            start = file.parents[node.level - 1] if node.level else root
            for alias in node.names:
                yield from _below(start, f"{node.module}.{alias.name}" if node.module else alias.name)


def _below(start: Path, dotted: str) -> Iterator[Path]:
    """a.b → a.py, a/__init__.py, a/b.py, a/b/__init__.py, those that exist."""
    place = start
    for part in dotted.split("."):
        place = place / part
        yield from (file for file in (place.with_name(f"{part}.py"), place / "__init__.py") if file.is_file())
