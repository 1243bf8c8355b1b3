"""`dittofl new`."""

import shutil
from importlib import resources
from pathlib import Path

import click

from dittofl.errors import InputError
from dittofl.experiment.files import told


def new(folder: Path) -> None:
    """Copies the example into a new folder."""
    source = Path(str(resources.files("dittofl.cli") / "new"))
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists and is not empty: choose another folder")
    with told(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("spec.toml", "my_task.py"):
            shutil.copyfile(source / name, folder / name)
    click.echo(
        f"{folder / 'my_task.py'}   your model and data\n{folder / 'spec.toml'}    what is run\n\n"
        f"Next: dittofl run {folder / 'spec.toml'} --out {folder / 'runs'}"
    )
