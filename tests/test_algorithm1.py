"""Algorithms 1 and 2 of Li et al. 2021 unrolled in numpy; only cohorts and minibatches are taken from the library."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from torch import Tensor, nn

from dittofl import SGD, Add, BySize, Ditto, Epochs, Federation, Local, Mean, Method, Prox, Task, Uniform
from dittofl.batches import Stream
from dittofl.seeds import Purpose
from tests.problems import ENGINES, Make, Minibatches, binary, federation, linear, reals, rows, run

Numbers = NDArray[np.float64]
Gradient = Callable[[Numbers, Numbers, Numbers], Numbers]  # (row, x, y) → ∇ of the mean loss

SIZES = {"one": (9, 0, 0), "two": (3, 0, 0), "three": (6, 0, 0)}  # the second is smaller than a batch
BATCH, R, S, ROUNDS = 4, 2, 3, 4
ETA_G, ETA_L, LAM, MU = 0.3, 0.2, 0.6, 0.4

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())


def with_ones(x: Numbers) -> Numbers:
    return np.column_stack([x, np.ones(len(x))])


def logistic(row: Numbers, x: Numbers, y: Numbers) -> Numbers:
    A = with_ones(x)
    return A.T @ (1 / (1 + np.exp(-A @ row)) - y) / len(A)


def squares(row: Numbers, x: Numbers, y: Numbers) -> Numbers:
    A = with_ones(x)
    return 2 * A.T @ (A @ row - y) / len(A)


def weighted_logistic(row: Numbers, x: Numbers, y: Numbers) -> Numbers:
    """With the penalty ¼ ‖v‖², bias included."""
    return logistic(row, x, y) + 0.5 * row


class Case(NamedTuple):
    gradient: Gradient
    make: Make
    loss: Any
    penalty: Callable[[dict[str, Tensor]], Tensor] | None = None


CASES = {
    "logistic": Case(logistic, binary, nn.BCEWithLogitsLoss()),
    "squares": Case(squares, reals, nn.MSELoss()),
    "penalty": Case(
        weighted_logistic, binary, nn.BCEWithLogitsLoss(), lambda p: 0.25 * sum((v**2).sum() for v in p.values())
    ),
}


class ByHand:
    """The state of Algorithm 1 and its two inner loops."""

    def __init__(self, data: Federation, gradient: Gradient, w0: Numbers) -> None:
        self.gradient, self.minibatches = gradient, Minibatches(data, 0, BATCH, drawn=R)
        self.x, self.y = np.asarray(data.x), np.asarray(data.y, dtype=np.float64)
        self.w, self.v = w0.copy(), np.tile(w0, (data.K, 1))
        self.visits = np.zeros(data.K, dtype=int)

    def g(self, row: Numbers, k: int, q: int, wanted: int) -> Numbers:
        sample = self.minibatches.take(k, int(self.visits[k]), q, wanted)
        return self.gradient(row, self.x[sample], self.y[sample])

    def round(self, cohort: NDArray[np.int64], weights: Numbers, server: float, mu: float) -> None:
        deltas = []
        for k in cohort:
            w_k = self.w.copy()
            for q in range(R):
                w_k = w_k - ETA_G * (self.g(w_k, k, q, R) + mu * (w_k - self.w))
            for q in range(S):
                self.v[k] = self.v[k] - ETA_L * (self.g(self.v[k], k, q, S) + LAM * (self.v[k] - self.w))
            deltas.append(w_k - self.w)
            self.visits[k] += 1
        self.w = self.w + server * (weights / weights.sum()) @ np.array(deltas)


@engines
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize(("by_size", "server", "mu"), [(False, 1.0, 0.0), (True, 1.0, 0.0), (False, 0.5, MU)])
def test_algorithm_1(engine: Any, case: Case, by_size: bool, server: float, mu: float) -> None:
    data = federation(case.make, SIZES)
    method = Method(
        local=Prox(mu=mu, lr=ETA_G, steps=R) if mu else SGD(lr=ETA_G, steps=R),
        personal={"v": Ditto(lam=LAM, lr=ETA_L, steps=S)},
        aggregate=Mean(by_size=by_size),
        server=Add(lr=server),
        batch=BATCH,
    )
    task = Task(linear(), case.loss, penalty=case.penalty)
    result = run(task, data, method, rounds=ROUNDS, cohort=2, engine=engine)
    hand = ByHand(data, case.gradient, result.w0.numpy())
    for drawn in result.history:
        n = data.sizes("train")[drawn.cohort].astype(float)
        hand.round(drawn.cohort, n if by_size else np.ones(2), server, mu)
    assert hand.visits.tolist() == result.visits.tolist()
    assert min(hand.visits) < max(hand.visits)
    assert_allclose(result.w, hand.w, rtol=0, atol=1e-12)
    assert_allclose(rows(result, "v"), hand.v, rtol=0, atol=1e-12)


@engines
def test_epochs_are_as_many_steps_as_the_device_has_batches(engine: Any) -> None:
    """⌊9/4⌋ = 2, 1 and ⌊6/4⌋ = 1 batches an epoch; v takes two epochs, the second from its own stream."""
    data = federation(binary, SIZES)
    method = Method(
        local=SGD(lr=ETA_G, steps=Epochs()), personal={"v": Local(lr=ETA_L, steps=Epochs(count=2))}, batch=BATCH
    )
    result = run(Task(linear(), nn.BCEWithLogitsLoss()), data, method, rounds=3, engine=engine)
    x, y, w0 = np.asarray(data.x), np.asarray(data.y, dtype=np.float64), result.w0.numpy()
    w, v = w0.copy(), np.tile(w0, (3, 1))
    for t in range(3):
        deltas = []
        for k, r in enumerate((2, 1, 1)):
            minibatches = Minibatches(data, 0, BATCH, drawn=r)
            w_k = w.copy()
            for q in range(2 * r):
                sample = minibatches.take(k, t, q, 2 * r)
                w_k = w_k - ETA_G * logistic(w_k, x[sample], y[sample]) if q < r else w_k
                v[k] = v[k] - ETA_L * logistic(v[k], x[sample], y[sample])
            deltas.append(w_k - w)
        w = w + np.mean(deltas, axis=0)
    assert_allclose(result.w, w, rtol=0, atol=1e-12)
    assert_allclose(rows(result, "v"), v, rtol=0, atol=1e-12)


# The minibatches that the above takes as given


@pytest.mark.parametrize("purpose", [Purpose.ROUND, Purpose.FURTHER])
def test_the_minibatches_of_an_epoch_are_disjoint_and_new_in_each(purpose: Purpose) -> None:
    data = federation(binary, {"a": (3, 0, 0), "b": (17, 2, 1), "c": (8, 0, 0)})
    stream = Stream(data, 0, 4)
    k = data.index("b")
    epochs = [
        [stream.take(purpose, np.array([k]), np.array([4 * e + q])).of(0).tolist() for q in range(4)] for e in range(3)
    ]
    for epoch in epochs:
        flat = [place for batch in epoch for place in batch]
        assert len(set(flat)) == len(flat) == 16
        assert set(flat) <= set(range(*data.bounds[k, :2]))
    assert len({str(epoch) for epoch in epochs}) == 3
    again = stream.take(purpose, np.array([k]), np.array([5])).of(0).tolist()
    assert again == epochs[1][1] == Stream(data, 0, 4).take(purpose, np.array([k]), np.array([5])).of(0).tolist()


def test_further_minibatches_are_not_those_of_the_round() -> None:
    data = federation(binary, {"b": (64, 0, 0)})
    stream = Stream(data, 0, 4)
    ones, others = (
        [stream.take(purpose, np.array([0]), np.array([j])) for j in range(16)]
        for purpose in (Purpose.ROUND, Purpose.FURTHER)
    )
    assert not any(one.of(0).tolist() == other.of(0).tolist() for one in ones for other in others)
    assert len({int(batch.key[0]) for batch in (*ones, *others)}) == 32  # nor are their dropout masks


def test_a_small_device_uses_all_it_has_in_every_step() -> None:
    data = federation(binary, {"a": (3, 0, 0), "b": (17, 0, 0)})
    batch = Stream(data, 0, 4).take(Purpose.ROUND, np.array([1, 0]), np.array([9, 2]))
    assert batch.width.tolist() == [4, 3]
    assert sorted(batch.of(1).tolist()) == [0, 1, 2]


def test_batches_depend_on_ids_not_on_places_or_neighbours() -> None:
    data = {id: binary(n, seed) for seed, (id, n) in enumerate({"a": 9, "b": 17, "c": 8}.items())}
    one, other = (Federation.from_parts(train={id: data[id] for id in order}, test={}) for order in ("abc", "cb"))
    for id in "bc":
        for j in (0, 1, 5, 11):
            inner = []
            for its in (one, other):
                k = its.index(id)
                batch = Stream(its, 7, 4).take(Purpose.ROUND, np.array([k]), np.array([j])).of(0)
                inner.append((batch - its.bounds[k, 0]).tolist())
            assert inner[0] == inner[1]


def test_by_size_draws_devices_in_proportion() -> None:
    """P(first is k) = n_k / Σ n; each of 2000 rounds is one draw."""
    n = np.array([1, 2, 5])
    firsts = np.bincount([BySize()(t, 2, n, 0)[0] for t in range(2000)], minlength=3) / 2000
    assert_allclose(firsts, n / 8, atol=0.03)
    seconds = np.bincount([BySize()(t, 2, n, 0)[1] for t in range(2000) if BySize()(t, 2, n, 0)[0] == 2], minlength=3)
    assert_allclose(seconds / seconds.sum(), [1 / 3, 2 / 3, 0], atol=0.03)


def test_uniform_draws_every_pair_alike() -> None:
    pairs = [tuple(sorted(Uniform()(t, 2, np.array([1, 100, 5, 5]), 3).tolist())) for t in range(2000)]
    counts = {pair: pairs.count(pair) / 2000 for pair in set(pairs)}
    assert len(counts) == 6
    assert_allclose(list(counts.values()), 1 / 6, atol=0.03)


def test_no_global_generator_is_touched() -> None:
    before, numbers = torch.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[index,union-attr]
    data = federation(binary, SIZES)
    run(Task(linear(), nn.BCEWithLogitsLoss()), data, Method(local=SGD(lr=0.1)), rounds=2, cohort=2).evaluate("train")
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(np.random.get_state()[1], numbers)  # type: ignore[index]
