"""What a run writes down: every field, against the library's own loop."""

import csv
import json
import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dittofl import federate
from dittofl.errors import InputError
from dittofl.evaluate import Evaluation
from dittofl.experiment.folder import CODE, opened, runs
from dittofl.experiment.provenance import git_commit
from dittofl.experiment.run import flags
from dittofl.experiment.setup import build
from dittofl.experiment.spec import Spec, load
from dittofl.federated import Federated
from dittofl.metrics import Summary
from tests.experiment.small import TABLE, files, run, small

STATISTICS = ["mean", "weighted_mean", "std", "variance", "mean_minus_std", "worst10", "best10", "min"]
MODELS = ["global", "local", "lam=0.1", "lam=1", "lam=2", "ditto"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    folder = tmp_path_factory.mktemp("folder")
    run(small(folder / "code"), folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def bare(place: Path) -> tuple[Federated, dict[int, Evaluation]]:
    """The same by the library's loop alone, and its evaluations."""
    setup, scored = build(load(str(place))), {}
    with flags(load(str(place)).experiment):
        for its in federate(setup.task, setup.federation, setup.method, attack=setup.attack, rounds=6, cohort=3):
            if its.t % 2 == 0:
                scored[its.t] = its.evaluate(*(("test",) if its.t < 6 else ("train", "validation", "test")))
    return its, scored


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_summary_is_what_the_loop_gives(place: Path, bare: tuple[Federated, dict[int, Evaluation]]) -> None:
    its, scored = bare
    summary = read(place / "summary.json")
    for key, whom in (("models", "benign"), ("all_devices", "all")):
        assert sorted(summary[key]) == sorted(MODELS)
        for model, by_metric in summary[key].items():
            assert list(by_metric) == ["accuracy", "loss", "brier"]
            for metric, numbers in by_metric.items():
                assert list(numbers) == [*STATISTICS, "devices"]
                assert numbers == scored[6].summary(model, metric, "test", whom).as_dict()
    assert summary["rounds"] == 6
    assert summary["seconds"] > 0
    assert summary["malicious"] == [its.federation.ids[k] for k in np.flatnonzero(its.malicious)] != []
    assert summary["identity"] == load(str(place)).identity
    assert summary["never_visited"] == (its.visits == 0).sum()
    assert summary["dropped_reports"] == sum(drawn.dropped for drawn in its.history)
    assert summary["part"] == "test"


def test_metrics_have_a_row_for_each_evaluation_and_model(
    place: Path, bare: tuple[Federated, dict[int, Evaluation]]
) -> None:
    rows = table(place / "metrics.csv")
    keys = [(int(row["round"]), row["model"], row["part"], row["whom"]) for row in rows]
    early = [(t, model, "test", "benign") for t in (2, 4) for model in MODELS]
    parts, people = ("train", "validation", "test"), ("benign", "all")
    last = [(6, model, part, whom) for model in MODELS for part in parts for whom in people]
    assert sorted(keys) == sorted([*early, *last])
    for row, (t, model, part, whom) in zip(rows, keys, strict=True):
        for metric in ("accuracy", "loss", "brier"):
            summary: Summary = bare[1][t].summary(model, metric, part, whom)  # type: ignore[arg-type]
            assert [float(row[f"{metric}_{name}"]) for name in STATISTICS] == list(summary.as_dict().values())[:-1]


def test_devices_have_a_line_each(place: Path, bare: tuple[Federated, dict[int, Evaluation]]) -> None:
    its, scored = bare
    rows = table(place / "devices.csv")
    assert [row["device"] for row in rows] == list(its.federation.ids)
    for part in ("train", "validation", "test"):
        assert [int(row[part]) for row in rows] == its.federation.sizes(part).tolist()  # type: ignore[arg-type]
    assert [bool(int(row["malicious"])) for row in rows] == its.malicious.tolist()
    assert [int(row["visits"]) for row in rows] == its.visits.tolist()
    assert [row["ditto.choice"] for row in rows] == scored[6].choices["ditto"].tolist()
    for model in MODELS:
        for metric, numbers in scored[6].values[model, "test"].items():
            assert [float(row[f"{model}.{metric}"]) for row in rows] == numbers.tolist()


def test_rounds_say_who_was_drawn(place: Path, bare: tuple[Federated, dict[int, Evaluation]]) -> None:
    rows = table(place / "rounds.csv")
    assert [int(row["round"]) for row in rows] == [1, 2, 3, 4, 5, 6]
    for row, drawn in zip(rows, bare[0].history, strict=True):
        assert [int(k) for k in row["devices"].split()] == drawn.cohort.tolist()
        assert (int(row["malicious"]), int(row["dropped"])) == (drawn.malicious, drawn.dropped)


def test_selections_say_among_what_and_on_which_data(
    place: Path, bare: tuple[Federated, dict[int, Evaluation]]
) -> None:
    its, scored = bare
    (selection,) = read(place / "selections.json")["selections"]
    assert selection["model"] == "ditto"
    assert selection["among"] == ["lam=0.1", "lam=1", "lam=2"]
    assert (selection["few"], selection["enough"], selection["round"]) == ("lam=1", 4, 6)
    assert "validation" in selection["data"]
    assert selection["by_device"] == dict(zip(its.federation.ids, scored[6].choices["ditto"].tolist(), strict=True))
    assert sum(selection["chosen"].values()) == its.federation.K


def test_what_was_run_is_written_before_the_first_round(place: Path) -> None:
    facts, spec = read(place / "run.json"), load(str(place))
    assert facts["identity"] == spec.identity
    assert facts["fingerprint"] == build(spec).federation.fingerprint
    assert facts["malicious"] == read(place / "summary.json")["malicious"]
    assert (facts["seed"], facts["deterministic"], facts["precision"], facts["threads"]) == (0, False, "float32", 1)
    assert facts["torch"] == torch.__version__
    assert facts["packages"]["numpy"] == metadata.version("numpy")
    assert len(facts["packages"]) > 20
    assert {"python", "dittofl", "platform", "device", "git", "command", "strong_attack"} <= set(facts)
    assert facts["device"]
    its = tomllib.loads((place / "spec.toml").read_text())
    assert its["method"]["local"] == {"kind": "SGD", "lr": 0.2, "steps": 2, "through": []}
    assert sorted(one.name for one in (place / CODE).iterdir()) == ["nearby.py", "task.py"]


def test_a_runs_folder_alone_runs_again_to_the_same_numbers(place: Path, tmp_path: Path) -> None:
    """In another process and folder, with nothing of the user's but what the run kept."""
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "run").symlink_to(place)
    code = "import sys; from dittofl.cli import answer; sys.exit(answer(['run', 'run', '--quiet', '--out', 'again']))"
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=alone, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    again = alone / "again" / "small" / "seed-0"
    assert files(again) == files(place)
    ours, theirs = (read(one / "summary.json") | {"seconds": 0} for one in (place, again))
    assert ours == theirs


def test_git_is_told_where_there_is_a_repository(tmp_path: Path) -> None:
    assert git_commit(tmp_path) is None
    for command in ("init -q", "commit -q --allow-empty -m first"):
        who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        subprocess.run(["git", *who, *command.split()], cwd=tmp_path, check=True)
    commit = git_commit(tmp_path)
    assert commit is not None
    assert len(commit) == 40
    (tmp_path / "file").write_text("")
    subprocess.run(["git", "add", "file"], cwd=tmp_path, check=True)
    assert git_commit(tmp_path) == f"{commit}+"


# One folder, one run, one process


def again(spec: Spec, place: Path) -> str:
    with pytest.raises(InputError) as caught:
        run(spec, place)
    return str(caught.value)


def test_a_run_is_never_overwritten(place: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="never overwritten: add --resume"):
        opened(place, resume=False)
    assert opened(tmp_path / "new", resume=False).path == tmp_path / "new"
    assert not (tmp_path / "new").exists()  # a mistake that is found later leaves nothing behind
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="never overwritten"):
        opened(tmp_path / "file", resume=False)


def test_a_folder_of_another_run_is_refused(place: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*") if path.is_file()}
    assert "another spec" in again(small(tmp_path, rounds=7), place)
    (place / "summary.json").rename(tmp_path / "summary.json")
    try:
        assert "a run of another spec" in again(small(tmp_path, rounds=7), place)
    finally:
        (tmp_path / "summary.json").rename(place / "summary.json")
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*") if path.is_file()} == before


def test_data_that_have_changed_are_refused(tmp_path: Path) -> None:
    """The data of a spec may lie outside of it."""
    changing = "import task, os\ndef data():\n    return task.data(seed=int(os.environ['SMALL_DATA']))\n"
    (tmp_path / "outside.py").write_text(changing)
    os.environ["SMALL_DATA"] = "0"
    try:
        spec = small(tmp_path, data="outside:data")
        run(spec, tmp_path / "run")
        (tmp_path / "run" / "summary.json").unlink()
        os.environ["SMALL_DATA"] = "1"
        assert "a run of another data" in again(spec, tmp_path / "run")
    finally:
        del os.environ["SMALL_DATA"]


def test_two_cannot_write_one_run(place: Path) -> None:
    with opened(place, resume=True).locked():
        assert "another process is writing" in again(load(str(place)), place)
    assert run(load(str(place)), place)["rounds"] == 6  # and the lock is given back


def test_runs_that_have_not_ended_are_told_apart(place: Path, tmp_path: Path) -> None:
    (tmp_path / "ended").symlink_to(place)
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "run.json").write_text("{}")
    ended, others = runs([tmp_path / "ended", tmp_path / "begun"])
    assert [one.path.name for one in ended] == ["ended"]
    assert [one.path.name for one in others] == ["begun"]
    with pytest.raises(InputError, match="has ended"):
        runs([tmp_path / "begun"])


def test_parts_that_no_device_has_are_refused(tmp_path: Path) -> None:
    table = TABLE | {"parts": ["validation"]}
    split = "import task\nfrom dittofl import Federation, Split\ndef data():\n    return Federation.of("
    (tmp_path / "none.py").write_text(f"{split}task.data(), split=Split(train=0.5, validation=0.0, test=0.5))\n")
    assert "no device has samples of parts" in again(small(tmp_path, **table | {"data": "none:data"}), tmp_path / "run")
    shorter = run(small(tmp_path, parts=["validation"]), tmp_path / "other")
    assert shorter["part"] == "validation"
