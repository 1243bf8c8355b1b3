"""Error and variance at every λ, and the best λ, by drawing: what the closed forms are checked against."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from dittofl.errors import require, whole
from dittofl.theory import search
from dittofl.theory.point import Array


class Problem(Protocol):
    """What can be simulated: `Point` and `Regression`."""

    def draw(self, trials: int, rng: np.random.Generator) -> Any:
        """Devices and their data in independent trials."""

    def squared_errors(self, drawn: Any, lam: float) -> Array:
        """‖ŵ_k(λ) − w_k‖² of the benign devices, [trials, K_b]."""


class Simulated(NamedTuple):
    """Averages over trials, with their standard errors, at every λ [L]."""

    lam: Array
    error: Array  # the mean of the squared error over benign devices
    error_se: Array
    variance: Array  # its variance over benign devices, divided by K_b
    variance_se: Array


def mean_over_devices(errors: Array) -> Array:
    """Accuracy and robustness of a trial: the mean over benign devices, [trials, K_b] to [trials]."""
    return np.asarray(errors.mean(axis=1))


def variance_over_devices(errors: Array) -> Array:
    """Fairness of a trial: the variance over benign devices (ddof 0), [trials, K_b] to [trials]."""
    return np.asarray(errors.var(axis=1))


def _averaged(values: Array) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def simulate(problem: Problem, lams: Sequence[float], *, trials: int, rng: np.random.Generator) -> Simulated:
    """(1/T) Σ_t mean_k e²_{k,t}(λ) and (1/T) Σ_t var_k e²_{k,t}(λ) over benign k: the same draws at every λ.

    >>> from dittofl.theory.point import Point
    >>> problem = Point(sigma=0.8, n=30, tau=0.1, K=8)
    >>> drawn = simulate(problem, [0.0, 2.0, math.inf], trials=2000, rng=np.random.default_rng(0))
    >>> bool((abs(drawn.error - problem.error(drawn.lam)) < 4 * drawn.error_se).all())
    True
    """
    whole("simulate", "trials", trials, 2)
    require(len(lams) > 0, "simulate got no λ, expected at least one: give lams=[…]")
    drawn = problem.draw(trials, rng)
    columns = []
    for lam in lams:
        errors = problem.squared_errors(drawn, float(lam))
        columns.append((*_averaged(mean_over_devices(errors)), *_averaged(variance_over_devices(errors))))
    return Simulated(np.array(lams, dtype=np.float64), *np.array(columns).T)


class Located(NamedTuple):
    """A minimiser found by simulation, with the standard error of its logarithm."""

    lam: float
    log_se: float


def locate(
    problem: Problem, measure: Callable[[Array], Array], *, trials: int, rng: np.random.Generator, near: float = 1.0
) -> Located:
    """λ̂ = argmin (1/T) Σ_t f_t(λ),  se(log λ̂) = sd_t(f_t′) / (√T f̄″): an M-estimator with its sandwich error.

    f_t is a `measure` of trial t (`mean_over_devices`, `variance_over_devices`), derivatives are in log λ by central
    differences. λ̂ must lie inside (0, ∞).

    >>> from dittofl.theory.point import Point
    >>> problem = Point(sigma=0.8, n=30, tau=0.1, K=8)
    >>> found = locate(problem, mean_over_devices, trials=2000, rng=np.random.default_rng(0))
    >>> abs(math.log(found.lam / problem.lam_star)) < 4 * found.log_se
    True
    """
    whole("locate", "trials", trials, 2)
    drawn = problem.draw(trials, rng)

    def f(lam: float) -> Array:
        return measure(problem.squared_errors(drawn, lam))

    lam, h = search.least(lambda lam: float(f(lam).mean()), near=near), 1e-2
    require(0 < lam < math.inf, f"locate found its minimum at the bound λ = {lam:g}: draw more trials")
    below, at, above = (f(lam * math.exp(step)) for step in (-h, 0, h))
    slope, curvature = (above - below) / (2 * h), (above - 2 * at + below).mean() / h**2
    return Located(lam, float(slope.std(ddof=1) / math.sqrt(trials) / curvature))
