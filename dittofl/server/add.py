"""The plain server."""

from dataclasses import dataclass

from torch import Tensor

from dittofl.errors import positive
from dittofl.types import Report, State, Vector


@dataclass(frozen=True, kw_only=True)
class Add:
    """w^{t+1} = w^t + η_s δ  (Li et al. 2021, Algorithm 1 line 7; η_s = 1 in the paper).

    >>> Add().lr
    1.0
    """

    lr: float = 1.0

    def __post_init__(self) -> None:
        positive("Add", "lr", self.lr)

    def init(self, w0: Vector, K: int) -> tuple[()]:
        return ()

    def down(self, state: State) -> Tensor | None:
        return None

    def step(self, w: Vector, delta: Vector, report: Report, state: State) -> tuple[Vector, State]:
        return w + self.lr * delta, state
