"""A run that was stopped, at whatever round and in whatever way, ends as if it never had been."""

import errno
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dittofl.experiment.run as running
from dittofl.errors import InputError, StoppedError
from dittofl.evaluate import Evaluation
from dittofl.experiment.files import DiskFullError
from dittofl.experiment.folder import opened
from tests.experiment.small import TABLE, files, run, small


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A run that nobody stopped."""
    folder = tmp_path_factory.mktemp("whole")
    return folder / "run", run(small(folder / "code"), folder / "run")


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every round, whatever it costs."""
    monkeypatch.setattr(running, "SHARE", 0)


class Doing:
    """Does something after some rounds."""

    def __init__(self, do: Callable[[], None], *rounds: int) -> None:
        self.do, self.rounds, self.seen = do, rounds, list[int]()

    def begin(self, name: str, t: int, rounds: int) -> None:
        self.began = t

    def round(self, t: int) -> None:
        self.seen.append(t)
        if t in self.rounds:
            self.do()

    def evaluated(self, scored: Evaluation) -> None: ...
    def end(self) -> None: ...


def sent(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


class PulledError(Exception):
    """The plug."""


def pull() -> None:
    raise PulledError


def same(place: Path, summary: dict[str, Any], whole: tuple[Path, dict[str, Any]]) -> None:
    assert summary == whole[1]
    assert files(place) == files(whole[0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
@pytest.mark.parametrize("t", [1, 4, 6])
def test_a_signal_saves_the_round(tmp_path: Path, whole: tuple[Path, dict[str, Any]], number: int, t: int) -> None:
    spec, place = small(tmp_path / "code"), tmp_path / "run"
    before = signal.getsignal(number)
    with pytest.raises(StoppedError, match=f"stopped after round {t} of 6, saved in"):
        run(spec, place, shown=Doing(sent(number), t))
    assert signal.getsignal(number) == before
    assert not opened(place, resume=True).ended
    again = Doing(pull)
    same(place, run(spec, place, shown=again), whole)
    assert again.began == t  # nothing was trained twice
    assert again.seen == list(range(t + 1, 7))


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    def twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(small(tmp_path / "code"), tmp_path / "run", shown=Doing(twice, 3))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("t", [2, 3, 5])
def test_what_was_logged_behind_the_checkpoint_is_cut(
    tmp_path: Path, whole: tuple[Path, dict[str, Any]], t: int
) -> None:
    """The process dies after an evaluation was written and before the next checkpoint is."""
    spec, place = small(tmp_path / "code"), tmp_path / "run"
    with pytest.raises(PulledError):
        run(spec, place, every=1e-9, shown=Doing(pull, t))
    for name in ("metrics.csv", "rounds.csv"):
        with (place / name).open("a") as file:
            file.write("half a li")
    same(place, run(spec, place), whole)


@pytest.mark.usefixtures("always")
def test_a_run_stopped_in_every_round_is_the_same(tmp_path: Path, whole: tuple[Path, dict[str, Any]]) -> None:
    spec, place = small(tmp_path / "code"), tmp_path / "run"
    for t in range(1, 7):
        with pytest.raises(StoppedError):
            run(spec, place, every=1e-9, shown=Doing(sent(signal.SIGINT), t))
    same(place, run(spec, place), whole)


def test_a_run_that_has_ended_is_left_alone(tmp_path: Path) -> None:
    spec, place = small(tmp_path / "code"), tmp_path / "run"
    summary = run(spec, place)
    times = {path: path.stat().st_mtime_ns for path in place.rglob("*") if path.is_file() and path.name != ".lock"}
    assert run(spec, place, shown=Doing(pull, 1, 2, 3, 4, 5, 6)) == summary
    assert all(path.stat().st_mtime_ns == its for path, its in times.items())


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A disk that is full after so many writes that must last."""
    left, sync = [0], os.fsync

    def fsync(handle: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield left


@pytest.mark.usefixtures("always")
def test_a_full_disk_is_told_and_loses_nothing(
    tmp_path: Path, whole: tuple[Path, dict[str, Any]], small_disk: list[int]
) -> None:
    """However far the disk reaches, what was saved stays whole and the run goes on from there."""
    spec, place = small(tmp_path / "code"), tmp_path / "run"
    for tries in (5, 9, 13, 17):
        small_disk[0] = tries
        with pytest.raises(DiskFullError, match="is full: free some space and go on with --resume"):
            run(spec, place, every=1e-9)
        assert not list(place.rglob("*.tmp"))
    small_disk[0] = 10**6
    again = Doing(pull)
    same(place, run(spec, place, every=1e-9, shown=again), whole)
    assert again.began > 0


def test_a_state_that_no_run_could_go_on_from_is_refused_at_once(tmp_path: Path) -> None:
    method = TABLE["method"] | {"aggregate": "task:Growing"}
    with pytest.raises(InputError, match="other parts after round 1 than before"):
        run(small(tmp_path / "code", method=method), tmp_path / "run")
    assert run(small(tmp_path / "code", method=method), tmp_path / "other", every=0)["rounds"] == 6
