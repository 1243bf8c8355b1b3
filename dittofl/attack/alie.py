"""A little is enough: as far from the mean as honest updates are."""

from dataclasses import dataclass
from statistics import NormalDist

from torch import Tensor

from dittofl.attack.colluding import seen, sending, spread
from dittofl.attack.updates import Draw
from dittofl.errors import finite, require, short
from dittofl.types import Report

Z = 1.5  # of the authors' experiments


def quantile(m: int, f: int) -> float:
    """z = Φ⁻¹((m − f − s)/(m − f)), s = ⌊m/2 + 1⌋ − f: the benign rows beyond it make f attackers of m a majority.

    Where that is no z > 0 (few attackers, or nobody else), 1.5: with z = 0 there would be no attack.

    >>> round(quantile(50, 24), 4), quantile(10, 2)
    (1.4261, 1.5)
    """
    if f >= m:
        return Z
    share = (m - f - max(m // 2 + 1 - f, 1)) / (m - f)
    return NormalDist().inv_cdf(share) if share > 0.5 else Z


@dataclass(frozen=True, kw_only=True)
class ALIE:
    """Δ_k ← μ − z σ by coordinate, μ and σ (ddof 0) of the attackers' own updates, or of the benign with `omniscient`.

    Baruch, Baruch, Goldberg 2019 (Algorithm 3, with the sign of the authors' program; z < 0 goes to the other side). z
    is `quantile` of the cohort's size and its attackers unless it is given. One row has σ = |row|/2.

    >>> import torch
    >>> report = Report(delta=torch.tensor([[1.0], [3.0], [9.0]]), size=torch.ones(3))
    >>> ALIE(z=1.0)(report, torch.tensor([True, True, False]), torch.Generator).delta.flatten().tolist()
    [1.0, 1.0, 9.0]
    """

    z: float | None = None
    omniscient: bool = False

    def __post_init__(self) -> None:
        require(self.z is None or (finite(self.z) and self.z), f"ALIE needs a finite z ≠ 0, got z={short(self.z)}")

    def __call__(self, report: Report, who: Tensor, draw: Draw) -> Report:
        rows = seen(report, who, self.omniscient)
        z = quantile(len(who), int(who.sum())) if self.z is None else self.z
        return sending(report, who, rows.mean(0) - z * spread(rows))
