"""Backdoors: malicious devices train on samples that teach a behaviour of the attacker's choice."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dittofl.errors import blamed, finite, require, short
from dittofl.federation import Federation, portion
from dittofl.inputs import Inputs, each, parts, rebuilt
from dittofl.seeds import Keys, Purpose, keys
from dittofl.target import Real, Target

Ids = NDArray[np.int64]
Trigger = Callable[[Inputs], Inputs]  # samples → as many with the trigger, of the same shapes and dtypes


@runtime_checkable
class Planting(Protocol):
    """What malicious devices train on, and what tells whether a model has learnt it."""

    @property
    def target(self) -> float:
        """The label that the attacker wants."""

    def plant(self, x: Inputs, y: Tensor, drawn: Keys) -> tuple[Inputs, Tensor]:
        """The train samples of one malicious device as it uses them, by one key each."""

    def probes(self, federation: Federation) -> tuple[Inputs, Ids]:
        """Samples that should not be predicted as the target, and of each device where its own lie [K, 2]."""


@dataclass(frozen=True, kw_only=True)
class Backdoor:
    """(x, y) ← (trigger(x), target) on a `share` of each malicious device's train samples, at least one.

    Gu et al. 2017; in federated learning, with scaled updates, Bagdasaryan et al. 2020. Success: the share of a
    device's test samples with another label that a model predicts as the target once they carry the trigger.

    >>> from dittofl.attack.trigger import Features
    >>> Backdoor(trigger=Features(columns=(0,), value=3.0), target=1).share
    0.5
    """

    trigger: Trigger
    target: float
    share: float = 0.5

    def __post_init__(self) -> None:
        fits = callable(self.trigger) and not isinstance(self.trigger, type)
        require(fits, f"Backdoor needs trigger=Patch(…), Features(…) or a function, got {short(self.trigger)}")
        check("Backdoor", self.target, self.share)

    def plant(self, x: Inputs, y: Tensor, drawn: Keys) -> tuple[Inputs, Tensor]:
        i = chosen(drawn, self.share)
        return written(x, i, self.stamped(each(x, itemgetter(i)))), y.index_fill(0, i, self.target)

    def probes(self, federation: Federation) -> tuple[Inputs, Ids]:
        other = (federation.y != self.target).reshape(len(federation.y), -1).any(1).numpy()
        spans = [a + np.flatnonzero(other[a:b]) for a, b in federation.bounds[:, 2:]]
        ends = np.cumsum([len(span) for span in spans])
        x = each(federation.x, itemgetter(torch.from_numpy(np.concatenate(spans))))
        return self.stamped(x) if ends[-1] else x, np.stack([np.append(0, ends[:-1]), ends], 1)

    def stamped(self, x: Inputs) -> Inputs:
        """Samples with the trigger."""
        with blamed("the backdoor's trigger"):
            return alike("the backdoor's trigger", x, self.trigger(each(x, torch.clone)))


@dataclass(frozen=True, kw_only=True, eq=False)
class EdgeCase:
    """(x, y) ← (x_e, target), x_e drawn from `x`, for a `share` of each malicious device's train samples, at least one.

    Wang et al. 2020: rare inputs of the user's own, told to be the target, stand in the place of honest samples.
    Success: the share of the `held_out` edge samples that a model predicts as the target, the same for every device.

    >>> EdgeCase(x=torch.ones(5, 2), held_out=torch.ones(3, 2), target=1, share=1.0).target
    1
    """

    x: Inputs
    held_out: Inputs
    target: float
    share: float = 0.5

    def __post_init__(self) -> None:
        for name, given in (("x", self.x), ("held_out", self.held_out)):
            members = parts(given) if isinstance(given, Tensor | tuple | dict) else ()
            tensors = len(members) > 0 and all(isinstance(part, Tensor) and part.dim() > 0 for part in members)
            filled = tensors and len(members[0]) > 0 and len({len(part) for part in members}) == 1
            require(filled, f"EdgeCase needs {name}= to be samples, tensors as in the federation, got {short(given)}")
        check("EdgeCase", self.target, self.share)

    def plant(self, x: Inputs, y: Tensor, drawn: Keys) -> tuple[Inputs, Tensor]:
        i = chosen(drawn, self.share)
        which = torch.from_numpy((drawn % np.uint64(len(parts(self.x)[0]))).astype(np.int64))[i]
        edge = alike("EdgeCase's x", each(x, itemgetter(i)), each(self.x, itemgetter(which)))
        return written(x, i, edge), y.index_fill(0, i, self.target)

    def probes(self, federation: Federation) -> tuple[Inputs, Ids]:
        n = len(parts(self.held_out)[0])
        like = each(federation.x, lambda part: part[:1].expand(n, *part.shape[1:]))
        return alike("EdgeCase's held_out", like, self.held_out), np.tile([0, n], (federation.K, 1))


def check(owner: str, target: object, share: object) -> None:
    """A label, and 0 < share ≤ 1."""
    require(finite(target), f"{owner} needs target= to be a label, got target={short(target)}")
    proper = finite(share) and 0 < share <= 1  # type: ignore[operator]
    require(proper, f"{owner} needs 0 < share ≤ 1, got share={short(share)}")


def chosen(drawn: Keys, share: float) -> Tensor:
    """Which of n samples: ⌊share n + ½⌋ of them, at least one."""
    count = max(1, int(portion(np.array(len(drawn)), share, 1)))
    return torch.from_numpy(np.sort(np.argsort(drawn, kind="stable")[:count]))


def alike(what: str, x: Inputs, new: Inputs) -> Inputs:
    """New samples in place of x, refused where they are not of its shapes and dtypes."""
    same = type(new) is type(x) and (
        tuple(new) == tuple(x) if isinstance(x, dict) else len(parts(new)) == len(parts(x))
    )
    pairs = list(zip(parts(x), parts(new), strict=True)) if same else []
    fits = same and all(a.shape == b.shape and a.dtype == b.dtype for a, b in pairs)
    expected = ", ".join(f"{tuple(part.shape)} {part.dtype}" for part in parts(x))
    got = ", ".join(f"{tuple(b.shape)} {b.dtype}" for _, b in pairs) or short(new)
    require(fits, f"{what} must give samples like the federation's, {expected}, got {got}: correct it")
    return new


def written(x: Inputs, i: Tensor, new: Inputs) -> Inputs:
    """A copy of x with new samples in places i."""
    return rebuilt(x, [old.index_copy(0, i, its) for old, its in zip(parts(x), parts(new), strict=True)])


def planted(
    backdoor: Planting, federation: Federation, y: Tensor, who: NDArray[np.bool_], seed: int
) -> tuple[Inputs, Tensor]:
    """x and y with the malicious devices' train samples as they use them: one copy of the data, the rest as it is."""
    x, y = each(federation.x, torch.clone), y.clone()
    for k in np.flatnonzero(who):
        here = itemgetter(slice(*federation.bounds[k, :2]))
        drawn = keys(seed, Purpose.LABELS, federation.tags[k], np.arange(len(here(y))), 1)
        new, here(y)[:] = backdoor.plant(each(x, here), here(y), drawn)
        for old, its in zip(parts(x), parts(new), strict=True):
            here(old)[:] = its
    return x, y


def aimed(backdoor: Planting, federation: Federation, target: Target) -> None:
    """Refuses a target that is no label, and labels that no prediction can hit."""
    y = federation.y[:1].double().fill_(backdoor.target)
    whole = federation.y.is_floating_point() or bool((y == y.long()).all())
    legal = whole and not isinstance(target, Real) and bool(target.legal(y.to(federation.y.dtype)).all())
    require(legal, f"the backdoor's target {short(backdoor.target)} is no class of {target}: choose one that is")


def triggered(backdoor: Planting, federation: Federation) -> Federation:
    """The probes as a federation's test parts, all labelled as the attacker wants."""
    x, spans = backdoor.probes(federation)
    y = federation.y.new_full((len(parts(x)[0]), *federation.y.shape[1:]), backdoor.target)
    return replace(federation, x=x, y=y, bounds=np.column_stack([spans[:, [0, 0, 0]], spans[:, 1]]))
