"""Reports that no honest device makes: rows of one value, false losses, sizes and extras."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dittofl.attack.updates import Draw
from dittofl.errors import finite, is_whole, require, short
from dittofl.types import Report


@dataclass(frozen=True, kw_only=True)
class Send:
    """Δ_k ← (c, …, c), c = `value`: NaN, ±Inf, 1e30, or any number.

    >>> report = Report(delta=torch.tensor([[1.0, 2.0], [3.0, 4.0]]), size=torch.ones(2))
    >>> Send(value=float("inf"))(report, torch.tensor([True, False]), torch.Generator).delta.tolist()
    [[inf, inf], [3.0, 4.0]]
    """

    value: float

    def __post_init__(self) -> None:
        require(number(self.value), f"Send needs value= to be a number, NaN or Inf, got value={short(self.value)}")

    def __call__(self, report: Report, who: Tensor, draw: Draw) -> Report:
        return report._replace(delta=report.delta.masked_fill(who[:, None], self.value))


@dataclass(frozen=True, kw_only=True)
class Forge:
    """F_k ← `loss`, n_k ← `size`, e_k ← `extra`; with `times`, F_k ← loss · F_k, and so on. Updates stay.

    For aggregators that weigh by losses (TERM, q-FFL, AFL) or by sizes; e_k is what some solvers send beside Δ_k, as
    `Scaffold` its Δc_k. What is not sent cannot be forged. A size that is not whole makes all sizes float64.

    >>> report = Report(delta=torch.zeros(2, 1), size=torch.tensor([5, 5]), loss=torch.tensor([0.5, 0.5]))
    >>> forged = Forge(loss=10.0, size=100, times=True)(report, torch.tensor([True, False]), torch.Generator)
    >>> forged.loss.tolist(), forged.size.tolist()
    ([5.0, 0.5], [500, 5])
    """

    loss: float | None = None
    size: float | None = None
    extra: float | None = None
    times: bool = False

    def __post_init__(self) -> None:
        given = {"loss": self.loss, "size": self.size, "extra": self.extra}
        require(any(value is not None for value in given.values()), "Forge needs loss=, size= or extra=: give one")
        for name, value in given.items():
            proper = value is None or number(value)
            require(proper, f"Forge needs {name}= to be a number, got {name}={short(value)}")

    def __call__(self, report: Report, who: Tensor, draw: Draw) -> Report:
        if self.loss is not None and report.loss is not None:
            report = report._replace(loss=self.forged(report.loss, self.loss, who))
        if self.extra is not None and report.extra is not None:
            report = report._replace(extra=self.forged(report.extra, self.extra, who))
        if self.size is not None:
            exact = is_whole(self.size, -(2**31)) and self.size < 2**31
            honest = report.size if exact else report.size.double()
            report = report._replace(size=self.forged(honest, self.size, who))
        return report

    def forged(self, honest: Tensor, value: float, who: Tensor) -> Tensor:
        """One field with the malicious devices' numbers."""
        who = who.view(-1, *[1] * (honest.dim() - 1))
        return torch.where(who, honest * value, honest) if self.times else honest.masked_fill(who, value)


def number(value: object) -> bool:
    """Whether this is a number, NaN and infinities included."""
    return isinstance(value, float) or finite(value)
