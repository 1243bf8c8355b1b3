"""The command line in this process: an answer is an exit code, what went to stdout, and what to stderr."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import tomli_w

from dittofl.cli import answer
from tests.experiment.small import TABLE, written


class Answer(NamedTuple):
    code: int
    out: str
    err: str


Ask = Callable[..., Answer]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Types a command in an empty folder of its own, where spec.toml is a small experiment."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    (tmp_path / "spec.toml").write_text(tomli_w.dumps(TABLE))

    def asked(*words: object) -> Answer:
        capsys.readouterr()
        code = answer([str(word) for word in words])
        return Answer(code, *capsys.readouterr())

    return asked


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two finished runs, and nothing else."""
    place = tmp_path_factory.mktemp("finished")
    (written(place / "code") / "spec.toml").write_text(tomli_w.dumps(TABLE))
    spec, out = str(place / "code" / "spec.toml"), str(place / "runs")
    assert answer(["run", spec, "--seeds", "0,1", "--out", out, "--quiet", "--set", "eval_every=6"]) == 0
    return place / "runs" / "small"
