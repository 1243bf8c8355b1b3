"""As far from the honest mean as honest updates are from one another (Shejwalkar, Houmansadr 2021).

Both constraints are quadratic in γ, so the largest γ is a root; the paper finds it by halving steps.
"""

from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor

from dittofl.attack.colluding import distances, seen, sending, spread
from dittofl.attack.updates import Draw
from dittofl.errors import an_instance, require, short
from dittofl.types import Report, Vector


class Along(Enum):
    """The perturbation p of the mean μ."""

    UNIT = "−μ/‖μ‖"
    SIGN = "−sign μ"
    STD = "−σ"

    def __repr__(self) -> str:
        return str(self)

    def of(self, rows: Tensor) -> Vector:
        """p of some rows; the zero row where they have none."""
        mean = rows.mean(0)
        if self is Along.STD:
            return -spread(rows)
        return -mean.sign() if self is Along.SIGN else -torch.nn.functional.normalize(mean, dim=0)


@dataclass(frozen=True, kw_only=True)
class MinMax:
    """Δ_k ← μ + γ p, the largest γ with max_i ‖μ + γ p − Δ_i‖ ≤ max_{i,j} ‖Δ_i − Δ_j‖ over the benign i, j.

    Without `omniscient` over the attackers' own updates. `along` chooses p. Rows that are all equal leave no room, and
    their mean is sent; one row has its own norm as room.

    >>> report = Report(delta=torch.tensor([[9.0], [1.0], [3.0]]), size=torch.ones(3))
    >>> MinMax()(report, torch.tensor([True, False, False]), torch.Generator).delta.flatten().tolist()
    [1.0, 1.0, 3.0]
    """

    along: Along = Along.STD
    omniscient: bool = True

    def __post_init__(self) -> None:
        known("MinMax", self.along)

    def __call__(self, report: Report, who: Tensor, draw: Draw) -> Report:
        rows = seen(report, who, self.omniscient)
        p, centred = self.along.of(rows), rows - rows.mean(0)
        room = distances(rows).max() - centred.square().sum(1)
        return sending(report, who, rows.mean(0) + root(p.square().sum(), -centred @ p, room).min() * p)


@dataclass(frozen=True, kw_only=True)
class MinSum:
    """Δ_k ← μ + γ p, the largest γ with Σ_i ‖μ + γ p − Δ_i‖² ≤ max_i Σ_j ‖Δ_i − Δ_j‖² over the benign i, j.

    Closer to the mean than `MinMax`, with the same choices.

    >>> report = Report(delta=torch.tensor([[9.0], [1.0], [3.0]]), size=torch.ones(3))
    >>> round(MinSum()(report, torch.tensor([True, False, False]), torch.Generator).delta[0].item(), 6)
    1.0
    """

    along: Along = Along.STD
    omniscient: bool = True

    def __post_init__(self) -> None:
        known("MinSum", self.along)

    def __call__(self, report: Report, who: Tensor, draw: Draw) -> Report:
        rows = seen(report, who, self.omniscient)
        p, centred = self.along.of(rows), rows - rows.mean(0)
        room = distances(rows).sum(1).max() - centred.square().sum()
        return sending(report, who, rows.mean(0) + root(len(rows) * p.square().sum(), -(centred @ p).sum(), room) * p)


def known(owner: str, along: object) -> None:
    """Refuses what is no perturbation."""
    require(an_instance(along, Along), f"{owner} needs along=Along.UNIT, SIGN or STD, got along={short(along)}")


def root(a: Tensor, b: Tensor, room: Tensor) -> Tensor:
    """The larger root of a γ² + 2 b γ = room; 0 where a = 0."""
    return ((b.square() + a * room.clamp(min=0)).sqrt() - b) / a.clamp(min=torch.finfo(a.dtype).tiny)
