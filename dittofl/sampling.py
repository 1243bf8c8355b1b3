"""Which devices take part in a round (Algorithm 1, line 2), without replacement."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dittofl.errors import InputError, blamed, short
from dittofl.seeds import Keys, Purpose, keys, uniforms
from dittofl.types import Ints


class Sampling(Protocol):
    """A rule that draws a cohort."""

    def __call__(self, t: int, m: int, sizes: Ints, seed: int) -> Ints:
        """m distinct devices of round t, in the order drawn; `sizes` are their train samples."""


def _drawn(t: int, K: int, seed: int) -> Keys:
    return keys(seed, Purpose.COHORT, t, np.arange(K))


def _smallest(values: NDArray[np.float64] | Keys, m: int) -> Ints:
    first = np.argpartition(values, m - 1)[:m]
    return first[np.argsort(values[first], kind="stable")]


@dataclass(frozen=True)
class Uniform:
    """P(cohort) = 1 / (K choose m): every set of m devices is equally likely.

    >>> sorted(Uniform()(0, 3, np.ones(3), seed=1).tolist())
    [0, 1, 2]
    """

    def __call__(self, t: int, m: int, sizes: Ints, seed: int) -> Ints:
        return _smallest(_drawn(t, len(sizes), seed), m)


@dataclass(frozen=True)
class BySize:
    """The m earliest of e_k / n_k, e_k ~ Exp(1): one after the other with probability ∝ n_k, as the authors draw.

    (Exponential clocks: Efraimidis and Spirakis 2006.)

    >>> BySize()(0, 1, np.array([1, 10**12]), seed=1).tolist()
    [1]
    """

    def __call__(self, t: int, m: int, sizes: Ints, seed: int) -> Ints:
        return _smallest(-np.log(uniforms(_drawn(t, len(sizes), seed))) / sizes, m)


def draw(rule: Sampling, t: int, m: int, sizes: Ints, seed: int) -> Ints:
    """A round's cohort, refused where it is not m distinct devices."""
    with blamed("sampling"):
        drawn = np.asarray(rule(t, m, sizes, seed))
    proper = drawn.shape == (m,) and drawn.dtype.kind in "iu" and len(np.unique(drawn)) == m
    if not (proper and drawn.min() >= 0 and drawn.max() < len(sizes)):
        wanted = f"{m} distinct numbers from 0 to {len(sizes) - 1}"
        raise InputError(f"sampling must give {wanted}, got {short(drawn.tolist())}")
    return drawn.astype(np.int64)
