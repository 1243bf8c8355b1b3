"""What devices keep between rounds: one row each, made on first use."""

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from dittofl.types import Ints

BLOCK = 2**28  # bytes that a store grows by


class Rows(Protocol):
    """A store of rows; a device that never put one has the first row."""

    first: Tensor

    def get(self, ids: Ints) -> Tensor:
        """The rows [m, P] of some devices, as a tensor of its own."""

    def put(self, ids: Ints, rows: Tensor) -> None:
        """Keeps new rows."""

    def touched(self) -> Ints:
        """The devices that have put a row, in the order of their first."""


class MemoryRows:
    """Rows in RAM or on the GPU: memory grows by blocks with the devices touched, not with K.

    >>> store = MemoryRows(10**9, torch.zeros(2))
    >>> store.put(np.array([7]), torch.ones(1, 2))
    >>> store.get(np.array([7, 8])).tolist(), store.touched().tolist()
    ([[1.0, 1.0], [0.0, 0.0]], [7])
    """

    def __init__(self, K: int, first: Tensor) -> None:
        self.first = first
        size = BLOCK // max(1, first.numel() * first.element_size())
        self.block = max(1, min(K, size))
        self.blocks: list[Tensor] = []
        self.slots: dict[int, int] = {}

    def get(self, ids: Ints) -> Tensor:
        if not self.slots:
            return self.first.expand(len(ids), -1)
        slots = np.array([self.slots.get(k, -1) for k in ids.tolist()])
        if len(self.blocks) == 1 and (slots >= 0).all():
            return self.blocks[0].index_select(0, self._index(slots))
        return torch.stack([self.first if slot < 0 else self._row(slot) for slot in slots.tolist()])

    def put(self, ids: Ints, rows: Tensor) -> None:
        if not self.first.numel():
            return
        slots = np.array([self.slots.setdefault(k, len(self.slots)) for k in ids.tolist()])
        while len(self.blocks) * self.block < len(self.slots):
            self.blocks.append(
                torch.empty(self.block, self.first.numel(), dtype=self.first.dtype, device=self.first.device)
            )
        if len(self.blocks) == 1:
            self.blocks[0].index_copy_(0, self._index(slots), rows)
        else:
            torch._foreach_copy_([self._row(slot) for slot in slots.tolist()], list(rows.unbind()))

    def touched(self) -> Ints:
        return np.fromiter(self.slots, dtype=np.int64, count=len(self.slots))

    def _row(self, slot: int) -> Tensor:
        return self.blocks[slot // self.block][slot % self.block]

    def _index(self, places: Ints) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(places)).to(self.first.device)
