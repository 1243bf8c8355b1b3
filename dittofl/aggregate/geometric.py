"""The geometric median."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dittofl.aggregate import weighting
from dittofl.aggregate.cohort import Cohort, on_report
from dittofl.aggregate.distances import TRUSTED, amidst, apart
from dittofl.aggregate.mean import mean
from dittofl.aggregate.weighting import Weighting
from dittofl.errors import positive, whole
from dittofl.types import Numbers, State, Vector

STILL = 1e-13  # of the mean distance: a step that is shorter is the last
FAR = 1e3  # shares as large cancel each other, and digits with them


@dataclass(frozen=True, kw_only=True)
class GeometricMedian:
    """δ = argmin_z Σ_k p_k ‖z − Δ_k‖,  by  z ← Σ_k β_k Δ_k / Σ_k β_k,  β_k = p_k / max(ν, ‖z − Δ_k‖).

    Pillutla, Kakade, Harchaoui 2022 (RFA): the smoothed Weiszfeld algorithm, begun at the mean, until it stands still
    or for `steps` steps, each repeated while the next one would go on its way. They find 3 plain steps
    enough; here steps cost nothing, as all happen in the m weights, from one Gram matrix. p is 1/m, or that of the fair
    objective `by`, for rows c_k Δ_k. While the malicious weights sum to α < ½:  ‖δ − x‖ ≤ 2 (1 − α)/(1 − 2α) max over
    benign k of ‖Δ_k − x‖ + ν, for every x (Lopuhaä, Rousseeuw 1991). For P = 1 it is a median.

    >>> import torch
    >>> from dittofl import Report
    >>> rows = torch.tensor([[0.0, 0.0], [1e30, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> [round(x, 2) for x in GeometricMedian()(Report(rows, torch.ones(5)), ())[0].tolist()]
    [0.81, 0.5]
    """

    by: Weighting = mean
    nu: float = 1e-6
    steps: int = 1000

    init, __call__ = weighting.begin_by, on_report

    def __post_init__(self) -> None:
        weighting.check_by(self)
        positive("GeometricMedian", "nu", self.nu)
        whole("GeometricMedian", "steps", self.steps, 1)

    @property
    def losses(self) -> bool:
        return self.by.losses

    def combine(self, cohort: Cohort, state: State) -> tuple[Vector, State]:
        weights, state = self.by.weigh(cohort, state)
        rows = cohort.scaled(weights.c)
        share = self.converged(amidst_gram(rows).numpy(), weights.p.numpy())
        return rows.sum(torch.from_numpy(share)), state

    def converged(self, gram: Numbers, p: Numbers) -> Numbers:
        """β / Σ β, for rows with this Gram matrix; in numpy, whose calls are short enough for many steps."""
        share, heavy, about = p, -1, gram
        for _ in range(self.steps):
            # z comes as near as ν to a row that has nearly all weight: told from it by the others' small weights alone.
            if int(share.argmax()) != heavy:
                heavy = int(share.argmax())
                about = gram - gram[heavy] - gram[:, heavy, None] + gram[heavy, heavy]
                lengths = np.sqrt(about.diagonal().clip(0))
            step, away = self.step(about, p, share)
            share = share + step
            if np.abs(step) @ lengths <= STILL * (share @ away):
                break
            share = self.further(about, p, share)
        return share

    def step(self, gram: Numbers, p: Numbers, share: Numbers) -> tuple[Numbers, Numbers]:
        """From these shares to the next, and ‖z − Δ_k‖."""
        away = distances(gram, share)
        beta = p / np.maximum(away, self.nu)
        return beta / beta.sum() - share, away

    def further(self, gram: Numbers, p: Numbers, share: Numbers) -> Numbers:
        """1, 2, 4, … of the next step at once, while the one after would go on: thousands where the sum is flat."""
        step, stride = self.step(gram, p, share)[0], 0.0
        while (ahead := max(1.0, 2 * stride)) * np.abs(step).max() < FAR:
            if step @ gram @ self.step(gram, p, share + ahead * step)[0] <= 0:
                break
            stride = ahead
        return share + stride * step


def distances(gram: Numbers, share: Numbers) -> Numbers:
    """‖x_k − Σ_j a_j x_j‖ from the Gram matrix of the x."""
    along = gram @ share
    squares: Numbers = (gram.diagonal() - 2 * along + share @ along).clip(0)
    return np.sqrt(squares)


def amidst_gram(rows: Cohort) -> Tensor:
    """The Gram matrix about a row that half of the others are near to."""
    centre = amidst(rows)
    gram = rows.gram(centre)
    near = apart(gram).median(1).values
    better = int(near.argmin())
    return gram if near[better] >= TRUSTED * gram[better, better] else rows.gram(better)
