"""Run folders, read: what is read is what was written, and what is broken is refused."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from dittofl.errors import InputError
from dittofl.report import Result, conditions, read
from tests.report.conftest import RUNS

FILES = ["summary.json", "run.json", "metrics.csv", "rounds.csv", "devices.csv", "selections.json", "spec.toml"]


def test_per_device_numbers_have_the_means_of_the_summary(results: dict[str, Result]) -> None:
    for name in ("clean-2", "A1-10", "alone"):
        run = results[name]
        benign = ~run.devices.malicious & (run.devices.sizes["test"] > 0)
        for (model, metric), its in run.scores.items():
            values = run.devices.values[model, metric][benign]
            assert its["mean"] == pytest.approx(values.mean())
            assert its["std"] == pytest.approx(values.std())
            assert its["devices"] == len(values)
            assert run.curves.values[model, metric, "worst10"][-1] == pytest.approx(its["worst10"])


def test_rounds_and_curves_are_as_long_as_the_run(results: dict[str, Result]) -> None:
    run = results["A1-2"]
    assert run.rounds.t.tolist() == [1, 2, 3, 4, 5, 6]
    assert run.rounds.cohort.tolist() == [3] * 6
    assert run.curves.rounds["global"].tolist() == [2, 4, 6]
    assert int(run.devices.visits.sum()) == 18
    assert (run.rounds.malicious <= run.devices.malicious.sum()).all()
    assert sum(run.devices.malicious) == len(run.facts["malicious"]) == 2


def test_every_run_is_read_once_and_ten_comes_after_two(runs: Path) -> None:
    names = [run.folder.name for run in read([runs, runs / "clean-2"])]
    assert sorted(names) == sorted(RUNS)
    assert names.index("clean-2") < names.index("clean-10")
    assert [run.folder.name for run in read([runs / "clean-10", runs / "alone"])] == ["clean-10", "alone"]


def test_what_is_no_number_in_json_is_nan(results: dict[str, Result]) -> None:
    assert np.isnan(results["diverged"].scores["global", "loss"]["mean"])


def damaged(runs: Path, tmp_path: Path, name: str, text: str) -> Path:
    folder = tmp_path / "run"
    shutil.copytree(runs / "clean-2", folder)
    (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("text", ["", "{", "a,b\n1", '{"a": 1}', "[1, 2]", "\x00"])
def test_a_damaged_file_is_refused_in_a_sentence(runs: Path, tmp_path: Path, name: str, text: str) -> None:
    folder = damaged(runs, tmp_path, name, text)
    with pytest.raises(InputError) as error:
        conditions(read([folder]))
    assert name in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("summary.json", "run.json")])
def test_a_missing_file_is_refused(runs: Path, tmp_path: Path, name: str) -> None:
    folder = damaged(runs, tmp_path, name, "")
    (folder / name).unlink()
    with pytest.raises(InputError, match=re.escape(name)):
        read([folder])


def test_files_of_two_runs_are_refused(runs: Path, tmp_path: Path) -> None:
    facts = json.loads((runs / "clean-2" / "run.json").read_text())
    folder = damaged(runs, tmp_path, "run.json", json.dumps(facts | {"identity": "another"}))
    with pytest.raises(InputError, match="mixes two runs"):
        read([folder])


def test_a_truncated_line_is_refused(runs: Path, tmp_path: Path) -> None:
    text = (runs / "clean-2" / "devices.csv").read_text()
    with pytest.raises(InputError, match=r"devices\.csv is damaged"):
        read([damaged(runs, tmp_path, "devices.csv", text[: len(text) - 40])])
