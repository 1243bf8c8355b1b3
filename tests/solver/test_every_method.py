"""What every solver must obey as a method: beside Ditto in one run, under a robust rule and an attack, on every engine.

Solvers are discovered by the tables of tests/test_contract.py: a new one is tried here without a line.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from dittofl import A3, SGD, Ditto, Epochs, Federated, Loop, Method, MultiKrum, Vmap
from dittofl.types import GlobalSolver, NeedsServer, Solver
from tests.problems import TASK, federation, gap, method, rows, run
from tests.test_contract import KINDS, beside, built, each

MAPPED = {"vmap": Vmap(), "unfused, by twos": Vmap(fuse=False, chunk=2)}
DITTO = Ditto(lam=0.5, lr=0.1, steps=2)
NAMES = tuple(KINDS["SOLVERS"][0])
FREE = tuple(name for name in NAMES if not isinstance(built("SOLVERS", name), NeedsServer))
SENDING = tuple(name for name in NAMES if isinstance(built("SOLVERS", name), GlobalSolver))


def attacked(how: Method, engine: Any = None) -> Federated:
    """Three rounds under model replacement, then the final visit."""
    result = run(TASK, federation(), how, rounds=3, cohort=4, attack=A3(count=1), engine=engine or Loop())
    assert sum(drawn.malicious for drawn in result.history) > 0
    result.finish()
    return result


def robust(**changes: Any) -> Method:
    return method(**{"personal": {"ditto": DITTO}, "aggregate": MultiKrum(f=1), **changes})


def personal(solver: Solver) -> Method:
    """Beside Ditto in each round, and once more in the final visit; at the server it needs, w is its own kind's."""
    return robust(personal={"ditto": DITTO, "it": solver}, final={"it, from w": solver}, **beside(solver))


def check(how: Method) -> Federated:
    """Engines agree, and all models that it has are served and measured."""
    looped = attacked(how)
    for name, engine in MAPPED.items():
        assert gap(looped, attacked(how, engine)) <= 1e-10, name
    values = looped.evaluate().values
    assert {model for model, _ in values} == {"global", *how.personal, *how.final}
    benign = ~looped.malicious & (looped.federation.sizes("test") > 0)
    assert all(np.isfinite(its["loss"][benign]).all() for its in values.values())
    return looped


@cache
def alone(name: str) -> Federated:
    return check(personal(built("SOLVERS", name)))


@each("SOLVERS")
def test_a_personal_method_runs_beside_ditto_under_replacement(name: str) -> None:
    result, bare = alone(name), attacked(robust(**beside(built("SOLVERS", name))))
    assert torch.equal(result.w, bare.w)
    assert torch.equal(rows(result, "ditto"), rows(bare, "ditto"))


@pytest.mark.parametrize("name", SENDING)
def test_a_global_method_runs_beside_ditto_under_replacement(name: str) -> None:
    solver = built("SOLVERS", name)
    result = check(robust(**{"local": solver, **beside(solver)}, final={"from w": DITTO}))
    bare = attacked(robust(**{"local": solver, **beside(solver)}, personal={}))
    assert torch.equal(result.w, bare.w)
    assert not torch.equal(rows(result, "ditto"), rows(attacked(robust(local=SGD(lr=0.05))), "ditto"))


@each("SOLVERS")
def test_a_method_counts_its_work_in_epochs(name: str) -> None:
    """On devices of 1 to 11 samples and batches of 4, each with as many steps as it has of its own."""
    check(personal(replace(built("SOLVERS", name), steps=Epochs(count=2))))


@cache
def together() -> Federated:
    solvers = {name: built("SOLVERS", name) for name in FREE}
    return check(robust(personal=solvers, final={f"{name}, from w": its for name, its in solvers.items()}))


def test_all_run_in_one_pass() -> None:
    """w is that of FedAvg alone, and each row that of the method alone."""
    result = together()
    assert torch.equal(result.w, attacked(robust(personal={})).w)
    for name in FREE:
        assert torch.equal(rows(result, name), rows(alone(name), "it"))


@pytest.mark.parametrize("where", ["", ", from w"], ids=["joint", "from w"])
def test_no_two_methods_are_one(where: str) -> None:
    """Those that train a model of the device's own serve different ones."""
    result = together()
    own = [name for name in FREE if result.solvers[name].init(result.w0).numel()]
    assert {"Ditto", "EWC", "SKL", "APFL", "Greedy", "Local"} <= set(own)
    served = torch.stack([result.row(name + where, "c") for name in own])
    distances = torch.cdist(served, served) + torch.eye(len(served))
    assert float(distances.min()) > 1e-6


def test_unfused_w_is_bitwise_that_without_personal_methods() -> None:
    solvers = {name: built("SOLVERS", name) for name in FREE}
    ends = [attacked(robust(personal=its), Vmap(fuse=False)) for its in (solvers, {})]
    assert torch.equal(ends[0].w, ends[1].w)


def test_the_checks_can_fail() -> None:
    """Another step size is another method, and more rows than rounding apart."""
    one, other = (attacked(robust(local=SGD(lr=lr))) for lr in (0.2, 0.2 + 1e-6))
    assert gap(one, other) > 1e-10
