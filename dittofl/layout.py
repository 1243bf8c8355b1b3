"""A model as one flat row: which slice of w ∈ R^P is which parameter."""

import fnmatch
import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from dittofl.errors import require


@dataclass(frozen=True)
class Layout:
    """Names and shapes of the trained parameters, in the order in which a row holds them.

    >>> Layout(("weight", "bias"), ((2, 3), (2,))).P
    8
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(math.prod(shape) for shape in self.shapes)

    @cached_property
    def P(self) -> int:
        return sum(self.sizes)

    def split(self, row: Tensor) -> list[Tensor]:
        """The parameters as views of a row. One `split`, whose backward is one `cat`, not P zeros for each slice."""
        parts = torch.split_with_sizes(row, self.sizes)
        return [part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def named(self, row: Tensor) -> dict[str, Tensor]:
        """The parameters of a row by name."""
        return dict(zip(self.names, self.split(row), strict=True))

    def mask(self, *patterns: str) -> Tensor:
        """Which entries of a row belong to parameters that match a pattern such as `head.*`.

        >>> Layout(("body", "head.w"), ((2,), (1,))).mask("head.*").tolist()
        [False, False, True]
        """
        for pattern in patterns:
            require(
                fnmatch.filter(self.names, pattern),
                f"no parameter matches {pattern!r}: the module's parameters are {', '.join(self.names)}",
            )
        hits = [any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns) for name in self.names]
        return torch.cat([torch.full((size,), hit) for hit, size in zip(hits, self.sizes, strict=True)])
