"""The experiment of the paper's Vehicle table as one plain numpy program on the library's draws, number by number.

Devices drawn by size, linear SVMs in single minibatch steps, w and every v_k on the same minibatches; A1, A2, A3; each
defence and the fair baseline, with f = ⌊m K_a/K⌋ as the server expects.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from torch import nn

from dittofl import (
    A1,
    A2,
    A3,
    MGDA,
    SGD,
    Attack,
    BySize,
    Clip,
    Ditto,
    Federation,
    KLoss,
    KNorm,
    Krum,
    Local,
    Median,
    Method,
    MultiKrum,
    Signs,
    Task,
    Tilt,
    hinge,
    mean,
)
from dittofl.losses import SquaredNorm
from dittofl.seeds import Purpose, generator
from tests.problems import ENGINES, Minibatches, rows, run

K, D, M, BATCH, ROUNDS, ETA, MALICIOUS = 12, 6, 5, 8, 40, 0.1, 5
F = M * MALICIOUS // K
LAMS = {"local": 0.0, "lam=0.1": 0.1, "lam=1": 1.0, "lam=2": 2.0}
Row = NDArray[np.float64]

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())


class Samples(NamedTuple):
    x: Row
    y: Row

    def of(self, i: Any) -> "Samples":
        return Samples(self.x[i], self.y[i])


def data() -> list[Samples]:
    """Some devices have less than a batch, some an odd number; no two tasks are alike."""
    rng = np.random.default_rng(0)
    common, found = rng.normal(size=D), []
    for n in np.linspace(3, 50, K).astype(int):
        x = rng.normal(size=(n, D))
        found.append(Samples(x, np.where(x @ (common + 0.5 * rng.normal(size=D)) + rng.normal(size=n) > 0, 1, -1)))
    return found


def loss(w: Row, its: Samples) -> float:
    return float(0.01 * w[:D] @ w[:D] + np.maximum(0, 1 - its.y * (its.x @ w[:D] + w[D])).mean())


def gradient(w: Row, its: Samples) -> Row:
    wrong = -its.y * (its.y * (its.x @ w[:D] + w[D]) < 1) / len(its.y)
    return np.append(0.02 * w[:D] + wrong @ its.x, wrong.sum())


def near(deltas: Row) -> list[float]:
    """Krum's scores."""
    squares = ((deltas[:, None] - deltas) ** 2).sum(2)
    return [float(np.sort(np.delete(line, i))[: M - F - 2].sum()) for i, line in enumerate(squares)]


def clipped(deltas: Row) -> Row:
    norms = np.linalg.norm(deltas, axis=1)
    return deltas * np.minimum(1, np.median(norms) / norms)[:, None]  # type: ignore[no-any-return]


def tilted(losses: Row) -> Row:
    return np.exp(losses) / np.exp(losses).sum()  # type: ignore[no-any-return]


RULES: dict[str, tuple[Any, Any]] = {
    "mean": (mean, lambda u, f: u.mean(0)),
    "TERM": (Tilt(t=1.0), lambda u, f: tilted(f) @ u),
    "median": (Median(), lambda u, f: np.median(u, 0)),
    "clipping": (Clip(), lambda u, f: clipped(u).mean(0)),
    "k-norm": (KNorm(f=F), lambda u, f: u[np.argsort((u**2).sum(1), kind="stable")[: M - F]].mean(0)),
    "k-loss": (KLoss(f=F), lambda u, f: u[np.argsort(-f, kind="stable")[F]]),
    "Krum": (Krum(f=F), lambda u, f: u[np.argmin(near(u))]),
    "multi-Krum": (MultiKrum(f=F), lambda u, f: u[np.argsort(near(u), kind="stable")[: M - F]].mean(0)),
    "FedMGDA+": (MGDA(eps=0.0), lambda u, f: (u / np.linalg.norm(u, axis=1)[:, None]).mean(0)),
}
ATTACKS: dict[str, Attack | None] = {
    "clean": None,
    "A1": A1(count=MALICIOUS),
    "A2": A2(count=MALICIOUS),
    "A3": A3(count=MALICIOUS),
}


def program(federation: Federation, train: list[Samples], rule: Any, name: str, attack: Attack | None) -> Any:
    """w and the personal models after all rounds."""
    bad = np.zeros(K, dtype=bool) if attack is None else attack.malicious(K, 0)
    train = [Samples(its.x, -its.y if bad[k] else its.y) for k, its in enumerate(train)]
    w, V, visits = np.zeros(D + 1), {name: np.zeros((K, D + 1)) for name in LAMS}, np.zeros(K, dtype=int)
    batches, sizes = Minibatches(federation, 0, BATCH, drawn=1), federation.sizes("train")
    for t in range(ROUNDS):
        deltas, losses = np.zeros((M, D + 1)), np.zeros(M)
        for i, k in enumerate(BySize()(t, M, sizes, 0).tolist()):
            batch = train[k].of(batches.take(k, int(visits[k]), 0, 1) - federation.bounds[k, 0])
            for its, lam in LAMS.items():
                V[its][k] -= ETA * (gradient(V[its][k], batch) + lam * (V[its][k] - w))
            deltas[i], losses[i] = -ETA * gradient(w, batch), loss(w, train[k])
            if bad[k] and name == "A2":
                draw = generator(0, Purpose.NOISE, federation.tags[k], t, 0, device=torch.device("cpu"))
                noise = torch.randn(D + 1, generator=draw, dtype=torch.float64).numpy()
                deltas[i] = deltas[i].std() * noise
            elif bad[k] and name == "A3":
                deltas[i] *= M
            visits[k] += 1
        w = w + rule(deltas, losses)
    return w, V


@engines
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("name", RULES)
def test_it_is_the_papers_program(name: str, attack: str, engine: Any) -> None:
    module, train, (aggregate, rule) = nn.Linear(D, 1).double(), data(), RULES[name]
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    federation = Federation.from_parts(
        train={k: (its.x, its.y.astype(np.int64)) for k, its in enumerate(train)}, test={}
    )
    personal = {its: Ditto(lam=lam, lr=ETA) if lam else Local(lr=ETA) for its, lam in LAMS.items()}
    task = Task(module, hinge, penalty=SquaredNorm(scale=0.01, of=("weight",)), target=Signs())
    how = Method(local=SGD(lr=ETA), personal=personal, aggregate=aggregate, batch=BATCH)
    result = run(
        task, federation, how, rounds=ROUNDS, cohort=M, attack=ATTACKS[attack], sampling=BySize(), engine=engine
    )
    w, V = program(federation, train, rule, attack, ATTACKS[attack])
    assert_allclose(result.w, w, rtol=0, atol=1e-10 * np.abs(w).max())
    for its, expected in V.items():
        assert_allclose(rows(result, its), expected, rtol=0, atol=1e-10)
    assert np.abs(w).max() > 0.1
