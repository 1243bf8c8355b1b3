"""How many devices of a cohort run together: as many as memory allows."""

from collections.abc import Iterator

import numpy as np
import torch

from dittofl.engine.lockstep import Turn
from dittofl.engine.samples import FEW
from dittofl.engine.setting import PART_OF, Setting, Visit
from dittofl.types import Ints

BUDGET = 2**31  # bytes that one chunk of devices may hold


def unused(device: torch.device) -> int:
    """Bytes of a GPU that this process may still take: what is free, or left of the share that it was given."""
    free, total = torch.cuda.mem_get_info(device)
    share = torch.cuda.get_per_process_memory_fraction(device)
    return max(0, min(free, int(share * total) - torch.cuda.memory_allocated(device)))


class Chunks:
    """Divides cohorts into chunks of `size` devices (None: as many as fit)."""

    def __init__(self, setting: Setting, size: int | None) -> None:
        self.setting, self.objective, self.size = setting, setting.objective, size
        self._fits: dict[tuple[int, int, int], int] = {}

    def of_visit(self, visit: Visit, turns: tuple[Turn, ...], *, at_once: bool) -> Iterator[Ints]:
        """Places in the cohort, together as many as memory allows; of one size where padding would change results."""
        groups = [np.arange(len(visit.ids))]
        if not self.objective.paddable:
            sizes = np.stack(
                [self.setting.federation.sizes(part)[visit.ids] for part in ("train", "validation")], axis=1
            )
            whole = any(turn.on in PART_OF for turn in turns)
            by = sizes if whole else self.setting.stream.width[visit.ids][:, None]
            _, label = np.unique(by, axis=0, return_inverse=True)
            groups = [np.flatnonzero(label.reshape(-1) == one) for one in range(label.max() + 1)]
        width = int(self.setting.stream.width.max())  # of no cohort alone: chunks keep one size
        held = self._held(turns, width, at_once=at_once)
        chunk = self.size or self.fitting(len(visit.solvers), width, held)
        for group in groups:
            for a in range(0, len(group), chunk):
                yield group[a : a + chunk]

    def _held(self, turns: tuple[Turn, ...], width: int, *, at_once: bool) -> int:
        """The samples of a device that are held: a visit compiled as a whole is given all of them."""
        sizes = self.setting.federation.sizes
        counts = [
            int(sizes(PART_OF[on]).max()) if on in PART_OF else width
            for on in {turn.feed: turn.on for turn in turns}.values()
        ]
        return sum(counts) if at_once else sum(sorted(counts)[-FEW:])

    def fitting(self, models: int, samples: int, held: int) -> int:
        """Asked once: what is free later would change shapes from round to round."""
        key = models, samples, held
        if key not in self._fits:
            self._fits[key] = self._fitting(*key)
        return self._fits[key]

    def _fitting(self, models: int, samples: int, held: int) -> int:
        """How many devices fit into the budget: rows, their copies in the step, what a backward pass holds, samples."""
        device = self.setting.device
        budget = unused(device) // 4 if device.type == "cuda" else BUDGET
        elements = models * (8 * self.objective.layout.P + 3 * samples * self.objective.activations)
        elements += held * self.objective.inputs
        return max(1, budget // (elements * self.objective.w0.element_size()))

    def by_size(self, sizes: Ints) -> Iterator[Ints]:
        """Devices of like size together, so that little is filled up; of one size where outputs mix."""
        order = np.argsort(sizes, kind="stable")
        order = order[sizes[order] > 0]
        a = 0
        while a < len(order):
            fits = self.fitting(1, most := int(sizes[order[-1]]), most)
            b = min(a + fits, len(order))
            if self.objective.mixes:
                b = min(b, int(np.searchsorted(sizes[order], sizes[order[a]], side="right")))
            yield order[a:b]
            a = b
