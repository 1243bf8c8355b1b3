"""Personal models on the Moreau envelope of F_k."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from torch import Tensor

from dittofl.errors import positive, whole
from dittofl.optimiser import Chain, Rate, rate
from dittofl.solver import path
from dittofl.types import Ask, Down, On, Row, Sent, Steps, Vector


class Envelope(NamedTuple):
    theta: Tensor
    w: Tensor


@dataclass(frozen=True, kw_only=True)
class PFedMe:
    """θ ≈ argmin F_k(θ) + λ/2 ‖θ − w_k‖² on one minibatch,  w_k ← w_k − η λ (w_k − θ);  served: θ.

    Dinh et al. 2020, Algorithm 1; w_k − w^t is sent. `inner` gradient steps of size `inner_lr` solve for θ, begun at
    w^t in each visit and at the last θ from then on; η is `lr`. Their β is the server's: `Add(lr=β)`. Where θ is the
    argmin, the step is that of SGD on the envelope, as λ (w_k − θ) = ∇F_k(θ); λ → ∞ makes that SGD's.

    >>> len(PFedMe(lam=15.0, lr=0.05, inner_lr=0.01, inner=5).asks(2))
    10
    """

    lam: float
    lr: Rate
    inner_lr: float
    inner: int = 5
    steps: Steps = 1
    through: ClassVar[Chain] = ()

    init, model = path.keep_a_model, path.serve_row

    def __post_init__(self) -> None:
        path.check(self)
        positive("PFedMe", "lam", self.lam)
        positive("PFedMe", "inner_lr", self.inner_lr)
        whole("PFedMe", "inner", self.inner, 1)
        path.check_pull(self, self.lam, lr="inner_lr", explicit="lower inner_lr")

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return (Ask(), *[Ask(On.SAME)] * (self.inner - 1)) * steps

    def start(self, row: Row, down: Down) -> Envelope:
        return Envelope(down.w, down.w)

    def points(self, s: Envelope, down: Down, i: int) -> tuple[Vector, ...]:
        return (s.theta,)

    def step(self, s: Envelope, down: Down, i: int, f: Tensor, g: Tensor) -> Envelope:
        theta = s.theta - self.inner_lr * (g[0] + self.lam * (s.theta - s.w))
        if (i + 1) % self.inner:
            return Envelope(theta, s.w)
        return Envelope(theta, s.w - rate(self.lr, down.t) * self.lam * (s.w - theta))

    def keep(self, s: Envelope, row: Row, down: Down) -> Row:
        return s.theta

    def send(self, s: Envelope, row: Row, down: Down) -> Sent:
        return Sent(s.w - down.w)
