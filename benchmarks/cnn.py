"""The Fashion CNN on a CPU: what share of the machine's float32 matrix-product rate the loop reaches, in one run, and
beside it torch's own training step of one module (channels last, torch.optim.SGD), whose rows never leave the cache.

    python benchmarks/cnn.py [--threads 2] [--repeats 7]

Arithmetic of a minibatch of 16: forward, and backward for weights and inputs (the first layer needs no input gradient),
1.31 Gflop. Bytes: a step reads the row and writes gradient and row once, 39 MB in all for 3.27 M parameters.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from fashion import method
from torch import nn

from dittofl import Federation, Loop, Method, Task, federate
from dittofl.models import fashion_cnn

BATCH, COHORT = 16, 10
CONV1, CONV2 = 2 * 28 * 28 * 25 * 32, 2 * 14 * 14 * 25 * 32 * 64
DENSE = 2 * 3136 * 1024 + 2 * 1024 * 10
STEP = BATCH * (2 * CONV1 + 3 * (CONV2 + DENSE))


def interleaved(work: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The median time of each piece of work, taken in turns, so that a busy machine slows all alike."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeats + 2):
        for name, one in work.items():
            start = time.perf_counter()
            one()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken[2:]) for name, taken in times.items()}


def plain() -> Callable[[], object]:
    """One step of one module by torch alone: no cohort, no update to send, no row to keep."""
    module = fashion_cnn().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x, y, sgd = torch.randn(BATCH, 1, 28, 28), torch.arange(BATCH) % 10, torch.optim.SGD(module.parameters(), lr=0.05)

    def step() -> None:
        sgd.zero_grad()
        nn.functional.cross_entropy(module(x), y).backward()
        sgd.step()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    rng = np.random.default_rng(0)
    samples = {
        k: (rng.normal(size=(64, 1, 28, 28)).astype(np.float32), rng.integers(0, 10, 64)) for k in range(2 * COHORT)
    }
    a, b = torch.randn(2, 2048, 2048)
    with_v = method()
    methods = {"w alone": Method(local=with_v.local, batch=BATCH), "w and four v_k": with_v}
    task, federation = Task(fashion_cnn(), nn.CrossEntropyLoss()), Federation.of(samples)
    runs = {
        name: federate(task, federation, one, rounds=10**9, cohort=COHORT, engine=Loop())
        for name, one in methods.items()
    }
    taken = interleaved(
        {"gemm": lambda: a @ b, "torch alone": plain()} | {name: run.__next__ for name, run in runs.items()},
        given.repeats,
    )
    gemm = 2 * 2048**3 / taken["gemm"]
    print(f"matrix product: {gemm / 1e9:.0f} Gflop/s on {given.threads} threads")
    share = {}
    steps = {"torch alone": 1} | {name: COHORT * 2 * (1 + len(one.personal)) for name, one in methods.items()}
    for name, count in steps.items():
        share[name] = STEP * count / taken[name] / gemm
        print(f"{name:<16}{1e3 * taken[name] / count:>7.2f} ms a step{100 * share[name]:>6.0f} % of that rate")
    print(json.dumps({"gemm_gflops": gemm / 1e9, "share": share, "threads": given.threads}))


if __name__ == "__main__":
    main()
