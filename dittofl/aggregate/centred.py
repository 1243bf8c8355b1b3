"""Centred clipping."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from dittofl.aggregate import weighting
from dittofl.aggregate.cohort import Cohort, on_report
from dittofl.aggregate.geometric import distances
from dittofl.aggregate.mean import mean
from dittofl.aggregate.ranks import median
from dittofl.aggregate.weighting import Weighting
from dittofl.errors import positive, whole
from dittofl.types import Numbers, State, Vector


class Centre(NamedTuple):
    """What is remembered: the last δ, and what `by` remembers."""

    v: Vector
    by: State


@dataclass(frozen=True, kw_only=True)
class CentredClip:
    """v ← v + Σ_k p_k (Δ_k − v) min(1, τ / ‖Δ_k − v‖),  `steps` times from the last round's δ;  δ = v.

    Karimireddy, He, Jaggi 2021, the server's side of it, without momentum on the devices. τ = `norm`, or without it the
    median of the cohort's distances to v at first. v⁰ = 0, so that the first round is `Clip`. p is 1/m, or that of the
    fair objective `by`, for rows c_k Δ_k. τ → ∞ is the mean. A step moves v by τ at most, of which row k accounts for
    p_k τ at most: δ is never further than `steps` τ from the last one, whatever the rows are.

    >>> from dittofl import Report
    >>> rule, rows = CentredClip(norm=1.0), torch.tensor([[3.0], [3.5], [-1e30]])
    >>> first, state = rule(Report(rows, torch.ones(3)), rule.init(rows[0]))
    >>> round(first.item(), 4), round(rule(Report(rows, torch.ones(3)), state)[0].item(), 4)
    (0.3333, 0.6667)
    """

    norm: float | None = None
    steps: int = 1
    by: Weighting = mean

    __call__ = on_report

    def __post_init__(self) -> None:
        weighting.check_by(self)
        whole("CentredClip", "steps", self.steps, 1)
        if self.norm is not None:
            positive("CentredClip", "norm", self.norm)

    @property
    def losses(self) -> bool:
        return self.by.losses

    def init(self, w0: Vector) -> Centre:
        return Centre(torch.zeros_like(w0), self.by.init(w0))

    def combine(self, cohort: Cohort, state: Centre) -> tuple[Vector, State]:
        (p, c), by = self.by.weigh(cohort, state.by)
        rows, v = cohort.scaled(c), state.v
        away = rows.norms(v, rough=True)
        most = median(away) if self.norm is None else self.norm
        moved = p * bounded(away, most)
        if self.steps > 1:
            moved = self.again(rows.gram(v).numpy(), p, most, moved)
        v = (1 - float(moved.sum())) * v + rows.sum(moved)
        return v, Centre(v, by)

    def again(self, gram: Numbers, p: Tensor, most: float, moved: Tensor) -> Tensor:
        """The further steps: v is Σ_k moved_k x_k away from where it was, gram that of the x_k = Δ_k − v."""
        for _ in range(self.steps - 1):
            step = p * bounded(torch.from_numpy(distances(gram, moved.numpy())), most)
            moved = step + (1 - step.sum()) * moved
        return moved


def bounded(away: Tensor, most: float) -> Tensor:
    """min(1, τ / ‖·‖)."""
    return torch.where(away > most, most / away, 1.0)
