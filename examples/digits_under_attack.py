"""Digits under attack: what personal models are worth when half of the devices are malicious.

    python examples/digits_under_attack.py [--rounds 200] [--seeds 3]

scikit-learn's 1,797 real digits on 25 devices, two to three classes each. FedAvg trains w; beside it, in the same run
and at no cost to w, run local training, Ditto with the paper's three λ, and each device's own choice among them by its
validation data. Every line is an average over devices that are benign.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from dittofl import A1, A2, A3, SGD, Attack, Evaluation, Federation, Local, Method, Split, Task, federate, lambda_rule

DEVICES = 25
ATTACKS: dict[str, Attack | None] = {
    "clean": None,
    "A1 labels, 50 %": A1(ratio=0.5),
    "A2 noise, 50 %": A2(ratio=0.5),
    "A3 replacement, 20 %": A3(ratio=0.2),
}


def federation(seed: int) -> Federation:
    """Each class is cut into shards, and each device gets shards of two or three classes."""
    x, y = load_digits(return_X_y=True)
    draws = np.random.default_rng(seed)
    classes = [[(k + j) % 10 for j in range(2 + k % 2)] for k in range(DEVICES)]
    holders = {c: [k for k in range(DEVICES) if c in classes[k]] for c in range(10)}
    mine: dict[int, list[int]] = {k: [] for k in range(DEVICES)}
    for c, devices in holders.items():
        for k, shard in zip(
            devices, np.array_split(draws.permutation(np.flatnonzero(y == c)), len(devices)), strict=True
        ):
            mine[k].extend(shard)
    data = {f"device {k}": ((x[rows] / 16).astype(np.float32), y[rows]) for k, rows in mine.items()}
    return Federation.of(data, split=Split(train=0.5, validation=0.2, test=0.3), seed=seed)


def network(seed: int) -> nn.Module:
    """A small perceptron, drawn without touching the global generator."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def evaluations(attack: Attack | None, rounds: int, seeds: int) -> Iterator[Evaluation]:
    """One run a seed."""
    strong = attack is not None and attack.is_strong(DEVICES)
    ditto, rule = lambda_rule(strong=strong, lr=0.1, steps=5)
    method = Method(
        local=SGD(lr=0.1, steps=5),
        personal={"local": Local(lr=0.1, steps=5), **ditto},
        choose={"ditto": rule},
        batch=16,
    )
    for seed in range(seeds):
        task = Task(network(seed), nn.CrossEntropyLoss())
        *_, run = federate(task, federation(seed), method, rounds=rounds, cohort=10, attack=attack, seed=seed)
        yield run.evaluate("test")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    print(f"{'':<22}{'model':<12}{'accuracy':>9}{'std':>7}{'worst 10 %':>12}")
    for name, attack in ATTACKS.items():
        scored = list(evaluations(attack, given.rounds, given.seeds))
        for model in ("global", *(m for m, _ in scored[0].values if m != "global")):
            of = [one.summary(model) for one in scored]
            mean, std, worst = (np.mean([getattr(s, key) for s in of]) for key in ("mean", "std", "worst10"))
            print(
                f"{name if model == 'global' else '':<22}{model:<12}{mean:>9.3f}{std:>7.3f}{worst:>12.3f}", flush=True
            )


if __name__ == "__main__":
    main()
