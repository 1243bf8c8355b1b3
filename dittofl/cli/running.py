"""`dittofl run`."""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from dittofl.cli.reading import page, table
from dittofl.errors import InputError, StoppedError, cut, require
from dittofl.experiment.cost import Needs, needs, store
from dittofl.experiment.folder import Folder, opened
from dittofl.experiment.place import at
from dittofl.experiment.progress import Bar, Lines, Quiet, Shown, clock
from dittofl.experiment.run import execute, flags
from dittofl.experiment.setup import Setup, build
from dittofl.experiment.spec import Spec, load, resolve

OUT = Path("runs")
SEEDS, LARGEST = 10_000, 2**32  # as many, and as large as numpy's legacy generator takes them
ENGINES = {"auto": "Auto", "loop": "Loop", "vmap": "Vmap"}


def run(
    specs: Sequence[str], assignments: Sequence[str], data: Path | None, out: Path | None, seeds: str | None,
    checkpoint_every: float, resume: bool, quiet: bool, dry_run: bool, report: Path | None, **changes: Any,
) -> None:  # fmt: skip
    """Every spec with every seed."""
    paced(checkpoint_every)
    loaded = [
        (source, _moved(load(source, [_changes(changes), seed], assignments), data))
        for source in specs for seed in seeded(seeds)
    ]  # fmt: skip
    if dry_run:
        for _, spec in loaded:
            its = needs(spec, probe=True)
            click.echo(_described(spec, its))
            its.fit()
            if checkpoint_every:
                store([(its, out or OUT)])
        return
    planned = _places(loaded, out, resume)
    made = _fit([(spec, path) for spec, path in planned if not Folder(path).ended], saved=checkpoint_every > 0)
    again = "the same command and --resume" if len(planned) > 1 else None
    for spec, path in planned:
        _one(spec, path, partial(execute, every=checkpoint_every, setup=made.pop(path, None)), again=again, quiet=quiet)
    table([path for _, path in planned])
    if report is not None:
        page([path for _, path in planned], report)


def _fit(planned: Sequence[tuple[Spec, Path]], *, saved: bool) -> dict[Path, Setup]:
    """Refuses runs that cannot fit, before the first of them begins; what was built for that one, lest it be twice."""
    known: dict[str, Needs] = {}
    first: dict[Path, Setup] = {}
    for spec, path in planned:
        if (key := _but_for_the_seed(spec)) not in known:
            with flags(spec.experiment):
                setup = build(spec)
            known[key] = needs(spec, setup)
            known[key].fit()
            first = first or {path: setup}
    if saved:
        store([(known[_but_for_the_seed(spec)], path) for spec, path in planned])
    return first


def _but_for_the_seed(spec: Spec) -> str:
    """What runs have in common that need the same."""
    return json.dumps([str(spec.folder), {**spec.table, "seed": 0, "name": ""}], sort_keys=True, default=str)


def _moved(spec: Spec, folder: Path | None) -> Spec:
    """The same with its data in a folder."""
    return spec if folder is None else resolve(spec.table | {"data": at(spec.table["data"], folder)}, spec.folder)


def _places(loaded: Sequence[tuple[str, Spec]], out: Path | None, resume: bool) -> list[tuple[Spec, Path]]:
    """The folder of each run; a run's own where it is to go on in place."""
    planned: dict[Path, Spec] = {}
    for source, spec in loaded:
        own = resume and out is None and Folder(Path(source)).begun
        path = Path(source) if own else (out or OUT) / spec.experiment.name / f"seed-{spec.experiment.seed}"
        if path in planned:
            raise InputError(f"two runs would write {path}: give the specs names of their own, or other seeds")
        planned[path] = spec
    for path in planned:
        opened(path, resume=resume)
    return [(spec, path) for path, spec in planned.items()]


def _one(spec: Spec, path: Path, go: Callable[..., Any], *, again: str | None, quiet: bool) -> None:
    console = Console(stderr=True)
    shown: Shown = Quiet() if quiet else Bar(console) if console.is_terminal else Lines(_line)
    try:
        summary = go(spec, opened(path, resume=True), shown)
    except StoppedError as stopped:
        how = again or f"`dittofl run {shlex.quote(str(path))} --resume`"
        raise StoppedError(f"{stopped}: go on with {how}") from None
    if not quiet:
        _line(f"{path}: {summary['rounds']} rounds in {clock(summary['seconds'])}")


def _line(text: str) -> None:
    click.echo(text, err=True)


def _changes(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, as a spec's keys."""
    changes = {key: value for key, value in given.items() if value is not None and value is not False}
    if "engine" in changes:
        changes["engine"] = {"kind": ENGINES[changes["engine"]]}
    return changes


def paced(seconds: float) -> float:
    """The time between checkpoints."""
    require(seconds >= 0, f"--checkpoint-every must be 0 or more seconds, got {seconds:g}")
    return seconds


def seeded(text: str | None) -> list[dict[str, int]]:
    """0:5 or 0,3,7 as changes of a spec; none where the spec's own seed is to stand."""
    if text is None:
        return [{}]
    try:
        a, colon, b = text.partition(":")
        seeds: Sequence[int] = range(int(a), int(b)) if colon else [int(one) for one in text.split(",")]
        right = 0 < len(seeds) <= SEEDS and min(seeds) >= 0 and max(seeds) < LARGEST and len(set(seeds)) == len(seeds)
    except (ValueError, OverflowError):  # no numbers, or a range whose length is none of C's
        right = False
    require(
        right,
        f"--seeds must be A:B with A < B, or A,B,… of whole numbers ≥ 0 and below 2³², {SEEDS:,} at most, "
        f"got {cut(repr(text))}: write 0:5, say",
    )
    return [{"seed": seed} for seed in seeds]


def _described(spec: Spec, its: Needs) -> str:
    return f"# identity {spec.identity}\n{its.comment()}\n{spec.toml()}"
