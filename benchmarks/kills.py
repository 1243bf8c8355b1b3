"""Kills a run at random moments and resumes it: every summary must equal that of a run that nobody killed.

    python benchmarks/kills.py                     # 30 kills of a small run
    python benchmarks/kills.py --kills 5 --rounds 40
    python benchmarks/kills.py --every-write       # dies before and after every single write of a run, one by one

A run saves after each round, so that about half of the moments lie within a checkpoint. The killed process is a fork of
this one, that nothing but SIGKILL ends. Exits with 1 where a summary, a log or a per-device table differs.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import dittofl.experiment.run as running
from dittofl.experiment.folder import opened
from dittofl.experiment.progress import Quiet
from dittofl.experiment.setup import build
from dittofl.experiment.spec import Spec, resolve

LR = {"lr": 0.1, "steps": 2}
COMPARED = ("metrics.csv", "rounds.csv", "devices.csv", "selections.json")
SYSTEM = {name: getattr(os, name) for name in ("fsync", "replace", "rename", "unlink", "truncate")}


def spec(rounds: int) -> Spec:
    """Digits under an attack, with the λ rule beside FedAvg."""
    return resolve({
        "name": "killed", "rounds": rounds, "cohort": 5, "eval_every": 3, "threads": 1, "data": "digits",
        "model": {"kind": "mlp", "inputs": 64, "hidden": [16], "outputs": 10}, "attack": {"kind": "A2", "ratio": 0.3},
        "method": {
            "batch": 16, "local": {"kind": "SGD", **LR, "through": ["Momentum"]},
            "choose": {"ditto": {"kind": "LambdaRule", **LR}},
        },
    })  # fmt: skip


def train(its: Spec, place: Path) -> None:
    """To the end, or on to it, with a checkpoint after every round."""
    running.SHARE = 0
    running.execute(its, opened(place, resume=True), Quiet(), every=1e-9)


def result(place: Path) -> dict[str, object]:
    """All that must not depend on how a run came to its end."""
    summary = json.loads((place / "summary.json").read_text())
    del summary["seconds"]
    return {"summary": summary} | {name: (place / name).read_bytes() for name in COMPARED}


def forked(do: Callable[[], None], seconds: float | None = None) -> int:
    """Does it in a process of its own, which is killed after some seconds; how that ended."""
    child = os.fork()
    if child == 0:
        try:
            do()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
        os._exit(0)
    until = time.monotonic() + (float("inf") if seconds is None else seconds)
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(ended[1])


def at_random(its: Spec, folder: Path, kills: int, length: float) -> tuple[int, int]:
    """Kills runs until there were so many kills that hit one; how many runs, and how many of them differ."""
    drawn, wanted, hit, runs, wrong = random.Random(0), result(folder / "whole"), 0, 0, 0
    while hit < kills:
        place = folder / f"run-{(runs := runs + 1)}"
        for _ in range(4):  # kills of one and the same run
            begun = time.monotonic()
            code = forked(lambda where=place: train(its, where), drawn.uniform(0, length))  # type: ignore[misc]
            hit += code == -signal.SIGKILL
            if code == 0:  # it had ended before
                length = min(length, time.monotonic() - begun)
                break
        wrong += forked(lambda where=place: train(its, where)) != 0 or result(place) != wanted  # type: ignore[misc]
        print(f"{hit} kills, {runs} runs, {wrong} differ", flush=True)
    return runs, wrong


def dying(write: int, before: bool) -> None:
    """From now on this process dies at its so-and-so-manieth write, before or after the system has made it."""
    count = [0]

    def wrapped(name: str) -> Callable[..., object]:
        def act(*given: object, **more: object) -> object:
            count[0] += 1
            if count[0] == write and before:
                os._exit(9)
            done = SYSTEM[name](*given, **more)
            if count[0] == write:
                os._exit(9)
            return done

        return act

    for name in SYSTEM:
        setattr(os, name, wrapped(name))


def at_every_write(its: Spec, folder: Path) -> tuple[int, int]:
    """Dies before and after each write of a whole run, which is then resumed; how many runs, how many differ."""
    wanted, write, wrong, died = result(folder / "whole"), 0, 0, True
    while died:
        write, died = write + 1, False
        for before in (True, False):
            place = folder / f"write-{write}-{before}"

            def die(where: Path = place, at: int = write, first: bool = before) -> None:
                dying(at, first)
                train(its, where)

            died |= forked(die) == 9
            wrong += forked(lambda where=place: train(its, where)) != 0 or result(place) != wanted  # type: ignore[misc]
        print(f"{write} writes, {wrong} differ", flush=True)
    return 2 * write, wrong


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kills", type=int, default=30)
    options.add_argument("--rounds", type=int, default=60)
    options.add_argument("--every-write", action="store_true")
    given = options.parse_args()
    its = spec(given.rounds)
    build(its)  # what is imported here need not be imported by every fork
    with tempfile.TemporaryDirectory() as name:
        folder, begun = Path(name), time.monotonic()
        if forked(lambda: train(its, folder / "whole")) != 0:
            return 1
        length = time.monotonic() - begun
        if given.every_write:
            runs, wrong = at_every_write(its, folder)
        else:
            runs, wrong = at_random(its, folder, given.kills, length)
    print(f"{runs} runs were killed and resumed: {wrong} differ from the one that was not ({length:.1f} s a run)")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
