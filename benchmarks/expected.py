"""λ as `estimate` expects it, beside the test loss of fixed λ: where the theory's problem is the task, and where not.

    python benchmarks/expected.py [--seeds 2]

One FedAvg run a task, Ditto at every λ beside it; a line for each round at which the estimate is asked for.
"""

import argparse

import torch
from torch import nn

from dittofl import SGD, Ditto, Federation, Method, Split, Task, Vmap, estimate, federate
from dittofl.datasets import digits, linear_regression
from dittofl.losses import half_square
from dittofl.models import linear, mlp

LAMS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
ROUNDS = (20, 100, 250)
Problem = tuple[Task, Federation, int | None, float]  # batch, lr


def regression(seed: int) -> Problem:
    """λ* = .8²/(30 · .1²) = 2.13."""
    module = linear(inputs=5, bias=False, zero=True)
    return Task(module, half_square), linear_regression(devices=25, n=30, sigma=0.8, tau=0.1, seed=seed), None, 0.2


def of_digits(module: nn.Module, seed: int) -> Problem:
    return (
        Task(module, nn.CrossEntropyLoss()),
        digits(split=Split(train=0.25, validation=0.2, test=0.55), seed=seed),
        16,
        0.1,
    )


def logistic(seed: int) -> Problem:
    return of_digits(nn.Sequential(nn.Flatten(), linear(inputs=64, outputs=10, zero=True)), seed)


def network(seed: int) -> Problem:
    return of_digits(mlp(inputs=64, hidden=(32,), outputs=10), seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    seeds = parser.parse_args().seeds
    torch.set_num_threads(1)
    lams = ", ".join(f"{lam:g}" for lam in LAMS)
    print(f"{'task':<12}{'seed':>5}{'round':>7}{'estimate':>10}   test loss at λ = {lams} (*: the least)")
    for make in (regression, logistic, network):
        for seed in range(seeds):
            torch.manual_seed(seed)
            told(make.__name__, seed, *make(seed))


def told(name: str, seed: int, task: Task, federation: Federation, batch: int | None, lr: float) -> None:
    personal = {f"{lam:g}": Ditto(lam=lam, lr=lr, steps=5, proximal=True) for lam in LAMS}
    method = Method(local=SGD(lr=lr, steps=5), personal=personal, batch=batch)
    n = int(sorted(federation.sizes("train"))[federation.K // 2])
    for run in federate(task, federation, method, rounds=max(ROUNDS), cohort=10, seed=seed, engine=Vmap()):
        if run.t in ROUNDS:
            losses = [run.evaluate().summary(row, "loss").mean for row in personal]
            shown = "  ".join(f"{loss:.4g}" + "*" * (loss == min(losses)) for loss in losses)
            print(f"{name:<12}{seed:>5}{run.t:>7}{estimate(run)(n):>10.3g}   {shown}", flush=True)


if __name__ == "__main__":
    main()
