"""Cells as files: what is written is read again, and what was made elsewhere stays."""

from math import nan
from pathlib import Path

import pytest

from dittofl.errors import InputError
from dittofl.reproduce import tidy
from dittofl.reproduce.compared import Compared, compared, tally
from dittofl.reproduce.render import grids, latex
from dittofl.reproduce.tables import TABLES
from dittofl.reproduce.tidy import Row


def row(value: float = nan, seed: int | None = None, method: str = "global", **other: object) -> Row:
    known: dict[str, object] = {"table": "table7", "dataset": "Vehicle", "method": method, "attack": "A1", "ratio": 0.2}
    known |= {"paper_mean": 0.847, "paper_std": 0.08}
    ours = {} if seed is None else {"mean": value, "std": 0.1, "last10_min": value, "last10_max": value, "run": "r"}
    return Row(**known | {"weighted_mean": value, "seed": seed} | ours | other)  # type: ignore[arg-type]


def cell(*rows: Row) -> Compared:
    return compared(rows)[0]


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    krum = row(0.5, 3, "Krum", selected="lam=1", remark='one, "two"; λ', paper_mean=0.853, paper_std=0.19)
    rows = [row(0.75, 0), row(method="local", paper_mean=0.835), krum]
    (tmp_path / "t.csv").write_text(tidy.text(rows), encoding="utf-8")
    assert tidy.text(tidy.read(tmp_path / "t.csv")) == tidy.text(rows)


def test_new_rows_replace_their_own_seed_alone() -> None:
    found = tidy.merged([row(0.7, 0), row(0.6, 1), row(method="local")], [row(0.75, 0), row(0.9, 0, "local")])
    assert [(one.method, one.seed, one.weighted_mean) for one in found] == [
        ("global", 0, 0.75), ("global", 1, 0.6), ("local", 0, 0.9),
    ]  # fmt: skip


def test_the_papers_number_stands_alone_where_nothing_was_made() -> None:
    assert [one.seed for one in tidy.merged([], [row()])] == [None]
    assert [one.seed for one in tidy.merged([row(0.7, 0)], [row()])] == [0]


@pytest.mark.parametrize(
    ("values", "agrees"),
    [
        ((0.8154,), True),  # as close as .0155
        ((0.817,), False),
        ((0.85, 0.79), True),  # within the range, though the mean is .02 above
        ((0.85, 0.809), True),  # within the range widened by .01
        ((0.85, 0.82), False),
    ],
)
def test_noise_is_closeness_or_the_range_of_the_last_evaluations(values: tuple[float, ...], agrees: bool) -> None:
    assert cell(*(row(value, i, paper_mean=0.8) for i, value in enumerate(values))).agrees is agrees


def test_where_one_side_is_missing_nothing_is_decided() -> None:
    assert cell(row()).agrees is None
    assert cell(row(0.7, 0, paper_mean=nan)).agrees is None
    assert tally([cell(row())]) == "No cell can be compared with the paper; 1 are not decidable here."


def test_a_model_that_diverged_is_shown_as_such() -> None:
    diverged = cell(row(nan, 0))
    assert "nan" in tidy.text(diverged.rows)
    assert diverged.agrees is False


def test_a_cell_beyond_noise_is_stressed() -> None:
    cells = compared([row(0.5, 0), row(0.847, 0, "local")])
    table = grids(TABLES["table7"], cells)[0]
    assert {table.rows[i][:2] for i, _ in table.best} == {("global", "difference")}
    assert latex(TABLES["table7"], cells).count(r"\textbf") == 1


def test_latex_is_balanced() -> None:
    told = latex(TABLES["table7"], compared([row(0.5, 0), row(method="local")]))
    assert told.count("{") == told.count("}")
    assert told.count(r"\begin") == told.count(r"\end") == 1


@pytest.mark.parametrize(
    "text",
    [
        "", "table,nothing\n1,2\n", "\x00", tidy.text([row(0.5, 0)]).replace("0.2", "x"),
        tidy.text([row(0.5, 0)]) + "table7,Vehicle\n",
        tidy.text([row(0.5, 0), row(0.6, 0)]),  # a cell twice for a seed
        tidy.text([row(1.5, 0)]), tidy.text([row(0.5, 0, last10_min=-0.5)]),
        tidy.text([row(0.5, 0, paper_mean=0.5)]),  # not what the paper has
        tidy.text([row(0.5, 0, "Crum")]),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="is no table of a reproduction"):
        tidy.read(tmp_path / "t.csv")


def test_what_the_paper_has_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(tidy.text([row(0.5, 0, "Crum")]), encoding="utf-8")
    with pytest.raises(InputError, match=r"the paper has no number for Crum at A1 20%, not 0\.847 ± 0\.08"):
        tidy.read(tmp_path / "t.csv")
