"""`dittofl data fetch`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from dittofl.datasets import fetch as downloads
from dittofl.datasets.places import cache, source
from dittofl.errors import InputError, require
from dittofl.experiment.names import nearest, sections


def fetch(name: str, folder: Path | None) -> None:
    """Downloads what is missing, and says where it is."""
    makers = sections()["datasets"]
    require(name in makers, f"there is no data set {name!r}: {nearest(name, makers)}")
    its = source(makers[name])
    if its is None:
        raise InputError(f"{name} is made from its parameters: there is nothing to fetch")
    place = its.found(folder)
    if place is None:
        require(its.addresses, f"{name} has no public address that stays: {its.advice}")
        target = (cache() if folder is None else folder.expanduser()) / its.name
        with bar() as shown:
            place = downloads.fetch(its.name, its.addresses, its.contents, target, advice=its.advice, progress=shown)
    click.echo(f"{name}: {place}")


@contextmanager
def bar() -> Iterator[downloads.Progress]:
    """A line a file, on a terminal alone."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        tasks: dict[str, TaskID] = {}

        def shown(file: str, there: int, total: int) -> None:
            if file not in tasks:
                tasks[file] = progress.add_task(file)
            progress.update(tasks[file], completed=there, total=total or None)

        yield shown
