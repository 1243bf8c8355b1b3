"""What is damaged, edited or gone is told in a sentence, and never read as if it were whole."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dittofl.errors import InputError
from dittofl.reproduce import tidy
from dittofl.reproduce.board import Board
from dittofl.reproduce.crew import Crew
from dittofl.reproduce.document import document
from dittofl.reproduce.ended import Ended
from dittofl.reproduce.making import How
from dittofl.reproduce.reproduction import asked as meant
from dittofl.reproduce.reproduction import make, written
from dittofl.reproduce.special import TABLE4
from tests.reproduce.conftest import asked, forget

WHAT = {"only": ("Vehicle,global,clean",)}


def lines(cut: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(b"".join(cut(path.read_bytes().splitlines(keepends=True))))


def changed(*keys: str, to: Any) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        its = whole = json.loads(path.read_text(encoding="utf-8"))
        for key in keys[:-1]:
            its = its[key]
        its[keys[-1]] = to
        path.write_text(json.dumps(whole), encoding="utf-8")

    return change


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("metrics.csv", Path.unlink),
        ("metrics.csv", lambda path: path.write_bytes(b"")),
        ("metrics.csv", lambda path: path.write_bytes(b"\xff" + path.read_bytes())),
        ("metrics.csv", lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])),
        ("metrics.csv", lines(lambda all_: all_[1:])),
        ("metrics.csv", lines(lambda all_: all_[: len(all_) // 2])),
        ("metrics.csv", lines(lambda all_: [*all_[:1], *all_[2:]])),
        ("metrics.csv", lines(lambda all_: [one.replace(b"global", b"local,") for one in all_])),
        ("summary.json", changed("models", to=3)),
        ("summary.json", changed("models", "global", "accuracy", "std", to={})),
        ("summary.json", changed("models", "global", "accuracy", "mean", to=0.123)),
        ("summary.json", changed("models", "global", to=[])),
        ("run.json", changed("identity", to=3)),
    ],
)
def test_a_damaged_run_is_refused(how: How, board: Board, file: str, damage: Callable[[Path], object]) -> None:
    what = asked("table7", **WHAT)
    make(what, how, board)
    path = next(how.out.rglob(file))
    damage(path)
    forget()
    with pytest.raises(InputError, match="remove that folder, and run it again"):
        written(what, how.out)


def test_a_validation_curve_without_its_end_is_refused(how: How, board: Board) -> None:
    make(asked("table5", only=("Vehicle,dynamic,clean",)), how, board)
    path = next(how.out.rglob("metrics.csv"))
    lines(lambda all_: [one for one in all_ if b",validation," not in one])(path)
    with pytest.raises(InputError, match="lacks evaluations of 'dynamic' on validation data"):
        Ended(path.parent).validation("dynamic")


def test_when_every_worker_dies_it_is_told(how: How, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    start = Crew._start

    def all_die(self: Crew) -> None:
        start(self)
        for worker in self.workers.values():
            worker.kill()
            worker.join()

    monkeypatch.setattr(Crew, "_start", all_die)
    made = make(asked("table7", only=("global",)), replace(how, jobs=2), board)
    assert made.stopped == "every process has died"
    assert set(made.failed.values()) == {"its process died"}


def test_damaged_provenance_is_refused(how: How, board: Board) -> None:
    what = asked("table7", **WHAT)
    make(what, how, board)
    written(what, how.out)
    path = how.out / "runs.csv"
    good = path.read_text(encoding="utf-8")
    for bad in ("", "a,b\n1,2\n", good[:-90], good.replace("run,", "ran,"), good.replace(".", "x")):
        path.write_text(bad, encoding="utf-8")
        with pytest.raises(InputError, match=r"runs.csv is no table of a reproduction"):
            written(what, how.out)


def figure7(how: How, board: Board, *seeds: int) -> None:
    what = asked("figure7", only=("Vehicle",), seeds=seeds)
    make(what, how, board)
    written(what, how.out)


def test_records_of_other_seeds_stay(how: How, board: Board) -> None:
    path = how.out / "figure7.csv"
    figure7(how, board, 1)
    one = path.read_text(encoding="utf-8").splitlines()
    figure7(how, board, 0)
    both = path.read_text(encoding="utf-8").splitlines()
    assert len(both) == 2 * len(one) - 1
    assert both[len(one) :] == one[1:]  # in the order of seeds


@pytest.mark.parametrize("bad", ["a,b\n1,2\n", "dataset,seed\nVehicle,x\n", "dataset\nVehicle,1\n"])
def test_damaged_records_are_refused(how: How, board: Board, bad: str) -> None:
    how.out.mkdir()
    (how.out / "figure7.csv").write_text(bad, encoding="utf-8")
    with pytest.raises(InputError, match=r"figure7.csv is no table of a reproduction"):
        figure7(how, board, 0)


def test_a_data_set_that_is_not_here_keeps_its_record(how: How) -> None:
    """Table 4 made where another data set was at hand."""
    how.out.mkdir()
    written(asked("table4"), how.out)
    path = how.out / "table4.csv"
    there = path.read_text(encoding="utf-8").replace("62-class classification,,,,,,not here", "62,205,1,1,1,f,", 1)
    path.write_text(there, encoding="utf-8")
    written(asked("table4"), how.out)
    assert path.read_text(encoding="utf-8") == there
    assert [line.partition(",")[0] for line in there.splitlines()[1:]] == list(TABLE4)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("explained = [3]", "is no file of explanations"),
        ('[[explained]]\ntables = "table7"', "tables must be a list of words, got 'table7'"),
        ("[[explained]]\nmethods = []", r"methods must be a list of words, got \[\]"),
        ("[[explained]]\nwhy = 3", "why must be a word, got 3"),
        ("explained = []\nunmet = [3]", "is no file of explanations"),
        ("explained = []\n[[unmet]]\nclaims = []", r"claims must be a list of words, got \[\]"),
    ],
)
def test_explanations_of_another_shape_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "explanations.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=complaint):
        document(tmp_path)


@pytest.mark.parametrize("name", ["figure2", "figure3", "figure7"])
def test_the_document_refuses_damaged_records(tmp_path: Path, name: str) -> None:
    (tmp_path / "explanations.toml").write_text("explained = []", encoding="utf-8")
    (tmp_path / f"{name}.csv").write_text("panel,dataset,seed\nclean,Vehicle,0\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"{name}.csv is no table of a reproduction"):
        document(tmp_path)


@pytest.mark.parametrize(
    ("names", "only", "sentence"),
    [
        (("table7",), ("global", "Ditho"), "got 'Ditho': the rows are global, local,"),
        (("table7",), ("A1 20",), "the columns are clean, A1 20%,"),
        (("table7",), ("",), "got ''"),
        (("table9",), ("Vehicle",), "the data sets are Fashion MNIST"),
        (("figure7",), ("global",), "got 'global': the data sets are Fashion MNIST, Vehicle"),
        (("table4", "figure2"), ("Vehicle",), "got 'Vehicle': leave it out"),
    ],
)
def test_a_word_that_names_nothing_is_refused(names: tuple[str, ...], only: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(InputError, match="--only names no cell") as told:
        meant(names, only=only)
    assert sentence in str(told.value)


def test_a_word_may_name_what_one_of_the_names_has() -> None:
    assert meant(("table7", "figure7"), only=("global,clean", " vehicle ")).runs()


def test_provenance_is_read_as_it_was_written(how: How, board: Board) -> None:
    what = asked("table7", **WHAT)
    make(what, how, board)
    written(what, how.out)
    (line,) = tidy.recorded(how.out / "runs.csv")
    assert line["name"] == "vehicle/FedAvg/clean/seed-0"
