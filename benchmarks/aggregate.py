"""Aggregators on m rows of P parameters, against plain passes over the same matrix, in one run.

    python benchmarks/aggregate.py [--rows 100] [--parameters 3274634] [--device cpu] [--threads 2] [--repeats 5]
                                   [--time processor] [--only Krum,Median] [--out FILE.json]

Plain passes: the sum of all numbers (one reading), the matrix copied (one reading and one writing), the mean of the
rows, a weighted sum of them, and the matrix times its transpose in float32, which is the Gram matrix without care. A
rule that goes by weights from norms or losses reads the matrix once for those and once for δ; one that goes by
distances has the Gram matrix's arithmetic beside, m² P multiplications and additions, in float64 and a little more than
half of them. The coordinate rules compare whole rows: 2 ops for each comparison of a sorting network, that is 62, 2,154
or 5,654 a column for 10, 100 or 200 rows in full, and a quarter fewer for the median.

`--time processor` counts the processor's seconds instead of the clock's, for a machine that others use too.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dittofl import (
    MGDA,
    QFFL,
    CentredClip,
    Clip,
    GeometricMedian,
    KNorm,
    Krum,
    Mean,
    Median,
    MultiKrum,
    Report,
    Tilt,
    TrimmedMean,
)

GB, TFLOP = 1e9, 1e12


def rules(m: int) -> dict[str, Any]:
    f = m // 5
    return {
        "Mean": Mean(),
        "Tilt": Tilt(t=1.0),
        "QFFL": QFFL(q=1.0, lr=0.1),
        "Clip": Clip(),
        "KNorm": KNorm(f=f),
        "CentredClip": CentredClip(),
        "Krum": Krum(f=f),
        "MultiKrum": MultiKrum(f=f),
        "Clip > MultiKrum > Tilt": Clip(then=MultiKrum(f=f, then=Tilt(t=1.0))),
        "MGDA eps=0.1": MGDA(eps=0.1),
        "GeometricMedian": GeometricMedian(),
        "Median": Median(),
        "TrimmedMean": TrimmedMean(f=f),
        "Median by Tilt": Median(by=Tilt(t=1.0)),
    }


def plain(rows: Tensor) -> dict[str, Callable[[], object]]:
    a = torch.full((len(rows),), 1 / len(rows), dtype=rows.dtype, device=rows.device)
    return {
        "one pass: sum": rows.sum,
        "one pass: rows.mean(0)": lambda: rows.mean(0),
        "one pass: a @ rows": lambda: a @ rows,
        "one pass: rows @ rows.T": lambda: rows @ rows.T,
        "copy": rows.clone,
    }


def timed(what: Callable[[], object], clock: Callable[[], float], device: str) -> float:
    wait = torch.cuda.synchronize if device.startswith("cuda") else (lambda: None)
    wait()
    began = clock()
    what()
    wait()
    return clock() - began


def measured(given: argparse.Namespace) -> dict[str, float]:
    """Seconds of each, the median of some repeats; interleaved, so that a busy machine slows all alike."""
    draws = torch.Generator(given.device).manual_seed(0)
    rows = torch.randn(given.rows, given.parameters, generator=draws, device=given.device)
    loss = torch.rand(given.rows, generator=draws, device=given.device)
    report = Report(rows, torch.ones(given.rows, dtype=torch.int64, device=given.device), loss)

    def made(rule: Any) -> Callable[[], object]:
        state = rule.init(rows[0])
        return lambda: rule(report, state)

    chosen = [name for name in rules(given.rows) if not given.only or name in given.only.split(",")]
    steps = plain(rows) | {name: made(rules(given.rows)[name]) for name in chosen}
    clock = time.process_time if given.time == "processor" else time.perf_counter
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for repeat in range(given.repeats + 1):
        for name, step in steps.items():
            seconds = timed(step, clock, given.device)
            taken[name] += [seconds] if repeat else []
    return {name: statistics.median(its) for name, its in taken.items()}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("rows", 100), ("parameters", 3_274_634), ("threads", 2), ("repeats", 5)):
        asked.add_argument(f"--{name}", type=int, default=value)
    asked.add_argument("--device", default="cpu")
    asked.add_argument("--time", choices=["clock", "processor"], default="clock")
    asked.add_argument("--only", default="")
    asked.add_argument("--out", type=Path)
    given = asked.parse_args()
    torch.set_num_threads(given.threads)
    found = measured(given)
    mean, gram = (found[f"one pass: {its}"] for its in ("rows.mean(0)", "rows @ rows.T"))
    for name, seconds in found.items():
        print(f"{name:<26}{1e3 * seconds:>10.2f} ms {seconds / mean:>8.2f} × mean {seconds / gram:>8.2f} × Gram")
    m, P = given.rows, given.parameters
    print(f"floors: {4 * m * P / GB:.2f} GB a reading, {m * (m + 1) * P / TFLOP:.3f} Tflop for half a Gram matrix")
    if given.out:
        facts = {"rows": m, "parameters": P, "device": given.device, "threads": given.threads, "time": given.time}
        given.out.write_text(json.dumps(facts | {"seconds": found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
