"""The server of RSA."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from dittofl.errors import nonnegative, positive
from dittofl.types import Report, State, Vector


@dataclass(frozen=True, kw_only=True)
class Votes:
    """w^{t+1} = w^t + η (λ m δ − ρ w^t),  δ the aggregate of sign(Δ_1) … sign(Δ_m): Σ_k sign(Δ_k) = m δ for the mean.

    Li, Xu, Chen, Giannakis, Ling 2019, Algorithm 2, with f₀(w) = ρ/2 ‖w‖² (`decay`). Goes with the solver `RSA`; λ and
    η are the server's own, in the paper the devices'. Whatever f devices send, their votes are in [−1, 1]: they move a
    coordinate of w by at most f λ η in a round, under the mean.

    >>> import torch
    >>> server, w = Votes(lam=0.5, lr=0.1), torch.zeros(1)
    >>> report = server.receive(Report(torch.tensor([[1e30], [1.0], [0.0]]), torch.ones(3)))
    >>> server.step(w, report.delta.mean(0), report, server.init(w, 9))[0]
    tensor([0.1000])
    """

    lam: float
    lr: float
    decay: float = 0.0
    solver: ClassVar[str] = "RSA"

    def __post_init__(self) -> None:
        positive("Votes", "lam", self.lam)
        positive("Votes", "lr", self.lr)
        nonnegative("Votes", "decay", self.decay)

    def init(self, w0: Vector, K: int) -> tuple[()]:
        return ()

    def down(self, state: State) -> Tensor | None:
        return None

    def receive(self, report: Report) -> Report:
        return report._replace(delta=report.delta.sign())

    def step(self, w: Vector, delta: Vector, report: Report, state: State) -> tuple[Vector, State]:
        return w + self.lr * (self.lam * len(report.delta) * delta - self.decay * w), state
