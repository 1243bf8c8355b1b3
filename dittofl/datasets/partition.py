"""How pooled samples are dealt out to devices: a rule maps x, y and a seed to the samples of every device."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from dittofl.errors import InputError, is_whole, nonnegative, positive, require, short, whole
from dittofl.inputs import Inputs
from dittofl.seeds import Purpose, keys
from dittofl.types import Ints, Numbers

__all__ = ["ByClass", "ByColumn", "Dirichlet", "PowerLaw"]

DRAWS = 100  # of proportions, before they are called unlucky
LEAST = 2  # samples of a device: one to train and one to test


@runtime_checkable
class Partitioner(Protocol):
    """One rule; a plain function is one too."""

    def __call__(self, x: Inputs, y: Tensor, seed: int) -> dict[str, Ints]:
        """The samples of every device, by its id."""


@dataclass(frozen=True, kw_only=True)
class Dirichlet:
    """p_c ~ Dir(α, …, α) over the K devices for every class c, whose samples are dealt out in these proportions.

    Yurochkin et al. 2019. α → ∞: all devices are alike; α → 0: a class lies on one device. Proportions that leave a
    device with fewer than `least` samples are drawn anew.

    >>> rule = Dirichlet(alpha=0.5, devices=3)
    >>> sum(map(len, rule(torch.zeros(60, 1), torch.arange(60) % 4, seed=0).values()))
    60
    """

    alpha: float
    devices: int
    least: int = LEAST

    def __post_init__(self) -> None:
        positive("Dirichlet", "alpha", self.alpha)
        whole("Dirichlet", "devices", self.devices, 1)
        whole("Dirichlet", "least", self.least, LEAST)

    def __call__(self, x: Inputs, y: Tensor, seed: int) -> dict[str, Ints]:
        enough(self, len(y), self.devices * self.least)
        pools = by_class(self, y, seed)
        n = np.array([len(pool) for pool in pools])
        for draw in range(DRAWS):
            rng = np.random.default_rng(int(keys(seed, Purpose.PARTITION, draw)[0]))
            shares = rng.dirichlet(np.full(self.devices, float(self.alpha)), len(pools))
            stops = np.rint(shares.cumsum(1) * n[:, None]).astype(np.int64)
            stops[:, -1] = n
            sizes = np.diff(stops, axis=1, prepend=0).sum(0)
            if sizes.min() >= self.least:
                return merged([np.split(pool, at[:-1]) for pool, at in zip(pools, stops, strict=True)])
        few = int(sizes.argmin())
        raise InputError(
            f"{self} leaves a device with fewer than {self.least} samples in each of {DRAWS} draws (device {few} with "
            f"{sizes[few]} of {len(y)} in the last): raise alpha, or lower devices"
        )


@dataclass(frozen=True, kw_only=True)
class ByClass:
    """`classes` classes a device, chosen at random among those with the fewest holders so far, dealt in equal parts.

    So every class is on ⌊K c/C⌋ or ⌈K c/C⌉ of the K devices (McMahan et al. 2017 deal out two shards of one class each,
    which may be of the same one).

    >>> y = torch.arange(60) % 4
    >>> [len(y[its].unique()) for its in ByClass(classes=2, devices=4)(torch.zeros(60, 1), y, seed=0).values()]
    [2, 2, 2, 2]
    """

    classes: int
    devices: int

    def __post_init__(self) -> None:
        whole("ByClass", "classes", self.classes, 1)
        whole("ByClass", "devices", self.devices, 1)

    def __call__(self, x: Inputs, y: Tensor, seed: int) -> dict[str, Ints]:
        pools = by_class(self, y, seed)
        got = f"{self} needs classes ≤ C ≤ devices · classes, got C = {len(pools)} classes"
        require(self.classes <= len(pools) <= self.devices * self.classes, f"{got}: change classes or devices")
        held, holders = np.zeros(len(pools), dtype=np.int64), np.zeros((len(pools), self.devices), dtype=bool)
        for k in range(self.devices):
            order = np.lexsort((keys(seed, Purpose.PARTITION, k, np.arange(len(pools))), held))
            holders[order[: self.classes], k] = True
            held[order[: self.classes]] += 1
        parts = []
        for pool, its in zip(pools, holders, strict=True):
            shares = iter(np.array_split(pool, int(its.sum())))
            parts.append([next(shares) if mine else pool[:0] for mine in its])
        return merged(parts)


@dataclass(frozen=True, kw_only=True)
class PowerLaw:
    """n_k ∝ k^−exponent, k = 1 … K, whatever the classes; 2 samples are everyone's. At exponent 0 all are alike.

    >>> [len(its) for its in PowerLaw(exponent=1, devices=3)(torch.zeros(28, 1), torch.zeros(28), seed=0).values()]
    [14, 8, 6]
    """

    exponent: float
    devices: int

    def __post_init__(self) -> None:
        nonnegative("PowerLaw", "exponent", self.exponent)
        whole("PowerLaw", "devices", self.devices, 1)

    def __call__(self, x: Inputs, y: Tensor, seed: int) -> dict[str, Ints]:
        enough(self, len(y), self.devices * LEAST)
        shares = np.arange(1, self.devices + 1) ** -float(self.exponent)
        sizes = LEAST + apportioned(shares / shares.sum(), len(y) - self.devices * LEAST)
        return merged([np.split(shuffled(np.arange(len(y)), seed), sizes.cumsum()[:-1])])


@dataclass(frozen=True, kw_only=True)
class ByColumn:
    """A device for every value of a column of x: a number where x is [n, features], a name where it is a dict.

    The column is taken out of x.

    >>> y = torch.zeros(3)
    >>> {id: its.tolist() for id, its in ByColumn(column=0)(torch.tensor([[7, 1], [8, 1], [7, 2]]), y, 0).items()}
    {'7': [0, 2], '8': [1]}
    """

    column: int | str

    def __call__(self, x: Inputs, y: Tensor, seed: int) -> dict[str, Ints]:
        values, _ = self.apart(x)
        require(values.dim() == 1, f"{self}: that column has shape {tuple(values.shape)}, expected one number a sample")
        found, owner = np.unique(values.numpy(), return_inverse=True)
        names = [str(int(one)) if float(one).is_integer() else str(one) for one in found.tolist()]
        order, n = np.argsort(owner, kind="stable"), np.bincount(owner)
        return dict(zip(names, np.split(order, n.cumsum()[:-1]), strict=True))

    def apart(self, x: Inputs) -> tuple[Tensor, Inputs]:
        """The column, and x without it."""
        if isinstance(x, dict) and self.column in x:
            return x[str(self.column)], {name: part for name, part in x.items() if name != self.column}
        if isinstance(x, Tensor) and x.dim() == 2 and is_whole(self.column, 0) and int(self.column) < x.shape[1]:
            j = int(self.column)
            return x[:, j], torch.cat([x[:, :j], x[:, j + 1 :]], 1)
        got = f"of shape {tuple(x.shape)}" if isinstance(x, Tensor) else short(list(x))
        raise InputError(
            f"{self}: x has no such column, got x {got}: number one of [n, features], or name one of a dict"
        )


def enough(rule: Any, n: int, wanted: int) -> None:
    """There are as many samples as a rule needs."""
    require(n >= wanted, f"{rule} needs {wanted} samples, got {n}: lower devices, or give more samples")


def by_class(rule: Any, y: Tensor, seed: int) -> list[Ints]:
    """The samples of each class in random order."""
    whole_numbers = y.dim() == 1 and not y.is_floating_point()
    require(whole_numbers, f"{rule} needs classes, one whole number a sample, got y {tuple(y.shape)} {y.dtype}")
    labels = y.numpy()
    return [shuffled(np.flatnonzero(labels == c), seed) for c in np.unique(labels)]


def shuffled(samples: Ints, seed: int) -> Ints:
    """A random order, in which a sample's place depends on its number alone."""
    return samples[np.argsort(keys(seed, Purpose.SPLIT, samples))]


def apportioned(shares: Numbers, n: int) -> Ints:
    """n in whole parts close to the shares, the largest remainders rounded up."""
    sizes = np.floor(shares * n).astype(np.int64)
    sizes[np.argsort(sizes - shares * n, kind="stable")[: n - sizes.sum()]] += 1
    return sizes


def merged(parts: Sequence[Sequence[Ints]]) -> dict[str, Ints]:
    """Devices 0 … K−1 with their samples of all classes, from [classes][devices]."""
    return {f"device {k}": np.concatenate(its) for k, its in enumerate(zip(*parts, strict=True))}
