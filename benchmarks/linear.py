"""Linear models: rounds per second of both engines against a plain torch.autograd loop, in one run.

    python benchmarks/linear.py [--devices 1000] [--features 100] [--batch 10] [--repeats 7]

One round visits every device for one minibatch step of FedAvg on logistic regression, on one thread. The plain loop is
what a careful person writes without a library: one module, parameters copied in, one backward, the matrix of updates
that any defence needs, its mean.
Floors for the batched round: the gathered samples are read and written once (2 · devices · batch · features · 4 bytes)
and the arithmetic is 6 · devices · batch · features operations.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from dittofl import SGD, Federation, Loop, Method, Task, Vmap, federate


def data(devices: int, features: int, n: int = 50) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    return {
        k: (rng.normal(size=(n, features)).astype(np.float32), rng.integers(0, 2, n).astype(np.float32))
        for k in range(devices)
    }


def plain(
    samples: dict[int, tuple[np.ndarray, np.ndarray]], features: int, batch: int, lr: float
) -> Callable[[], Tensor]:
    """One round of FedAvg, written out."""
    module, loss = nn.Linear(features, 1), nn.BCEWithLogitsLoss()
    parameters = list(module.parameters())
    w = [p.detach().clone() for p in parameters]
    held = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in samples.values()]
    draws = torch.Generator().manual_seed(0)
    delta = torch.empty(len(held), sum(p.numel() for p in parameters))

    def once() -> Tensor:
        for k, (x, y) in enumerate(held):
            with torch.no_grad():
                for p, start in zip(parameters, w, strict=True):
                    p.copy_(start)
            index = torch.randint(len(x), (batch,), generator=draws)
            value = loss(module(x[index]).squeeze(-1), y[index])
            grads = torch.autograd.grad(value, parameters)
            with torch.no_grad():
                for p, g in zip(parameters, grads, strict=True):
                    p -= lr * g
                delta[k] = torch.cat([(p - start).flatten() for p, start in zip(parameters, w, strict=True)])
        for p, step in zip(w, delta.mean(0).split([p.numel() for p in w]), strict=True):
            p += step.view(p.shape)
        return delta

    return once


def median(times: list[float]) -> float:
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("devices", 1000), ("features", 100), ("batch", 10), ("repeats", 7)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    torch.set_num_threads(1)
    samples = data(given.devices, given.features)
    federation = Federation.of(samples)
    task = Task(nn.Linear(given.features, 1), nn.BCEWithLogitsLoss())
    method = Method(local=SGD(lr=0.1), batch=given.batch)
    once = plain(samples, given.features, given.batch, 0.1)
    runs = {
        name: federate(task, federation, method, rounds=10**9, engine=engine)
        for name, engine in (("loop", Loop()), ("vmap", Vmap()), ("vmap compiled", Vmap(compile=True)))
    }
    rounds: dict[str, Callable[[], object]] = {"plain": once} | {name: run.__next__ for name, run in runs.items()}
    per = {"plain": 1, "loop": 1, "vmap": 20, "vmap compiled": 20}
    times: dict[str, list[float]] = {name: [] for name in rounds}
    for step in rounds.values():
        for _ in range(3):
            step()
    for _ in range(given.repeats):  # interleaved, so that a busy machine slows all alike
        for name, step in rounds.items():
            start = time.perf_counter()
            for _ in range(per[name]):
                step()
            times[name].append((time.perf_counter() - start) / per[name])
    for name, taken in times.items():
        print(f"{name:<15}{1e3 * median(taken):>9.2f} ms a round{median(times['plain']) / median(taken):>8.1f} × plain")
    size = given.devices * given.batch * given.features
    print(f"floors: {8 * size / 1e6:.1f} MB gathered, {6 * size / 1e6:.1f} Mflop")
    print(json.dumps({name: median(taken) for name, taken in times.items()}))


if __name__ == "__main__":
    main()
