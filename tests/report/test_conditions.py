"""Which runs belong together, and what they are called."""

from dataclasses import replace
from pathlib import Path

import pytest

from dittofl.errors import InputError
from dittofl.report import Result, conditions
from dittofl.report.conditions import lead_metric, lead_model, lower_is_better
from tests.report.made import made

W = {"global": [0.5, 0.6]}


def titles(*specs: dict[str, object], name: str = "x") -> list[str]:
    return [condition.title for condition in conditions([made(W, name=name, spec=spec) for spec in specs])]


def test_runs_that_differ_in_their_seed_alone_are_one_condition(results: dict[str, Result]) -> None:
    found = conditions([run for name, run in results.items() if name.startswith(("A1", "clean"))])
    assert [(its.title, [run.seed for run in its.runs]) for its in found] == [("A1", [2, 10]), ("clean", [2, 10])]
    assert found[0].score("global", "accuracy", "mean").n == 2


def test_a_title_says_what_differs() -> None:
    a3 = {"kind": "A3", "ratio": 0.2, "poisoned": True}
    assert titles({}, {"attack": {"kind": "A1", "ratio": 0.5}}, {"attack": a3}) == [
        "no attack", "A1 ratio=0.5", "A3 ratio=0.2",
    ]  # fmt: skip
    assert titles(*({"rounds": 5, "method": {"local": {"kind": "SGD", "lr": lr}}} for lr in (0.1, 0.2))) == [
        "local.lr=0.1", "local.lr=0.2",
    ]  # fmt: skip


def test_a_single_condition_has_its_name() -> None:
    assert titles({}, name="digits") == ["digits"]


def test_titles_are_different_even_where_specs_are_not() -> None:
    twice = [made(W), replace(made(W), folder=Path("elsewhere/made-0")), made(W, seed=1)]
    found = conditions(twice)
    assert [len(its.runs) for its in found] == [2, 1]
    assert len({its.title for its in found}) == len(found) == 2


def test_names_and_differences_are_both_told_where_both_are_needed() -> None:
    runs = [made(W, name=name, spec={"rounds": rounds}) for name, rounds in (("a", 1), ("a", 2), ("b", 1))]
    assert [its.title for its in conditions(runs)] == ["a, rounds=1", "a, rounds=2", "b, rounds=1"]


def test_the_metric_is_accuracy_where_every_run_has_it(results: dict[str, Result]) -> None:
    assert lead_metric(conditions([results["clean-2"]])) == "accuracy"
    assert lead_metric(conditions([results["clean-2"], results["alone"]])) == "loss"
    with pytest.raises(InputError, match="did you mean 'accuracy'"):
        lead_metric(conditions([results["clean-2"]]), "acuracy")


def test_less_is_better_where_the_worst_devices_have_more() -> None:
    assert not lower_is_better(conditions([made(W)]), "accuracy")
    assert lower_is_better(conditions([made(W, metric="loss")]), "loss")


def test_the_lead_is_a_choice_or_the_best(results: dict[str, Result]) -> None:
    assert lead_model(conditions([results["clean-2"]]), "accuracy") == ("ditto", False)
    three = conditions([made({"global": [0.1], "a": [0.2], "b": [0.3]})])
    assert lead_model(three, "accuracy") == ("b", True)
    assert lead_model(conditions([made(W)]), "accuracy") == (None, False)
