"""The server that keeps several models."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from dittofl.errors import nonnegative, require, whole
from dittofl.seeds import Purpose, generator
from dittofl.types import Report, State, Vector


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """c_j ← c_j + δ_j,  δ_j the aggregate of the Δ_k that were begun at centre j;  w = (1/C) Σ_j c_j.

    Ghosh et al. 2020 (IFCA); HypCluster of Mansour et al. 2020. Goes with the solver `IFCA`. The method's aggregator
    sees the reports of each centre apart. c_0⁰ = w⁰ and c_j⁰ = w⁰ + `spread` z_j, z_j ~ N(0, I) of `seed`, so that the
    centres differ. One centre is `Add`. w is for what runs beside; devices serve the centre they chose last.

    >>> server = Clusters(groups=2)
    >>> server.init(torch.zeros(3), 10).shape
    torch.Size([2, 3])
    """

    groups: int
    spread: float = 0.1
    seed: int = 0
    solver: ClassVar[str] = "IFCA"

    def __post_init__(self) -> None:
        whole("Clusters", "groups", self.groups, 1)
        nonnegative("Clusters", "spread", self.spread)
        whole("Clusters", "seed", self.seed, 0)

    def init(self, w0: Vector, K: int) -> Tensor:
        centres = w0.repeat(self.groups, 1)
        for j in range(1, self.groups):
            draw = generator(self.seed, Purpose.CENTRES, j)
            centres[j] += self.spread * torch.randn(len(w0), generator=draw, dtype=torch.float64).to(w0)
        return centres

    def down(self, state: Tensor) -> Tensor:
        return state

    def group(self, report: Report) -> Tensor:
        require(report.extra is not None, "Clusters needs the centre's number beside every Δ: use the solver IFCA")
        return report.extra.long().clamp(0, self.groups - 1)  # type: ignore[union-attr]

    def step(self, w: Vector, delta: Tensor, report: Report, state: Tensor) -> tuple[Vector, State]:
        centres = state + delta
        return centres.mean(0), centres
