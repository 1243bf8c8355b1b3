"""Attacks on the update: what malicious devices send in place of Δ_k."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from dittofl.errors import positive
from dittofl.types import Report

Draw = Callable[[int], torch.Generator]  # row of the cohort → its generator for this round


class UpdateAttack(Protocol):
    """Rewrites the malicious rows of a report; it may read all of it (colluding attackers)."""

    def __call__(self, report: Report, who: Tensor, draw: Draw) -> Report:
        """The report as the server receives it; `who` [m] marks the malicious rows."""


@dataclass(frozen=True, kw_only=True)
class Gaussian:
    """Δ_k ← s z, z ~ N(0, I), s = `std` or the standard deviation of the entries of the device's own Δ_k.

    Attack A2 of Li et al. 2021 ("zero-mean Gaussian parameters"); with the default s, as in the authors' program, the
    noise has the energy of a real update.

    >>> Gaussian().std is None
    True
    """

    std: float | None = None

    def __post_init__(self) -> None:
        if self.std is not None:
            positive("Gaussian", "std", self.std)

    def __call__(self, report: Report, who: Tensor, draw: Draw) -> Report:
        delta = report.delta.clone()
        for row in torch.nonzero(who).flatten().tolist():
            scale = delta[row].std(correction=0) if self.std is None else self.std
            delta[row] = scale * torch.randn(
                delta.shape[1], generator=draw(row), dtype=delta.dtype, device=delta.device
            )
        return report._replace(delta=delta)


@dataclass(frozen=True, kw_only=True)
class Replace:
    """Δ_k ← c Δ_k with c = `factor`, or the cohort's size: after the mean one attacker's update stands as a whole.

    Attack A3 of Li et al. 2021 (model replacement, in the authors' program scaling by the devices per round).

    >>> report = Report(delta=torch.tensor([[1.0], [1.0]]), size=torch.ones(2))
    >>> Replace()(report, torch.tensor([True, False]), torch.Generator).delta.flatten().tolist()
    [2.0, 1.0]
    """

    factor: float | None = None

    def __post_init__(self) -> None:
        if self.factor is not None:
            positive("Replace", "factor", self.factor)

    def __call__(self, report: Report, who: Tensor, draw: Draw) -> Report:
        factor = len(report.delta) if self.factor is None else self.factor
        return report._replace(delta=torch.where(who[:, None], factor * report.delta, report.delta))


@dataclass(frozen=True, kw_only=True)
class SignFlip:
    """Δ_k ← −c Δ_k, c = `factor`: away from where honest training goes.

    >>> report = Report(delta=torch.tensor([[1.0], [1.0]]), size=torch.ones(2))
    >>> SignFlip()(report, torch.tensor([True, False]), torch.Generator).delta.flatten().tolist()
    [-1.0, 1.0]
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        positive("SignFlip", "factor", self.factor)

    def __call__(self, report: Report, who: Tensor, draw: Draw) -> Report:
        return report._replace(delta=torch.where(who[:, None], -self.factor * report.delta, report.delta))
