"""The page says what the numbers say, whatever the runs are called and whether or not they went well."""

import math
import re
from html.parser import HTMLParser

import pytest

from dittofl.report import Result, conditions
from dittofl.report.charts import glance
from dittofl.report.page import page
from dittofl.report.series import order
from dittofl.report.verdict import headline, verdict
from tests.report.made import made

VOID = {"meta", "path"}


class Structure(HTMLParser):
    """The elements of a page, which must close in the order they opened."""

    def __init__(self, text: str) -> None:
        HTMLParser.__init__(self)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def text(results: dict[str, Result]) -> str:
    return page([results[name] for name in ("clean-2", "clean-10", "A1-2", "A1-10")])


def test_nothing_runs_and_nothing_is_fetched(text: str) -> None:
    tags = Structure(text).seen
    assert {tag for tag, _ in tags}.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "base"})
    names = {name for _, its in tags for name in its}
    assert names.isdisjoint({"src", "href", "xlink:href", "srcset", "action"})
    assert not [name for name in names if name.startswith("on")]
    assert "url(" not in text
    assert "@import" not in text


def test_names_of_devices_are_words_and_no_markup(text: str, results: dict[str, Result]) -> None:
    evil = results["A1-2"].devices.ids[0]
    assert "<script>" in evil
    assert "<script" not in text
    assert evil in "".join(Structure(text).words)


@pytest.mark.parametrize("evil", ["<u>&", '"><script>', "{{ 7 * 7 }}", "'", "a" * 200])
def test_every_name_is_escaped(evil: str) -> None:
    run = made({"global": [0.5, 0.6], evil: [0.7, 0.8]}, name=evil, ids=[evil, "b"], seed=1)
    read = Structure(page([run, made({"global": [0.5], evil: [0.7]}, name="other", spec={"key": evil})]))
    assert {tag for tag, _ in read.seen}.isdisjoint({"script", "u"})
    assert evil in "".join(read.words)


def test_the_page_holds_every_number_of_its_table(text: str, results: dict[str, Result]) -> None:
    words = "".join(Structure(text).words)
    for condition in conditions([results[name] for name in ("clean-2", "clean-10", "A1-2", "A1-10")]):
        for model in condition.models:
            assert condition.score(model, "accuracy", "worst10").text() in words
    for run in (results["clean-2"], results["A1-10"]):
        assert run.facts["identity"] in words
        assert run.facts["fingerprint"] in words


def test_a_page_has_every_chart_of_every_condition(text: str) -> None:
    charts = [its["aria-label"] or "" for tag, its in Structure(text).seen if tag == "svg" and "aria-label" in its]
    assert sum("by round, mean and standard deviation" in label for label in charts) == 2 * 5
    assert sum("on benign devices: mean" in label for label in charts) == 2 * 5
    assert sum("against its standard deviation" in label for label in charts) == 2
    assert sum("malicious devices drawn" in label for label in charts) == 1
    assert "nan" not in "".join(re.findall(r' d="[^"]*"', text))


@pytest.mark.parametrize("name", ["alone", "diverged", "clean-2"])
def test_a_run_without_accuracy_or_attack_or_personal_models_or_numbers_has_a_page(
    results: dict[str, Result], name: str
) -> None:
    words = "".join(Structure(page([results[name]])).words)
    assert "Malicious devices drawn" not in words
    assert ("λ chosen" in words) == (name == "clean-2")
    assert ("diverged on at least one device" in words) == (name == "diverged")


def test_forty_runs_of_a_thousand_devices_make_a_small_page() -> None:
    values = {name: [k % 97 / 97 for k in range(1000)] for name in ("global", "ditto", "local")}
    runs = [made(values, name=f"run {i}", spec={"rounds": i}, malicious=range(500)) for i in range(40)]
    text = page(runs)
    assert len(text) < 3e6
    assert "<details open>" not in text


def told(*runs: Result, metric: str = "accuracy") -> str:
    return " ".join(headline(conditions(runs), metric))


LOW, HIGH = [0.5, 0.52, 0.48, 0.51], [0.9, 0.91, 0.89, 0.9]


def test_the_headline_says_who_wins() -> None:
    assert told(made({"global": LOW, "ditto": HIGH})).startswith(
        "ditto beats the global model: ditto has accuracy +0.398"
    )
    assert told(made({"global": HIGH, "ditto": LOW})).startswith("The global model beats ditto")
    assert told(made({"global": LOW, "ditto": LOW[::-1]})).startswith("There is no clear difference")
    assert told(made({"global": HIGH, "ditto": LOW}, metric="loss"), metric="loss").startswith("ditto beats")


def test_the_headline_counts_conditions_and_hides_none() -> None:
    won, lost = (
        made({"global": LOW, "ditto": HIGH}, name="A"),
        made({"global": HIGH, "ditto": LOW}, name="B", spec={"b": 1}),
    )
    even = made({"global": LOW, "ditto": LOW[::-1]}, name="C", spec={"c": 1})
    gone = made({"global": [math.nan] * 4, "ditto": HIGH}, name="D", spec={"d": 1})
    words = told(won, lost, even, gone)
    assert "ditto beats the global model in A" in words
    assert "The global model beats ditto in B" in words
    assert "no clear difference between ditto and the global model in C" in words
    assert "A model diverged in D" in words
    assert "better in 1 of 3" in words


def test_a_model_picked_by_its_results_is_said_to_be() -> None:
    assert "picked by these very results" in told(made({"global": LOW, "a": HIGH, "b": LOW}))
    assert "picked" not in told(made({"global": LOW, "a": HIGH}))


def test_without_a_personal_model_there_is_no_winner() -> None:
    assert (
        told(made({"global": LOW})) == "Only global models were trained: accuracy 0.502 on average over benign devices."
    )
    words = told(made({"global": LOW}, name="fedavg"), made({"global": LOW, "v": HIGH}, name="ditto", spec={"b": 1}))
    assert words == (
        "The best accuracy on average over benign devices is 0.900, of v in ditto; the global models have 0.502."
    )


def test_a_verdict_names_whom_the_lead_beats() -> None:
    (condition,) = conditions([made({"global": LOW, "a": HIGH, "b": LOW, "c": HIGH[::-1]})])
    words = verdict(condition, "a", "accuracy")
    assert words.startswith("a is clearly better than global: 0.900 against 0.502, a difference of +0.398")
    assert "better on 100\u00a0% of the devices and worse on 0\u00a0%. It beats b." in words
    assert "no clear difference from c" in words


def test_a_glance_shows_every_models_mean_and_worst_tenth(results: dict[str, Result]) -> None:
    """A mark and a line for each; where a model diverged, its name alone."""
    (found,) = conditions([results["clean-2"]])
    chart = glance(found, "accuracy", order([found]), (0.0, 1.0))
    assert chart.count('class="line') == len(found.models) == chart.count('class="full') + chart.count('class="open')
    lines = re.findall(r'class="line \w+" d="M([\d.]+),([\d.]+)H([\d.]+)', chart)
    spans = [float(x0) - float(x1) for x0, _, x1 in lines]
    gaps = [found.score(m, "accuracy", "mean").mean - found.score(m, "accuracy", "worst10").mean for m in found.models]
    scale = next(span / gap for span, gap in zip(spans, gaps, strict=True) if gap > 0)
    assert spans == pytest.approx([scale * gap for gap in gaps], abs=0.2)
    (gone,) = conditions([results["diverged"]])
    empty = glance(gone, "loss", order([gone]), (0.0, 1.0))
    assert 'class="line' not in empty
    assert all(f">{model}</text>" in empty for model in gone.models)
