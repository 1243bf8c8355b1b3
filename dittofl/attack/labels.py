"""Label poisoning other than the paper's: what to give an attack as `relabel`."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dittofl.errors import finite, require, short, whole
from dittofl.seeds import Keys


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """y ← C − 1 − y: the label flip of Fang et al. 2020 for C classes.

    >>> import numpy as np
    >>> Mirror(C=10)(torch.tensor([0, 7]), np.zeros(2, dtype=np.uint64))
    tensor([9, 2])
    """

    C: int

    def __post_init__(self) -> None:
        whole("Mirror", "C", self.C, 2)

    def __call__(self, y: Tensor, drawn: Keys) -> Tensor:
        return self.C - 1 - y


@dataclass(frozen=True, kw_only=True)
class Relabel:
    """y ← `target` where y = `source`, or for all y without one: a targeted attack (Tolpegin et al. 2020).

    >>> import numpy as np
    >>> Relabel(source=5, target=3)(torch.tensor([5, 7]), np.zeros(2, dtype=np.uint64))
    tensor([3, 7])
    """

    target: float
    source: float | None = None

    def __post_init__(self) -> None:
        for name, label in (("target", self.target), ("source", self.source)):
            given = finite(label) or (label is None and name == "source")
            require(given, f"Relabel needs {name} to be a label, got {name}={short(label)}")
        require(self.source != self.target, f"Relabel needs source ≠ target, got {short(self.target)} for both")

    def __call__(self, y: Tensor, drawn: Keys) -> Tensor:
        return torch.full_like(y, self.target) if self.source is None else torch.where(y == self.source, self.target, y)
