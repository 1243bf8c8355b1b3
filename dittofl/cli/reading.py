"""`dittofl report`, `dittofl compare`, and the table after a run."""

from pathlib import Path

import click

from dittofl.experiment.files import read_json


def table(folders: list[Path]) -> None:
    for f in folders:
        s = read_json(f / "summary.json")
        for m, its in s["models"].items():
            click.echo(
                f"{f} {m:<12} {its['accuracy']['mean']:.3f} {its['accuracy']['std']:.3f} {its['accuracy']['worst10']:.3f}"
            )
