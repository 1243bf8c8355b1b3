"""Rows put in order coordinate by coordinate, a block of columns at a time, by comparisons of whole rows.

A sorting network compares the same rows in every column, so that each comparison is two passes of min and max over a
block that stays in the cache: on a CPU 5 to 10 times faster than sorting each column, on any device without an index,
and exact. Where weights go with the values, each column is sorted instead.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from dittofl.aggregate.cohort import Cohort

BLOCK = 2**22  # elements: large enough that 2000 calls cost less than the comparisons
WEIGHTED = 2**20


class Comparison(NamedTuple):
    """Rows i < j: the smaller values go to i, the larger ones to j, where those are read again."""

    i: int
    j: int
    low: bool
    high: bool


def merge_exchange(m: int) -> Iterator[tuple[int, int]]:
    """Batcher's odd-even merge sort of m rows (Knuth, The Art of Computer Programming 3, 5.2.2 M)."""
    top = 1 << max(m - 1, 0).bit_length() >> 1
    p = top
    while p > 0:
        q, r, d = top, 0, p
        while True:
            yield from ((i, i + d) for i in range(m - d) if i & p == r)
            if q == p:
                break
            q, r, d = q >> 1, p, q - p
        p >>= 1


@lru_cache(maxsize=16)
def network(m: int, first: int, last: int) -> tuple[Comparison, ...]:
    """The comparisons that bring the first … last smallest of m rows to their places; others are left out."""
    read = set(range(first, last + 1))
    kept = []
    for i, j in reversed(list(merge_exchange(m))):
        if i in read or j in read:
            kept.append(Comparison(i, j, i in read, j in read))
            read |= {i, j}
    return tuple(reversed(kept))


def in_order(block: Tensor, first: int, last: int) -> list[Tensor]:
    """Of each column of [m, b] the first-th to the last-th smallest value, a row each; the block is written over."""
    rows, spare = list(block.unbind(0)), torch.empty_like(block[0])
    for i, j, low, high in network(len(rows), first, last):
        if low and high:
            torch.minimum(rows[i], rows[j], out=spare)
            torch.maximum(rows[i], rows[j], out=rows[j])
            rows[i], spare = spare, rows[i]
        elif low:
            torch.minimum(rows[i], rows[j], out=rows[i])
        else:
            torch.maximum(rows[i], rows[j], out=rows[j])
    return rows[first : last + 1]


def ordered(cohort: Cohort, first: int, last: int) -> Iterator[tuple[slice, list[Tensor]]]:
    """`in_order` for every block of columns."""
    for at, block in cohort.blocks(cohort.whole.delta.dtype, BLOCK):
        yield at, in_order(block, first, last)


def weighted(cohort: Cohort, p: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """For every block of columns the values [b, m] in ascending order, in float64, and their weights."""
    for at, block in cohort.blocks(cohort.whole.delta.dtype, WEIGHTED):
        values, index = block.T.contiguous().sort(dim=1, stable=True)
        yield at, values.double(), p.to(block.device)[index]
