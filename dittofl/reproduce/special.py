"""Tables and figures that are not made of cells: Table 4, Figures 2 and 3 by the theory, Figures 7 to 9 by round."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dittofl.experiment.files import as_csv
from dittofl.experiment.setup import build
from dittofl.method import GLOBAL
from dittofl.reproduce.bench import CELEBA, FASHION, FEMNIST, SKEWED, STACKOVERFLOW, VEHICLE, missing
from dittofl.reproduce.column import column
from dittofl.reproduce.ended import Ended, ended
from dittofl.reproduce.family import JOINT, STOPS, TUNED, family
from dittofl.reproduce.trajectory import Machine, Trajectory
from dittofl.theory import figures as drawn
from dittofl.theory.point import Point
from dittofl.theory.simulation import simulate

Record = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Special:
    """A table or figure of its own shape: the runs it needs, and its records."""

    name: str
    title: str
    runs: Callable[[Sequence[int], float], list[Trajectory]]
    records: Callable[[list[tuple[Trajectory, Ended]]], Iterator[Record]]


def none(seeds: Sequence[int], scale: float) -> list[Trajectory]:
    """No run is needed."""
    return []


def traced(seeds: Sequence[int], scale: float) -> list[Trajectory]:
    """One run with fine-tuning at several rounds, under A3 20 %, on Fashion-MNIST and on Vehicle."""
    return [
        Trajectory(bench=bench, family=family("curves"), where=column("A3 20%"), held=True, seed=seed, scale=scale)
        for bench in (FASHION, VEHICLE) for seed in seeds
    ]  # fmt: skip


ABSENT = "not here"

# What the paper's Table 4 says: devices, partition, model, task.
TABLE4 = {
    "Vehicle": (23, "natural (each device is a vehicle)", "linear SVM", "binary classification"),
    "FEMNIST": (205, "natural (each device is a writer)", "CNN", "62-class classification"),
    "CelebA": (515, "natural (each device is a celebrity)", "CNN", "binary classification"),
    "Fashion MNIST": (500, "synthetic (5 classes per device)", "CNN", "10-class classification"),
    "StackOverflow": (400, "natural (each device is a user)", "logistic regression", "500-class tag prediction"),
    "FEMNIST (skewed)": (100, "synthetic (5 classes per device)", "CNN", "62-class classification"),
}


def table4(found: list[tuple[Trajectory, Ended]]) -> Iterator[Record]:
    """Devices, samples and parameters of every data set that is here."""
    for bench in (VEHICLE, FEMNIST, CELEBA, FASHION, STACKOVERFLOW, SKEWED):
        devices, partition, model, task = TABLE4[bench.name]
        known = {"dataset": bench.name, "paper_devices": devices, "partition": partition, "model": model, "task": task}
        ours: dict[str, Any] = dict.fromkeys(("devices", "train", "test", "parameters", "fingerprint"), "")
        remark = missing(bench)
        if remark is None:
            run = Trajectory(bench=bench, family=family("FedAvg"), where=bench.columns[0])
            setup = build(run.spec(Machine()))
            its = setup.federation
            ours = {
                "devices": its.K, "train": int(its.sizes("train").sum()), "test": int(its.sizes("test").sum()),
                "parameters": setup.width[0], "fingerprint": its.fingerprint[:12],
            }  # fmt: skip
        yield {**known, **ours, "remark": bench.remarks if remark is None else ABSENT}


def lacking(record: Record) -> bool:
    """Whether a data set's record says that it was not at hand."""
    return bool(record.get("remark") == ABSENT)


def figure2(found: list[tuple[Trajectory, Ended]]) -> Iterator[Record]:
    """E (ŵ_k(λ) − w_k)² over benign devices by λ, exact and simulated, with λ* among the λ."""
    for name, problem in (("clean", drawn.CLEAN), ("adversarial", drawn.ATTACKED)):
        yield from _estimated(name, problem, sorted({*map(float, drawn.LAMS), problem.lam_star}))


def figure3(found: list[tuple[Trajectory, Ended]]) -> Iterator[Record]:
    """The same by relatedness 1/τ for local, global and Ditto at λ*(τ)."""
    adversarial = replace(drawn.RELATED_PUBLISHED, tau_a=1.0)
    panels = {"clean": drawn.RELATED_CLEAN, "as published": drawn.RELATED_PUBLISHED, "adversarial": adversarial}
    for name, problem in panels.items():
        for tau in drawn.TAUS:
            its = replace(problem, tau=tau)
            yield from _estimated(name, its, [0.0, its.lam_star, drawn.GLOBAL])


def _estimated(panel: str, problem: Point, lams: Sequence[float], trials: int = 10_000) -> Iterator[Record]:
    """A record for each λ."""
    seen = simulate(problem, lams, trials=trials, rng=np.random.default_rng(0))
    for i, lam in enumerate(lams):
        yield {
            "panel": panel, "tau": problem.tau, "lam": float(lam), "is_lam_star": int(lam == problem.lam_star),
            "error": float(problem.error(lam)), "simulated_error": seen.error[i], "standard_error": seen.error_se[i],
            "variance": float(problem.variance(lam)), "simulated_variance": seen.variance[i],
        }  # fmt: skip


def figure7(found: list[tuple[Trajectory, Ended]]) -> Iterator[Record]:
    """After the last round: w, Ditto solved jointly, and fine-tuned with each stop; the best of those by hindsight."""
    for run, its in found:
        ends = {model: its.curve(model)[-1][1] for model in (GLOBAL, JOINT, *(f"{TUNED}{n}" for n in STOPS))}
        best = max((f"{TUNED}{n}" for n in STOPS), key=lambda name: ends[name])
        for model, value in ends.items():
            yield _told(run, its) | {"model": model, "accuracy": value, "chosen_with_hindsight": int(model == best)}


def figure8(found: list[tuple[Trajectory, Ended]]) -> Iterator[Record]:
    """By round: w, Ditto solved jointly, and fine-tuned from the w^t of then, each with its best stop by hindsight."""
    for run, its in found:
        for model in (GLOBAL, JOINT):
            for t, value in its.curve(model):
                yield _told(run, its) | {"model": model, "t": t, "accuracy": value, "stop": ""}
        curves = {n: dict(its.curve(f"{TUNED}{n}")) for n in STOPS}
        for t in curves[STOPS[0]]:
            best = max(STOPS, key=lambda n: curves[n][t])
            yield _told(run, its) | {"model": "finetuning", "t": t, "accuracy": curves[best][t], "stop": best}


def figure9(found: list[tuple[Trajectory, Ended]]) -> Iterator[Record]:
    """By round, of w over all devices, malicious ones too: loss on train data, accuracy on validation data."""
    for run, its in found:
        losses = dict(its.curve(GLOBAL, "train", "all", "loss_weighted_mean"))
        accuracies = dict(its.curve(GLOBAL, "validation", "all"))
        benign = dict(its.curve(GLOBAL, "test"))
        for t, loss in losses.items():
            numbers = {"train_loss": loss, "validation_accuracy": accuracies[t], "benign_test_accuracy": benign[t]}
            yield _told(run, its) | {"t": t, **numbers}


def _told(run: Trajectory, its: Ended) -> dict[str, Any]:
    bench = run.bench
    return {
        "dataset": bench.name, "attack": run.where.name, "seed": run.seed, "rounds": run.rounds, "scale": run.scale,
        "run": its.run, "remark": bench.remarks,
    }  # fmt: skip


SPECIALS = {
    its.name: its
    for its in (
        Special(name="table4", title="Data sets", runs=none, records=table4),
        Special(name="figure2", title="Point estimation: error against λ", runs=none, records=figure2),
        Special(name="figure3", title="Point estimation: error against relatedness", runs=none, records=figure3),
        Special(name="figure7", title="Joint optimisation against fine-tuning", runs=traced, records=figure7),
        Special(name="figure8", title="Fine-tuning after early stops", runs=traced, records=figure8),
        Special(name="figure9", title="When to stop cannot be seen", runs=traced, records=figure9),
    )
}


def text(records: Sequence[Record]) -> str:
    """Records as CSV."""
    columns = list(records[0]) if records else ["empty"]
    lines = [[f"{its:.6g}" if isinstance(its := one[key], float) else its for key in columns] for one in records]
    return as_csv([columns, *lines])


def made(special: Special, out: Path, seeds: Sequence[int], scale: float) -> list[tuple[Trajectory, Ended]]:
    """The runs that have ended."""
    return [(run, ended(run.path(out))) for run in special.runs(seeds, scale) if run.ended(out)]
