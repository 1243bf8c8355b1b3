"""Every rule and every composition against its formula written out (`naive`), on matrices of many kinds."""

from typing import Any

import numpy as np
import pytest
import torch

import dittofl.aggregate
from dittofl import AFL, GeometricMedian, Report
from tests.aggregate import naive
from tests.aggregate.rules import ALONE, COMPOSED, DEFENCES, OBJECTIVES, TOLERANCE, error

dtypes = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)


kinds = pytest.mark.parametrize("kind", range(len(naive.KINDS)))


@dtypes
@kinds
def test_every_rule_is_its_formula(kind: int, dtype: torch.dtype) -> None:
    for seed in range(kind, kind + 5 * len(naive.KINDS), len(naive.KINDS)):
        report = naive.drawn(seed, dtype, most=2000)
        for rule in ALONE:
            assert error(rule, report) <= TOLERANCE[dtype], (seed, rule)


@dtypes
@kinds
def test_every_composition_is_its_formula(kind: int, dtype: torch.dtype) -> None:
    """Of each defence and each fair objective."""
    report = naive.drawn(kind, dtype, most=200, rows=12)
    for rule in COMPOSED:
        assert error(rule, report) <= TOLERANCE[dtype], rule


@dtypes
@pytest.mark.parametrize("rule", ALONE, ids=str)
def test_a_long_matrix_in_several_blocks(rule: Any, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dittofl.aggregate.cohort.BLOCK", 1000)
    monkeypatch.setattr("dittofl.aggregate.order.BLOCK", 3000)
    monkeypatch.setattr("dittofl.aggregate.order.WEIGHTED", 700)
    for kind in (0, 2):
        rng = np.random.default_rng(kind)
        delta = torch.from_numpy(naive.KINDS[kind](rng, 9, 5_001)).to(dtype)
        report = Report(delta, torch.arange(1, 10), torch.from_numpy(rng.exponential(size=9)).to(dtype))
        assert error(rule, report) <= TOLERANCE[dtype], kind


def test_the_table_of_formulas_is_complete() -> None:
    tried = {type(rule).__name__ for rule in (*OBJECTIVES, *DEFENCES)}
    public = {name for name in dittofl.aggregate.__all__ if name[0].isupper()}
    assert public - tried == {"MGDA", "Stateless"}  # the first against a quadratic programme, the second has none


def test_afl_over_rounds_with_the_devices_that_are_drawn() -> None:
    """λ by place, the drawn devices' alone, against the same with a dict."""
    rng, rule, lam = np.random.default_rng(0), AFL(lr=0.4), dict.fromkeys(range(8), 1.0)
    state = rule.init(torch.zeros(3))
    for _ in range(50):
        place, loss, rows = rng.permutation(8)[:4], rng.exponential(size=4), rng.normal(size=(4, 3))
        report = Report(torch.from_numpy(rows), torch.ones(4), torch.from_numpy(loss), place=torch.from_numpy(place))
        delta, state = rule(report, state)
        mass = sum(lam[k] for k in place)
        if mass == 0:
            assert not delta.any()
            continue
        share = np.array([lam[k] / mass for k in place])
        assert np.abs(delta.numpy() - share @ rows).max() <= 1e-12
        lam |= dict(zip(place.tolist(), mass * naive.simplex(share + 0.4 * loss), strict=True))
    assert np.abs(state.numpy() - [lam[k] for k in range(8)]).max() <= 1e-12
    assert abs(sum(lam.values()) - 8) <= 1e-12


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_in_one_dimension_the_geometric_median_is_a_median(objective: Any) -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        m = int(rng.integers(1, 12))
        rows = np.sort(rng.normal(size=(m, 1)), axis=0)
        report = Report(torch.from_numpy(rows), torch.arange(1, m + 1), torch.from_numpy(rng.exponential(size=m)))
        p, c = naive.weights(objective, rows, report.size.numpy(), report.loss.numpy())  # type: ignore[union-attr]
        rule = GeometricMedian(by=objective, nu=1e-9)
        z = float(rule(report, rule.init(report.delta[0]))[0])
        values, below = np.sort(c * rows[:, 0]), np.cumsum(p[np.argsort(c * rows[:, 0])])
        low, high = values[np.argmax(below >= 0.5 - 1e-12)], values[np.argmax(below > 0.5 + 1e-12)]
        assert low - 1e-8 <= z <= high + 1e-8, seed
