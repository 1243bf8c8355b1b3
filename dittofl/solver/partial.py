"""Models of which a part stays on the device."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dittofl.errors import require, short, whole
from dittofl.optimiser import Chain, Rate, Walk, begin, descend, rate
from dittofl.solver import path
from dittofl.types import Ask, Down, Row, Sent, Steps, Vector


@dataclass(frozen=True, kw_only=True)
class Partial:
    """(u, v_k) ← (u, v_k) − η ∇F_k(u, v_k), begun at the shared part u of w^t and at v_k;  sent: Δu, and 0 for v_k.

    v_k are the parameters whose names match one of `own`. A head ("head.*") is FedPer (Arivazhagan et al. 2019); with
    `first` steps of v_k alone, then `steps` of u alone, FedRep (Collins et al. 2021); the body instead of the head is
    LG-FedAvg (Liang et al. 2020); batch norm's parameters are FedBN (Li et al. 2021). All of them is `Local`. What is
    sent is exactly 0 on v_k, so w stays w⁰ there, whatever else the server does.

    >>> Partial(own=("head.*",), lr=0.1, first=3).asks(2) == (Ask(),) * 5
    True
    """

    own: tuple[str, ...]
    lr: Rate
    steps: Steps = 1
    through: Chain = ()
    first: int = 0

    init, points = path.keep_a_model, path.where_it_stands

    def __post_init__(self) -> None:
        path.check(self)
        whole("Partial", "first", self.first, 0)
        require(
            isinstance(self.own, tuple) and self.own and all(isinstance(pattern, str) for pattern in self.own),
            f"Partial needs own=('head.*', …), patterns of parameter names, got own={short(self.own)}",
        )

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return (Ask(),) * (self.first + steps)

    def start(self, row: Row, down: Down) -> Walk:
        return begin(self.through, self.model(row, down))

    def step(self, s: Walk, down: Down, i: int, f: Tensor, g: Tensor) -> Walk:
        new = descend(s, g[0], rate(self.lr, down.t), self.through)
        if not self.first:
            return new
        # The position is masked, not the direction: decay and momentum would move what stands still.
        moves = self._own(down) if i < self.first else ~self._own(down)
        return new._replace(at=torch.where(moves, new.at, s.at))

    def keep(self, s: Walk, row: Row, down: Down) -> Row:
        return torch.where(self._own(down), s.at, row)

    def send(self, s: Walk, row: Row, down: Down) -> Sent:
        return Sent(torch.where(self._own(down), 0.0, s.at - down.w))

    def model(self, row: Row, down: Down) -> Vector:
        return torch.where(self._own(down), row, down.w)

    def _own(self, down: Down) -> Tensor:
        return down.layout.mask(*self.own).to(down.w.device)
