"""Inner product manipulation: against the honest mean."""

from dataclasses import dataclass

from torch import Tensor

from dittofl.attack.colluding import seen, sending
from dittofl.attack.updates import Draw
from dittofl.errors import positive
from dittofl.types import Report


@dataclass(frozen=True, kw_only=True)
class IPM:
    """Δ_k ← −ε μ, μ the mean of the benign updates, or of the attackers' own without `omniscient`.

    Xie, Koyejo, Gupta 2020. A small ε stays among the benign rows and fools median and Krum; the plain mean of m rows
    with f attackers turns round for ε > (m − f)/f.

    >>> import torch
    >>> report = Report(delta=torch.tensor([[7.0], [1.0], [3.0]]), size=torch.ones(3))
    >>> IPM()(report, torch.tensor([True, False, False]), torch.Generator).delta.flatten().tolist()
    [-1.0, 1.0, 3.0]
    """

    epsilon: float = 0.5
    omniscient: bool = True

    def __post_init__(self) -> None:
        positive("IPM", "epsilon", self.epsilon)

    def __call__(self, report: Report, who: Tensor, draw: Draw) -> Report:
        return sending(report, who, -self.epsilon * seen(report, who, self.omniscient).mean(0))
