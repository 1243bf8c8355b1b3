"""Every rule and every composition against its formula written out (`naive`), on matrices of many kinds."""

import dataclasses
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

import dittofl.aggregate
from dittofl import (
    AFL,
    QFFL,
    CentredClip,
    Clip,
    GeometricMedian,
    KLoss,
    KNorm,
    Krum,
    Mean,
    Median,
    MultiKrum,
    Report,
    Tilt,
    TrimmedMean,
)
from tests.aggregate import naive

OBJECTIVES: list[Any] = [
    Mean(), Mean(by_size=True), Tilt(t=1.5), Tilt(t=-2.0), QFFL(q=0.5, lr=0.1), QFFL(q=2.0, lr=3.0), AFL(lr=0.3),
]  # fmt: skip
DEFENCES: list[Any] = [
    Krum(f=1), Krum(ratio=0.3), MultiKrum(f=2), MultiKrum(ratio=0.25, keep=3), KNorm(f=2), KNorm(ratio=0.4), KLoss(f=1),
    KLoss(ratio=0.5), Clip(), Clip(norm=0.7), Median(), TrimmedMean(f=1), TrimmedMean(ratio=0.3), GeometricMedian(),
    CentredClip(), CentredClip(norm=0.7, steps=3),
]  # fmt: skip
CHAINS: list[Any] = [
    Clip(then=MultiKrum(f=2, then=Tilt(t=1.0))),
    KNorm(f=1, then=Clip(norm=0.5, then=Krum(f=1))),
    MultiKrum(f=1, then=Clip(then=Median(by=Tilt(t=1.0)))),
    Clip(norm=1.0, then=GeometricMedian(by=Mean(by_size=True))),
    KNorm(ratio=0.2, then=MultiKrum(f=1, then=TrimmedMean(f=1, by=QFFL(q=1.0, lr=0.1)))),
    Clip(then=CentredClip(by=AFL(lr=0.1))),
]  # fmt: skip
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}
dtypes = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)


def composed(defence: Any, objective: Any) -> Any:
    fields = {field.name for field in dataclasses.fields(defence)}
    return dataclasses.replace(defence, **{(fields & {"then", "by"}).pop(): objective})


def error(rule: Any, report: Report) -> float:
    """How far δ is from its formula, by the longest row if that is above 1."""
    ours, _ = rule(report, rule.init(report.delta[0]))
    assert ours.dtype == report.delta.dtype
    longest = max(1.0, float(report.delta.double().norm(dim=1).max()))
    return float(np.abs(ours.double().numpy() - naive.of(rule, report)).max()) / longest


ALL = [*OBJECTIVES, *DEFENCES, *CHAINS, *(composed(d, o) for d, o in product(DEFENCES, OBJECTIVES[1:]))]


@dtypes
@pytest.mark.parametrize("kind", range(len(naive.KINDS)))
def test_every_rule_and_composition_is_its_formula(kind: int, dtype: torch.dtype) -> None:
    for seed in range(kind, kind + 2 * len(naive.KINDS), len(naive.KINDS)):
        report = naive.drawn(seed, dtype, most=1000)
        for rule in ALL:
            assert error(rule, report) <= TOLERANCE[dtype], (seed, rule)


@dtypes
@pytest.mark.parametrize("rule", [*OBJECTIVES, *DEFENCES, *CHAINS], ids=str)
def test_a_long_matrix_in_several_blocks(rule: Any, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dittofl.aggregate.cohort.BLOCK", 1000)
    monkeypatch.setattr("dittofl.aggregate.order.BLOCK", 3000)
    monkeypatch.setattr("dittofl.aggregate.order.WEIGHTED", 700)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        delta = torch.from_numpy(naive.KINDS[(0, 1, 2, 6)[seed]](rng, 9, 10_001)).to(dtype)
        report = Report(delta, torch.arange(1, 10), torch.from_numpy(rng.exponential(size=9)).to(dtype))
        assert error(rule, report) <= TOLERANCE[dtype], seed


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
