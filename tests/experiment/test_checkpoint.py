"""Checkpoints: complete, incremental, whole at any moment, and told apart from broken ones."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from dittofl.errors import InputError
from dittofl.experiment.checkpoint import MANIFEST, Checkpoints
from dittofl.experiment.setup import build
from dittofl.federate import Rounds
from tests.experiment.small import run, small

LENGTHS = {"metrics.csv": 3}


@pytest.fixture
def rounds(tmp_path: Path) -> Rounds:
    """Twenty rounds with one device each."""
    return build(small(tmp_path, rounds=20, cohort=1)).federate()


def saved(rounds: Rounds, kept: Checkpoints, n: int) -> Iterator[int]:
    """Trains and saves n rounds; the files' bytes after each."""
    for _ in range(n):
        kept.visited(next(rounds).history[-1].cohort)
        kept.save(rounds.run, seconds=1.5, lengths=LENGTHS)
        yield sum(path.stat().st_size for path in kept.folder.glob("rows-*"))


def test_what_is_saved_is_what_is_loaded(rounds: Rounds, tmp_path: Path) -> None:
    *_, _ = saved(rounds, Checkpoints(tmp_path / "c", "me"), 5)
    kept, run_ = Checkpoints(tmp_path / "c", "me"), rounds.run
    state = kept.load()
    assert state is not None
    assert (state.t, kept.manifest.seconds, kept.manifest.lengths) == (5, 1.5, LENGTHS)
    assert (
        sorted(state.state) == sorted(run_.state()) == ["aggregator.0", "aggregator.1", "server.0", "visits", "w", "w0"]
    )
    assert all(torch.equal(state.state[name], its) for name, its in run_.state().items())
    assert state.state["aggregator.1"].item() == 0.5**5  # a number, to its last digit
    for name, pieces in state.rows.items():
        found = {int(k): row for ids, rows in pieces for k, row in zip(ids, rows, strict=True)}
        assert sorted(found) == sorted(run_.rows[name].touched().tolist())
        for k, row in found.items():
            assert torch.equal(row, run_.rows[name].get(np.array([k]))[0])
    assert sorted(state.rows) == ["lam=0.1", "lam=1", "lam=2", "local"]  # w's solver keeps nothing


def test_only_rows_that_changed_are_written_and_old_files_go(rounds: Rounds, tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path / "c", "me")
    row = None
    for size in saved(rounds, kept, 20):
        touched = len(rounds.run.rows["local"].touched())
        newest = [
            load_file(path)
            for path in (tmp_path / "c").glob(f"rows-{kept.manifest.generation}-*")
        ]  # fmt: skip
        written = {len(its) for one in newest for key, its in one.items() if key.endswith(".ids")}
        assert written in ({1}, {touched})  # the device of this round, or all where they were written anew
        row = row or size
        assert size <= 2.5 * row * touched
    names = {path.name for path in (tmp_path / "c").iterdir()}
    assert names == {MANIFEST, "state-19.safetensors", *kept.manifest.rows}


def test_large_rows_are_written_in_pieces(rounds: Rounds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dittofl.experiment.checkpoint.PIECE", 2 * rounds.run.w.numel())
    kept = Checkpoints(tmp_path / "c", "me")
    for _ in range(9):
        kept.visited(next(rounds).history[-1].cohort)
    kept.save(rounds.run, seconds=0.0, lengths={})
    touched = len(rounds.run.rows["local"].touched())
    assert touched > 2
    assert len(kept.manifest.rows) == 4 * -(-touched // 2)
    state = Checkpoints(tmp_path / "c", "me").load()
    assert state is not None
    assert sum(len(ids) for ids, _ in state.rows["local"]) == touched


def test_what_a_dying_process_left_is_swept(rounds: Rounds, tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path / "c", "me")
    next(saved(rounds, kept, 1))
    for name in ("state-1.safetensors", "rows-1-0.safetensors", "rows-1-1.safetensors.tmp"):
        (tmp_path / "c" / name).write_bytes(b"half")
    kept = Checkpoints(tmp_path / "c", "me")
    assert kept.manifest.generation == 0
    kept.save(rounds.run, seconds=0.0, lengths={})
    assert {path.name for path in (tmp_path / "c").iterdir()} == {MANIFEST, "state-1.safetensors", *kept.manifest.rows}


# Broken ones, as a user meets them


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run that has lost its summary: it is to go on from its last checkpoint."""
    folder = tmp_path_factory.mktemp("interrupted")
    run(small(folder / "code"), folder / "run")
    (folder / "run" / "summary.json").unlink()
    return folder


def manifest(path: Path, **changes: object) -> None:
    its = json.loads((path / MANIFEST).read_text())
    (path / MANIFEST).write_text(json.dumps({key: its for key, its in (its | changes).items() if its is not None}))


BROKEN = {
    "state cut": lambda c: (c / "state-0.safetensors").write_bytes((c / "state-0.safetensors").read_bytes()[:90]),
    "state gone": lambda c: (c / "state-0.safetensors").unlink(),
    "state of zeros": lambda c: (c / "state-0.safetensors").write_bytes(bytes(500)),
    "rows cut": lambda c: (c / "rows-0-1.safetensors").write_bytes((c / "rows-0-1.safetensors").read_bytes()[:-9]),
    "rows gone": lambda c: (c / "rows-0-1.safetensors").unlink(),
    "state and rows exchanged": lambda c: shutil.copy(c / "state-0.safetensors", c / "rows-0-0.safetensors"),
    "manifest empty": lambda c: (c / MANIFEST).write_text(""),
    "manifest cut": lambda c: (c / MANIFEST).write_text((c / MANIFEST).read_text()[:50]),
    "manifest is a list": lambda c: (c / MANIFEST).write_text("[1, 2]"),
    "manifest lacks a key": lambda c: manifest(c, t=None),
    "manifest with a word for a number": lambda c: manifest(c, t="six"),
    "manifest with null": lambda c: (c / MANIFEST).write_text(
        (c / MANIFEST).read_text().replace('"rows": [', '"rows": null, "x": [')
    ),
    "manifest of another run": lambda c: manifest(c, identity="0" * 64),
    "logs shorter than they were": lambda c: (c.parent / "rounds.csv").write_text("round\n"),
    "logs gone": lambda c: (c.parent / "metrics.csv").unlink(),
    "facts cut": lambda c: (c.parent / "run.json").write_text("{"),
    "facts without a fingerprint": lambda c: (c.parent / "run.json").write_text('{"identity": "x"}'),
    "facts of a list": lambda c: (c.parent / "run.json").write_text('["x"]'),
}  # fmt: skip


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_checkpoint_is_told_in_a_sentence(interrupted: Path, tmp_path: Path, how: str) -> None:
    shutil.copytree(interrupted / "run", tmp_path / "run")
    BROKEN[how](tmp_path / "run" / "checkpoint")
    with pytest.raises(InputError) as caught:
        run(small(tmp_path / "code"), tmp_path / "run")
    said = str(caught.value)
    assert str(tmp_path / "run") in said
    assert "\n" not in said
    assert any(word in said for word in ("restore", "start anew", "damaged", "another")), said


def test_an_unbroken_one_goes_on(interrupted: Path, tmp_path: Path) -> None:
    shutil.copytree(interrupted / "run", tmp_path / "run")
    assert run(small(tmp_path / "code"), tmp_path / "run")["rounds"] == 6


def test_a_checkpoint_of_another_seed_fits_but_is_refused(interrupted: Path, tmp_path: Path) -> None:
    """All shapes are right, so that only the identity tells."""
    shutil.copytree(interrupted / "run" / "checkpoint", tmp_path / "run" / "checkpoint")
    with pytest.raises(InputError, match="a checkpoint of another run"):
        run(small(tmp_path / "code", seed=1), tmp_path / "run")
