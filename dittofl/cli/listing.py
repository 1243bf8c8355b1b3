"""`dittofl list`."""

import inspect
import shutil
from collections.abc import Callable
from typing import Any

import click

from dittofl.errors import InputError
from dittofl.experiment.names import known, nearest, sections
from dittofl.experiment.signature import described
from dittofl.experiment.spec import presets

COLUMN, WIDTH = 29, 130
WORDS = {
    "methods": ("solvers", "personal", "choices", "alone"),
    "aggregators": ("objectives", "defences"),
    "data": ("datasets", "partitioners"),
}
PLACES = {
    "datasets": "data = …",
    "partitioners": "by = … of partitioned",
    "models": "model = …",
    "losses": "loss = …, penalty = …",
    "solvers": "method.local = …, and beside it method.personal.NAME = …",
    "personal": "method.personal.NAME = …, or method.final.NAME = … after the last round",
    "choices": "method.choose.NAME = …, or lam = … of a solver",
    "optimisers": "through = […] of a solver",
    "schedules": "lr = … of a solver",
    "objectives": "method.aggregate = …, or then = … or by = … of a defence: fair weights",
    "defences": "method.aggregate = …, or then = … of a defence",
    "servers": "method.server = …",
    "attacks": "attack = …",
    "updates": "update = … of an Attack: what malicious devices send",
    "poisons": "relabel = … or backdoor = … of an Attack, and triggers",
    "samplings": "sampling = …",
    "engines": "engine = …",
    "targets": "target = …: what y means, where it is not clear",
    "others": "Epochs: steps = … of a solver; Split: of a data set; Metric: metrics.NAME = …; Stateless: then = …",
    "alone": "in Python: its fit(federation)",
    "presets": "dittofl run NAME",
}


def show(what: str | None) -> None:
    """All sections, one of them, or one name in detail."""
    its = sections()
    if what is None:
        for section in (*its, "presets"):
            _section(section)
        click.echo("\n`dittofl list NAME` says more of one, `dittofl list SECTION` lists one section.")
    elif what in its or what == "presets" or what in WORDS:
        for section in WORDS.get(what, (what,)):
            _section(section)
    elif what in known():
        _detail(what)
    elif what in presets():
        click.echo(presets()[what].read_text(encoding="utf-8"))
    else:
        near = nearest(what, [*its, "presets", *WORDS, *known(), *presets()])
        raise InputError(f"there is no section, name or preset {what!r}: {near}")


def _section(section: str) -> None:
    click.echo("\n" + click.style(section, bold=True) + f"  {PLACES.get(section, '')}".rstrip())
    if section == "presets":
        for name, path in presets().items():
            line = path.read_text(encoding="utf-8").splitlines()[0]
            click.echo(f"  {name:<27}{line.lstrip('# ')}")
        return
    for name, kind in sections()[section].items():
        click.echo(f"  {name:<27}{first(kind)}")
        if parameters := _parameters(kind):
            click.echo(f"  {'':<27}{parameters}")


def _detail(name: str) -> None:
    kind = known()[name]
    section = next(section for section, names in sections().items() if name in names)
    click.echo(click.style(name, bold=True) + f"  {section}, {PLACES.get(section, '')}")
    click.echo(f"  {_parameters(kind) or 'no parameters'}\n")
    click.echo(_indented(inspect.getdoc(kind) or "" if _ours(kind) else f"{first(kind)}, see PyTorch's documentation"))
    required = [f"{key} = …" for key in _required(kind)]
    in_a_spec = ", ".join([f'kind = "{name}"', *required])
    in_python = f"{name}({', '.join(required)}).fit(federation)"
    click.echo(f"\nIn Python: {in_python}" if section == "alone" else f"\nIn a spec: {{ {in_a_spec} }}")


def first(kind: Callable[..., Any]) -> str:
    """The first line of a docstring: the equation. Torch's own losses speak for themselves."""
    line = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")
    most = min(WIDTH, shutil.get_terminal_size((WIDTH, 0)).columns) - COLUMN
    return (line if len(line) <= most else line[: most - 1] + "…") if _ours(kind) else f"torch.nn.{kind.__name__}"


def _ours(kind: Callable[..., Any]) -> bool:
    return kind.__module__.startswith("dittofl")


def _signature(kind: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return [one for one in inspect.signature(kind).parameters.values() if one.name != "seed"]
    except (TypeError, ValueError):
        return []


def _required(kind: Callable[..., Any]) -> list[str]:
    return [one.name for one in _signature(kind) if one.default is one.empty]


def _parameters(kind: Callable[..., Any]) -> str:
    """lr, steps = 1, …"""
    deprecated = () if _ours(kind) else ("size_average", "reduce")  # of torch's losses
    return ", ".join(
        one.name if one.default is one.empty else f"{one.name} = {_default(one)}"
        for one in _signature(kind) if one.name not in deprecated
    )  # fmt: skip


def _default(one: inspect.Parameter) -> str:
    value = described(one.default)
    if isinstance(value, dict):
        return str(value.get("kind", "…"))
    return "none" if value is None else str(value).replace("'", '"')


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else "" for line in text.splitlines())
