"""What the commands do where nothing is wrong."""

import csv
import io
import json
import os
import re
import shutil
import signal
import tomllib
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from safetensors import safe_open
from torch import nn

from dittofl.cli import answer
from dittofl.cli.commands import commands
from dittofl.cli.listing import PLACES
from dittofl.experiment import files as experiment_files
from dittofl.experiment.keys import Experiment
from dittofl.experiment.names import known, sections
from dittofl.experiment.progress import Lines
from dittofl.experiment.spec import load, presets
from tests.cli.conftest import Ask

MODELS = ("global", "local", "lam=0.1", "lam=1", "lam=2", "ditto")


# run


def test_a_spec_is_run_into_a_folder_of_its_own(ask: Ask, tmp_path: Path) -> None:
    answered = ask("run", "spec.toml")
    assert answered.code == 0
    assert all(f"small      {model}" in answered.out for model in MODELS)
    assert "runs/small/seed-0: 6 rounds in " in answered.err
    assert "\x1b" not in answered.out + answered.err  # no terminal: plain lines
    assert json.loads((tmp_path / "runs/small/seed-0/summary.json").read_text())["rounds"] == 6


def test_quiet_says_the_table_alone(ask: Ask) -> None:
    answered = ask("run", "spec.toml", "--quiet")
    assert answered.err == ""
    assert answered.out.startswith("accuracy on test data")


def test_options_are_keys_of_the_spec(ask: Ask, tmp_path: Path) -> None:
    given = {"rounds": 4, "seeds": 3, "engine": "loop", "precision": "float64", "eval-every": 3, "out": "here"}
    words = [word for key, value in given.items() for word in (f"--{key}", value)]
    assert ask("run", "spec.toml", *words, "--deterministic", "--quiet", "--set", "method.batch=8").code == 0
    spec = load(str(tmp_path / "here/small/seed-3"))
    its = spec.experiment
    assert (its.rounds, its.seed, its.engine) == (4, 3, {"kind": "Loop"})
    assert (its.precision, its.deterministic, its.eval_every, its.device) == ("float64", True, 3, "cpu")
    assert its.method["batch"] == 8
    assert not torch.are_deterministic_algorithms_enabled()  # put back


def test_several_specs_and_seeds_make_a_folder_each_and_a_page_over_all(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text('base = "spec.toml"\nname = "other"\nrounds = 2\n')
    answered = ask("run", "spec.toml", "other.toml", "--seeds", "1:3", "--quiet", "--report", "pages/all.html")
    assert answered.code == 0
    found = sorted(path.parent.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("summary.json"))
    assert found == [f"runs/{name}/seed-{seed}" for name in ("other", "small") for seed in (1, 2)]
    assert "A page over 4 runs: pages/all.html" in answered.out
    assert "<html" in (tmp_path / "pages/all.html").read_text()


def test_a_dry_run_trains_nothing_and_says_what_is_needed(ask: Ask, tmp_path: Path) -> None:
    answered = ask("run", "spec.toml", "--dry-run", "--set", "method.aggregate=task:middle")
    assert answered.code == 0
    first, *needs = answered.out.splitlines()[:4]
    assert first.startswith("# identity ")
    assert [line.split()[1] for line in needs] == ["memory", "disk", "time"]
    assert not (tmp_path / "runs").exists()
    (tmp_path / "again.toml").write_text(answered.out)
    assert load("again.toml").identity == first.split()[2]
    assert ask("run", "again.toml", "--dry-run").out.splitlines()[0] == first


def test_a_dry_run_refuses_what_cannot_fit(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dittofl.experiment.cost._free", lambda device: 2**20)
    answered = ask("run", "spec.toml", "--dry-run")
    assert answered.code == 2
    assert "MiB of memory on cpu and 1.0 MiB are free" in answered.err
    assert "[method.local]" in answered.out  # the spec is told all the same
    assert ask("run", "spec.toml").code == 2


def test_a_signal_saves_and_says_how_to_go_on(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = Lines.round

    def interrupted(self: Lines, t: int) -> None:
        said(self, t)
        if t == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Lines, "round", interrupted)
        answered = ask("run", "spec.toml", "--out", "my runs")
        assert answered.code == 130
        place = "my runs/small/seed-0"
        last = answered.err.splitlines()[-1]
        how = f"stopped after round 3 of 6, saved in {place}: go on with `dittofl run '{place}' --resume`"
        assert last == f"dittofl: {how}"
        several = ask("run", "spec.toml", "--seeds", "1:3").err
        assert "go on with the same command and --resume" in several
    assert ask("run", place, "--resume", "--quiet").code == 0
    assert ask("run", "spec.toml", "--seeds", "1:3", "--resume", "--quiet").code == 0
    assert len(list(tmp_path.rglob("summary.json"))) == 3


def test_resume_in_a_project_makes_a_run_of_its_own(ask: Ask, tmp_path: Path) -> None:
    """A folder with a spec is not yet the folder of a run."""
    assert ask("run", ".", "--resume", "--quiet").code == 0
    assert not (tmp_path / "summary.json").exists()
    assert (tmp_path / "runs/small/seed-0/summary.json").exists()


def test_a_full_disk_is_one_sentence(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(experiment_files.os, "fsync", full)
    answered = ask("run", "spec.toml", "--quiet")
    assert answered.code == 1
    assert re.fullmatch(r"dittofl: the disk of .* is full: free some space and go on with --resume.*\n", answered.err)


def test_a_run_without_checkpoints_keeps_no_models(ask: Ask) -> None:
    assert ask("run", "spec.toml", "--checkpoint-every", 0, "--quiet").code == 0
    answered = ask("predict", "runs/small/seed-0", "--device-id", "site 1")
    assert "ended with --checkpoint-every 0" in answered.err


# list, new, help


def test_all_that_a_spec_may_name_is_listed(ask: Ask) -> None:
    out = ask("list").out
    assert set(PLACES) == {*sections(), "presets"}  # each says where in a spec its names go
    for name in (*sections(), *known(), *presets()):
        assert re.search(rf"^ *{re.escape(name)} ", out, flags=re.MULTILINE), name


@pytest.mark.parametrize("name", sorted(known()))
def test_every_name_has_its_details(ask: Ask, name: str) -> None:
    answered = ask("list", name)
    assert answered.code == 0
    assert answered.out.startswith(f"{name}  ")
    assert f'In a spec: {{ kind = "{name}"' in answered.out or f"In Python: {name}(" in answered.out
    assert "no parameters" in answered.out or "," in answered.out or " = " in answered.out


def test_words_of_the_field_are_sections(ask: Ask) -> None:
    assert "Ditto " in ask("list", "methods").out
    assert "Krum " in ask("list", "defences").out
    assert "digits " in ask("list", "data").out
    assert "SignFlip " in ask("list", "updates").out
    assert "base" in ask("list", "digits-a1").out


def test_a_new_folder_runs(ask: Ask, tmp_path: Path) -> None:
    answered = ask("new", "mine")
    assert answered.code == 0
    (command,) = re.findall(r"Next: dittofl (.*)", answered.out)
    assert ask(*command.split(), "--rounds", 3, "--quiet").code == 0
    assert (tmp_path / "mine/runs/my-task/seed-0/summary.json").is_file()
    assert tomllib.loads((tmp_path / "mine/spec.toml").read_text())["name"] == "my-task"


def test_help_needs_no_manual(ask: Ask) -> None:
    for words in ([], ["--help"], ["-h"]):
        assert all(f"  {command.name} " in ask(*words).out for command in commands)
    for command in commands:
        its = ask(command.name, "--help")
        assert its.code == 0
        for parameter in command.params:
            assert all(name in its.out for name in parameter.opts if name.startswith("-"))


# report, compare


def test_a_report_and_its_figures(ask: Ask, finished: Path, tmp_path: Path) -> None:
    answered = ask("report", finished, "--out", "page.html", "--figures", "figures")
    assert answered.code == 0
    assert "Mean over 2 seeds" in answered.out
    assert (tmp_path / "page.html").stat().st_size > 10_000
    drawn = {path.suffix for path in (tmp_path / "figures").iterdir()}
    assert drawn == {".svg", ".png"}
    assert f"{len(list((tmp_path / 'figures').iterdir()))} figures: figures" in answered.out


def test_runs_that_have_not_ended_are_named(ask: Ask, finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "some")
    (tmp_path / "some/seed-1/summary.json").unlink()
    answered = ask("report", "some")
    assert answered.code == 0
    assert "some/seed-1 has not ended and is left out: go on with" in answered.err
    assert "A page over 1 run: some/report.html" in answered.out


def test_paired_differences_by_device(ask: Ask, finished: Path) -> None:
    answered = ask("compare", finished / "seed-0", "--metric", "loss", "--against", "local")
    assert answered.code == 0
    (row,) = [line.split() for line in answered.out.splitlines() if re.match("small +ditto ", line)]
    with (finished / "seed-0/devices.csv").open(newline="") as file:
        rows = [its for its in csv.DictReader(file) if its["malicious"] == "0"]
    gaps = [float(its["ditto.loss"]) - float(its["local.loss"]) for its in rows]
    assert float(row[2]) == pytest.approx(np.mean(gaps), abs=6e-4)
    assert row[3] == "±"
    assert f"{len(rows)} devices" in answered.out


# export, predict


def module(path: Path) -> nn.Module:
    """The user's class with exported weights, by hand."""
    net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2))
    with safe_open(path, framework="pt") as tensors:
        its = {key.removeprefix("layers."): tensors.get_tensor(key) for key in tensors.keys()}  # noqa: SIM118
    net.load_state_dict(its)
    return net


def outputs(text: str) -> tuple[list[int], torch.Tensor]:
    rows = list(csv.DictReader(io.StringIO(text)))
    numbers = [[float(row[f"output_{j}"]) for j in (0, 1)] for row in rows]
    return [int(row["class"]) for row in rows], torch.tensor(numbers)


def test_a_personal_model_leaves_the_run_and_predicts_the_same(ask: Ask, finished: Path, tmp_path: Path) -> None:
    """By safetensors, by ONNX, and by `predict`; its accuracy is the run's."""
    run, site = finished / "seed-0", ["--device-id", "site 5"]
    assert (
        "ditto of site 5 after 6 rounds: out/v.safetensors"
        in ask("export", run, *site, "--out", "out/v.safetensors").out
    )
    assert ask("export", run, *site, "--out", "v.onnx").code == 0
    federation = load(str(run)).names.built({"kind": "task:data"}, "data", seed=0)
    x = np.asarray(federation["site 5"][0])
    np.save(tmp_path / "x.npy", x)
    np.savetxt(tmp_path / "x.csv", x, delimiter=",", header="a,b", comments="")
    classes, by_npy = outputs(ask("predict", run, "x.npy", *site).out)
    assert outputs(ask("predict", run, "x.csv", *site).out)[0] == classes
    expected = module(tmp_path / "out/v.safetensors")(torch.from_numpy(x)).detach()
    torch.testing.assert_close(by_npy, expected)
    assert classes == expected.argmax(1).tolist()
    session = ReferenceEvaluator(str(tmp_path / "v.onnx"))
    (name,) = session.input_names
    torch.testing.assert_close(torch.from_numpy(session.run(None, {name: x})[0]), expected)
    assert session.run(None, {name: x[:1]})[0].shape == (1, 2)


def test_the_test_part_is_predicted_as_well_as_the_run_says(ask: Ask, finished: Path, tmp_path: Path) -> None:
    run = finished / "seed-0"
    with (run / "devices.csv").open(newline="") as file:
        (row,) = [its for its in csv.DictReader(file) if its["device"] == "site 4"]
    for model in MODELS:
        assert ask("predict", run, "--device-id", "site 4", "--model", model, "--out", "y.csv").code == 0
        classes, _ = outputs((tmp_path / "y.csv").read_text())
        assert len(classes) == int(row["test"])
        assert set(classes) <= {0, 1}
    models = ("ditto", row["ditto.choice"], "global")
    ours, chosen, globe = (ask("predict", run, "--device-id", "site 4", "--model", model).out for model in models)
    assert ours == chosen != globe


def test_the_global_model_needs_no_device(ask: Ask, finished: Path, tmp_path: Path) -> None:
    run = finished / "seed-1"
    answered = ask("export", run, "--model", "global", "--out", "w.safetensors")
    assert answered.out == "global after 6 rounds: w.safetensors\n"
    assert (tmp_path / "w.safetensors").is_file()


# Exit codes


def test_what_is_the_machines_fault_is_1_and_what_the_user_stops_130(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, code, said in (
        (MemoryError(), 1, "the memory is full"),
        (RuntimeError("CUDA out of memory. Tried to allocate 20 GiB"), 1, "the memory is full"),
        (PermissionError(13, "Permission denied"), 1, "Permission denied"),
        (KeyboardInterrupt(), 130, "stopped at once"),
    ):

        def fail(*given: object, error: BaseException = error, **more: object) -> None:
            raise error

        monkeypatch.setattr("dittofl.cli.listing.show", fail)
        answered = ask("list")
        assert answered.code == code
        assert said in answered.err.strip()
        assert "\n" not in answered.err.strip()


def test_what_is_our_fault_is_not_hidden(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(what: str | None) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("dittofl.cli.listing.show", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        answer(["list"])


# What the documents say


def test_the_readmes_spec_runs(ask: Ask, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    block = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)[0]
    assert ask("new", "mine").code == 0
    (tmp_path / "mine/spec.toml").write_text(block)
    answered = ask("run", "mine/spec.toml", "--rounds", 2, "--quiet")
    assert answered.code == 0, answered.err
    assert "ditto" in answered.out


def test_the_documented_keys_files_and_columns_are_those_there_are(finished: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "runs.md").read_text()
    told = set(re.findall(r"`([\w.]+?)(?:\.NAME)?`", text))
    assert {field.name for field in fields(Experiment)} <= told
    there = {path.name for path in (finished / "seed-0").iterdir() if not path.name.startswith(".")}
    assert {name + "/" * (name in ("code", "checkpoint")) for name in there} <= set(re.findall(r"`([\w./]+)`", text))
    summary = json.loads((finished / "seed-0" / "summary.json").read_text())
    assert {*summary, *summary["models"]["global"]["accuracy"]} - {"models"} <= told
