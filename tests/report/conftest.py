"""Tiny real runs, made once: two conditions of two seeds, a regression without personal models, one that diverges."""

from pathlib import Path

import pytest

from dittofl.experiment.folder import opened
from dittofl.experiment.progress import Quiet
from dittofl.experiment.run import execute
from dittofl.experiment.spec import resolve
from dittofl.report import Result, read

TASK = """
import torch
from torch import nn

EVIL = "<script>document.title = 1</script>|\\"'&"


def classes(devices=7, n=30):
    g = torch.Generator().manual_seed(0)
    names = [EVIL, *(f"site {k}" for k in range(1, devices))]
    inputs = [torch.randn(n, 3, generator=g) for _ in names]
    return {name: (x, (x @ torch.randn(3, 2, generator=g)).argmax(1)) for name, x in zip(names, inputs)}


def numbers():
    return {name: (x, x.sum(1, keepdim=True) + i) for i, (name, (x, _)) in enumerate(classes().items())}
"""
SGD = {"kind": "SGD", "lr": 0.1}
DITTO = {"kind": "Ditto", "lr": 0.1, "lam": 1.0}
CHOICE = {"local": SGD, "choose": {"ditto": {"kind": "LambdaRule", "lr": 0.1}}}
CLASSES = {"data": {"kind": "task:classes"}, "model": {"kind": "mlp", "inputs": 3, "hidden": [], "outputs": 2}}
NUMBERS = {
    "data": {"kind": "task:numbers"}, "model": {"kind": "mlp", "inputs": 3, "hidden": [], "outputs": 1},
    "loss": {"kind": "MSELoss"}, "seed": 0,
}  # fmt: skip
A1 = {"kind": "A1", "ratio": 0.3}
RUNS: dict[str, dict[str, object]] = {
    **{f"clean-{seed}": CLASSES | {"name": "clean", "method": CHOICE, "seed": seed} for seed in (2, 10)},
    **{f"A1-{seed}": CLASSES | {"name": "A1", "method": CHOICE, "seed": seed, "attack": A1} for seed in (2, 10)},
    "alone": NUMBERS | {"name": "alone", "method": {"local": SGD}},
    "diverged": NUMBERS | {
        "name": "diverged", "method": {"local": {"kind": "SGD", "lr": 1e6}, "personal": {"ditto": DITTO}}, "rounds": 60,
    },
}  # fmt: skip


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of finished runs."""
    place = tmp_path_factory.mktemp("report")
    (place / "task.py").write_text(TASK)
    for folder, table in RUNS.items():
        spec = resolve({"rounds": 6, "eval_every": 2, "cohort": 3, "threads": 1} | table, place)
        execute(spec, opened(place / "runs" / folder, resume=False), Quiet(), every=0)
    return place / "runs"


@pytest.fixture(scope="session")
def results(runs: Path) -> dict[str, Result]:
    """Each of them, read."""
    return {result.folder.name: result for result in read([runs])}
