"""Pieces of every kind together: a set of combinations in which every pair occurs is the same on both engines.

What is exported is in it by itself, once tests/test_contract.py says what it is built with.
"""

from itertools import product
from typing import Any

import pytest

from tests import test_contract as contract
from tests.covering import NONE, Case, all_pairs, covering, difference, factors, pairs, possible

CASES = list(covering(factors()))


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case.values()))
def test_engines_agree_on_every_pair(case: Case) -> None:
    assert difference(case) <= 1e-10


def test_every_pair_that_goes_together_occurs() -> None:
    met = set().union(*map(pairs, CASES))
    assert met >= set(all_pairs(factors()))
    assert all(map(possible, CASES))
    for factor, names in factors().items():
        assert {case[factor] for case in CASES} == set(names)


def test_every_public_piece_is_in_it() -> None:
    names = {name for case in CASES for name in case.values()}
    for kind in ("SOLVERS", "AGGREGATORS", "UPDATES", "RELABELS", "BACKDOORS"):
        assert set(contract.KINDS[kind][0]) - names <= {"Stateless"}
    servers = set(contract.KINDS["SERVERS"][0]) - names
    own = {its.server.__name__ for its in contract.KINDS["SOLVERS"][0].values() if hasattr(its, "server")}
    assert servers == own


def test_a_new_piece_is_in_it_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    classes, table = contract.KINDS["UPDATES"]
    monkeypatch.setitem(classes, "Brandnew", classes["SignFlip"])
    monkeypatch.setitem(table, "Brandnew", {})
    met = [case for case in covering(factors()) if case["attack"] == "Brandnew"]
    assert {case["solver"] for case in met} == set(factors()["solver"])


NAMED: dict[str, dict[str, list[str]]] = {
    "two": {"a": list("12345"), "b": list("123")},
    "three of three": {"a": list("123"), "b": list("123"), "c": list("123")},
    "many": {name: list("1234"[: 2 + i % 3]) for i, name in enumerate("abcdefgh")},
    "alone": {"a": ["1"], "b": ["1"]},
}


@pytest.mark.parametrize("name", NAMED)
def test_a_covering_set_covers_and_is_small(name: str) -> None:
    named = NAMED[name]
    cases = list(covering(named))
    assert cases == list(covering(named))
    wanted = set().union(*(pairs(dict(zip(named, values, strict=True))) for values in product(*named.values())))
    assert set().union(*map(pairs, cases)) == wanted == set(all_pairs(named))
    first, second, *_ = sorted((len(values) for values in named.values()), reverse=True)
    assert first * second <= len(cases) <= 2 * first * second


def test_what_does_not_go_together_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(case: dict[str, str]) -> bool:
        return not {("a", "1"), ("b", "2")} <= set(case.items())

    monkeypatch.setattr("tests.covering.possible", never)
    named: dict[str, Any] = NAMED["three of three"]
    cases = list(covering(named))
    assert all(map(never, cases))
    assert set().union(*map(pairs, cases)) == set(all_pairs(named))
    assert len(all_pairs(named)) == 26


def test_some_pieces_do_not_go_together() -> None:
    assert not possible({"solver": "L2SGD", "server": "FedAdam"})
    assert possible({"solver": "Scaffold", "server": "FedAdam"})
    assert possible({"solver": "L2SGD", "server": "Add", "defence": NONE})
