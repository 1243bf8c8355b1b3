"""A run's folder: made once, written by one process, enough to run it again."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from dittofl.errors import InputError, require
from dittofl.experiment.checkpoint import Checkpoints
from dittofl.experiment.files import read_json, told, write, write_json
from dittofl.experiment.spec import CODE, SPEC, Spec

SUMMARY, RUN, METRICS, ROUNDS, DEVICES, SELECTIONS = (
    "summary.json", "run.json", "metrics.csv", "rounds.csv", "devices.csv", "selections.json",
)  # fmt: skip
CHECKPOINT, LOCK = "checkpoint", ".lock"


class Folder:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def checkpoints(self, spec: Spec) -> Checkpoints:
        """The checkpoints as they are now; whoever goes on from them holds the lock."""
        return Checkpoints(self.path / CHECKPOINT, spec.identity)

    @property
    def begun(self) -> bool:
        """Whether this is a run's folder, and not one that holds a spec."""
        return any((self.path / name).is_file() for name in (RUN, LOCK))

    @property
    def ended(self) -> bool:
        """Whether the run came to its last round."""
        return (self.path / SUMMARY).is_file()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else writes this run meanwhile; a process that dies gives the lock back."""
        lock, new = FileLock(self.path / LOCK), [one for one in (self.path, *self.path.parents) if not one.exists()]
        with told(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(timeout=0)
            except Timeout as error:
                raise InputError(
                    f"another process is writing {self.path}: wait for it, or choose another --out"
                ) from error
        try:
            yield
        finally:
            lock.release()
            if [one.name for one in self.path.iterdir()] == [LOCK]:  # of a run that never began
                (self.path / LOCK).unlink()
                with suppress(OSError):  # of one that somebody else has put something into
                    for one in new:
                        one.rmdir()

    def belongs(self, facts: dict[str, Any]) -> None:
        """Refuses a folder that holds another run."""
        if (self.path / RUN).is_file():
            there = read_json(self.path / RUN, "identity", "fingerprint")
            for key, what in (("identity", "spec"), ("fingerprint", "data")):
                require(
                    there[key] == facts[key],
                    f"{self.path} holds a run of another {what} ({there[key][:12]}, this one is {facts[key][:12]}): "
                    "choose another --out",
                )

    def begin(self, spec: Spec, facts: dict[str, Any]) -> None:
        """Writes what is known before the first round, where it is not there already."""
        if (self.path / RUN).is_file():
            return
        write(self.path / SPEC, spec.toml().encode())
        for name, file in spec.files().items():
            with told(self.path):
                (self.path / CODE / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, self.path / CODE / name)
        write_json(self.path / RUN, facts)


def opened(path: Path, *, resume: bool) -> Folder:
    """The folder of a new run, or of one that is to go on."""
    with told(path):
        # A lock alone is left by a run that never began.
        if path.exists() and not resume and (not path.is_dir() or {its.name for its in path.iterdir()} - {LOCK}):
            raise InputError(f"{path} exists and is never overwritten: add --resume to go on, or choose another --out")
    return Folder(path)


def runs(places: Sequence[Path]) -> tuple[list[Folder], list[Folder]]:
    """The runs in these folders, or below them: those that have ended, at least one, and the others."""
    found: list[Folder] = []
    for place in places:
        require(place.is_dir(), f"there is no folder {place}: name a run, or a folder of runs")
        its = sorted(file.parent for file in place.rglob(RUN))
        require(its, f"{place} holds no run: name the folder that `dittofl run` wrote")
        found += [Folder(one) for one in its]
    ended = [one for one in found if one.ended]
    require(ended, f"no run in {', '.join(map(str, places))} has ended: go on with `dittofl run … --resume`")
    return ended, [one for one in found if not one.ended]
