"""FedMGDA+."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from dittofl.aggregate.cohort import Cohort, on_report
from dittofl.aggregate.weighting import Weights, average, equal, nothing, ones
from dittofl.errors import InputError, finite, positive, require, short
from dittofl.types import State

EXACT = {"primal_tol": 1e-12, "dual_tol": 1e-14, "iter_limit": 100_000}


@dataclass(frozen=True, kw_only=True)
class MGDA:
    """δ = η_s Σ_k λ_k u_k,  u_k = Δ_k / ‖Δ_k‖,  λ = argmin ‖Σ_k λ_k u_k‖²  over  Σ λ = 1, λ ≥ 0, |λ_k − 1/m| ≤ ε.

    Hu, Shaloudegi, Zhang, Yu 2022 (FedMGDA+). With ε = 1, δ goes down on every device's loss where any direction does,
    and is 0 elsewhere; ε = 0 is the mean of unit rows. Li et al. 2021 take ε from 0, 0.1, 0.5, 1 and η_s = 1, which is
    `lr`: an update is then as long as 1, however short the devices' steps are. Each row counts 1/m + ε at most, and
    its length does not. A row of zeros stays one. The quadratic programme is solved by DAQP: ε > 0 needs the extra
    `mgda`.

    >>> from dittofl import Report
    >>> report = Report(torch.tensor([[3.0, 0.0], [0.0, 0.5]]), torch.ones(2))
    >>> MGDA(eps=0)(report, ())[0].tolist()
    [0.5, 0.5]
    """

    eps: float
    lr: float = 1.0
    losses: ClassVar[bool] = False

    init, combine, __call__ = nothing, average, on_report

    def __post_init__(self) -> None:
        require(finite(self.eps) and 0 <= self.eps <= 1, f"MGDA needs 0 ≤ eps ≤ 1, got eps={short(self.eps)}")
        positive("MGDA", "lr", self.lr)
        if self.eps:
            programme()

    def weigh(self, cohort: Cohort, state: State) -> tuple[Weights, State]:
        norms = cohort.norms()
        c = torch.where(norms > 0, 1 / norms, 0)
        free = self.eps > 0 and len(cohort) > 1 and bool(norms.any())
        p = least(cohort.scaled(c), self.eps) if free else equal(cohort)
        return Weights(p, self.lr * c * ones(cohort)), state


def least(units: Cohort, eps: float) -> Tensor:
    """λ of the shortest Σ_k λ_k u_k, for rows u_k of length 1 or 0.

    About one of them, r: ‖r + Σ λ_k y_k‖² with y_k = u_k − r, 2 r·y_k = ‖u_k‖² − ‖r‖² − ‖y_k‖². So rows that are near
    to each other are told apart by their differences.
    """
    m, centre = len(units), int((units.c > 0).nonzero()[0])
    gram = units.gram(centre)
    along = ((units.c > 0).double() - 1 - gram.diagonal()) / 2
    scale = float(gram.diagonal().max()) or 1.0
    low, high = max(0.0, 1 / m - eps), min(1.0, 1 / m + eps)
    bounds = [np.append(np.full(m, end), 1.0) for end in (high, low)]
    kinds = np.append(np.zeros(m), 5).astype(np.int32)  # 5: Σ λ = 1 is an equation
    lam, _, flag, _ = programme()(
        (gram / scale).numpy(), (along / scale).numpy(), np.ones((1, m)), *bounds, kinds, **EXACT
    )
    require(flag > 0, f"MGDA's quadratic programme of {m} rows was not solved (DAQP says {flag}): raise or lower eps")
    return torch.from_numpy(np.asarray(lam, dtype=np.float64).copy()).clamp(low, high)


def programme() -> Any:
    """DAQP's solver."""
    try:
        from daqp import solve
    except ImportError as error:
        raise InputError("MGDA with eps > 0 needs daqp: pip install 'dittofl[mgda]'") from error
    return solve
