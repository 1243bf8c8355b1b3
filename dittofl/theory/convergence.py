"""How fast v_k^t → v_k*: Algorithm 1 itself on strongly convex quadratics, under the theorem's step sizes.

    E ‖w^t − w*‖² ≤ g(t)   ⇒   E ‖v_k^t − v_k*‖² ≤ C g(t)

Li et al. 2021, appendix "Algorithm and Convergence Analysis": the theorem on v_k and w, and its corollary for FedAvg,
g(t) = O(1/t). Devices take part in a share of the rounds. The paper bounds gradients at w^t and uses it at v_k^t; its
M grows with τ, so that λ ~ 1/M is not literally λ* ~ 1/τ²; its lemma has a 1/p_k too many, and its theorem's proof
loses a 1/A, which are constants. None of it enters here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dittofl.engine import Loop
from dittofl.errors import nonnegative, positive, require, short, whole
from dittofl.federate import federate
from dittofl.method import Method
from dittofl.solver import SGD, Ditto, Prox
from dittofl.theory.instance import Instance, drawn
from dittofl.theory.point import Array
from dittofl.theory.regression import Regression
from dittofl.theory.steps import Power, global_steps, local_steps
from dittofl.types import GlobalSolver


@dataclass(frozen=True, kw_only=True)
class Quadratics:
    """F_k(v) = (1/2n) ‖X_k v − y_k‖², K devices of which `cohort` take part in a round: p_k = cohort/K.

    Minibatches of `batch` samples make the gradients stochastic. X_k is of unit normals times 1 … 2^½ over devices.

    >>> Quadratics(K=4, cohort=2).p
    0.5
    """

    K: int = 10
    cohort: int = 3
    n: int = 60
    d: int = 4
    batch: int = 5
    sigma: float = 0.5
    tau: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("K", 2), ("cohort", 1), ("n", 1), ("d", 1), ("batch", 1), ("seed", 0)):
            whole("Quadratics", name, getattr(self, name), least)
        positive("Quadratics", "sigma", self.sigma)
        nonnegative("Quadratics", "tau", self.tau)
        require(self.cohort <= self.K, f"Quadratics needs cohort ≤ K, got cohort={self.cohort}, K={self.K}")
        require(self.n > self.d, f"Quadratics needs n > d for strong convexity, got n={self.n}, d={self.d}")

    @property
    def p(self) -> float:
        return self.cohort / self.K

    def drawn(self) -> Instance:
        """Inputs and labels: a function of the fields."""
        rng = np.random.default_rng(self.seed)
        X = [rng.normal(size=(self.n, self.d)) * 2 ** (k / 2 / self.K) for k in range(self.K)]
        return drawn(Regression(X=X, sigma=self.sigma, tau=self.tau), rng)


@dataclass(frozen=True, kw_only=True)
class Solved:
    """A solver of w from its step sizes, which are of the order of its rate g(t) = D (1 + t/T₀)^−q."""

    local: Callable[[Power], GlobalSolver]
    q: float


FEDAVG = Solved(local=lambda lr: SGD(lr=lr, steps=2), q=1.0)
FEDPROX = Solved(local=lambda lr: Prox(mu=1.0, lr=lr, steps=2), q=0.5)  # slower by choice: g is then not FedAvg's


class Trace(NamedTuple):
    """Squared distances to the optimum, averaged over runs, devices and the rounds of a window around t [S]."""

    t: Array
    w: Array  # E ‖w^t − w*‖²
    v: dict[float, Array]  # E ‖v_k^t − v_k*‖² by λ
    shape: Power  # g(t)/D

    @property
    def g(self) -> Array:
        """g(t) = D (1 + t/T₀)^−q, D the least with ‖w^t − w*‖² ≤ g(t) at all t seen."""
        shape = np.asarray(self.shape(self.t))
        return np.asarray(shape * (self.w / shape).max())

    def ratio(self, lam: float) -> Array:
        """‖v_k^t − v_k*‖² / g(t), which the theorem bounds by a constant C."""
        return self.v[lam] / self.g

    def slope(self, distance: Array) -> float:
        """The exponent of 1 + t/T₀ in the last nine tenths of the rounds: −q where the rate is g's."""
        late = self.t >= self.t[-1] / 10
        return float(np.polyfit(np.log1p(self.t[late] / self.shape.shift), np.log(distance[late]), 1)[0])


def run(
    quadratics: Quadratics, *, lams: Sequence[float] = (0.1, 1.0, 10.0), rounds: int = 1000,
    seeds: Sequence[int] = range(4), solved: Solved = FEDAVG,
) -> Trace:  # fmt: skip
    """E ‖w^t − w*‖² and E ‖v_k^t − v_k*‖² under `federate`, all λ beside one w, averaged over the runs of `seeds`.

    >>> trace = run(Quadratics(), lams=(1.0,), rounds=20, seeds=(0,))
    >>> bool(trace.t[-1] > 15), bool(trace.w[-1] < trace.w[0])
    (True, True)
    """
    require(len(seeds) > 0, f"run needs a seed for every run, got seeds={short(seeds)}: give seeds=range(4)")
    require(len(lams) > 0, f"run needs a λ, got lams={short(lams)}: give lams=(1.0,)")
    require(len(set(lams)) == len(lams), f"run needs distinct λ, got lams={short(lams)}: name each once")
    for lam in lams:
        nonnegative("run", "every λ", lam)
    whole("run", "rounds", rounds, 2)
    drawn = quadratics.drawn()
    mu, L = drawn.curvature
    lr = global_steps(mu, L, solved.q)
    personal = {str(lam): Ditto(lam=lam, lr=local_steps(lam, mu, L, quadratics.p, solved.q)) for lam in lams}
    method = Method(local=solved.local(lr), personal=personal, batch=quadratics.batch)
    distances = np.mean([_distances(drawn, method, (rounds, quadratics.cohort, seed)) for seed in seeds], axis=0)
    ends = np.unique(np.geomspace(1, rounds, 50).astype(int))
    # Means over the rounds since the last mark: late ones hold many rounds, which calms them.
    first = np.append(0, ends[:-1])
    windows = np.add.reduceat(distances, first) / (ends - first)[:, None]
    return Trace((first + 1 + ends) / 2, windows[:, 0], dict(zip(lams, windows[:, 1:].T, strict=True)), lr)


def _distances(drawn: Instance, method: Method, run: tuple[int, int, int]) -> Array:
    """‖w^t − w*‖² and the mean over devices of ‖v_k^t − v_k*‖² of every personal solver: [rounds, 1 + λs]."""
    c, (rounds, cohort, seed) = drawn.problem.moments(drawn.y), run
    w_star, everyone = drawn.problem.w_star(c), np.arange(drawn.problem.K)
    best = [(name, drawn.problem.estimate(c, float(name))) for name in method.personal]
    found = []
    options: Any = {"rounds": rounds, "cohort": cohort, "seed": seed, "engine": Loop()}
    for fed in federate(drawn.task(), drawn.federation(), method, **options):
        v = [((fed.rows[name].get(everyone).numpy() - optimum) ** 2).sum(axis=1).mean() for name, optimum in best]
        found.append([((fed.w.numpy() - w_star) ** 2).sum(), *v])
    return np.array(found)
