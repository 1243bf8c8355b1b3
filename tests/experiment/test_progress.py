"""What a long run shows, on a terminal and elsewhere."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from dittofl.experiment import progress
from dittofl.experiment.progress import Bar, Lines, Rate
from tests.experiment.small import run, small


def test_plain_lines_where_there_is_no_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    said: list[str] = []
    lines = Lines(said.append)
    lines.begin("small, seed 0", 10, 100)
    for t in range(11, 101):
        now[0] += 0.5
        lines.round(t)
    assert said[0] == "small, seed 0: round 14 of 100, 2.0 rounds/s, 43 s left  "
    assert [int(line.split()[4]) for line in said] == [14, 34, 54, 74, 94, 100]
    assert said[-1].startswith("small, seed 0: round 100 of 100, 2.0 rounds/s, 0 s left")


def test_the_last_line_has_every_models_accuracy(tmp_path: Path) -> None:
    said: list[str] = []
    run(small(tmp_path / "code"), tmp_path / "run", shown=Lines(said.append))
    assert re.search(r"round 6 of 6, .*  global 0\.\d{3}  local 0\.\d{3}  lam=0\.1 .* ditto 0\.\d{3}$", said[-1])
    assert "\x1b" not in "".join(said)


def test_a_bar_on_a_terminal(tmp_path: Path) -> None:
    text = io.StringIO()
    run(small(tmp_path / "code"), tmp_path / "run", shown=Bar(Console(file=text, force_terminal=True, width=160)))
    shown = text.getvalue()
    assert "small, seed 0" in shown
    assert "6/6" in shown
    assert "rounds/s" in shown
    assert "global 0." in shown


def test_a_bar_on_a_narrow_terminal_stays_on_its_line(tmp_path: Path) -> None:
    text = io.StringIO()
    run(small(tmp_path / "code"), tmp_path / "run", shown=Bar(Console(file=text, force_terminal=True, width=60)))
    frames = re.split(r"\r|\n", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.getvalue()))
    assert max(map(len, frames)) <= 60
    assert sum("small, seed 0" in frame for frame in frames) > 0


def test_a_rate_counts_from_where_a_run_went_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [5.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    rate = Rate(100)
    now[0] = 7.0
    assert rate.at(110) == 5.0
