"""Figures and Table 4: what they need, what they record, and that charts are drawn of it."""

from base64 import b64encode
from html.parser import HTMLParser
from itertools import islice
from pathlib import Path

import pytest

from dittofl.reproduce import drawings, special
from dittofl.reproduce.board import Board
from dittofl.reproduce.compared import compared
from dittofl.reproduce.making import How
from dittofl.reproduce.reproduction import asked, make, written
from dittofl.reproduce.special import SPECIALS
from dittofl.reproduce.tables import TABLES
from dittofl.reproduce.tidy import Row, row

TRACED = ("figure7", "figure8", "figure9")


class Balanced(HTMLParser):
    """Refuses a page whose tags do not close."""

    VOID = ("meta", "path", "br", "img")

    def __init__(self) -> None:
        HTMLParser.__init__(self)
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def balanced(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    return text


def test_figures_7_to_9_are_of_one_run(how: How, board: Board) -> None:
    what = asked(TRACED, only=("Vehicle",), scale=0.01)
    made = make(what, how, board)
    assert not made.failed
    assert len(list(how.out.rglob("summary.json"))) == 1
    written(what, how.out)
    its = {name: list(SPECIALS[name].records(special.made(SPECIALS[name], how.out, [0], 0.01))) for name in TRACED}
    ends = {one["model"]: one for one in its["figure7"]}
    stops = {name: one["accuracy"] for name, one in ends.items() if name.startswith("epochs=")}
    best = [name for name, one in ends.items() if one["chosen_with_hindsight"]]
    assert len(best) == 1
    assert stops[best[0]] == max(stops.values())
    last = [one for one in its["figure8"] if one["model"] == "finetuning"][-1]
    assert (last["accuracy"], f"epochs={last['stop']}") == (max(stops.values()), best[0])
    for name in TRACED[1:]:
        assert max(one["t"] for one in its[name]) == its[name][0]["rounds"] == 6
        assert "<svg" in balanced(how.out / f"{name}.html")


def test_table_4_says_what_is_here() -> None:
    its = {one["dataset"]: one for one in islice(SPECIALS["table4"].records([]), 3)}  # Fashion-MNIST takes long
    assert its["Vehicle"]["devices"] == its["Vehicle"]["paper_devices"] == 23
    assert its["Vehicle"]["parameters"] == 101
    assert its["CelebA"]["remark"] == "not here"


def test_lambda_star_is_among_the_lambdas_of_figure_2_and_best_of_them() -> None:
    its = list(SPECIALS["figure2"].records([]))
    for panel in ("clean", "adversarial"):
        mine = [one for one in its if one["panel"] == panel]
        assert [one["is_lam_star"] for one in mine].count(1) == 1
        assert min(mine, key=lambda one: one["error"])["is_lam_star"] == 1
        assert all(abs(one["error"] - one["simulated_error"]) < 5 * one["standard_error"] for one in mine)


def test_ditto_is_best_of_three_in_figure_3() -> None:
    its = list(SPECIALS["figure3"].records([]))
    for panel, tau in {(one["panel"], one["tau"]) for one in its}:
        three = [one for one in its if (one["panel"], one["tau"]) == (panel, tau)]
        assert len(three) == 3
        assert min(three, key=lambda one: one["error"])["is_lam_star"] == 1


@pytest.mark.parametrize("name", ["figure4", "figure5", "figure6"])
def test_a_figure_of_cells_is_drawn_where_all_of_them_are_made(name: str) -> None:
    rows = [
        Row(
            table=name, dataset=part.bench.name, method=row.label, attack=where.attack, ratio=where.ratio, seed=0,
            weighted_mean=0.5 + 0.01 * i, mean=0.5, std=0.1,
        )
        for part in TABLES[name].sections for i, row in enumerate(part.lines) for where in part.columns
    ]  # fmt: skip
    found = drawings.of_cells(name, compared(rows))
    shown = ["Fashion MNIST", *(["FEMNIST"] if name == "figure4" else []), "Vehicle"]  # of the paper's own: Figure 4
    assert [one.title for one in found] == shown
    assert all(one.svg.count("<svg") == one.svg.count("</svg>") == 1 for one in found)


def test_figure_4_shows_the_strongest_defences() -> None:
    rows = [
        Row(
            table="figure4", dataset="Vehicle", method=row.label, attack=where.attack, ratio=where.ratio, seed=0,
            weighted_mean=0.1 * i, mean=0.5, std=0.1,
        )
        for part in TABLES["figure4"].sections[-1:] for i, row in enumerate(part.lines) for where in part.columns
    ]  # fmt: skip
    names = [name for name, *_ in drawings.of_cells("figure4", compared(rows))[0].legend]
    assert names == ["global", "FedMGDA+", "k-loss", "k-norm", "Ditto"]


def test_figure_2_stands_in_its_page(how: How) -> None:
    how.out.mkdir()
    written(asked(["figure2"]), how.out)
    picture = b64encode((how.out / "figure2.png").read_bytes()).decode()
    assert picture in balanced(how.out / "figure2.html")


@pytest.mark.parametrize(
    ("name", "data", "remark"),
    [
        ("table6", "Vehicle", "ours: not in the paper"), ("table6", "FEMNIST", ""), ("figure4", "FEMNIST", ""),
        ("figure4", "Vehicle", "the figure's data set is our choice"),
        ("figure6", "Fashion MNIST", "the figure's data set is our choice"),
    ],
)  # fmt: skip
def test_what_is_not_in_the_paper_is_said_so(tmp_path: Path, name: str, data: str, remark: str) -> None:
    """A figure of ours still has the paper's numbers beside it, of its tables."""
    cell = next(cell for cell in asked([name]).cells() if cell.section.bench.name == data)
    assert row(cell, tmp_path).remark.startswith(remark)
    assert ("ours" in row(cell, tmp_path).remark) == ("ours" in remark)
    assert ("choice" in row(cell, tmp_path).remark) == ("choice" in remark)
