"""What `dittofl data` shows of a data set."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from dittofl.cli.listing import first
from dittofl.datasets.fetch import content
from dittofl.datasets.places import Source, source
from dittofl.errors import InputError, require
from dittofl.experiment.assign import assign
from dittofl.experiment.construct import Names
from dittofl.experiment.names import nearest, sections
from dittofl.experiment.place import FOLDER, anywhere, at, placed
from dittofl.experiment.setup import federation_of
from dittofl.experiment.signature import KIND, Table
from dittofl.experiment.spec import load, presets
from dittofl.federation import PARTS, Federation
from dittofl.inputs import parts
from dittofl.intake import members
from dittofl.report.holdings import classes, holdings


class Chosen(NamedTuple):
    """The data that a name stands for."""

    title: str
    table: Table
    names: Names

    @property
    def sources(self) -> list[tuple[Source, str | None]]:
        """What is known of the files that it reads, and the folder that it names, if any."""
        tables = [*placed(self.table)] or [self.table]
        found = [(_source(str(one.get(KIND))), one.get(FOLDER)) for one in tables]
        return [(its, folder) for its, folder in found if its is not None]

    @property
    def recorded(self) -> str | None:
        """The fingerprint of this very federation, if it is known."""
        name = str(self.table.get(KIND))
        its = _source(name)
        if its is None or anywhere(self.table) != self.names.filled({KIND: name}, "data"):
            return None
        return its.fingerprints.get(name)

    def federation(self) -> Federation:
        """The data itself."""
        return federation_of(self.names.built(self.table, "data", seed=0))


def _source(kind: str) -> Source | None:
    """What is known of the files of a data set of ours."""
    maker = sections()["datasets"].get(kind)
    return None if maker is None else source(maker)


def chosen(name: str, assignments: Sequence[str], folder: Path | None) -> Chosen:
    """A data set by name, or that of a spec, in a folder."""
    if name in sections()["datasets"]:
        title, table, names = name, {KIND: name}, Names()
    elif name in presets() or Path(name).exists():
        spec = load(name)
        title, table, names = spec.experiment.name, spec.table["data"], spec.names
    else:
        near = nearest(name, [*sections()["datasets"], *presets()])
        raise InputError(f"there is no data set, spec or preset {name!r}: {near}")
    for assignment in assignments:
        assign(table, assignment)
    table = names.filled(table, "data")
    return Chosen(title, table if folder is None else at(table, folder), names)


def show(folder: Path | None) -> None:
    """Every data set with its first line, and where it is."""
    for name, maker in sections()["datasets"].items():
        click.secho(name, bold=True)
        click.echo(f"  {first(maker)}")
        its = source(maker)
        click.echo(f"  {'made from what it is given' if its is None else _where(name, its, folder)}")
    click.echo("\n`dittofl data info NAME` says more of one, `dittofl data plot NAME` draws it.")


def _where(name: str, its: Source, folder: Path | None) -> str:
    place = its.found(folder)
    if place is not None:
        return f"found in {place}"
    return f"not found: dittofl data fetch {name}, or {its.advice}" if its.addresses else f"not found: {its.advice}"


def info(name: str, assignments: Sequence[str], folder: Path | None) -> None:
    """All that is known of it."""
    its = chosen(name, assignments, folder)
    federation = its.federation()
    click.secho(its.title, bold=True)
    for what, value in (*_described(federation), *_known(its)):
        click.echo(f"  {what:<12}{value}")


def _described(its: Federation) -> Iterator[tuple[str, str]]:
    yield "devices", f"{its.K:,}, such as {', '.join(map(repr, its.ids[:3]))}"
    for part in PARTS:
        n = its.sizes(part)
        spread = f"{_range(n)} a device, median {np.median(n):,g}, mean {n.mean():,.1f}"
        yield part, f"{n.sum():,} samples, {spread}" if n.any() else "none"
    found = classes(its)
    if len(found):
        n = holdings(its, found).sum(1)
        held, most = (n > 0).sum(1), n.max(1) / n.sum(1)
        yield "classes", f"{len(found)}, from {found[0]} to {found[-1]}; {_range(held)} a device"
        yield "", f"the largest of a device's is {most.mean():.0%} of it on average"
    else:
        y = its.y.double()
        yield (
            "y",
            f"{tuple(its.y.shape[1:]) or 'a number'} a sample, mean {y.mean():.4g}, std {y.std(correction=0):.4g}",
        )
    for what, values in members(its.x, its.y).items():
        yield what, f"{list(values.shape[1:]) or 'a number'} of {str(values.dtype).removeprefix('torch.')}"
    yield "memory", f"{sum(one.nbytes for one in (*parts(its.x), its.y)) / 2**20:,.1f} MiB"
    yield "fingerprint", its.fingerprint


def _range(values: Any) -> str:
    low, high = values.min(), values.max()
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _known(its: Chosen) -> Iterator[tuple[str, str]]:
    for one, folder in its.sources:
        yield "files", f"in {one.found(folder)}"
        yield from ((what, value) for what, value in (("source", one.origin), ("licence", one.licence)) if value)


def check(name: str, assignments: Sequence[str], folder: Path | None) -> None:
    """Files and federation against what is recorded."""
    its = chosen(name, assignments, folder)
    for one, there in its.sources:
        place = one.found(there)
        if place is None:
            raise InputError(f"{one.name} is not found: {one.advice}")
        click.echo(f"{one.name}: files in {place}")
        for file, wanted in one.contents.items():
            got = content(place / file, wanted.size)
            told = f"{place / file} has a content of {got.size:,} bytes, SHA-256 {got.sha256[:12]}…"
            published = f"published are {wanted.size:,} bytes, {wanted.sha256[:12]}…: get it again"
            require(got == wanted, f"{told}, {published}")
            click.echo(f"  {file:<28}as published, SHA-256 {got.sha256[:12]}… of {got.size:,} bytes")
    found = its.federation()
    click.echo(f"{its.title}: {found!r}")
    recorded = its.recorded
    require(
        recorded in (None, found.fingerprint),
        f"{its.title}: the federation's fingerprint is {found.fingerprint[:12]}…, recorded is {str(recorded)[:12]}…: "
        "its files are not those that are published, or other versions of packages round otherwise",
    )
    click.echo(f"  fingerprint {'as recorded' if recorded else 'of these parameters is not recorded'}")


def plot(name: str, assignments: Sequence[str], folder: Path | None, out: Path | None) -> None:
    """The partition as a picture."""
    from dittofl.report.partition import save

    its = chosen(name, assignments, folder)
    federation = its.federation()
    path = Path(f"{its.title}.svg") if out is None else out
    total = sum(int(federation.sizes(part).sum()) for part in PARTS)
    save(federation, path, f"{its.title}: {federation.K:,} devices, {total:,} samples")
    click.echo(str(path))
