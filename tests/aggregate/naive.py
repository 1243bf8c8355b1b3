"""Every aggregator written out in numpy, row by row and in float64, as slowly and obviously as can be; and matrices to
try them on. Rows that are not finite never reach an aggregator."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dittofl import Report

Rows = NDArray[np.float64]
Weights = tuple[Rows, Rows]  # p, c


# Matrices


def drawn(seed: int, dtype: torch.dtype = torch.float64, *, most: int = 40_000) -> Report:
    """A cohort of 1 to 200 rows of 1 to 10^5 numbers, mostly small, of one of several kinds."""
    rng = np.random.default_rng(seed)
    m = int(rng.choice([1, 2, 3, rng.integers(1, 12), rng.integers(1, 41), rng.integers(1, 201)]))
    P = int(min(10 ** rng.uniform(0, 5), most // m + 1))
    delta = KINDS[seed % len(KINDS)](rng, m, P)
    loss = np.round(rng.exponential(size=m), 1 if seed % 3 else 15)  # ties among them
    return Report(
        torch.from_numpy(delta).to(dtype), torch.from_numpy(rng.integers(1, 50, m)), torch.from_numpy(loss).to(dtype)
    )


def outliers(rng: np.random.Generator, m: int, P: int) -> Rows:
    rows = rng.normal(size=(m, P))
    rows[rng.permutation(m)[: (m - 1) // 2]] *= 10 ** rng.uniform(-30, 30)
    return rows


def twins(rng: np.random.Generator, m: int, P: int) -> Rows:
    return rng.normal(size=(m, P))[rng.integers(0, m, m)]


KINDS: tuple[Callable[[np.random.Generator, int, int], Rows], ...] = (
    lambda rng, m, P: rng.normal(size=(m, P)),
    lambda rng, m, P: rng.integers(-1, 2, size=(m, P)).astype(float),  # ties
    lambda rng, m, P: np.float32(50 + 1e-3 * rng.normal(size=(m, P))).astype(float),  # near-equal, far from 0
    outliers,
    twins,
    lambda rng, m, P: rng.standard_cauchy(size=(m, P)),
    lambda rng, m, P: rng.normal(size=P) + 0.3 * rng.normal(size=(m, P)),  # a common direction
    lambda rng, m, P: np.tile(rng.normal(size=P), (m, 1)),  # all the same
)


# Fair objectives


def mean(rule: Any, rows: Rows, size: Rows, loss: Rows) -> Weights:
    m = len(rows)
    return (size / size.sum() if rule.by_size else np.full(m, 1 / m)), np.ones(m)


def tilt(rule: Any, rows: Rows, size: Rows, loss: Rows) -> Weights:
    p = np.exp(rule.t * loss - max(rule.t * loss))
    return p / p.sum(), np.ones(len(rows))


def qffl(rule: Any, rows: Rows, size: Rows, loss: Rows) -> Weights:
    F, L, q = np.maximum(loss, 1e-10), 1 / rule.lr, rule.q
    steps = -L * rows  # L (w − w_k)
    h = sum(q * F[k] ** (q - 1) * (steps[k] ** 2).sum() + L * F[k] ** q for k in range(len(rows)))
    a = L * F**q / h  # −Σ F^q L (w − w_k) / Σ h
    return a / a.sum(), np.full(len(rows), a.sum())


def afl(rule: Any, rows: Rows, size: Rows, loss: Rows) -> Weights:
    """In its first round."""
    return np.full(len(rows), 1 / len(rows)), np.ones(len(rows))


def simplex(x: Rows) -> Rows:
    """The nearest point with λ ≥ 0, Σ λ = 1: max(x − θ, 0), θ by bisection."""
    low, high = x.min() - 1, x.max()
    for _ in range(100):
        theta = (low + high) / 2
        low, high = (theta, high) if np.maximum(x - theta, 0).sum() > 1 else (low, theta)
    return np.maximum(x - high, 0)


OBJECTIVES = {"Mean": mean, "Tilt": tilt, "QFFL": qffl, "AFL": afl}


def weights(rule: Any, rows: Rows, size: Rows, loss: Rows) -> Weights:
    return OBJECTIVES[type(rule).__name__](rule, rows, size, loss)


# Defences that leave some rows, or shorter ones


def count(rule: Any, m: int) -> int:
    f = rule.f if rule.f is not None else int(np.floor(rule.ratio * m + 1e-9))
    return min(f, m - 1)


def first(values: Rows) -> list[int]:
    """In ascending order; what differs by rounding alone is a tie, and the earliest row comes first."""
    left, order = list(range(len(values))), []
    while left:
        least = min(values[i] for i in left)
        level = [i for i in left if values[i] <= least * (1 + 1e-11)]
        order.append(level[0])
        left.remove(level[0])
    return order


def scores(rows: Rows, f: int) -> Rows:
    m = len(rows)
    found = []
    for i in range(m):
        away = sorted(((rows[i] - rows[j]) ** 2).sum() for j in range(m) if j != i)
        found.append(sum(away[: max(m - f - 2, 0)]))
    return np.array(found)


def lengths(rows: Rows) -> Rows:
    return np.sqrt((rows**2).sum(1))


def krum(rule: Any, rows: Rows, size: Rows, loss: Rows) -> tuple[list[int], Rows]:
    return first(scores(rows, count(rule, len(rows))))[:1], np.ones(1)


def multikrum(rule: Any, rows: Rows, size: Rows, loss: Rows) -> tuple[list[int], Rows]:
    f = count(rule, len(rows))
    best = sorted(first(scores(rows, f))[: rule.keep or len(rows) - f])
    return best, np.ones(len(best))


def knorm(rule: Any, rows: Rows, size: Rows, loss: Rows) -> tuple[list[int], Rows]:
    kept = sorted(first(lengths(rows))[: len(rows) - count(rule, len(rows))])
    return kept, np.ones(len(kept))


def kloss(rule: Any, rows: Rows, size: Rows, loss: Rows) -> tuple[list[int], Rows]:
    return [sorted(range(len(rows)), key=lambda k: -loss[k])[count(rule, len(rows))]], np.ones(1)


def clip(rule: Any, rows: Rows, size: Rows, loss: Rows) -> tuple[list[int], Rows]:
    norms = lengths(rows)
    tau = np.median(norms) if rule.norm is None else rule.norm
    return list(range(len(rows))), np.array([1.0 if n <= tau else tau / n for n in norms])


REDUCED = {"Krum": krum, "MultiKrum": multikrum, "KNorm": knorm, "KLoss": kloss, "Clip": clip}


# Averages in place of the weighted mean


def median(rule: Any, rows: Rows, p: Rows) -> Rows:
    if np.allclose(p, p[0], rtol=1e-13, atol=0):
        return np.median(rows, axis=0)
    found = []
    for column in rows.T:
        order = np.argsort(column, kind="stable")
        below = np.cumsum(p[order])
        at, after = (int(np.argmax(below >= 0.5 - 1e-12)), int(np.argmax(below > 0.5 + 1e-12)))
        found.append((column[order[at]] + column[order[after]]) / 2)
    return np.array(found)


def trimmed(rule: Any, rows: Rows, p: Rows) -> Rows:
    m = len(rows)
    f = min(count(rule, m), (m - 1) // 2)
    found = []
    for column in rows.T:
        kept = np.argsort(column, kind="stable")[f : m - f]
        share = p[kept] if p[kept].sum() > 0 else np.ones(len(kept))
        found.append((share * column[kept]).sum() / share.sum())
    return np.array(found)


def geometric(rule: Any, rows: Rows, p: Rows) -> Rows:
    z = p @ rows
    for _ in range(5000):
        beta = p / np.maximum(rule.nu, lengths(rows - z))
        z, before = beta @ rows / beta.sum(), z
        if np.abs(z - before).max() <= 1e-15 * np.abs(z).max():
            break
    return z


def centred(rule: Any, rows: Rows, p: Rows) -> Rows:
    """In its first round."""
    v = np.zeros(rows.shape[1])
    tau = np.median(lengths(rows)) if rule.norm is None else rule.norm
    for _ in range(rule.steps):
        away = lengths(rows - v)
        v = v + sum(p[k] * (rows[k] - v) * (1 if away[k] <= tau else tau / away[k]) for k in range(len(rows)))
    return v


AVERAGES = {"Median": median, "TrimmedMean": trimmed, "GeometricMedian": geometric, "CentredClip": centred}


def delta(rule: Any, rows: Rows, size: Rows, loss: Rows) -> Rows:
    """δ of any of them, and of any chain."""
    name = type(rule).__name__
    if name in REDUCED:
        kept, c = REDUCED[name](rule, rows, size, loss)
        return delta(rule.then, c[:, None] * rows[kept], size[kept], loss[kept])
    p, c = weights(rule.by if name in AVERAGES else rule, rows, size, loss)
    return AVERAGES[name](rule, c[:, None] * rows, p) if name in AVERAGES else p @ (c[:, None] * rows)


def of(rule: Any, report: Report) -> Rows:
    return delta(
        rule, report.delta.double().numpy(), report.size.double().numpy(), report.loss.double().numpy()  # type: ignore[union-attr]
    )  # fmt: skip
