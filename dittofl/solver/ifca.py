"""Several global models, of which each device trains the one that suits it."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from torch import Tensor

from dittofl.optimiser import Chain, Rate, Walk, begin, descend, rate
from dittofl.server import Clusters
from dittofl.solver import path
from dittofl.types import Ask, Down, On, Row, Sent, Steps, Vector


class Chosen(NamedTuple):
    walk: Walk
    j: Tensor  # its centre


@dataclass(frozen=True, kw_only=True)
class IFCA:
    """j_k = argmin_j F_k(c_j) on the train part,  w_k ← w_k − η ∇F_k(w_k) begun at c_{j_k};  sent: w_k − c_{j_k}, j_k.

    Ghosh et al. 2020, Algorithm 1 (model averaging); HypCluster of Mansour et al. 2020. Needs the server `Clusters`,
    which sends the centres down. With one centre it is `SGD`. The device keeps j_k and serves c_{j_k}; before its first
    visit c_0.

    >>> IFCA(lr=0.1).asks(1)[0].on
    <On.TRAIN: 'the whole train part'>
    """

    lr: Rate
    steps: Steps = 1
    through: Chain = ()
    server: ClassVar[type] = Clusters

    def __post_init__(self) -> None:
        path.check(self)

    def init(self, w0: Vector) -> Row:
        return w0.new_zeros(1)

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return (Ask(On.TRAIN, grad=False), *[Ask()] * steps)

    def start(self, row: Row, down: Down) -> Chosen:
        return Chosen(begin(self.through, down.w), row.new_zeros(()))

    def points(self, s: Chosen, down: Down, i: int) -> tuple[Vector, ...]:
        return _centres(down).unbind() if i == 0 else (s.walk.at,)

    def step(self, s: Chosen, down: Down, i: int, f: Tensor, g: Tensor | None) -> Chosen:
        if g is None:
            j = path.lowest(f)
            return Chosen(begin(self.through, _centre(down, j)), j.to(s.j))
        return s._replace(walk=descend(s.walk, g[0], rate(self.lr, down.t), self.through))

    def keep(self, s: Chosen, row: Row, down: Down) -> Row:
        return s.j[None]

    def send(self, s: Chosen, row: Row, down: Down) -> Sent:
        return Sent(s.walk.at - _centre(down, s.j), s.j)

    def model(self, row: Row, down: Down) -> Vector:
        return _centre(down, row[0])


def _centres(down: Down) -> Tensor:
    return down.w[None] if down.extra is None else down.extra


def _centre(down: Down, j: Tensor) -> Vector:
    return _centres(down).index_select(0, j.long()[None])[0]
