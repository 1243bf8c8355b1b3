"""`dittofl list`."""

import inspect
from collections.abc import Callable
from typing import Any

import click

from dittofl.errors import InputError
from dittofl.experiment.construct import described
from dittofl.experiment.names import known, nearest, sections
from dittofl.experiment.spec import presets

WIDTH = 100


def show(what: str | None) -> None:
    """All sections, one of them, or one name in detail."""
    its = sections()
    if what is None:
        for section in (*its, "presets"):
            _section(section)
        click.echo("\n`dittofl list NAME` says more of one, `dittofl list SECTION` lists one section.")
    elif what in its or what == "presets":
        _section(what)
    elif what in known():
        _detail(what)
    elif what in presets():
        click.echo(presets()[what].read_text(encoding="utf-8"))
    else:
        near = nearest(what, [*its, "presets", *known(), *presets()])
        raise InputError(f"there is no section, name or preset {what!r}: {near}")


def _section(section: str) -> None:
    click.secho(f"\n{section}", bold=True)
    if section == "presets":
        for name, path in presets().items():
            first = path.read_text(encoding="utf-8").splitlines()[0]
            click.echo(f"  {name:<27}{first.lstrip('# ')}")
        return
    for name, kind in sections()[section].items():
        click.echo(f"  {name:<27}{_first(kind)}")
        if parameters := _parameters(kind):
            click.echo(f"  {'':<27}{parameters}")


def _detail(name: str) -> None:
    kind = known()[name]
    click.secho(name, bold=True)
    click.echo(f"  {_parameters(kind) or 'no parameters'}\n")
    click.echo(_indented(inspect.getdoc(kind) or ""))
    example = ", ".join([f'kind = "{name}"', *(f"{key} = …" for key in _required(kind))])
    click.echo(f"\nIn a spec: {{ {example} }}")


def _first(kind: Callable[..., Any]) -> str:
    """The first line of a docstring: the equation. Torch's own losses speak for themselves."""
    line = (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")
    ours = kind.__module__.startswith("dittofl")
    return (line if len(line) <= WIDTH else line[: WIDTH - 1] + "…") if ours else f"torch.nn.{kind.__name__}"


def _signature(kind: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return [one for one in inspect.signature(kind).parameters.values() if one.name != "seed"]
    except (TypeError, ValueError):
        return []


def _required(kind: Callable[..., Any]) -> list[str]:
    return [one.name for one in _signature(kind) if one.default is one.empty]


def _parameters(kind: Callable[..., Any]) -> str:
    """lr, steps = 1, …"""
    if not kind.__module__.startswith("dittofl"):
        return ""
    return ", ".join(
        one.name if one.default is one.empty else f"{one.name} = {_default(one)}" for one in _signature(kind)
    )


def _default(one: inspect.Parameter) -> str:
    value = described(one.default)
    if isinstance(value, dict):
        return str(value.get("kind", "…"))
    return "none" if value is None else str(value).replace("'", '"')


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else "" for line in text.splitlines())
