"""What a run costs beside the bare `federate` loop: logs, progress, provenance, checkpoints.

    python benchmarks/overhead.py                                      # Fashion-MNIST, 30 rounds on this CPU
    python benchmarks/overhead.py --rounds 5000 --device cuda --set precision=tf32
    python benchmarks/overhead.py digits --rounds 400 --repeats 5

The loop does what the run does of a spec: the same rounds, an evaluation of the test part every so many rounds (100),
and one of all parts at the end. It writes nothing. Both are timed from the built task to the last number, in turn, a
few times; before them some rounds warm up. Where the run spends its time is told as well, as the machine's other work
falls on both and makes a difference of a percent hard to see: what is not the start, a round or an evaluation is the
run's own. On a GPU, whose work is asynchronous, the totals alone are to be compared.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import torch

from dittofl.experiment.checkpoint import Checkpoints
from dittofl.experiment.folder import opened
from dittofl.experiment.progress import Lines
from dittofl.experiment.provenance import processor
from dittofl.experiment.record import parts_of
from dittofl.experiment.run import execute, flags
from dittofl.experiment.setup import Setup, build
from dittofl.experiment.spec import Spec, load
from dittofl.federated import Federated

TIMED = {
    "start": (Setup, "federate"), "rounds": (Federated, "round"), "evaluations": (Federated, "evaluate"),
    "checkpoints": (Checkpoints, "save"),
}  # fmt: skip
LOOPS = ("start", "rounds", "evaluations")  # what the bare loop does too


def loop(spec: Spec, setup: Setup) -> float:
    """Seconds of the bare loop."""
    begun, rounds = time.perf_counter(), setup.federate()
    for run in rounds:
        if run.t % spec.experiment.eval_every == 0 and run.t < rounds.last:
            run.evaluate("test")
    run.evaluate(*[part for part in parts_of(run.federation) if part in spec.experiment.parts])
    return time.perf_counter() - begun


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Seconds by what they are spent on, while it lasts."""
    spent = dict.fromkeys(TIMED, 0.0)

    def wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def act(*given: Any, **more: Any) -> Any:
            begun = time.perf_counter()
            try:
                return function(*given, **more)
            finally:
                spent[name] += time.perf_counter() - begun

        return act

    were = {name: getattr(owner, method) for name, (owner, method) in TIMED.items()}
    for name, (owner, method) in TIMED.items():
        setattr(owner, method, wrapped(name, were[name]))
    try:
        yield spent
    finally:
        for name, (owner, method) in TIMED.items():
            setattr(owner, method, were[name])


def logged(spec: Spec, setup: Setup, every: float) -> tuple[float, dict[str, float]]:
    """Seconds of a run in a folder, and what they were spent on."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name, timed() as spent:
        begun = time.perf_counter()
        execute(spec, opened(Path(name) / "run", resume=False), Lines(lambda line: None), every=every, setup=setup)
        return time.perf_counter() - begun, spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", nargs="?", default="fashion")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--eval-every", type=int, default=100)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--set", action="append", default=[], dest="assignments")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--checkpoint-every", type=float, default=60.0)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    change = {"rounds": given.rounds, "eval_every": given.eval_every, "device": given.device}
    spec = load(given.spec, [change], given.assignments)
    with flags(spec.experiment):
        setup = build(spec)
        for run in setup.federate(rounds=given.warm_up):
            run.evaluate("test") if run.t == given.warm_up else None
        bare, runs, spent = [], [], dict.fromkeys(TIMED, 0.0)
        for i in range(given.repeats):
            bare.append(loop(spec, setup))
            seconds, its = logged(spec, setup, given.checkpoint_every)
            runs.append(seconds)
            spent = {name: spent[name] + its[name] for name in spent}
            own = seconds - sum(its[name] for name in LOOPS)
            told = "  ".join(f"{name} {value:.3f} s" for name, value in its.items())
            print(f"{i + 1}: loop {bare[-1]:.2f} s, run {seconds:.2f} s: {told}, the run's own {own:.3f} s", flush=True)
    own = sum(runs) - sum(spent[name] for name in LOOPS)
    result = {
        "spec": given.spec, "rounds": given.rounds, "eval_every": given.eval_every, "device": given.device,
        "machine": torch.cuda.get_device_name(0) if given.device.startswith("cuda") else processor(),
        "threads": spec.experiment.threads or torch.get_num_threads(),
        "loop_seconds": bare, "run_seconds": runs, "spent": spent, "checkpoint_every": given.checkpoint_every,
        "overhead_of_medians": median(runs) / median(bare) - 1,
        "own_share": own / (sum(runs) - own),
        "own_share_without_checkpoints": (own - spent["checkpoints"]) / (sum(runs) - own),
    }  # fmt: skip
    print(f"run against loop, medians: {100 * result['overhead_of_medians']:+.2f} %")
    print(f"neither start, round nor evaluation: {100 * result['own_share']:.2f} % of those, "
          f"{100 * result['own_share_without_checkpoints']:.2f} % without checkpoints")  # fmt: skip
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
