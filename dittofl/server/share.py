"""The server that keeps the mean of all personal models."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from dittofl.types import Report, State, Vector


@dataclass(frozen=True, kw_only=True)
class Share:
    """w^{t+1} = w^t + (m/K) δ, that is w^t + (1/K) Σ_{k∈S} Δ_k where δ is the mean of m reports.

    Where devices send v_k new − v_k old and v_k⁰ = w⁰, w is then the mean of all K personal models at every round,
    however few of them were visited (`L2SGD`). Malicious or dropped reports leave it another mean for good.

    >>> import torch
    >>> report, w = Report(torch.ones(2, 1), torch.ones(2)), torch.zeros(1)
    >>> Share().step(w, report.delta.mean(0), report, Share().init(w, 8))[0]
    tensor([0.2500])
    """

    solver: ClassVar[str] = "L2SGD"

    def init(self, w0: Vector, K: int) -> Tensor:
        return w0.new_tensor(K)

    def down(self, state: Tensor) -> Tensor | None:
        return None

    def step(self, w: Vector, delta: Vector, report: Report, state: Tensor) -> tuple[Vector, State]:
        return w + len(report.delta) / state * delta, state
