"""`dittofl reproduce` at the command line."""

from pathlib import Path

import pytest

from dittofl.cli import answer


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
    ],
)
def test_a_mistake_is_told_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], sentence: str
) -> None:
    assert run(tmp_path, *arguments) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
