"""Every aggregator and composition against its formula, on thousands of drawn matrices: what the tests do on a few.

    python -m benchmarks.oracle [--matrices 2000] [--first 1000] [--elements 40000] [--jobs 2] [--device cpu]

m from 1 to 200 rows, P from 1 to 10^5, float32 and float64; normal, tied, near-equal at 50, with gross outliers, with
twins, heavy-tailed, of a common direction, all the same. Prints what is further from its formula than 1e-9 (float64) or
1e-5 (float32) of the longest row, or of 1 where that is shorter.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from multiprocessing import get_context

import torch

from tests.aggregate import naive
from tests.aggregate.rules import ALONE, COMPOSED, TOLERANCE, error


def tried(seed: int, elements: int, device: str) -> list[tuple[str, float, float, str]]:
    """The rule's name, its error, the error allowed, and what it was tried on."""
    torch.set_num_threads(1)
    found = []
    for dtype, allowed in TOLERANCE.items():
        report = naive.drawn(seed, dtype, most=elements)
        what = f"{tuple(report.delta.shape)}, {dtype}, matrix {seed}"
        found += [(str(rule), error(rule, report, device), allowed, what) for rule in (*ALONE, *COMPOSED)]
    return found


def results(given: argparse.Namespace) -> Iterator[list[tuple[str, float, float, str]]]:
    seeds, one = (
        range(given.first, given.first + given.matrices),
        partial(tried, elements=given.elements, device=given.device),
    )
    if given.jobs == 1:
        yield from map(one, seeds)
        return
    with get_context("spawn").Pool(given.jobs) as pool:
        yield from pool.imap_unordered(one, seeds)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("matrices", 2000), ("first", 1000), ("elements", 40_000), ("jobs", 2)):
        asked.add_argument(f"--{name}", type=int, default=value)
    asked.add_argument("--device", default="cpu")
    given = asked.parse_args()
    began, count, bad = time.monotonic(), 0, Counter[str]()
    largest = dict.fromkeys(TOLERANCE.values(), 0.0)
    for found in results(given):
        for rule, error_, allowed, what in found:
            count += 1
            largest[allowed] = max(largest[allowed], error_)
            if not error_ <= allowed:
                bad[rule] += 1
                print(f"{error_:.1e} {rule} on {what}", flush=True)
    print(f"{count} results, {bad.total()} beyond what is allowed, largest {largest}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
