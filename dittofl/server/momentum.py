"""The server with momentum."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dittofl.errors import flag, fraction, positive
from dittofl.optimiser import Momentum
from dittofl.types import Report, State, Vector


@dataclass(frozen=True, kw_only=True)
class FedAvgM:
    """b ← β b + δ,  w^{t+1} = w^t + η_s b   (with `nesterov` w^t + η_s (δ + β b)).

    Hsu, Qi, Brown 2019: torch.optim.SGD with momentum on the pseudo-gradient −δ. β = 0 is `Add`; a constant δ is
    multiplied by η_s / (1 − β) in the end.

    >>> FedAvgM(beta=0.9).lr
    1.0
    """

    beta: float = 0.9
    lr: float = 1.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        fraction("FedAvgM", "beta", self.beta)
        positive("FedAvgM", "lr", self.lr)
        flag("FedAvgM", "nesterov", self.nesterov)

    def init(self, w0: Vector, K: int) -> Tensor:
        return torch.zeros_like(w0)

    def down(self, state: State) -> Tensor | None:
        return None

    def step(self, w: Vector, delta: Vector, report: Report, state: Tensor) -> tuple[Vector, Tensor]:
        d, b = Momentum(beta=self.beta, nesterov=self.nesterov).apply(delta, state, w)
        return w + self.lr * d, b
