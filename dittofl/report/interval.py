"""Means with their 95 % interval, by Student's t."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np

EXACT = 200  # degrees of freedom up to which t is found by bisection; beyond, the expansion is right to 1e-6


@dataclass(frozen=True, kw_only=True)
class Interval:
    """mean ± half, over n values: half = t(n − 1) s/√n with s² = Σ (x − mean)²/(n − 1); NaN for a single value."""

    mean: float
    half: float
    n: int

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half

    @property
    def sign(self) -> int:
        """1 or −1 where the interval lies on one side of 0, else 0; also 0 where there is none."""
        return int(self.low > 0) - int(self.high < 0)

    def text(self, *, signed: bool = False) -> str:
        """The mean, and ± half where there is one."""
        return number(self.mean, signed=signed) + (f" ± {number(self.half)}" if self.half == self.half else "")


def interval(values: Sequence[float] | np.ndarray) -> Interval:
    """The mean of some values and its 95 % interval.

    >>> interval([0.5]).text(), interval([0.4, 0.6]).text()
    ('0.500', '0.500 ± 1.271')
    """
    x = np.asarray(values, dtype=np.float64)
    if len(x) == 0:
        return Interval(mean=math.nan, half=math.nan, n=0)
    with np.errstate(all="ignore"):  # what is not finite stays so, and is shown
        half = student(len(x) - 1) * float(x.std(ddof=1)) / math.sqrt(len(x)) if len(x) > 1 else math.nan
        return Interval(mean=float(x.mean()), half=half, n=len(x))


@cache
def student(nu: int) -> float:
    """t with P(|T| ≤ t) = 0.95 for ν degrees of freedom (Abramowitz, Stegun 1964, 26.7.3, 26.7.4 and 26.7.5).

    >>> round(student(1), 3), round(student(24), 3), round(student(10**6), 3)
    (12.706, 2.064, 1.96)
    """
    if nu > EXACT:
        z = NormalDist().inv_cdf(0.975)
        return z + (z**3 + z) / (4 * nu) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * nu**2)
    low, high = 0.0, 13.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, nu) < 0.95 else (low, middle)
    return high


def _within(t: float, nu: int) -> float:
    """P(|T| ≤ t) = sin θ (1 + ½ cos²θ + …) for even ν, (2/π)(θ + sin θ cos θ (1 + ⅔ cos²θ + …)) for odd."""
    theta = math.atan(t / math.sqrt(nu))
    odd = nu % 2
    term = total = 0.0 if nu == 1 else 1.0
    for j in range(1, (nu - odd) // 2):
        term *= math.cos(theta) ** 2 * (2 * j - 1 + odd) / (2 * j + odd)
        total += term
    if odd:
        return 2 / math.pi * (theta + math.sin(theta) * math.cos(theta) * total)
    return math.sin(theta) * total


def number(value: float, *, signed: bool = False) -> str:
    """Three decimals, or four digits where a number is large.

    >>> number(0.12345), number(1234567.0), number(0.5, signed=True)
    ('0.123', '1.235e+06', '+0.500')
    """
    sign = "+" if signed else ""
    return f"{value:{sign}.3f}" if not abs(value) >= 100 else f"{value:{sign}.4g}"


def percent(share: float) -> str:
    """A share as per cent, in one piece; a dash where there is none."""
    return f"{100 * share:.0f}\u00a0%" if share == share else "–"
