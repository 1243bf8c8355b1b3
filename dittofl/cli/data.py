"""`dittofl data`: which data sets there are, where they lie, and how they are dealt out to devices."""

from pathlib import Path
from typing import Any

import click

PATH = click.Path(path_type=Path)


@click.group()
def data() -> None:
    """Data sets and their files. What there is, where it lies, how it is dealt out to devices.

    NAME is a data set, or a spec, a preset or a run's folder for the data in it.
    """


def placed(command: Any) -> Any:
    """The option of every command here."""
    return click.option("--data", "folder", type=PATH, help="The folder of the files, or of data sets by name.")(
        command
    )


def named(command: Any) -> Any:
    """NAME and what changes it."""
    for add in (
        placed,
        click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True, help="A parameter: devices=100."),
        click.argument("name"),
    ):
        command = add(command)
    return command


@data.command("list")
@placed
def list_(folder: Path | None) -> None:
    """Every data set, and where its files were found."""
    from dittofl.cli.inspecting import show

    show(folder)


@data.command()
@named
def info(**given: Any) -> None:
    """Devices, samples, classes, shapes, fingerprint, source and licence of NAME."""
    from dittofl.cli.inspecting import info as go

    go(**given)


@data.command()
@named
def check(**given: Any) -> None:
    """Compare NAME's files and federation with what is recorded of them; damage is refused."""
    from dittofl.cli.inspecting import check as go

    go(**given)


@data.command()
@click.argument("name")
@placed
def fetch(name: str, folder: Path | None) -> None:
    """Download NAME into the user's cache, or into a folder of its name in --data."""
    from dittofl.cli.fetching import fetch as go

    go(name, folder)


@data.command()
@named
@click.option("--out", type=PATH, help="A file that ends in .svg or .png (default: NAME.svg).")
def plot(out: Path | None, **given: Any) -> None:
    """Draw NAME's devices by size and by class."""
    from dittofl.cli.inspecting import plot as go

    go(out=out, **given)
