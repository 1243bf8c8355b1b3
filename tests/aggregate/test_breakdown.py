"""What malicious rows can do: anything finite reaches an aggregator, ±1e30 included; NaN and ±∞ are dropped before."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dittofl import (
    MGDA,
    QFFL,
    Bulyan,
    CentredClip,
    Clip,
    GeometricMedian,
    KNorm,
    Krum,
    Mean,
    Median,
    MultiKrum,
    NearestNeighbourMixing,
    Report,
    Stateless,
    Tilt,
    TrimmedMean,
)
from dittofl.reports import sound

SEEDS = range(12)
BAD = [float("nan"), float("inf"), -float("inf"), 1e30, -1e30, 1e-30]
dtypes = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


def attacked(seed: int, dtype: torch.dtype, *, least: int = 3, gross: bool = False) -> tuple[Report, Tensor, int]:
    """A report, which of its rows are benign, and f < m/2: malicious rows are values of BAD, some of them alike."""
    rng = np.random.default_rng(seed)
    f = int(rng.integers(1, 8))
    m = int(rng.integers(max(least * f, 2 * f + 1), least * f + 12))
    rows = rng.normal(loc=(0, 50)[seed % 2], scale=0.1, size=(m, int(rng.integers(1, 60))))
    who = torch.zeros(m, dtype=torch.bool)
    who[torch.from_numpy(rng.permutation(m)[:f])] = True
    values = [1e30, -1e30] if gross else BAD
    for k in torch.nonzero(who).flatten().tolist():
        rows[k] = rng.choice(values) if seed % 3 else rng.choice(values, size=rows.shape[1])
    report = Report(torch.from_numpy(rows).to(dtype), torch.ones(m), torch.from_numpy(rng.exponential(size=m)))
    return report, ~who, f


def made(rule: Any, report: Report) -> Tensor:
    left, _ = sound(report)
    delta, _ = rule(left, rule.init(report.delta[0]))
    assert delta.isfinite().all()
    return delta  # type: ignore[no-any-return]


@dtypes
@pytest.mark.parametrize("objective", [Mean(), Tilt(t=0.2)], ids=str)
def test_trimmed_mean_stays_within_the_benign_rows(dtype: torch.dtype, objective: Any) -> None:
    for seed in SEEDS:
        report, benign, f = attacked(seed, dtype)
        delta, good = made(TrimmedMean(f=f, by=objective), report), report.delta[benign]
        assert bool(((delta >= good.amin(0)) & (delta <= good.amax(0))).all()), seed


@dtypes
def test_the_median_stays_within_the_benign_rows(dtype: torch.dtype) -> None:
    for seed in SEEDS:
        report, benign, _ = attacked(seed, dtype)
        good = report.delta[benign]
        for rule in (Median(), Median(by=MGDA(eps=0)), KNorm(f=1, then=Median())):
            delta = made(rule, report)
            low, high = good.amin(0), good.amax(0)
            if isinstance(rule.__dict__.get("by"), MGDA):
                units = good / torch.linalg.vector_norm(good, dim=1, keepdim=True)
                low, high = units.amin(0) - 1e-6, units.amax(0) + 1e-6
            assert bool(((delta >= low) & (delta <= high)).all()), (seed, rule)


@pytest.mark.parametrize("share", [0.3, 0.49])
def test_a_weighted_median_stays_within_while_malicious_weights_are_less_than_half(share: float) -> None:
    for seed in SEEDS:
        report, benign, _ = attacked(seed, torch.float64, gross=True)
        bad = ~benign
        sizes = torch.where(bad, share / bad.sum(), (1 - share) / benign.sum())
        delta, good = made(Median(by=Mean(by_size=True)), report._replace(size=sizes)), report.delta[benign]
        assert bool(((delta >= good.amin(0)) & (delta <= good.amax(0))).all()), seed


@dtypes
def test_krum_takes_a_benign_row_and_multi_krum_averages_benign_rows(dtype: torch.dtype) -> None:
    for seed in SEEDS:
        report, benign, f = attacked(seed, dtype, least=4, gross=True)
        good = report.delta[benign]
        assert bool((good == made(Krum(f=f), report)).all(1).any()), seed
        if len(report.delta) >= 2 * f + 3:
            mean = good.double().mean(0)
            assert float((made(MultiKrum(f=f), report).double() - mean).abs().max()) <= 1e-5 * float(good.abs().max())


@dtypes
def test_bulyan_stays_within_the_benign_rows(dtype: torch.dtype) -> None:
    for seed in SEEDS:
        report, benign, f = attacked(seed, dtype, least=5, gross=True)
        if len(report.delta) >= 4 * f + 3:
            delta, good = made(Bulyan(f=f), report), report.delta[benign]
            assert bool(((delta >= good.amin(0)) & (delta <= good.amax(0))).all()), seed


@dtypes
def test_mixed_rows_are_made_of_benign_ones(dtype: torch.dtype) -> None:
    """Those of benign devices; the malicious ones' are as far out as ever, for the defence behind it."""
    for seed in SEEDS:
        report, benign, f = attacked(seed, dtype, gross=True)
        seen: list[Report] = []

        def watched(report: Report, seen: list[Report] = seen) -> Tensor:
            seen.append(report)
            return report.delta[0]

        made(NearestNeighbourMixing(f=f, then=Stateless(watched)), report)
        good, near = report.delta[benign], seen[0].delta[benign]
        low, high = (good.amin(0) - 1e-5, good.amax(0) + 1e-5)
        assert bool(((near >= low) & (near <= high)).all()), seed
        delta = made(NearestNeighbourMixing(f=f, then=TrimmedMean(f=f)), report)
        assert bool(((delta >= low) & (delta <= high)).all()), seed


@dtypes
def test_the_geometric_median_keeps_its_bound(dtype: torch.dtype) -> None:
    for seed in SEEDS:
        report, benign, _ = attacked(seed, dtype)
        left = sound(report)[0]
        alpha = 1 - float(benign.sum()) / len(left.delta)
        good = report.delta[benign].double()
        x = good.mean(0)
        radius = float((good - x).norm(dim=1).max())
        away = float((made(GeometricMedian(), report).double() - x).norm())
        assert away <= 2 * (1 - alpha) / (1 - 2 * alpha) * radius + 1e-6 + 1e-5 * float(good.norm(dim=1).max()), seed


@dtypes
def test_clipping_keeps_its_bounds(dtype: torch.dtype) -> None:
    for seed in SEEDS:
        report, benign, _ = attacked(seed, dtype)
        longest = float(report.delta[benign].double().norm(dim=1).max())
        assert float(made(Clip(norm=0.5), report).double().norm()) <= 0.5 * (1 + 1e-6)
        assert float(made(Clip(), report).double().norm()) <= longest * (1 + 1e-6)
        left = sound(report)[0]
        rule = CentredClip(norm=0.25, steps=3)
        state = rule.init(left.delta[0])
        for _ in range(4):
            before = state.v
            delta, state = rule(left, state)
            assert float((delta - before).double().norm()) <= 3 * 0.25 * (1 + 1e-5) + 1e-6 * float(before.norm())


@dtypes
def test_no_row_weighs_more_than_its_length_allows(dtype: torch.dtype) -> None:
    """FedMGDA+ counts directions; q-FedAvg's step on a row of length R is η F / (q R)."""
    for seed in SEEDS:
        report, _, _ = attacked(seed, dtype)
        assert float(made(MGDA(eps=0.3), report).double().norm()) <= 1 + 1e-6
        one = Report(report.delta.new_full((1, 3), 1e30), torch.ones(1), torch.full((1,), 2.0))
        assert float(made(QFFL(q=1.0, lr=0.1), one).double().norm()) <= 0.1 * 2 / (3**0.5 * 1e30) * (1 + 1e-5)
