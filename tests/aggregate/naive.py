"""Every aggregator written out in numpy, row by row and in float64, as slowly and obviously as can be; and matrices to
try them on. Rows that are not finite never reach an aggregator."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dittofl import Report
from dittofl.seeds import Purpose, keys

Rows = NDArray[np.float64]
Weights = tuple[Rows, Rows]  # p, c


# Matrices


def drawn(seed: int, dtype: torch.dtype = torch.float64, *, most: int = 40_000, rows: int = 200) -> Report:
    """A cohort of 1 to 200 rows of 1 to 10^5 numbers, mostly small, of one of several kinds."""
    rng = np.random.default_rng(seed)
    m = int(rng.choice([1, 2, 3, rng.integers(1, 12), rng.integers(1, 41), rng.integers(1, 201)])) % (rows + 1) or 1
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
    up, found = [int(i) for i in np.argsort(values, kind="stable")], list[int]()
    while len(found) < len(up):
        k = j = len(found)
        while j < len(up) and values[up[j]] <= values[up[k]] * (1 + 1e-11):
            j += 1
        found += sorted(up[k:j])
    return found


def squares(rows: Rows) -> Rows:
    return np.array([((rows - row) ** 2).sum(1) for row in rows])


def scores(apart: Rows, f: int) -> Rows:
    m = len(apart)
    return np.array([np.sort(np.delete(apart[i], i))[: max(m - f - 2, 0)].sum() for i in range(m)])


def lengths(rows: Rows) -> Rows:
    return np.sqrt((rows**2).sum(1))


def krum(rule: Any, rows: Rows, size: Rows, loss: Rows) -> tuple[list[int], Rows]:
    return first(scores(squares(rows), count(rule, len(rows))))[:1], np.ones(1)


def multikrum(rule: Any, rows: Rows, size: Rows, loss: Rows) -> tuple[list[int], Rows]:
    f = count(rule, len(rows))
    best = sorted(first(scores(squares(rows), f))[: rule.keep or len(rows) - f])
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


def neighbours(rule: Any, rows: Rows) -> Rows:
    m = len(rows)
    W, apart = np.zeros((m, m)), squares(rows)
    for i in range(m):
        order = [i, *(j for j in first(apart[i]) if j != i)]
        W[i, order[: m - count(rule, m)]] = 1 / (m - count(rule, m))
    return W


def buckets(rule: Any, rows: Rows) -> Rows:
    """In the first round, of devices 0, 1, …"""
    order = sorted(range(len(rows)), key=lambda k: int(keys(rule.seed, Purpose.BUCKETS, 0, k)[0]))
    parts = [order[b : b + rule.size] for b in range(0, len(rows), rule.size)]
    return np.array([[(k in part) / len(part) for k in range(len(rows))] for part in parts])


MIXED = {"NearestNeighbourMixing": neighbours, "Bucketing": buckets}
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
    """Weiszfeld's steps in R^P, each 1.5, 1.5², … times while the slope along it is negative."""

    def step(z: Rows) -> Rows:
        beta = p / np.maximum(rule.nu, lengths(rows - z))
        return beta @ rows / beta.sum() - z

    z = p @ rows
    for _ in range(2000):
        one, reach = step(z), 1.0
        if np.abs(one).max() <= 1e-15 * np.abs(z).max():
            break
        while reach < 1e6 and step(z + 1.5 * reach * one) @ one > 0:
            reach *= 1.5
        z = z + reach * one
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


def bulyan(rule: Any, rows: Rows, size: Rows, loss: Rows) -> Rows:
    m = len(rows)
    f = min(count(rule, m), (m - 1) // 4)
    left, apart = list(range(m)), squares(rows)
    taken: list[int] = []
    while len(taken) < m - 2 * f:
        taken.append(left[first(scores(apart[np.ix_(left, left)], f))[0]])
        left.remove(taken[-1])
    taken.sort()
    p, c = weights(rule.by, rows[taken], size[taken], loss[taken])
    rows = c[:, None] * rows[taken]
    found = []
    for column, middle in zip(rows.T, median(rule, rows, p), strict=True):
        up = np.argsort(column, kind="stable")
        kept = up[np.argsort(np.abs(column[up] - middle), kind="stable")[: m - 4 * f]]
        found.append((p[kept] * column[kept]).sum() / p[kept].sum())
    return np.array(found)


def delta(rule: Any, rows: Rows, size: Rows, loss: Rows) -> Rows:
    """δ of any of them, and of any chain."""
    name = type(rule).__name__
    if name == "Bulyan":
        return bulyan(rule, rows, size, loss)
    if name in MIXED:
        W = MIXED[name](rule, rows)
        return delta(rule.then, W @ rows, W @ size, W @ loss)
    if name in REDUCED:
        kept, c = REDUCED[name](rule, rows, size, loss)
        return delta(rule.then, c[:, None] * rows[kept], size[kept], loss[kept])
    p, c = weights(rule.by if name in AVERAGES else rule, rows, size, loss)
    return AVERAGES[name](rule, c[:, None] * rows, p) if name in AVERAGES else p @ (c[:, None] * rows)


def of(rule: Any, report: Report) -> Rows:
    return delta(
        rule, report.delta.double().numpy(), report.size.double().numpy(), report.loss.double().numpy()  # type: ignore[union-attr]
    )  # fmt: skip
