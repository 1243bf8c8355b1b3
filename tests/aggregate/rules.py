"""Rules and compositions that are tried, and how far each is from its formula."""

import dataclasses
from itertools import product
from typing import Any

import numpy as np
import torch

from dittofl import (
    AFL,
    QFFL,
    Bucketing,
    Bulyan,
    CentredClip,
    Clip,
    GeometricMedian,
    KLoss,
    KNorm,
    Krum,
    Mean,
    Median,
    MultiKrum,
    NearestNeighbourMixing,
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
    CentredClip(), CentredClip(norm=0.7, steps=3), NearestNeighbourMixing(ratio=0.3), Bucketing(size=3, seed=5),
    Bulyan(f=1), Bulyan(ratio=0.2),
]  # fmt: skip
CHAINS: list[Any] = [
    Clip(then=MultiKrum(f=2, then=Tilt(t=1.0))),
    KNorm(f=1, then=Clip(norm=0.5, then=Krum(f=1))),
    MultiKrum(f=1, then=Clip(then=Median(by=Tilt(t=1.0)))),
    Clip(norm=1.0, then=GeometricMedian(by=Mean(by_size=True))),
    KNorm(ratio=0.2, then=MultiKrum(f=1, then=TrimmedMean(f=1, by=QFFL(q=1.0, lr=0.1)))),
    Clip(then=CentredClip(by=AFL(lr=0.1))),
    NearestNeighbourMixing(f=1, then=Krum(f=1, then=Mean(by_size=True))),
    Bucketing(size=2, then=NearestNeighbourMixing(f=1, then=TrimmedMean(f=1))),
]  # fmt: skip
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}


def composed(defence: Any, objective: Any) -> Any:
    fields = {field.name for field in dataclasses.fields(defence)}
    return dataclasses.replace(defence, **{(fields & {"then", "by"}).pop(): objective})


def error(rule: Any, report: Report, device: str = "cpu") -> float:
    """How far δ is from its formula, by the longest row if that is above 1."""
    given = Report(*(None if field is None else field.to(device) for field in report))  # type: ignore[arg-type]
    if given.delta.shape[1] == 1 and "GeometricMedian" in str(rule):
        return 0.0  # not one number, but all between the two in the middle: a test of its own
    ours, _ = rule(given, rule.init(given.delta[0]))
    if (ours.dtype, ours.device) != (given.delta.dtype, given.delta.device):
        return float("inf")
    longest = max(1.0, float(report.delta.double().norm(dim=1).max()))
    return float(np.abs(ours.double().cpu().numpy() - naive.of(rule, report)).max()) / longest


ALONE = [*OBJECTIVES, *DEFENCES, *CHAINS]
COMPOSED = [composed(d, o) for d, o in product(DEFENCES, OBJECTIVES[1:])]
