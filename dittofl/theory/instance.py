"""One draw of federated linear regression, as a federation and a task that engines can train."""

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from dittofl.federation import Federation
from dittofl.losses import half_square
from dittofl.task import Task
from dittofl.theory.point import Array
from dittofl.theory.regression import Regression


class Instance(NamedTuple):
    """The devices' own models w_k and labels y_k; w* and v_k* are those of `Regression.estimate`."""

    problem: Regression
    w: Array  # [K, d]
    y: list[Array]

    @property
    def curvature(self) -> tuple[float, float]:
        """μ and L: every F_k is μ-strongly convex and L-smooth."""
        values = np.linalg.eigvalsh(self.problem.H)
        return float(values.min()), float(values.max())

    def federation(self) -> Federation:
        """Train parts (X_k, y_k); test parts whose mean ½ (⟨v, x⟩ − y)² is ‖v − w_k‖², the error of the theory."""
        probes = np.sqrt(2 * self.problem.d) * np.eye(self.problem.d)
        return Federation.from_parts(
            train={
                k: (torch.tensor(x), torch.tensor(y))
                for k, (x, y) in enumerate(zip(self.problem.X, self.y, strict=True))
            },
            test={k: (torch.tensor(probes), torch.tensor(probes @ w)) for k, w in enumerate(self.w)},
        )

    def task(self) -> Task:
        """⟨v, x⟩ with ½ (out − y)², begun at 0."""
        # Without a draw from torch's global generator.
        module = nn.utils.skip_init(nn.Linear, self.problem.d, 1, bias=False, dtype=torch.float64)
        nn.init.zeros_(module.weight)
        return Task(module, half_square)


def drawn(problem: Regression, rng: np.random.Generator) -> Instance:
    """w_k ~ N(0, τ_k² I), y_k = X_k w_k + z_k, z_k ~ N(0, σ² I)."""
    w = rng.normal(size=(problem.K, problem.d)) * problem.taus[:, None]
    return Instance(
        problem, w, [x @ w_k + problem.sigma * rng.normal(size=len(x)) for x, w_k in zip(problem.X, w, strict=True)]
    )
