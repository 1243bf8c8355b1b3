"""docs/reproduction.md follows from results/, and every deviation in it is explained."""

import json
from math import nan
from pathlib import Path

import pytest
from click.testing import CliRunner

from dittofl.errors import InputError
from dittofl.reproduce import explained, tidy
from dittofl.reproduce.compared import compared
from dittofl.reproduce.document import document, main
from dittofl.reproduce.measured import measures
from dittofl.reproduce.observed import figures_say
from dittofl.reproduce.reproduction import asked
from dittofl.reproduce.tidy import Row, row

ROOT = Path(__file__).parents[2]


def test_the_document_follows_from_the_results() -> None:
    told = CliRunner().invoke(main, [str(ROOT / "results"), str(ROOT / "docs/reproduction.md"), "--check"])
    assert told.exit_code == 0, told.output


def test_no_file_of_results_names_a_machine() -> None:
    for path in (ROOT / "results").iterdir():
        assert "/tmp" not in path.read_text(encoding="utf-8"), path


def test_rows_from_the_benchmark_are_its_numbers() -> None:
    names = {"local": "local", "global": "global"} | {f"Ditto, lambda={lam}": f"lam={lam}" for lam in ("0.1", "1", "2")}
    there = json.loads((ROOT / "benchmarks/results/fashion_h200.json").read_text(encoding="utf-8"))
    known = {f"fashion_h200.json: {one['attack']}": one for one in there}
    for one in tidy.read(ROOT / "results/table9.csv"):
        if one.run.startswith("fashion_h200.json"):
            its = known[one.run]
            assert one.where.name == its["attack"]
            assert one.weighted_mean == pytest.approx(its["weighted_mean"][names[one.method]], abs=1e-6)
            assert one.std == pytest.approx(its["std"][names[one.method]], abs=1e-6)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Table 7 with two cells made: one as the paper's, one far from it."""
    rows = [row(cell, tmp_path) for cell in asked(["table7"]).cells()]
    made = {"local": 0.83, "global": 0.5}
    rows = [
        Row(**vars(one) | {"seed": 0, "weighted_mean": value, "mean": value, "std": 0.1, "run": "r"})
        if (value := made.get(one.method, nan)) == value and one.attack == "clean" and one.dataset == "Vehicle"
        else one
        for one in rows
    ]
    (tmp_path / "table7.csv").write_text(tidy.text(rows), encoding="utf-8")
    (tmp_path / "runs.csv").write_text(",".join(tidy.PROVENANCE) + "\n", encoding="utf-8")
    return tmp_path


ONE = """[[explained]]
tables = ["table7"]
dataset = "Vehicle"
methods = ["glob*"]
columns = ["clean"]
who = "chance"
why = "Because."
"""


def explain(folder: Path, text: str) -> None:
    (folder / "explanations.toml").write_text(text, encoding="utf-8")


def test_it_has_every_cell_and_every_explanation(folder: Path) -> None:
    explain(folder, ONE)
    text = document(folder)
    assert "| local | ours | 0.830 (.10) |" in text
    assert "| global | difference | **-0.366** |" in text
    assert "- **Chance**: Because. (global clean: 0.500 (.10), paper 0.866 (.16))" in text
    assert "Table 9 (Full results on Fashion MNIST): no run of Fashion MNIST;" in text
    assert "Table 2 (Other personalisation methods): no run of FEMNIST or CelebA;" in text
    assert "1 of 2 cells agree with the paper" in text


def test_it_is_the_same_text_every_time(folder: Path) -> None:
    explain(folder, ONE)
    assert document(folder) == document(folder)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("explained = []", "global at clean deviates and is not explained"),
        (ONE + ONE.replace("glob*", "local"), "local explains no deviation"),
        (ONE.replace("chance", "me"), "who must be one of ours, the paper, the data, chance, got 'me'"),
        (ONE.replace("why", "because"), "is no file of explanations"),
        ("[[explained", "is no file of explanations"),
    ],
)
def test_what_is_not_explained_or_explains_nothing_is_refused(folder: Path, text: str, complaint: str) -> None:
    explain(folder, text)
    with pytest.raises(InputError, match=complaint):
        document(folder)


def test_a_page_that_does_not_follow_is_told(folder: Path) -> None:
    explain(folder, ONE)
    page = folder / "page.md"
    runner = CliRunner()
    assert runner.invoke(main, [str(folder), str(page)]).exit_code == 0
    assert runner.invoke(main, [str(folder), str(page), "--check"]).exit_code == 0
    page.write_text(page.read_text(encoding="utf-8").replace("0.830", "0.840"), encoding="utf-8")
    told = runner.invoke(main, [str(folder), str(page), "--check"])
    assert told.exit_code == 1
    assert "does not follow" in told.output
    told = runner.invoke(main, [str(folder), str(folder / "nowhere" / "page.md")])
    assert told.output.startswith("Error: ")
    assert "cannot be written" in told.output


def test_measures_count_what_is_made(folder: Path) -> None:
    table = measures(compared(tidy.read(folder / "table7.csv")))
    lines = {(line[0], line[1]): line[2:] for line in table.rows}
    own = lines["Vehicle", "local and Ditto, clean, A1, A2: accuracy within .0155"]
    assert own[0] == "1 of 1 made, of 28 in the paper"
    assert lines["Fashion MNIST", "claims decided"][2] == "not met"


def test_deviations_are_those_beyond_noise(folder: Path) -> None:
    cells = compared(tidy.read(folder / "table7.csv"))
    assert [(cell.method, cell.where.name) for cell in explained.deviating(cells)] == [("global", "clean")]


def line(model: str, accuracy: float, best: int = 0) -> dict[str, str]:
    return {
        "dataset": "Vehicle", "seed": "0", "model": model, "accuracy": str(accuracy), "chosen_with_hindsight": str(best)
    }  # fmt: skip


@pytest.mark.parametrize(("joint", "verdict"), [(0.9, "second holds"), (0.7, "second does not hold")])
def test_joint_against_fine_tuning(joint: float, verdict: str) -> None:
    its = [line("global", 0.5), line("joint", joint), line("epochs=1", 0.6), line("epochs=5", 0.8, 1)]
    assert verdict in next(figures_say({"figure7": its}))


def test_the_measure_of_defences_is_their_range_alone() -> None:
    """A number that is close to ours, but outside the range, agrees; it is not in the range."""
    known = {"table": "table7", "dataset": "Vehicle", "method": "global", "attack": "clean", "ratio": 0.0}
    its = Row(**known, seed=0, weighted_mean=0.866, std=0.16, paper_mean=0.851, last10_min=0.866, last10_max=0.87)
    (cell,) = compared([its])
    assert cell.agrees
    lines = {(line[0], line[1][:6]): line[2] for line in measures([cell]).rows}
    assert lines["Vehicle", "global"] == "0 of 1"


def test_what_all_records_say_alike_is_said_once(folder: Path) -> None:
    explain(folder, ONE)
    lines = "dataset,seed,rounds,t,accuracy\nVehicle,0,600,6,0.5\nVehicle,0,600,12,0.6\n"
    (folder / "figure8.csv").write_text(lines, encoding="utf-8")
    text = document(folder)
    assert "| t | accuracy |\n| --- | --- |\n| 6 | 0.5 |\n| 12 | 0.6 |" in text
    assert "Of all lines: dataset Vehicle, seed 0, rounds 600." in text


def test_the_panels_of_figure_3_are_told_apart() -> None:
    known = {"tau": "0.2", "lam": "1", "error": "0.1"}
    its = [known | {"panel": panel, "is_lam_star": str(star)} for panel in ("clean", "as published") for star in (0, 1)]
    clean, published = next(figures_say({"figure3": its})).splitlines()
    assert clean.endswith("at 1 of 1 τ.")
    assert "malicious devices are no farther from θ than benign ones" in published
