"""Who is malicious, what their data become and what they send."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from torch import Generator, Tensor

from dittofl.attack.backdoor import Planting, aimed, planted
from dittofl.attack.replacement import ModelReplacement
from dittofl.attack.updates import Draw, Gaussian, Replace, UpdateAttack
from dittofl.errors import an_instance, blamed, finite, flag, is_whole, require, short, whole
from dittofl.federation import Federation
from dittofl.inputs import Inputs
from dittofl.seeds import Keys, Purpose, generator, keys
from dittofl.target import Target
from dittofl.types import Report

Relabel = Callable[[Tensor, Keys], Tensor]  # (labels, one key each) → poisoned labels
Devices = tuple[int, ...]  # places in the federation, 0 … K − 1


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A fixed set of malicious devices: K_a = `count`, or ⌊ratio K⌋, drawn once from a stream of their own.

    A smaller set is part of a larger one, and the set depends on the seed and K alone: every method meets the same
    devices. `devices` names them instead, by their places 0 … K − 1. With `poisoned` (the default without a backdoor)
    their train and validation labels are flipped (two classes) or redrawn uniformly, or given by `relabel`; a
    `backdoor` is planted in their train samples. Both are in the data from the start; test data stay clean. `update`
    rewrites what they send, several one after the other, in round `start` and every `every` rounds from there; in
    other rounds they send what they have trained. What a solver sends beside Δ_k (SCAFFOLD's Δc_k) is of that training
    in every round, unless `Forge` rewrites it.

    >>> Attack(ratio=0.5).malicious(23, seed=0).sum()
    np.int64(11)
    """

    ratio: float | None = None
    count: int | None = None
    devices: Devices | None = None
    poisoned: bool | None = None
    relabel: Relabel | None = None
    backdoor: Planting | None = None
    update: UpdateAttack | tuple[UpdateAttack, ...] | None = None
    start: int = 0
    every: int = 1
    strong: bool | None = None  # None: any replacement, or more than half of the devices

    def __post_init__(self) -> None:
        sets = {"ratio": self.ratio, "count": self.count, "devices": self.devices}
        named = " and ".join(f"{name}={short(its)}" for name, its in sets.items() if its is not None)
        chosen = sum(its is not None for its in sets.values())
        require(chosen == 1, f"an attack needs one of ratio=, count=, devices=, got {named or 'none'}")
        if self.ratio is not None:
            require(
                finite(self.ratio) and 0 <= self.ratio <= 1,
                f"an attack needs 0 ≤ ratio ≤ 1, got ratio={short(self.ratio)}",
            )
        if self.count is not None:
            whole("an attack", "count", self.count, 0)
        if self.devices is not None:
            places = isinstance(self.devices, tuple) and all(is_whole(place, 0) for place in self.devices)
            require(
                places and len(set(self.devices)) == len(self.devices),
                f"an attack needs devices=(0, …), distinct places in the federation, got {short(self.devices)}",
            )
        whole("an attack", "start", self.start, 0)
        whole("an attack", "every", self.every, 1)
        for name, choice in (("poisoned", self.poisoned), ("strong", self.strong)):
            if choice is not None:
                flag("an attack", name, choice)
        fits = self.backdoor is None or an_instance(self.backdoor, Planting)
        require(fits, f"an attack needs backdoor=Backdoor(…) or EdgeCase(…), got {short(self.backdoor)}")
        for name, given in (("relabel", self.relabel), *(("update", update) for update in self.updates)):
            require(
                given is None or (callable(given) and not isinstance(given, type)),
                f"an attack needs {name}= to be a function such as those of dittofl.attack, got {short(given)}",
            )

    @property
    def updates(self) -> tuple[UpdateAttack, ...]:
        """What rewrites reports, in order."""
        if self.update is None or isinstance(self.update, tuple):
            return self.update or ()
        return (self.update,)

    def size(self, K: int) -> int:
        """K_a; the ratio is read as the decimal it was written as, so that 0.29 of 100 is 29."""
        if self.devices is not None:
            outside = [place for place in self.devices if place >= K]
            require(
                not outside, f"the attack names devices {outside}, the federation has 0 to {K - 1}: correct devices"
            )
            return len(self.devices)
        count = int(self.count) if self.count is not None else int(Fraction(str(float(self.ratio or 0))) * K)
        require(count <= K, f"the attack wants {count} malicious devices, the federation has {K}: lower count")
        return count

    def malicious(self, K: int, seed: int) -> NDArray[np.bool_]:
        """Which of the K devices are malicious."""
        who, count = np.zeros(K, dtype=np.bool_), self.size(K)
        drawn = np.argsort(keys(seed, Purpose.MALICIOUS, np.arange(K)))[:count]
        who[drawn if self.devices is None else list(self.devices)] = True
        return who

    def is_strong(self, K: int) -> bool:
        """Whether the paper's rule counts this as a strong attack; exactly half of the devices is not."""
        if self.strong is not None:
            return self.strong
        return any(isinstance(one, Replace | ModelReplacement) for one in self.updates) or 2 * self.size(K) > K

    def data(self, federation: Federation, who: NDArray[np.bool_], target: Target, seed: int) -> tuple[Inputs, Tensor]:
        """x and y as the devices train on them; the federation's own stay, and x is copied for a backdoor alone."""
        y = self.labels(federation, who, target, seed)
        if self.backdoor is None:
            return federation.x, y
        aimed(self.backdoor, federation, target)
        return planted(self.backdoor, federation, y, who, seed) if who.any() else (federation.x, y)

    def labels(self, federation: Federation, who: NDArray[np.bool_], target: Target, seed: int) -> Tensor:
        """y with the malicious devices' train and validation labels poisoned; the federation's own y stays."""
        if not (self.backdoor is None if self.poisoned is None else self.poisoned) or not who.any():
            return federation.y
        y = federation.y.clone()
        relabel = self.relabel or target.poison
        for k in np.flatnonzero(who):
            a, b = federation.bounds[k, 0], federation.bounds[k, 2]
            with blamed("relabel"):
                poisoned = relabel(y[a:b], keys(seed, Purpose.LABELS, federation.tags[k], np.arange(b - a)))
            require(
                isinstance(poisoned, Tensor) and poisoned.shape == y[a:b].shape and poisoned.dtype == y.dtype
                and bool(poisoned.isfinite().all() and target.legal(poisoned).all()),
                f"relabel must give {b - a} finite and legal labels of dtype {y.dtype}, as it got for device "
                f"{federation.ids[k]!r}, got {short(poisoned)}",
            )  # fmt: skip
            y[a:b] = poisoned
        return y

    def rewrite(self, report: Report, who: Tensor, tags: Keys, t: int, seed: int) -> Report:
        """The report as the server receives it in round t; `tags` name the cohort's devices in the streams."""
        if t < self.start or (t - self.start) % self.every or not bool(who.any()):
            return report
        device = report.delta.device
        for i, update in enumerate(self.updates):

            def draw(row: int, i: int = i) -> Generator:
                return generator(seed, Purpose.NOISE, tags[row], t, i, device=device)

            report = rewritten(update, report, who, draw)
        return report


def rewritten(update: UpdateAttack, report: Report, who: Tensor, draw: Draw) -> Report:
    """What one attack makes of a report, refused where it is none."""
    with blamed("the attack's update"):
        sent = update(report, who, draw)
    require(
        isinstance(sent, Report) and getattr(sent.delta, "shape", None) == report.delta.shape,
        f"the attack's update must give a report of the shape it got, {tuple(report.delta.shape)}, got "
        + (f"{tuple(sent.delta.shape)}" if isinstance(sent, Report) else short(sent)),
    )
    return sent


def A1(
    *, ratio: float | None = None, count: int | None = None, devices: Devices | None = None,
    relabel: Relabel | None = None,
) -> Attack:  # fmt: skip
    """Label poisoning: flipped (two classes) or uniformly random train labels (Li et al. 2021, Definition 1)."""
    return Attack(ratio=ratio, count=count, devices=devices, relabel=relabel)


def A2(
    *, ratio: float | None = None, count: int | None = None, devices: Devices | None = None, std: float | None = None,
    poisoned: bool = True,
) -> Attack:  # fmt: skip
    """Random updates: zero-mean Gaussian in place of Δ_k, after training on poisoned labels (Definition 1)."""
    return Attack(ratio=ratio, count=count, devices=devices, poisoned=poisoned, update=Gaussian(std=std))


def A3(
    *, ratio: float | None = None, count: int | None = None, devices: Devices | None = None,
    factor: float | None = None, poisoned: bool = True,
) -> Attack:  # fmt: skip
    """Model replacement: Δ_k scaled to dominate the mean, after training on poisoned labels (Definition 1)."""
    return Attack(ratio=ratio, count=count, devices=devices, poisoned=poisoned, update=Replace(factor=factor))
