"""A table made in one go, by several processes, and after an interruption, is the same table."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from dittofl.errors import InputError, StoppedError
from dittofl.reproduce import plan, tidy
from dittofl.reproduce.board import Board, Follower
from dittofl.reproduce.column import column
from dittofl.reproduce.crew import Crew
from dittofl.reproduce.draws import Replayed, malicious
from dittofl.reproduce.ended import ended
from dittofl.reproduce.making import How, advice, one
from dittofl.reproduce.reproduction import make, written
from dittofl.reproduce.trajectory import Machine, of
from tests.reproduce.conftest import asked, forget


def table(out: Path, name: str = "table7") -> str:
    return (out / f"{name}.csv").read_text(encoding="utf-8")


def test_cells_of_one_global_trajectory_share_a_run(how: How) -> None:
    wanted = plan.cells(asked("table7").tables[0], [0], 0.01, ("Vehicle,A1 50%",))
    runs = Counter(cell.run(one, held=False).name for cell in wanted for one in cell.line.among)
    fedavg = "vehicle/FedAvg/A1-50/seed-0"
    assert runs[fedavg] == 5  # global, local and three λ
    assert sum(run.name == fedavg for run in plan.todo(wanted, how.out)) == 1


def test_a_run_is_told_to_another_process_by_its_key(how: How) -> None:
    wanted = asked("table7", "table5", only=("Vehicle",)).cells()
    runs = [cell.run(one, held=held) for cell in wanted for one in cell.line.among for held in (False, True)]
    assert [of(run.key).name for run in runs] == [run.name for run in runs]
    assert all(of(run.key).spec(Machine()).identity == run.spec(Machine()).identity for run in runs[:3])


def test_killed_and_resumed_it_gives_the_same_table(how: How, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    what = asked("table7", only=("global,clean", "global,A3 20%"))
    assert not make(what, how, board).failed
    written(what, how.out)
    again = replace(how, out=how.out.with_name("again"), every=1e-9)
    said = Follower.round

    def stopped(self: Follower, t: int) -> None:
        if t == 4:
            raise StoppedError("as if killed")
        said(self, t)

    monkeypatch.setattr(Follower, "round", stopped)
    forget()
    with pytest.raises(StoppedError):
        make(what, again, board)
    monkeypatch.undo()
    monkeypatch.setenv("DITTOFL_DATA", str(how.out.parent.parent / "data"))
    assert not list(again.out.rglob("summary.json"))
    assert "add --resume" in next(iter(make(what, again, board).failed.values()))
    assert not make(what, replace(again, resume=True), board).failed
    written(what, again.out)
    assert table(again.out) == table(how.out)
    assert not list(again.out.rglob("checkpoint"))


def test_workers_make_the_same_table(how: How, board: Board) -> None:
    what = asked("table7", "table5", only=("Vehicle,global,clean", "Vehicle,dynamic,clean", "Vehicle,best,clean"))
    assert not make(what, how, board).failed
    written(what, how.out)
    crew = replace(how, out=how.out.with_name("crew"), jobs=2)
    forget()
    made = make(what, crew, board)
    assert not made.failed
    assert len(made.seconds) == len(list(crew.out.rglob("summary.json")))
    written(what, crew.out)
    for name in ("table7", "table5"):
        assert table(crew.out, name) == table(how.out, name)


def test_a_worker_that_dies_is_told_of_and_the_others_go_on(
    how: How, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Crew._start

    def one_dies(self: Crew) -> None:
        start(self)
        first = next(iter(self.workers.values()))
        first.kill()
        first.join()

    monkeypatch.setattr(Crew, "_start", one_dies)
    made = make(asked("table7", only=("global,clean", "global,A1 50%")), replace(how, jobs=2), board)
    assert list(made.failed.values()) == ["its process died"]
    assert made.seconds


def test_when_time_is_up_what_is_made_is_kept(how: How, board: Board) -> None:
    made = make(asked("table7"), replace(how, minutes=1e-9), board)
    assert made.stopped == "the 1e-09 minutes are over"
    assert not made.failed


def test_a_run_that_would_not_come_to_its_end_is_not_begun_and_that_is_told(
    how: How, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dittofl.reproduce.crew.MOST", 1e9)
    made = make(asked("table7", only=("global,clean",)), replace(how, minutes=10.0), board)
    assert (len(made.seconds), made.stopped) == (1, "the 10 minutes are over")
    made = make(asked("table7", only=("Vehicle,global,clean",)), replace(how, minutes=10.0), board)
    assert made.stopped is None  # as nothing is missing


def test_a_run_that_saved_nothing_begins_anew(how: How, board: Board) -> None:
    """On a GPU no checkpoints are kept; the same command again must make what time cut off."""
    what = asked("table7", only=("Vehicle,global,clean",))
    make(what, how, board)
    written(what, how.out)
    whole = table(how.out)
    next(how.out.rglob("summary.json")).unlink()
    next(how.out.rglob("devices.csv")).unlink()
    forget()
    assert not make(what, how, board).failed
    written(what, how.out)
    assert table(how.out) == whole


def test_what_validation_data_choose_is_recorded(how: How, board: Board) -> None:
    what = asked("table5", only=("Vehicle,best,clean",))
    make(what, how, board)
    written(what, how.out)
    cell = next(cell for cell in what.cells() if cell.section.bench.word == "vehicle")
    scores = {one.name: ended(run.path(how.out)).validation(one.model) for one, run in cell.trials()}
    row = next(row for row in tidy.read(how.out / "table5.csv") if row.made)
    assert scores[row.selected] == max(scores.values())
    own = ended(cell.run(cell.chosen(how.out), held=False).path(how.out))  # type: ignore[arg-type]
    assert row.weighted_mean == pytest.approx(own.score(row.selected).weighted_mean, rel=1e-5)
    assert row.last10_min <= row.weighted_mean <= row.last10_max


def test_the_defences_expect_the_malicious_devices_of_a_cohort() -> None:
    """f = ⌊10 K_a/K⌋; at 10 % of Vehicle K_a is 3, without which f were 0."""
    bench = asked("table7").tables[0].sections[0].bench
    found = {name: bench.expected(column(name)) for name in ("clean", "A1 20%", "A1 50%", "A1 80%", "A3 10%")}
    assert found == {"clean": 0, "A1 20%": 1, "A1 50%": 4, "A1 80%": 7, "A3 10%": 1}


def test_malicious_devices_and_cohorts_are_the_authors(how: How) -> None:
    """Two, three, five and eleven of Vehicle's devices, a smaller set part of a larger one; a cohort for a round."""
    sets = [set(malicious(23, n)) for n in (2, 3, 5, 11)]
    assert sets == [{1, 4}, {1, 4, 15}, {1, 4, 8, 9, 15}, {1, 4, 7, 8, 9, 12, 15, 16, 18, 21, 22}]
    sizes, rule = np.arange(1, 24), Replayed()
    legacy = np.random.RandomState(7 + 4).choice(23, 10, replace=False, p=sizes / sizes.sum())
    assert rule(7, 10, sizes, seed=0).tolist() == legacy.tolist()
    assert rule(7, 10, sizes, seed=1).tolist() != legacy.tolist()
    run = next(cell for cell in asked("table7").cells() if cell.where.name == "A1 50%")
    spec = run.run(run.line.among[0], held=False).spec(Machine())
    assert set(spec.table["attack"]["devices"]) == sets[3]
    assert spec.files() == {}  # the rule is the package's, not a file of the user's


def test_a_folder_of_other_runs_is_refused(how: How, board: Board) -> None:
    make(asked("table7", only=("global,clean",)), how, board)
    forget()
    with pytest.raises(InputError, match="differs in eval_at, rounds"):
        make(asked("table7", only=("global,clean",), scale=0.02), how, board)


def test_what_is_missing_is_told_in_a_sentence() -> None:
    told = list(plan.lacks(asked("table8").cells()))
    assert any("FEMNIST is not here" in sentence for sentence in told)
    assert list(plan.runnable(asked("table8").cells())) == []


def test_the_time_left_is_by_rounds_and_not_by_what_comes_before(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, said = [0.0], list[str]()
    monkeypatch.setattr("dittofl.reproduce.board.time.monotonic", lambda: clock[0])
    board = Board(Console(force_terminal=False), said.append)
    board.plan(1, 100)
    clock[0] = 1000.0  # data are read
    board.begin("run", 0)
    clock[0] += 10.0
    board.round("run", 50, "")
    assert said == ["0 of 1 runs, 5.0 rounds/s, 10 s left  run "]


def test_a_run_without_rounds_is_shown_too(how: How, board: Board) -> None:
    (cell,) = asked("table7", only=("Vehicle,MOCHA,clean",)).cells()
    run = cell.trials()[-1][1]
    one(run, how, Follower(run.name, lambda kind, name, t, text: board.begin(name, t)))
    assert (board.text, board.at) == (run.name, {run.name: (0, 0)})


def test_several_runs_on_one_gpu_are_told_of_mps(how: How, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path / "nvidia-mps"))
    gpu = replace(how, machine=Machine(device="cuda:0"), jobs=2)
    assert "nvidia-cuda-mps-control -d" in (advice(gpu) or "")
    assert advice(replace(gpu, jobs=1)) is advice(replace(how, jobs=2)) is None
    (tmp_path / "nvidia-mps").mkdir()
    assert advice(gpu) is None
