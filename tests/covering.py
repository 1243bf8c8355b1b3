"""Combinations of whatever the package exports: what goes together, a set that covers all pairs, and one run on both
engines."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

import torch

from dittofl import A1, A2, A3, Attack, Forge, Method, Send
from dittofl.types import GlobalSolver, NeedsServer, NeedsSolver
from tests import test_contract as contract
from tests.problems import ENGINES, TASK, everything, federation, run

NONE = "none"
LOST = 1e15  # beyond it rounding decides what a personal solver makes of w
Case = dict[str, str]  # factor → the name of a piece, or NONE


def fields(name: str) -> set[str]:
    return {field.name for field in dataclasses.fields(contract.KINDS["AGGREGATORS"][0][name])}


def factors() -> dict[str, list[str]]:
    """The pieces of each kind. A fair objective is an aggregator that weighs all rows; a defence is one that selects or
    bounds them (`then`), or goes by coordinate (`by`): it takes an objective for what is left."""
    solvers, rules = contract.KINDS["SOLVERS"][0], contract.KINDS["AGGREGATORS"][0]
    made = {name: contract.built("SOLVERS", name) for name in solvers}
    defences = [name for name in rules if fields(name) & {"then", "by"}]
    return {
        "solver": [name for name, its in made.items() if isinstance(its, GlobalSolver)],
        "server": [name for name in contract.KINDS["SERVERS"][0] if not needy(contract.built("SERVERS", name))],
        "objective": [name for name in rules if name not in defences and not fields(name) & {"rule"}],
        "defence": [NONE, *defences],
        "attack": [NONE, *WHOLE, *(name for kind in ATTACKS for name in contract.KINDS[kind][0])],
        "personal": [name for name, its in made.items() if not isinstance(its, NeedsServer)],
    }


ATTACKS = {"UPDATES": "update", "RELABELS": "relabel", "BACKDOORS": "backdoor"}  # kind → the field that takes it
WHOLE = {
    "A1": A1(count=2),
    "A2": A2(count=2),
    "A3": A3(count=2),
    "NaN": Attack(count=2, update=Send(value=float("nan"))),
    "1e30": Attack(count=2, update=(Send(value=1e30), Forge(loss=1e30, size=1e30))),
}


def needy(server: Any) -> bool:
    return isinstance(server, NeedsSolver)


def possible(case: Case) -> bool:
    """Whether the pieces named so far go together: a solver with a server of its own takes no other, unless that has
    room for one."""
    own = server_of(case.get("solver"))
    return own is None or hasattr(own, "then") or case.get("server") in (None, "Add")


def server_of(solver: str | None) -> Any:
    its = contract.KINDS["SOLVERS"][0].get(solver or "")
    return contract.built("SERVERS", its.server.__name__) if hasattr(its, "server") else None


def method(case: Case) -> Method:
    """The method that a case names."""
    server, own = contract.built("SERVERS", case["server"]), server_of(case["solver"])
    if own is not None:
        server = dataclasses.replace(own, then=server) if hasattr(own, "then") else own
    return Method(
        local=contract.built("SOLVERS", case["solver"]), server=server, batch=4, aggregate=aggregator(case),
        personal={"it": contract.built("SOLVERS", case["personal"])},
        final={"last": contract.built("SOLVERS", case["personal"])},
    )  # fmt: skip


def aggregator(case: Case) -> Any:
    objective = contract.built("AGGREGATORS", case["objective"])
    if case["defence"] == NONE:
        return objective
    defence = contract.built("AGGREGATORS", case["defence"])
    return dataclasses.replace(defence, **{(fields(case["defence"]) & {"then", "by"}).pop(): objective})


def attack(case: Case) -> Attack | None:
    """Two of five devices."""
    name = case["attack"]
    if name in (NONE, *WHOLE):
        return WHOLE.get(name)
    kind = next(kind for kind in ATTACKS if name in contract.KINDS[kind][0])
    return Attack(count=2, **{ATTACKS[kind]: contract.built(kind, name)})


def difference(case: Case, rounds: int = 3) -> float:
    """How far the engines are apart after some rounds and a final visit, by the largest number of a row if above 1."""
    ends = []
    for engine in ENGINES.values():
        result = run(TASK, federation(), method(case), rounds=rounds, cohort=4, attack=attack(case), engine=engine)
        result.finish()
        ends.append(everything(result))
    one, other = ends
    assert one.keys() == other.keys()
    if not float(one["w"].abs().max()) < LOST:
        one = {"w": one["w"]}
    return max(apart(one[name], other[name]) for name in one if one[name].numel())


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    """∞ where only one of two numbers is finite."""
    if not torch.equal(one.isfinite(), other.isfinite()):
        return float("inf")
    one, other = one.nan_to_num(0, 0, 0), other.nan_to_num(0, 0, 0)
    return float((one - other).abs().max() / one.abs().max().clamp_min(1))


def pairs(case: Case) -> set[frozenset[tuple[str, str]]]:
    return {frozenset(pair) for pair in combinations(case.items(), 2)}


def all_pairs(named: Mapping[str, Iterable[str]]) -> list[frozenset[tuple[str, str]]]:
    """Every pair of values of two factors that go together."""
    return [
        frozenset(((a, x), (b, y)))
        for a, b in combinations(named, 2) for x in named[a] for y in named[b] if possible({a: x, b: y})
    ]  # fmt: skip


def covering(named: Mapping[str, list[str]]) -> Iterator[Case]:
    """Cases such that every pair that goes together is in one. Greedy: each begins with the first pair still missing,
    then takes for one factor after the other the value that brings most missing pairs, the least used among equals."""
    missing = dict.fromkeys(all_pairs(named))
    used = dict.fromkeys(((factor, value) for factor in named for value in named[factor]), 0)
    while missing:
        case = dict(next(iter(missing)))
        for factor in (factor for factor in named if factor not in case):
            fits = [value for value in named[factor] if possible(case | {factor: value})]
            case[factor] = max(
                fits,
                key=lambda value: (
                    sum(frozenset((item, (factor, value))) in missing for item in case.items()),
                    -used[factor, value],
                ),
            )
        for item in case.items():
            used[item] += 1
        for pair in pairs(case):
            missing.pop(pair, None)
        yield {factor: case[factor] for factor in named}
