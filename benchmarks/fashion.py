"""Fashion-MNIST in the authors' setting: rounds per second, and the accuracies of four columns of Table 9.

    python benchmarks/fashion.py [--data FOLDER] [--device cuda] [--rounds 5000] [--attack 'A1 50%'] [--alone]
                                 [--out FILE.json]

500 devices of five consecutive classes with the authors' seeded sizes, 10 devices a round drawn by size, 2 minibatch
steps of 16 at learning rate .05, a CNN of 3,274,634 parameters; w and four v_k (local, λ = .1, 1, 2) trained together
on all of the train part. The four idx.gz files are found where the library looks for them, or in FOLDER.
"""

import argparse
import json
import platform
import time
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from dittofl import (
    A1,
    A2,
    A3,
    SGD,
    Attack,
    BySize,
    Ditto,
    Evaluation,
    Federated,
    Local,
    Loop,
    Method,
    Task,
    Vmap,
    federate,
)
from dittofl.datasets import fashion
from dittofl.engine.rows import MemoryRows
from dittofl.models import fashion_cnn

MODELS = ("global", "local", "lam=0.1", "lam=1", "lam=2")
PAPER = {  # Table 9: sample-weighted mean test accuracy of MODELS
    "clean": (0.911, 0.876, 0.929, 0.946, 0.945), "A1 50%": (0.855, 0.876, 0.909, 0.935, 0.935),
    "A2 50%": (0.882, 0.876, 0.914, 0.930, 0.923), "A3 20%": (0.551, 0.874, 0.903, 0.831, 0.785),
}  # fmt: skip


def method() -> Method:
    how = {"lr": 0.05, "steps": 2}
    lambdas = {f"lam={lam:g}": Ditto(lam=lam, **how) for lam in (0.1, 1, 2)}
    return Method(local=SGD(**how), personal={"local": Local(**how), **lambdas}, batch=16)


ATTACKS: dict[str, Attack | None] = {
    "clean": None, "A1 50%": A1(ratio=0.5), "A2 50%": A2(ratio=0.5), "A3 20%": A3(ratio=0.2),
}  # fmt: skip


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--warm-up", type=int, default=50)
    parser.add_argument("--attack", choices=ATTACKS, default="clean")
    parser.add_argument("--alone", action="store_true", help="w without personal models")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this many")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def clock(device: str) -> float:
    """Seconds, once the device has done all that it was given."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    given = asked()
    torch.set_float32_matmul_precision("high")  # TF32 on a GPU
    torch.backends.cudnn.allow_tf32 = True
    data = fashion(data=given.data)
    print(data)
    engine = Vmap(compile=not given.no_compile) if given.device == "cuda" else Loop()
    torch.manual_seed(0)
    how = replace(method(), personal={}) if given.alone else method()
    run = federate(
        Task(fashion_cnn(), nn.CrossEntropyLoss()), data, how, rounds=given.rounds, cohort=10,
        attack=ATTACKS[given.attack], sampling=BySize(), engine=engine, device=given.device,
    )  # fmt: skip
    begun = start = time.perf_counter()
    for state in run:
        if state.t == given.warm_up:
            start = clock(given.device)
            print(f"warm-up of {state.t} rounds: {start - begun:.1f} s", flush=True)
        if state.t % 500 == 0:
            rate = (state.t - given.warm_up) / (time.perf_counter() - start)
            print(f"round {state.t}: {rate:.1f} rounds/s", flush=True)
        if time.perf_counter() - begun > given.seconds:
            break
    seconds = clock(given.device) - start
    scored = state.evaluate("test")
    times = {
        "rounds_per_second": (state.t - given.warm_up) / seconds, "warm_up_seconds": start - begun,
        "evaluation_seconds": time.perf_counter() - start - seconds,
    }  # fmt: skip
    result = told(given, engine, data.fingerprint, state, scored, times)
    print(scored)
    print(json.dumps(result, indent=1))
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")


def told(
    given: argparse.Namespace, engine: Loop | Vmap, fingerprint: str, state: Federated, scored: Evaluation,
    times: dict[str, float],
) -> dict[str, object]:  # fmt: skip
    """The result with all that it depends on."""
    return {
        "setting": f"authors' Fashion, {'w alone' if given.alone else 'w and four v_k'}", "attack": given.attack,
        "rounds": state.t, **times,
        "device": torch.cuda.get_device_name() if given.device == "cuda" else platform.processor(),
        "torch": torch.__version__, "engine": str(engine), "fingerprint": fingerprint,
        "rows": {name: len(rows.touched()) for name, rows in state.rows.items() if isinstance(rows, MemoryRows)},
        "weighted_mean": {model: scored.summary(model).weighted_mean for model in state.solvers},
        "std": {model: scored.summary(model).std for model in state.solvers},
        "paper": {model: its for model, its in zip(MODELS, PAPER[given.attack], strict=True) if model in state.solvers},
    }  # fmt: skip


if __name__ == "__main__":
    main()
