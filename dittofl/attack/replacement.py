"""Model replacement by the formula of its authors."""

from dataclasses import dataclass

from torch import Tensor

from dittofl.attack.colluding import finite, seen, sending
from dittofl.attack.updates import Draw
from dittofl.errors import positive, whole
from dittofl.types import Report


@dataclass(frozen=True, kw_only=True)
class ModelReplacement:
    """Δ_k ← γ (X − w) / f, γ = n/η, X the model that the f attackers reached: the server's next w is about X.

    Bagdasaryan, Veit, Hua, Estrin, Shmatikov 2020, equation 3: the model sent is γ (X − w) + w. X − w is the mean of
    the attackers' own updates, which they share out, so that X stands once; η is the server's step and n the reports
    that it averages, by default the cohort's but for benign ones that are not finite, which are dropped. With
    `omniscient` the benign updates are taken off (the exact form that it approximates), and w becomes X under the plain
    mean. `Replace` (A3) scales each attacker's own update by the cohort instead: f attackers overshoot f times, the
    server's step is not made up for, and benign updates stay.

    >>> import torch
    >>> report = Report(delta=torch.tensor([[2.0], [1.0], [3.0]]), size=torch.ones(3))
    >>> ModelReplacement(omniscient=True)(report, torch.tensor([True, False, False]), torch.Generator).delta.mean()
    tensor(2.)
    """

    n: int | None = None
    eta: float = 1.0
    omniscient: bool = False

    def __post_init__(self) -> None:
        positive("ModelReplacement", "eta", self.eta)
        if self.n is not None:
            whole("ModelReplacement", "n", self.n, 1)

    def __call__(self, report: Report, who: Tensor, draw: Draw) -> Report:
        if not bool(who.any()):
            return report
        others = finite(report.delta[~who])
        n = self.n or int(who.sum()) + len(others)
        row = n / self.eta * seen(report, who, False).mean(0)
        if self.omniscient:
            row = row - others.sum(0)
        return sending(report, who, row / who.sum())
