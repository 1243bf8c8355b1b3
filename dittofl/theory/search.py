"""One-dimensional minimisation over λ ∈ [0, ∞]."""

import math
from collections.abc import Callable

import numpy as np

GOLDEN = (math.sqrt(5) - 1) / 2
CELLS = 64


def least(f: Callable[[float], float], *, near: float = 1.0) -> float:
    """argmin f(λ) over 0 ≤ λ ≤ ∞: a grid on u = λ / (λ + near), then golden sections of the two cells around its best.

    Exact to about 1e-7 in u, as f is flat at its minimum, and for functions with one minimum in those cells. `near` is
    a guess of the size of λ; f must bear λ = 0 and λ = ∞, which are returned where nothing inside is lower.

    >>> round(least(lambda lam: (1 / (1 + lam) - 0.25) ** 2), 6)
    3.0
    >>> least(lambda lam: 1 / (1 + lam))
    inf
    """

    def at(u: float) -> float:
        return near * u / (1 - u) if u < 1 else math.inf

    grid = np.linspace(0, 1, CELLS + 1)
    best = int(np.argmin([f(at(u)) for u in grid.tolist()]))
    low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, CELLS)])
    u = _golden(lambda u: f(at(u)), low, high)
    return min((at(end) for end in (float(grid[best]), u)), key=f)


def _golden(f: Callable[[float], float], low: float, high: float) -> float:
    """Keep the part of [low, high] around the lower of two inner points until it has shrunk to rounding."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    f_left, f_right = f(left), f(right)
    while high - low > 1e-9:
        if f_left <= f_right:
            high, right, f_right = right, left, f_left
            left = high - GOLDEN * (high - low)
            f_left = f(left)
        else:
            low, left, f_left = left, right, f_right
            right = low + GOLDEN * (high - low)
            f_right = f(right)
    return (low + high) / 2
