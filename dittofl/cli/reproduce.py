"""`dittofl reproduce`."""

import os
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from dittofl.cli.running import ENGINES, paced, seeded
from dittofl.errors import StoppedError, finite, require
from dittofl.federate import usable
from dittofl.reproduce.board import Board
from dittofl.reproduce.making import How, Made, advice
from dittofl.reproduce.reproduction import Asked, asked, make, place, written
from dittofl.reproduce.trajectory import Machine

OUT = Path("results")


def reproduce(
    names: Sequence[str], data: Path | None, seeds: str | None, only: Sequence[str], scale: float, out: Path | None,
    resume: bool, device: str, precision: str, engine: str | None, jobs: int, minutes: float | None,
    checkpoint_every: float | None, quiet: bool, as_is: bool,
) -> None:  # fmt: skip
    """The missing runs of some tables, then the tables."""
    require(finite(scale) and 0 < scale <= 1, f"--scale must be above 0 and at most 1, got {scale:g}")
    require(jobs >= 1, f"--jobs must be 1 or more, got {jobs}")
    require(minutes is None or minutes > 0, f"--minutes must be above 0, got {minutes}")
    if data is not None:
        os.environ["DITTOFL_DATA"] = str(data)  # where data sets look first; workers inherit it
    usable(device)
    numbers = tuple(change.get("seed", 0) for change in seeded(seeds))
    what = asked(names, seeds=numbers, only=tuple(only), scale=scale)
    there = place(out or OUT, scale, new=not as_is)
    machine = Machine(device=device, precision=precision, engine=None if engine is None else ENGINES[engine])
    every = (0.0 if device.startswith("cuda") else 60.0) if checkpoint_every is None else paced(checkpoint_every)
    how = How(out=there, machine=machine, every=every, resume=resume, jobs=jobs, minutes=minutes)
    for sentence in (*what.lacks(), *filter(None, [advice(how)])):
        _line(sentence)
    made = Made() if as_is else _made(what, how, quiet)
    for sentence in written(what, there):
        click.echo(sentence)
    for name, why in made.failed.items():
        _line(f"{name} failed: {why}")
    if made.stopped:
        _line(f"{made.stopped}: the same command and --resume makes what is missing")
    one = len(made.failed) == 1
    require(not made.failed, f"{len(made.failed)} run{'' if one else 's'} failed: see above, then say the same again")


def _made(what: Asked, how: How, quiet: bool) -> Made:
    """What is missing; what was made before the user stopped it is written too."""
    board = Board(Console(stderr=True), (lambda text: None) if quiet else _line)
    try:
        return make(what, how, board)
    except StoppedError:
        written(what, how.out)
        raise
    finally:
        board.stop()


def _line(text: str) -> None:
    click.echo(text, err=True)
