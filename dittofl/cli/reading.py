"""`dittofl report`, `dittofl compare`, and the table after a run."""

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from dittofl import report as reading
from dittofl.experiment.folder import runs
from dittofl.report.conditions import lead_metric
from dittofl.report.figures import figures as draw
from dittofl.report.page import save
from dittofl.report.tables import Table
from dittofl.report.verdict import headline


def shown(table: Table) -> None:
    """A table for whoever reads it: a terminal or a pipe."""
    console = Console()
    if console.is_terminal:
        console.print(table.rich())
    else:
        click.echo(table.plain())


def table(places: Sequence[Path]) -> None:
    """Runs that have ended, and what they say in a sentence or two."""
    found = reading.conditions(reading.read(places))
    shown(reading.overview(found))
    for sentence in headline(found, lead_metric(found)):
        click.echo(sentence)


def report(places: Sequence[Path], out: Path | None, figures: Path | None) -> None:
    """The table, the page, and figures if asked for."""
    table(places)
    for run in runs(places)[1]:
        click.echo(f"{run.path} has not ended and is left out: go on with `dittofl run {run.path} --resume`", err=True)
    page(places, places[0] / "report.html" if out is None else out)
    if figures is not None:
        click.echo(f"{len(draw(reading.read(places), figures))} figures: {figures}")


def page(places: Sequence[Path], out: Path) -> None:
    """The page over runs that have ended."""
    results = reading.read(places)
    save(results, out)
    click.echo(f"\nA page over {len(results)} run{'s' * (len(results) > 1)}: {out}")


def compare(places: Sequence[Path], metric: str | None, against: str | None) -> None:
    """Paired differences."""
    shown(reading.comparison(reading.compare(reading.read(places), metric, against)))
