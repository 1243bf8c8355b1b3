"""Checkpoints: files of one generation, then one manifest renamed into place.

    manifest.json → t, seconds, lengths of the logs, state-G.safetensors, rows-G.safetensors of this and earlier ones

A generation writes the rows that changed since the one before. Where twice the rows that exist are on disk, it writes
all of them, and the manifest forgets the files before. A process killed at any moment leaves the last manifest whole.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from dittofl.errors import InputError, require, short
from dittofl.experiment.files import read_json, told, write, write_json
from dittofl.federated import Federated, Saved
from dittofl.types import Ints

MANIFEST = "manifest.json"
PIECE = 2**26  # elements of rows read or written at a time


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Which files make a checkpoint."""

    identity: str = ""  # of the run's spec
    generation: int = -1
    t: int = 0
    seconds: float = 0.0
    lengths: Mapping[str, int] = field(default_factory=dict)  # of the logs, in bytes
    rows: tuple[str, ...] = ()
    stored: int = 0  # rows in all those files, counted as often as they stand there


class Checkpoints:
    """The checkpoints of one run in a folder of their own."""

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder = folder
        self.manifest = _manifest(folder / MANIFEST) if (folder / MANIFEST).is_file() else Manifest(identity=identity)
        require(
            self.manifest.identity == identity,
            f"{folder} holds a checkpoint of another run ({self.manifest.identity[:12]}, this one is {identity[:12]}): "
            "restore its own, or start anew in another --out",
        )
        self.changed: set[int] = set()

    def visited(self, ids: Ints) -> None:
        """Remembers whose rows the next checkpoint must hold."""
        self.changed.update(ids.tolist())

    def save(self, run: Federated, *, seconds: float, lengths: Mapping[str, int]) -> None:
        """Writes a generation."""
        with told(self.folder):
            self.folder.mkdir(exist_ok=True)
            self._sweep()
        generation = self.manifest.generation + 1
        touched = {int(k) for rows in run.rows.values() for k in rows.touched()}
        whole = self.manifest.stored + len(self.changed) > 2 * len(touched)
        ids = np.array(sorted(touched if whole else self.changed & touched), dtype=np.int64)
        self._write(f"state-{generation}.safetensors", run.state())
        files = [self._write(name, part) for name, part in _pieces(run, ids, generation)]
        self.manifest = replace(
            self.manifest, generation=generation, t=run.t, seconds=seconds, lengths=dict(lengths),
            rows=(*(() if whole else self.manifest.rows), *files),
            stored=len(ids) + (0 if whole else self.manifest.stored),
        )  # fmt: skip
        write_json(self.folder / MANIFEST, asdict(self.manifest))
        self.changed.clear()
        self._sweep()

    def load(self) -> Saved | None:
        """What `federate` resumes from; None before the first checkpoint."""
        if self.manifest.generation < 0:
            return None
        files: dict[str, list[str]] = {}
        for file in self.manifest.rows:
            with self._open(file) as tensors:
                solvers = [key.removesuffix(".ids") for key in list(tensors.keys()) if key.endswith(".ids")]
            require(solvers, f"{self.folder / file} is damaged, it holds no rows: restore it, or start anew")
            files.setdefault(solvers[0], []).append(file)
        return Saved(self.manifest.t, self.state(), {solver: self._rows(solver, its) for solver, its in files.items()})

    def _rows(self, solver: str, files: list[str]) -> Iterator[tuple[Ints, Tensor]]:
        for file in files:
            tensors = dict(self._read(file))
            yield tensors[f"{solver}.ids"].numpy(), tensors[f"{solver}.rows"]

    def state(self) -> dict[str, Tensor]:
        """What the server held."""
        require(self.manifest.generation >= 0, f"{self.folder} holds no checkpoint: let the run save one")
        return dict(self._read(f"state-{self.manifest.generation}.safetensors"))

    def _write(self, name: str, tensors: Mapping[str, Tensor]) -> str:
        write(self.folder / name, save({key: its.detach().cpu().contiguous() for key, its in tensors.items()}))
        return name

    def _read(self, name: str) -> Iterator[tuple[str, Tensor]]:
        with self._open(name) as tensors:
            for key in list(tensors.keys()):
                yield key, tensors.get_tensor(key)

    def _open(self, name: str) -> Any:
        try:
            return safe_open(self.folder / name, framework="pt")
        except (OSError, SafetensorError) as error:
            raise InputError(
                f"{self.folder / name} cannot be read ({short(error)}): restore it, or start anew"
            ) from error

    def _sweep(self) -> None:
        """Removes what no manifest names: files of a generation that was never finished, or is no longer needed."""
        kept = {MANIFEST, f"state-{self.manifest.generation}.safetensors", *self.manifest.rows}
        for path in self.folder.iterdir():
            if path.name not in kept:
                path.unlink()


def _manifest(path: Path) -> Manifest:
    its = read_json(path, *(field.name for field in fields(Manifest)))
    kinds = {"identity": str, "generation": int, "t": int, "seconds": int | float, "lengths": dict, "rows": list}
    whole = all(isinstance(its[key], kind) for key, kind in kinds.items())
    require(whole, f"{path} is damaged, it holds {short(its)}: restore it, or start anew in another --out")
    known = {field.name: its[field.name] for field in fields(Manifest)}
    return Manifest(**known | {"rows": tuple(map(str, its["rows"]))})


def _pieces(run: Federated, ids: Ints, generation: int) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """The rows of some devices, of all solvers that keep any, in files of bounded size."""
    number = 0
    for name, store in run.rows.items():
        mine = ids[np.isin(ids, store.touched())] if store.first.numel() else ids[:0]
        per = max(1, PIECE // max(1, store.first.numel()))
        for a in range(0, len(mine), per):
            some = mine[a : a + per]
            yield (
                f"rows-{generation}-{number}.safetensors",
                {f"{name}.ids": torch.from_numpy(some), f"{name}.rows": store.get(some)},
            )
            number += 1
