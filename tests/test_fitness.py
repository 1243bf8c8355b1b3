"""The house rules as tests: sizes, names, forbidden words, layers, and docs/paper-map.md.

A check is a function of a path and its source text that returns complaints, so that each is shown to fail on a bad
snippet too. Edit LAYERS when a module is added: one that stands in no layer fails.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from statistics import median

import pytest

ROOT = Path(__file__).parents[1]

# A file may import from its own layer and from those above it in this list. `dittofl/__init__.py` may import all.
LAYERS = (
    {"errors", "seeds", "layout", "types", "target", "losses", "schedule", "optimiser", "inputs", "dropout"},
    {"task", "trial", "module", "probe", "objective", "bind", "federation", "batches", "intake", "arrays"},
    {"solver", "aggregate", "server", "attack"},
    {"method"},
    {"engine"},
    {"federate", "federated", "reports", "sampling", "evaluate", "measure", "metrics", "personalise"},
    {"ascent", "mocha", "variances"},
    {"datasets", "models", "theory"},
    {"experiment"},
    {"report"},
    {"reproduce"},
    {"cli", "__main__"},
)
FILE_LINES = 200
BODY_LINES = 50  # the goal of the house style is 25
MEDIAN_BODY_LINES = 8
VAGUE_NAMES = {"utils", "util", "base", "helpers", "helper", "misc", "common"}

Check = Callable[[PurePosixPath, str], list[str]]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def layer(name: str) -> int | None:
    return next((i for i, names in enumerate(LAYERS) if name in names), None)


def own_name(path: PurePosixPath) -> str:
    """The module's name below the package: dittofl/solver/ditto.py → solver, dittofl/__init__.py → __init__."""
    return PurePosixPath(path.parts[1]).stem


def imported(path: PurePosixPath, tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """The dotted names that a file imports, at any depth of its code, relative ones resolved."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = path.parts[: len(path.parts) - node.level] if node.level else ()
            module = node.module.split(".") if node.module else ()
            yield from ((*above, *module, alias.name) for alias in node.names)


def layers_hold(path: PurePosixPath, source: str) -> list[str]:
    name = own_name(path)
    if name == "__init__":
        return []
    own = layer(name)
    if own is None:
        return [f"{name} stands in no layer: add it to LAYERS in tests/test_fitness.py"]
    complaints = []
    for parts in dict.fromkeys(parts[:2] for parts in imported(path, ast.parse(source)) if parts[0] == "dittofl"):
        other = layer(parts[-1])
        if other is None:
            complaints.append(f"imports {'.'.join(parts)}, which stands in no layer")
        elif other > own:
            complaints.append(f"imports {'.'.join(parts)}, of the higher layer {sorted(LAYERS[other])}")
    return complaints


def file_is_short(_: PurePosixPath, source: str) -> list[str]:
    lines = len(source.splitlines())
    return [f"has {lines} lines, at most {FILE_LINES} are allowed"] if lines > FILE_LINES else []


def bodies(source: str) -> Iterator[tuple[str, int, int]]:
    """Name, line and lines of body of every function that does more than document itself."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            code = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
            if code:
                decorators = getattr(code[0], "decorator_list", [])
                first = min([code[0].lineno, *(decorator.lineno for decorator in decorators)])
                yield node.name, node.lineno, (code[-1].end_lineno or first) - first + 1


def functions_are_short(_: PurePosixPath, source: str) -> list[str]:
    return [
        f"line {line}: the body of {name} has {lines} lines, at most {BODY_LINES} are allowed"
        for name, line, lines in bodies(source)
        if lines > BODY_LINES
    ]


def name_says_something(path: PurePosixPath, _: str) -> list[str]:
    vague = [part for part in path.with_suffix("").parts if part.strip("_") in VAGUE_NAMES]
    return [f"{part} says nothing about what is in it" for part in vague]


def nothing_forbidden(_: PurePosixPath, source: str) -> list[str]:
    complaints = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Assert():
                complaints.append(f"line {node.lineno}: assert vanishes under -O, use errors.require")
            case ast.ExceptHandler(type=None):
                complaints.append(f"line {node.lineno}: bare except")
            case ast.Call(func=ast.Name(id="super")):
                complaints.append(f"line {node.lineno}: super(): wrap instead of overriding")
    return complaints


CHECKS: tuple[Check, ...] = (layers_hold, file_is_short, functions_are_short, name_says_something, nothing_forbidden)


def package() -> Iterator[tuple[PurePosixPath, str]]:
    for path in sorted((ROOT / "dittofl").rglob("*.py")):
        if (ROOT / "dittofl/cli/new") in path.parents:
            continue  # an example in the user's own style
        yield PurePosixPath(path.relative_to(ROOT).as_posix()), path.read_text(encoding="utf-8")


@pytest.mark.parametrize("check", CHECKS)
def test_house_rule(check: Check) -> None:
    files = list(package())
    assert len(files) >= 5
    complaints = [f"{path}: {complaint}" for path, source in files for complaint in check(path, source)]
    assert not complaints, "\n".join(complaints)


def test_the_median_function_is_small() -> None:
    assert median(lines for _, source in package() for *_, lines in bodies(source)) <= MEDIAN_BODY_LINES


def code_lines(source: str, name: str) -> int:
    """Statements and headers of a class, a line each, without its docstring."""
    found = next(one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.ClassDef) and one.name == name)
    found.body = found.body[ast.get_docstring(found) is not None :]
    return sum(bool(line) for line in ast.unparse(found).splitlines())


def test_ditto_is_at_most_twenty_lines() -> None:
    assert code_lines((ROOT / "dittofl/solver/ditto.py").read_text(encoding="utf-8"), "Ditto") <= 20
    assert (
        code_lines('class A:\n    """Doc."""\n\n    # why\n    x = 1\n\n    def f(self):\n        return 1\n', "A") == 4
    )


@pytest.mark.parametrize(
    ("check", "path", "source", "complaint"),
    [
        (layers_hold, "dittofl/surprise.py", "", "surprise stands in no layer"),
        (layers_hold, "dittofl/seeds.py", "from dittofl.method import Method", "imports dittofl.method, of the"),
        (layers_hold, "dittofl/seeds.py", "from dittofl import engine", "imports dittofl.engine, of the"),
        (layers_hold, "dittofl/seeds.py", "import dittofl.engine.loop as loop", "imports dittofl.engine, of the"),
        (layers_hold, "dittofl/seeds.py", "def f():\n    from .method import Method", "imports dittofl.method, of the"),
        (layers_hold, "dittofl/solver/ditto.py", "from ..engine import Loop", "imports dittofl.engine, of the"),
        (layers_hold, "dittofl/solver/__init__.py", "from dittofl import federate", "imports dittofl.federate, of the"),
        (layers_hold, "dittofl/engine/loop.py", "import dittofl", "imports dittofl, which stands in no layer"),
        (
            layers_hold,
            "dittofl/engine/loop.py",
            "from dittofl import Ditto",
            "imports dittofl.Ditto, which stands in no",
        ),
        (file_is_short, "dittofl/task.py", "x = 1\n" * 201, "has 201 lines"),
        (functions_are_short, "dittofl/task.py", "def f():\n" + "    x = 1\n" * 51, "the body of f has 51 lines"),
        (functions_are_short, "dittofl/task.py", "class A:\n  async def f():\n" + "    x = 1\n" * 51, "f has 51 lines"),
        (name_says_something, "dittofl/utils.py", "", "utils says nothing"),
        (name_says_something, "dittofl/solver/_base.py", "", "_base says nothing"),
        (name_says_something, "dittofl/helpers/rows.py", "", "helpers says nothing"),
        (nothing_forbidden, "dittofl/task.py", "assert x", "line 1: assert"),
        (nothing_forbidden, "dittofl/task.py", "try:\n    f()\nexcept:\n    pass", "line 3: bare except"),
        (nothing_forbidden, "dittofl/task.py", "class A(B):\n    def f(self):\n        super().f()", "line 3: super"),
    ],
)
def test_a_house_rule_can_fail(check: Check, path: str, source: str, complaint: str) -> None:
    complaints = check(PurePosixPath(path), source)
    assert len(complaints) == 1
    assert complaint in complaints[0]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("dittofl/__init__.py", "from dittofl.federate import federate"),
        (
            "dittofl/solver/ditto.py",
            "import torch\nfrom . import sgd\nfrom .. import types\nfrom dittofl import losses",
        ),
        ("dittofl/task.py", "def f():\n    '''" + "x\n" * 100 + "'''\n    return 1"),
    ],
)
def test_good_snippets_pass(path: str, source: str) -> None:
    assert [complaint for check in CHECKS for complaint in check(PurePosixPath(path), source)] == []


def test_bodies_leave_out_docstrings_and_count_decorators() -> None:
    assert list(bodies('def f():\n    """one"""\n\ndef g(): ...')) == [("g", 4, 1)]
    assert list(bodies("def f():\n    @cache\n    def g():\n        return 1\n    return g")) == [
        ("f", 1, 4),
        ("g", 3, 1),
    ]


# docs/paper-map.md: | equation | code | test |, code as `dittofl/file.py:name`, test as `tests/file.py::name`.

MAP_HEADER = ["equation", "code", "test"]
REFERENCES = (re.compile(r"`(dittofl/[\w/]+\.py):([\w.]+)`"), re.compile(r"`(tests/[\w/]+\.py)::((?:\w+::)?test\w*)`"))
Read = Callable[[str], str | None]  # a file's text, None where there is none


def rows(text: str) -> list[list[str]]:
    """The cells of every table row but headers and rules; a `\\|` does not end a cell."""
    cells = [re.split(r"(?<!\\)\|", line.strip())[1:-1] for line in text.splitlines() if line.lstrip().startswith("|")]
    stripped = [[cell.strip() for cell in row] for row in cells]
    return [row for row in stripped if row != MAP_HEADER and not all(re.fullmatch(":?-+:?", cell) for cell in row)]


def defined(tree: ast.Module | Definition, prefix: str = "") -> Iterator[str]:
    """Functions, classes and assigned names of a module, those of a class as Class.name."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.ClassDef(name=name):
                yield prefix + name
                yield from defined(node, f"{prefix}{name}.")
            case ast.Assign(targets=targets):
                yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name


def unresolved(cell: str, reference: re.Pattern[str], read: Read) -> list[str]:
    """What is wrong with the comma-separated references of one cell."""
    complaints = []
    for item in cell.split(","):
        found = reference.fullmatch(item.strip())
        source = read(found[1]) if found else None
        if not found:
            complaints.append(f"{item.strip()!r} does not read {reference.pattern}")
        elif source is None:
            complaints.append(f"{found[1]} does not exist")
        elif found[2].replace("::", ".") not in set(defined(ast.parse(source))):
            complaints.append(f"{found[1]} does not define {found[2]}")
    return complaints


def map_holds(text: str, read: Read) -> list[str]:
    complaints = [] if rows(text) else ["the paper map has no row"]
    for row in rows(text):
        if len(row) != len(MAP_HEADER):
            complaints.append(f"{row} is not | equation | code | test |: write a bar in a formula as \\|")
            continue
        wrong = [c for cell, form in zip(row[1:], REFERENCES, strict=True) for c in unresolved(cell, form, read)]
        complaints += [f"{row[0]}: {complaint}" for complaint in ([] if row[0] else ["no equation"]) + wrong]
    return complaints


def read(path: str) -> str | None:
    return (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else None


@pytest.mark.parametrize("document", ["docs/paper-map.md", "CONTRIBUTING.md"])
def test_the_paper_map_points_at_code_and_tests(document: str) -> None:
    text = read(document)
    assert text is not None, f"{document} is missing: a table | equation | code | test |, one row an equation"
    complaints = map_holds(text, read)
    assert not complaints, "\n".join(complaints)


FILES = {
    "dittofl/solver/ditto.py": "class Ditto:\n    lam: float\n    def step(self): ...\nmean = lift(f)",
    "tests/test_ditto.py": "def test_step(): ...\nclass TestLimits:\n    def test_zero(self): ...",
}
CODE, TEST = "`dittofl/solver/ditto.py:Ditto.step`", "`tests/test_ditto.py::test_step`"


def as_map(row: str) -> str:
    return f"# Map\n\n| equation | code | test |\n|---|:--|---|\n{row}\n"


@pytest.mark.parametrize(
    "row",
    [
        f"| v − η(g + λ(v − w)) | {CODE} | {TEST} |",
        f"| \\|v − w\\|² | {CODE}, `dittofl/solver/ditto.py:mean` | {TEST} |",
        f"| λ → 0 | {CODE} | {TEST}, `tests/test_ditto.py::TestLimits::test_zero` |",
        f"| λ | `dittofl/solver/ditto.py:Ditto.lam` | {TEST} |",
    ],
)
def test_a_good_map_passes(row: str) -> None:
    assert map_holds(as_map(row), FILES.get) == []


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("", "the paper map has no row"),
        (f"| λ | {CODE} |", "is not | equation | code | test |"),
        (f"| |v| | {CODE} | {TEST} |", "is not | equation | code | test |"),
        (f"| | {CODE} | {TEST} |", "no equation"),
        (f"| λ | | {TEST} |", "'' does not read"),
        (f"| λ | dittofl/solver/ditto.py:Ditto | {TEST} |", "does not read"),
        (f"| λ | `dittofl/solver/prox.py:Prox` | {TEST} |", "dittofl/solver/prox.py does not exist"),
        (f"| λ | `dittofl/solver/ditto.py:Ditto.keep` | {TEST} |", "does not define Ditto.keep"),
        (f"| λ | {CODE} | {CODE} |", "does not read"),
        (f"| λ | {CODE} | `tests/test_ditto.py::TestLimits` |", "does not read"),
        (f"| λ | {CODE} | `tests/test_none.py::test_step` |", "tests/test_none.py does not exist"),
        (f"| λ | {CODE} | {TEST}, `tests/test_ditto.py::test_zero` |", "does not define test_zero"),
    ],
)
def test_a_bad_map_fails(row: str, complaint: str) -> None:
    complaints = map_holds(as_map(row), FILES.get)
    assert len(complaints) == 1
    assert complaint in complaints[0]
