"""`dittofl data`, and `--data` of `dittofl run`."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from dittofl.cli import answer
from dittofl.datasets import fashion
from dittofl.datasets.fetch import content
from dittofl.datasets.places import Source
from dittofl.experiment.names import sections
from tests.datasets.garments import written
from tests.datasets.server import Server, ranged

Said = pytest.CaptureFixture[str]

SPEC = """
name = "garments"
rounds = 2
cohort = 2
model = { kind = "mlp", inputs = 784, outputs = 10, hidden = [] }
method = { batch = 8, local = { kind = "SGD", lr = 0.01 } }
[data]
kind = "fashion"
devices = 4
"""
PARTITIONED = """
kind = "partitioned"
of = "fashion_images"
by = { kind = "ByClass", classes = 2, devices = 5 }
"""


def source() -> Source:
    found = sys.modules["dittofl.datasets.fashion"].SOURCE
    assert isinstance(found, Source)
    return found


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fashion-MNIST lies nowhere but where a test says, and has no address."""
    monkeypatch.delenv("DITTOFL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    changed = replace(source(), packaged=None, addresses=())
    monkeypatch.setattr(sys.modules["dittofl.datasets.fashion"], "SOURCE", changed)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of data sets, one of which is there."""
    written(tmp_path / "sets" / "fashion")
    return tmp_path / "sets"


def refused(said: Said, *arguments: object) -> str:
    """The one sentence to a mistake."""
    assert answer([str(one) for one in arguments]) == 2
    sentence = said.readouterr().err
    assert sentence.count("\n") == 1
    return sentence


def accepted(said: Said, *arguments: object) -> str:
    assert answer([str(one) for one in arguments]) == 0
    return said.readouterr().out


def test_the_list_says_what_there_is_and_where(folder: Path, capsys: Said) -> None:
    lines = accepted(capsys, "data", "list").splitlines()
    assert set(sections()["datasets"]) <= set(lines)
    where = lines[lines.index("fashion") + 2]
    assert where.startswith("  not found: install Debian's package")
    lines = accepted(capsys, "data", "list", "--data", folder).splitlines()
    assert lines[lines.index("fashion") + 2] == f"  found in {folder / 'fashion'}"
    assert lines[lines.index("synthetic") + 2] == "  made from what it is given"
    assert lines[lines.index("digits") + 2].startswith("  found in ")


def test_the_list_says_what_can_be_downloaded(capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    known = replace(source(), addresses=("https://example.org",))
    monkeypatch.setattr(sys.modules["dittofl.datasets.fashion"], "SOURCE", known)
    assert "not found: dittofl data fetch fashion, or install" in accepted(capsys, "data", "list")


def test_info(folder: Path, capsys: Said) -> None:
    said = accepted(capsys, "data", "info", "fashion", "--data", folder, "--set", "devices=4")
    data = fashion(data=str(folder), devices=4)
    n = data.sizes("train")
    told = {line[:14].strip(): line[14:] for line in said.splitlines()[1:]}
    assert told["devices"] == "4, such as '0', '1', '2'"
    assert told["train"].startswith(f"{n.sum()} samples, {n.min()} to {n.max()} a device, median {np.median(n):g}, ")
    assert told["validation"] == "none"
    assert told["classes"] == "8, from 0 to 7; 5 a device"  # devices 0 to 3 hold classes 0 to 4 … 3 to 7
    assert (told["x"], told["y"]) == ("[1, 28, 28] of float32", "a number of int64")
    assert told["fingerprint"] == data.fingerprint
    assert told["files"] == f"in {folder / 'fashion'}"
    assert told["licence"] == "MIT"


def test_info_of_real_labels(capsys: Said) -> None:
    said = accepted(capsys, "data", "info", "point_estimation", "--set", "devices=3", "--set", "tau=0")
    assert "train       90 samples, 30 a device, median 30" in said
    assert "  y           a number a sample, mean " in said
    assert "files" not in said


@pytest.mark.parametrize("kind", ["file", "preset", "run"])
def test_the_data_of_a_spec(tmp_path: Path, folder: Path, capsys: Said, kind: str) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    name: object = {"file": "spec.toml", "preset": "digits-a1", "run": "runs/garments/seed-0"}[kind]
    where = [] if kind == "preset" else ["--data", folder]
    if kind == "run":
        assert answer(["run", "spec.toml", "--data", str(folder), "--quiet"]) == 0
        where = []  # it remembers
        capsys.readouterr()
    said = accepted(capsys, "data", "info", name, *where)
    assert said.startswith("digits-a1\n" if kind == "preset" else "garments\n")
    assert ("25, such as" if kind == "preset" else "4, such as") in said


def test_check_compares_files_and_federation(folder: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder / "fashion"
    contents = {file: content(place / file) for file in source().contents}
    default = fashion(data=str(folder)).fingerprint
    known = replace(source(), contents=contents, fingerprints={"fashion": default})
    monkeypatch.setattr(sys.modules["dittofl.datasets.fashion"], "SOURCE", known)
    said = accepted(capsys, "data", "check", "fashion", "--data", folder)
    assert said.count("as published") == 4
    assert "fingerprint as recorded" in said
    said = accepted(capsys, "data", "check", "fashion", "--data", folder, "--set", "devices=3")
    assert "fingerprint of these parameters is not recorded" in said
    wrong = replace(known, fingerprints={"fashion": "0" * 64})
    monkeypatch.setattr(sys.modules["dittofl.datasets.fashion"], "SOURCE", wrong)
    assert f"fingerprint is {default[:12]}…, recorded is 000000000000…" in refused(
        capsys, "data", "check", "fashion", "--data", folder
    )


def test_check_refuses_other_files_and_damaged_ones(folder: Path, capsys: Said) -> None:
    assert "published are 47,040,016 bytes" in refused(capsys, "data", "check", "fashion", "--data", folder)
    file = folder / "fashion" / "train-images-idx3-ubyte.gz"
    file.write_bytes(file.read_bytes()[:-30])
    assert "get it again" in refused(capsys, "data", "check", "fashion", "--data", folder)
    assert "fashion is not found: install" in refused(capsys, "data", "check", "fashion")


def test_check_of_what_is_made(capsys: Said) -> None:
    assert "fingerprint as recorded" in accepted(capsys, "data", "check", "digits")
    assert "is not recorded" in accepted(capsys, "data", "check", "synthetic", "--set", "devices=2")


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """One that has the files."""
    its = Server()
    for file in source().contents:
        its.answers[f"/{file}"] = ranged((folder / "fashion" / file).read_bytes())
    contents = {file: content(folder / "fashion" / file) for file in source().contents}
    known = replace(source(), addresses=(its.address,), contents=contents)
    monkeypatch.setattr(sys.modules["dittofl.datasets.fashion"], "SOURCE", known)
    yield its
    its.server.shutdown()
    its.server.server_close()


def test_fetch_into_the_cache_and_elsewhere(server: Server, tmp_path: Path, capsys: Said) -> None:
    cached = tmp_path / "home" / "dittofl" / "fashion"
    assert accepted(capsys, "data", "fetch", "fashion") == f"fashion: {cached}\n"
    assert accepted(capsys, "data", "fetch", "fashion") == f"fashion: {cached}\n"
    assert len(server.asked) == 4
    named = accepted(capsys, "data", "fetch", "fashion", "--data", tmp_path / "mine")
    assert named == f"fashion: {tmp_path / 'mine' / 'fashion'}\n"
    assert "4, such as" in accepted(capsys, "data", "info", "fashion", "--set", "devices=4")


def test_a_run_downloads_what_it_lacks(server: Server, tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    assert answer(["run", "spec.toml", "--quiet"]) == 0
    assert len(server.asked) == 4


def test_fetch_refuses_what_has_no_address(capsys: Said) -> None:
    assert "has no public address that stays: install" in refused(capsys, "data", "fetch", "fashion")
    assert "nothing to fetch" in refused(capsys, "data", "fetch", "synthetic")


@pytest.mark.parametrize("command", ["info", "check", "fetch", "plot"])
def test_wrong_names_are_told_the_nearest_right_one(command: str, capsys: Said) -> None:
    assert "did you mean 'fashion'?" in refused(capsys, "data", command, "fashoin")


def test_wrong_parameters(folder: Path, capsys: Said) -> None:
    for change, sentence in (("device=3", "did you mean 'devices'?"), ("devices=0", "fashion needs devices ≥ 1")):
        assert sentence in refused(capsys, "data", "info", "fashion", "--data", folder, "--set", change)
    assert "digits is not read from files" in refused(capsys, "data", "info", "digits", "--data", folder)
    assert "holds no train-images" in refused(capsys, "data", "info", "fashion", "--data", folder / "nothing")


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_plot(folder: Path, tmp_path: Path, capsys: Said, ending: str) -> None:
    path = tmp_path / f"picture.{ending}"
    for _ in range(2):  # one that is there is replaced
        assert accepted(capsys, "data", "plot", "fashion", "--data", folder, "--out", path) == f"{path}\n"
    if ending == "svg":
        assert "</svg>" in path.read_text()
    else:
        assert imread(path).shape[:2] == (840, 1280)


def test_plot_names_its_file_after_the_data_and_refuses_other_endings(tmp_path: Path, capsys: Said) -> None:
    assert accepted(capsys, "data", "plot", "digits") == "digits.svg\n"
    assert (tmp_path / "digits.svg").is_file()
    assert "ends in .svg or .png" in refused(capsys, "data", "plot", "digits", "--out", tmp_path / "digits.gif")
    assert "cannot be written" in refused(capsys, "data", "plot", "digits", "--out", tmp_path / "no" / "digits.png")


def identity(path: Path) -> str:
    return str(json.loads((path / "run.json").read_text())["identity"])


def test_where_data_lie_is_no_part_of_what_is_run(folder: Path, tmp_path: Path, capsys: Said) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    other = tmp_path / "other"
    other.mkdir()
    for file in (folder / "fashion").iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    for k, place in enumerate((folder, other)):
        assert answer(["run", "spec.toml", "--data", str(place), "--out", f"runs{k}", "--quiet"]) == 0
    ends = [tmp_path / f"runs{k}" / "garments" / "seed-0" for k in (0, 1)]
    assert identity(ends[0]) == identity(ends[1])
    assert (ends[0] / "metrics.csv").read_bytes() == (ends[1] / "metrics.csv").read_bytes()


def test_run_refuses_a_folder_for_what_is_not_read_from_files(folder: Path, capsys: Said) -> None:
    assert "digits is not read from files: leave --data out" in refused(capsys, "run", "digits", "--data", folder)


def test_what_data_are_made_of_is_found_too(folder: Path, tmp_path: Path, capsys: Said) -> None:
    (tmp_path / "spec.toml").write_text(SPEC.partition("[data]")[0] + "[data]\n" + PARTITIONED)
    said = accepted(capsys, "data", "info", "spec.toml", "--data", folder)
    assert f"in {folder / 'fashion'}" in said
    assert "classes     10, from 0 to 9; 2 a device" in said
    assert answer(["run", "spec.toml", "--data", str(folder), "--quiet"]) == 0
