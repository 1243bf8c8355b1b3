"""Local model poisoning made for one defence: Krum, or the trimmed mean (Fang, Cao, Jia, Gong 2020).

The paper's local models are here the updates: what the server compares is the same, as w^t is added to all of them.
Only the reach of the attack on the trimmed mean is then a multiple of the largest update, not of the largest parameter.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dittofl.attack.colluding import distances, seen, sending, spread
from dittofl.attack.updates import Draw
from dittofl.errors import positive, require, short
from dittofl.types import Report, Vector


@dataclass(frozen=True, kw_only=True)
class FangKrum:
    """Δ_k ← −λ s, s = sign of the mean update, λ the largest of λ₀, λ₀/2, λ₀/4, … for which Krum picks this row.

    λ₀ = √(min_i Σ_{l near i} ‖Δ_l − Δ_i‖² / ((m − 2f − 1) P)) + max_i ‖Δ_i‖ / √P  (Theorem 1) over benign i, l, the
    m − f − 2 nearest. All f attackers send the same row. Below `threshold` the search stops, and that λ is sent.
    Without `omniscient` the attackers' own updates stand for the benign ones, with one crafted row among them, or two,
    … f, where Krum picks none above the threshold of fewer. A tie counts as picked.

    >>> report = Report(delta=torch.tensor([[9.0], [1.0], [1.5], [0.0], [0.5]]), size=torch.ones(5))
    >>> FangKrum()(report, torch.tensor([True] + 4 * [False]), torch.Generator).delta.flatten().tolist()[0] < 0
    True
    """

    omniscient: bool = True
    threshold: float = 1e-5

    def __post_init__(self) -> None:
        positive("FangKrum", "threshold", self.threshold)

    def __call__(self, report: Report, who: Tensor, draw: Draw) -> Report:
        rows, f = seen(report, who, self.omniscient), int(who.sum())
        direction, lam = rows.mean(0).sign(), 0.0
        for crafted in (f,) if self.omniscient else range(1, f + 1):
            lam = largest(rows, direction, crafted, self.threshold)
            if lam >= self.threshold:
                break
        return sending(report, who, -lam * direction)


def largest(rows: Tensor, direction: Vector, f: int, threshold: float) -> float:
    """λ for f rows −λ s among these."""
    pairs, square = distances(rows).double(), torch.linalg.vector_norm(rows, dim=1).double().square()
    along, P = (rows @ direction).double(), float(direction.square().sum())
    others, near = pairs.sort(1).values[:, 1:], max(len(rows) - 2, 0)  # m − f − 2 of the m − f
    bound = others[:, :near].sum(1).min() / (max(len(rows) - f - 1, 1) * rows.shape[1])
    lam = float(bound.sqrt() + square.max().sqrt() / rows.shape[1] ** 0.5)
    while threshold <= lam < float("inf"):
        to_crafted = (square + 2 * lam * along + lam**2 * P).clamp(min=0)
        benign = torch.cat([others, to_crafted[:, None].expand(-1, f)], 1).sort(1).values[:, :near].sum(1)
        crafted = to_crafted.sort().values[: max(near - f + 1, 0)].sum()
        if bool(crafted <= benign.min()):
            break
        lam /= 2
    return lam


@dataclass(frozen=True, kw_only=True)
class FangTrimmedMean:
    """Δ_kj ~ U(beyond the benign rows' extreme, against the sign of their mean): up to `reach` times that extreme.

    Where the mean rises, between min_j and min_j / b (min_j > 0) or b min_j (else); where it falls, between max_j and
    b max_j (max_j > 0) or max_j / b (else), b = `reach` (the paper's 2). Without `omniscient`, by mean and standard
    deviation of the attackers' own updates: μ_j ∓ U(3, 4) σ_j. Each attacker draws its own row. The median falls too.

    >>> report = Report(delta=torch.tensor([[9.0], [1.0], [3.0]]), size=torch.ones(3))
    >>> who = torch.tensor([True, False, False])
    >>> 0.5 <= FangTrimmedMean()(report, who, lambda row: torch.Generator().manual_seed(row)).delta[0].item() <= 1
    True
    """

    omniscient: bool = True
    reach: float = 2.0

    def __post_init__(self) -> None:
        positive("FangTrimmedMean", "reach", self.reach)
        require(self.reach > 1, f"FangTrimmedMean needs reach > 1, got reach={short(self.reach)}")

    def __call__(self, report: Report, who: Tensor, draw: Draw) -> Report:
        rows, delta = seen(report, who, self.omniscient), report.delta.clone()
        near, far = self.beyond(rows) if self.omniscient else estimated(rows)
        for row in torch.nonzero(who).flatten().tolist():
            u = torch.rand(delta.shape[1], generator=draw(row), dtype=delta.dtype, device=delta.device)
            delta[row] = near + u * (far - near)
        return report._replace(delta=delta)

    def beyond(self, rows: Tensor) -> tuple[Vector, Vector]:
        """Where draws begin and end: past the largest value where the mean falls, below the smallest where it rises."""
        low, high = rows.amin(0), rows.amax(0)
        falls = rows.mean(0) < 0
        up, down = high > 0, low > 0
        b = self.reach
        return torch.where(falls, high, low), torch.where(
            falls, torch.where(up, b * high, high / b), torch.where(down, low / b, b * low)
        )


def estimated(rows: Tensor) -> tuple[Vector, Vector]:
    """Three and four standard deviations against the sign of the mean."""
    mean = rows.mean(0)
    sigma = torch.where(mean < 0, -1, 1) * spread(rows)
    return mean - 3 * sigma, mean - 4 * sigma
