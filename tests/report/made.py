"""Results with numbers of one's choice."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from dittofl.metrics import summarise
from dittofl.report.results import Curves, Devices, Result, Rounds

LEAST: dict[str, object] = {
    "rounds": 1, "data": {"kind": "digits"},
    "method": {"local": {"kind": "SGD", "lr": 0.1}, "batch": 16, "aggregate": {"kind": "Mean"}},
}  # fmt: skip


def made(
    values: Mapping[str, Sequence[float]], *, ids: Sequence[str] = (), malicious: Sequence[int] = (), seed: int = 0,
    name: str = "made", metric: str = "accuracy", fingerprint: str = "f" * 64, spec: Mapping[str, object] | None = None,
) -> Result:  # fmt: skip
    """A run with these per-device numbers of each model after its only round."""
    K = len(next(iter(values.values())))
    bad, n, lower = np.isin(np.arange(K), malicious), np.full(K, 10), metric == "loss"
    columns = {(model, metric): np.array(its, dtype=np.float64) for model, its in values.items()}
    scores = {key: asdict(summarise(its, n, ~bad, lower_is_better=lower)) for key, its in columns.items()}
    ones = np.ones(1, dtype=np.int64)
    return Result(
        folder=Path(f"{name}-{seed}"), spec=LEAST | dict(spec or {}) | {"name": name, "seed": seed},
        facts={"fingerprint": fingerprint, "identity": "i" * 64, "malicious": list(malicious)},
        summary={"part": "test", "rounds": 1, "seconds": 1.0, "identity": "i" * 64}, scores=scores,
        curves=Curves(
            rounds=dict.fromkeys(values, ones),
            values={(*key, s): np.array([its[s]]) for key, its in scores.items() for s in its},
        ),
        devices=Devices(
            ids=tuple(ids) or tuple(f"device {k}" for k in range(K)), sizes={"train": n, "validation": n, "test": n},
            malicious=bad, visits=n, choices={}, values=columns,
        ),
        rounds=Rounds(t=ones, cohort=ones, malicious=ones * 0, dropped=ones * 0), selections=(),
    )  # fmt: skip
