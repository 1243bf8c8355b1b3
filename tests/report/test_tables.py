"""Tables hold the summaries' numbers, in every form."""

import csv
import io
import math
import re

import pytest
from rich.console import Console

from dittofl.report import Result, compare, comparison, conditions, overview
from tests.report.made import made


def test_csv_has_every_digit_of_the_summaries(results: dict[str, Result]) -> None:
    runs = [results[f"A1-{seed}"] for seed in (2, 10)]
    lines = list(csv.DictReader(io.StringIO(overview(conditions(runs)).csv())))
    assert [line["model"] for line in lines] == list(runs[0].models)
    for line in lines:
        x, y = (run.scores[line["model"], "accuracy"]["worst10"] for run in runs)
        assert float(line["worst 10 %"]) == pytest.approx((x + y) / 2, rel=1e-15)
        assert float(line["worst 10 % ±"]) == pytest.approx(math.tan(math.pi / 2 * 0.95) * abs(x - y) / 2, abs=1e-12)


def test_a_line_of_plain_text_is_whole(results: dict[str, Result]) -> None:
    found = conditions([results["clean-2"], results["A1-2"]])
    _, head, *lines = overview(found).plain().splitlines()
    assert head.split() == ["condition", "model", "mean", "std", "worst", "10", "%"]
    for condition in found:
        for model in condition.models:
            numbers = [f"{condition.score(model, 'accuracy', its).mean:.3f}" for its in ("mean", "std", "worst10")]
            assert [condition.title, model, *numbers] in [line.replace("*", "").split() for line in lines]


def test_the_best_is_bold_and_nan_is_never() -> None:
    found = conditions([made({"global": [0.5, 0.5], "a": [0.9, 0.7], "b": [0.9, 0.7000001]})])
    table = overview(found).markdown()
    assert "| made | global | 0.500 | **0.000** | 0.500 |" in table
    assert table.count("**0.800**") == 2  # equal as far as they are told
    assert "**" not in overview(conditions([made({"global": [math.nan], "a": [math.inf]}, metric="loss")])).markdown()


def test_less_loss_is_bold() -> None:
    table = overview(conditions([made({"global": [2.0, 2.0], "a": [1.0, 1.0]}, metric="loss")]))
    assert "lower is better" in table.title
    assert "| **1.000** |" in table.markdown()


def test_markdown_and_terminals_take_names_as_they_are() -> None:
    name = "a|b <i> [bold]x*"
    table = overview(conditions([made({"global": [0.5], name: [0.6]})]))
    assert "a\\|b &lt;i> [bold]x\\*" in table.markdown()
    console = Console(width=60, file=io.StringIO(), record=True)
    console.print(table.rich())
    assert name in console.export_text()


def test_a_terminal_of_eighty_columns_shows_every_number(results: dict[str, Result]) -> None:
    told = compare([results[name] for name in ("clean-2", "clean-10", "A1-2", "A1-10")])
    console = Console(width=80, file=io.StringIO(), record=True)
    console.print(comparison(told).rich())
    text = console.export_text()
    assert all(f"{row.mean.mean:+.3f} ± {row.mean.half:.3f}" in text for row in told.rows)
    assert max(map(len, text.splitlines())) <= 80


def test_a_comparison_says_against_what_and_over_what() -> None:
    text = comparison(compare([made({"global": [0.5, 0.6], "ditto": [0.7, 0.7]})])).plain()
    assert text.startswith("accuracy on test data minus that of made: global, device by device")
    assert "+0.150" in text
    assert "2 devices" in text
    other = made({"global": [0.5, 0.6]}, name="other", fingerprint="e" * 64)
    assert "differ" in comparison(compare([made({"global": [0.5, 0.6]}), other])).plain().splitlines()[-1]


def test_a_line_of_plain_text_marks_what_is_best(results: dict[str, Result]) -> None:
    table = overview(conditions([results["clean-2"]]))
    lines = [re.split(r" {2,}|(?<=\*) ", line) for line in table.plain().splitlines()]
    starred = [[word.endswith("*") for word in line] for line in lines]
    for i in range(len(table.rows)):
        assert [j for j, star in enumerate(starred[i + 2]) if star] == [j for k, j in sorted(table.best) if k == i]
    assert "*: the best of a condition" in table.plain()
