"""A small experiment of a user's own, in a folder: it trains in a tenth of a second."""

from pathlib import Path
from typing import Any

from dittofl.experiment.folder import opened
from dittofl.experiment.progress import Quiet, Shown
from dittofl.experiment.run import execute
from dittofl.experiment.spec import Spec, resolve

TASK = '''
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

import nearby


class Net(nn.Module):
    def __init__(self, hidden=4):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, x):
        return self.layers(x)


def data(sites=6, seed=0):
    draws = np.random.default_rng(seed)
    its = {}
    for k in range(sites):
        x = draws.normal(size=(20 + 7 * k, 2)).astype(np.float32)
        its[f"site {k}"] = x, (x @ [nearby.ONE, k] > 0).astype(np.int64)
    return its


def brier(out, y):
    return (out.softmax(1)[:, 1] - y).square()


def middle(report):
    return report.delta.median(0).values


def trimmed(report, cut):
    return report.delta.sort(0).values[cut : len(report.delta) - cut].mean(0)


@dataclass(frozen=True, kw_only=True)
class Remembering:
    """δ = m / (1 − βᵗ), m ← β m + (1 − β) mean: an aggregator whose state is a tensor, a number and nothing."""

    beta: float = 0.5
    losses = False

    def init(self, w0):
        return torch.zeros_like(w0), 1.0, None

    def __call__(self, report, state):
        m, power = self.beta * state[0] + (1 - self.beta) * report.delta.mean(0), self.beta * state[1]
        return m / (1 - power), (m, power, None)


class Growing:
    """A state with another part after every round."""

    losses = False

    def init(self, w0):
        return []

    def __call__(self, report, state):
        return report.delta.mean(0), [*state, report.delta.mean(0)]


class Wordy(Growing):
    """A state that is no tensor."""

    def init(self, w0):
        return "so far"

    def __call__(self, report, state):
        return report.delta.mean(0), state + "."


class Heavy:
    """w ← w + m, m ← β m + δ: a server with a state."""

    def __init__(self, beta=0.5):
        self.beta = beta

    def init(self, w0, K):
        return torch.zeros_like(w0)

    def down(self, state):
        return None

    def step(self, w, delta, report, state):
        state = self.beta * state + delta
        return w + state, state


HEAVY, RARE = Heavy(beta=0.25), torch.ones(3, 2)
'''
NEARBY = "ONE = 1.0\n"
LR: dict[str, Any] = {"lr": 0.2, "steps": 2}
TABLE: dict[str, Any] = {
    "name": "small", "rounds": 6, "cohort": 3, "eval_every": 2, "threads": 1, "data": "task:data", "model": "task:Net",
    "metrics": {"brier": {"kind": "Metric", "of": "task:brier", "lower_is_better": True}},
    "attack": {"kind": "A2", "ratio": 0.4},
    "method": {
        "batch": 4, "local": {"kind": "SGD", **LR}, "personal": {"local": {"kind": "Local", **LR}},
        "choose": {"ditto": {"kind": "LambdaRule", **LR}}, "aggregate": "task:Remembering", "server": "task:Heavy",
    },
}  # fmt: skip


def written(folder: Path) -> Path:
    """A folder with the user's files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "task.py").write_text(TASK)
    (folder / "nearby.py").write_text(NEARBY)
    return folder


def small(folder: Path, **changes: Any) -> Spec:
    """Its spec, with keys replaced."""
    return resolve(TABLE | changes, written(folder))


def run(spec: Spec, place: Path, *, every: float = 60.0, shown: Shown | None = None) -> dict[str, Any]:
    """Runs it, or goes on with it, and returns the summary without what no two runs share."""
    summary = execute(spec, opened(place, resume=True), shown or Quiet(), every=every)
    return {key: value for key, value in summary.items() if key != "seconds"}


def files(place: Path) -> dict[str, bytes]:
    """What a run wrote that must not depend on how it came there."""
    return {
        name: (place / name).read_bytes() for name in ("metrics.csv", "rounds.csv", "devices.csv", "selections.json")
    }
