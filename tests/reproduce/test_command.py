"""`dittofl reproduce` at the command line."""

from dataclasses import replace
from pathlib import Path

import pytest

from dittofl.cli import answer
from dittofl.reproduce import tidy
from dittofl.reproduce.reproduction import asked
from dittofl.reproduce.tidy import row


def run(out: Path, *arguments: str) -> int:
    return answer(["reproduce", *arguments, "--out", str(out), "--quiet"])


def test_it_writes_every_form_and_says_how_many_cells_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "table7", "--only", "Vehicle,global,clean", "--scale", "0.01") == 0
    folder = tmp_path / "scale-0.01"
    assert {path.name for path in folder.glob("table7.*")} == {f"table7.{end}" for end in ("csv", "md", "tex", "html")}
    assert "of 5 cells agree with the paper; 185 are not decidable here." in capsys.readouterr().out
    page = (folder / "table7.html").read_text(encoding="utf-8")
    assert "MOCHA is robust and fair" in page
    assert page.count("<table>") == page.count("</table>") == 3


def test_as_is_runs_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "table7", "--as-is") == 0
    assert not (tmp_path / "runs").exists()
    assert (tmp_path / "table7.csv").is_file()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("table77",), "did you mean 'table7'?"),
        (("table7", "--only", "Ditho"), "--only names no cell, got 'Ditho': the rows are global, local,"),
        (("table7", "--scale", "2"), "--scale must be above 0 and at most 1, got 2"),
        (("table7", "--jobs", "0"), "--jobs must be 1 or more, got 0"),
        (("table7", "--minutes", "-1"), "--minutes must be above 0, got -1"),
        (("table7", "--seeds", "3:1"), "--seeds must be A:B with A < B"),
        (("table7", "--seeds", "0:1000000000000000000000"), "10,000 at most, got '0:1000000000000000000000'"),
        (("table7", "--seeds", "4294967296"), "below 2³²"),
        (("table7", "--checkpoint-every", "nan"), "--checkpoint-every must be 0 or more seconds, got nan"),
        (("table7", "--device", "abacus"), "device 'abacus' cannot be used here"),
        (("table7", "--as-is", "--scale", "0.5"), "--as-is writes what the runs in --out say, and there is no folder"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    assert run(tmp_path, *arguments) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_a_folder_that_cannot_be_made_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file" / "out", "table7", "--scale", "0.01") == 2
    assert "choose another --out" in capsys.readouterr().err


def test_what_needs_no_run_is_written_into_a_new_folder(tmp_path: Path) -> None:
    assert run(tmp_path / "a" / "b", "figure3") == 0
    assert (tmp_path / "a" / "b" / "figure3.csv").is_file()


def test_a_run_that_fails_is_told_in_the_exit_code_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "scale-0.01" / "runs" / "vehicle" / "FedAvg" / "clean" / "seed-0"
    folder.mkdir(parents=True)
    (folder / "of-somebody").write_text("")
    assert run(tmp_path, "table7", "--only", "Vehicle,global,clean", "--scale", "0.01") == 2
    said = capsys.readouterr()
    assert "vehicle/FedAvg/clean/seed-0 failed:" in said.err
    assert "1 run failed" in said.err
    assert "Table 7: " in said.out


def test_claims_of_a_page_rest_on_every_table_of_the_folder(tmp_path: Path) -> None:
    """Table 5 alone lacks the baselines that Table 7 beside it has."""
    for name in ("table7", "table5"):
        rows = [row(cell, tmp_path) for cell in asked([name], only=("Vehicle",)).cells()]
        made = [replace(one, seed=0, weighted_mean=0.9 if "lambda" in one.method else 0.5, std=0.1) for one in rows]
        (tmp_path / f"{name}.csv").write_text(tidy.text(made), encoding="utf-8")
    assert run(tmp_path, "table5", "--as-is") == 0
    page = (tmp_path / "table5.html").read_text(encoding="utf-8")
    assert "holds: most accurate in 9 of 9 columns" in page


def test_data_that_a_figures_run_lacks_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DITTOFL_DATA", str(tmp_path / "nowhere"))
    assert run(tmp_path, "figure7", "figure8", "--only", "Vehicle") == 0
    said = capsys.readouterr()
    assert said.err.count("Vehicle is not here: ") == 1
    assert "Figure 7: 0 records" in said.out
