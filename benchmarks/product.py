"""Every combination of (solver, server, objective, defence, attack, personal method), each on both engines.

    python -m benchmarks.product [--only solver=SGD,Scaffold --only attack=A3] [--out product.csv] [--rounds 3]

One line of the file for each: how far the engines are apart after the rounds, relative to the largest number if above
1, and the processor's seconds; or the mistake that it ended with. Whatever the file holds is not run again, so that a
run may be stopped and started. The tests run a set in which every pair occurs; all of them take days.
"""

import argparse
import csv
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import torch

from tests.covering import Case, difference, factors, possible

RESULTS = ("difference", "seconds", "mistake")
ALIKE = 1e-10


def combinations(only: list[str]) -> list[Case]:
    """All that go together, of the named pieces alone where a factor is named."""
    named = factors()
    for choice in only:
        factor, _, names = choice.partition("=")
        if factor not in named or not set(names.split(",")) <= set(named[factor]):
            raise SystemExit(f"--only {choice}: write factor=name,name with one of\n" + "\n".join(listed(named)))
        named[factor] = names.split(",")
    cases = (dict(zip(named, values, strict=True)) for values in product(*named.values()))
    return [case for case in cases if possible(case)]


def listed(named: dict[str, list[str]]) -> Iterator[str]:
    return (f"  {factor}: {', '.join(names)}" for factor, names in named.items())


def done(out: Path) -> set[tuple[str, ...]]:
    """The combinations that a file holds."""
    if not out.exists():
        return set()
    with out.open(newline="", encoding="utf-8") as file:
        return {tuple(line[factor] for factor in factors()) for line in csv.DictReader(file)}


def tried(case: Case, rounds: int) -> dict[str, object]:
    """One combination's line."""
    began = time.process_time()
    try:
        found: dict[str, object] = {"difference": difference(case, rounds), "mistake": ""}
    except Exception as error:  # the next combination is run whatever this one does
        found = {"difference": "", "mistake": f"{type(error).__name__}: {error}".splitlines()[0]}
    return {**case, **found, "seconds": round(time.process_time() - began, 3)}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--only", action="append", default=[], metavar="FACTOR=NAME,…")
    asked.add_argument("--out", type=Path, default=Path("product.csv"))
    asked.add_argument("--rounds", type=int, default=3)
    given = asked.parse_args()
    torch.set_num_threads(1)
    before = done(given.out)
    todo = [case for case in combinations(given.only) if tuple(case.values()) not in before]
    print(f"{len(todo)} combinations to run, {len(before)} in {given.out}", flush=True)
    began, bad = time.monotonic(), 0
    with given.out.open("a", newline="", encoding="utf-8") as file:
        lines = csv.DictWriter(file, [*factors(), *RESULTS])
        if not before:
            lines.writeheader()
        for i, case in enumerate(todo, 1):
            line = tried(case, given.rounds)
            lines.writerow(line)
            file.flush()
            wrong = line["mistake"] != "" or not float(str(line["difference"])) <= ALIKE
            bad += wrong
            if wrong or i % 100 == 0 or i == len(todo):
                left = (time.monotonic() - began) / i * (len(todo) - i) / 3600
                print(f"{i}/{len(todo)}, {bad} bad, {left:.1f} h left" + (f": {line}" if wrong else ""), flush=True)


if __name__ == "__main__":
    main()
