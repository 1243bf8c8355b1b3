"""What solvers may ask beyond the next minibatch's gradient, with small solvers of this file, on both engines.

Each is compared with arithmetic by hand on the minibatches that the library drew, then engine with engine.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from dittofl import (
    SGD,
    Ask,
    Ditto,
    Down,
    Epochs,
    Federated,
    Federation,
    InputError,
    Local,
    Loop,
    Method,
    On,
    Report,
    Sent,
    Task,
    Vmap,
)
from dittofl.layout import Layout
from dittofl.optimiser import Walk
from dittofl.solver import path
from dittofl.types import Criterion, Row, State, Steps, Vector
from tests.problems import (
    ENGINES,
    PAIRS,
    ByLoss,
    Minibatches,
    everything,
    federation,
    gap,
    linear,
    mlp,
    normal,
    reals,
    rows,
    run,
    same,
    seeded,
)

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
CE = nn.CrossEntropyLoss()
ROUNDS, BATCH, LR = 3, 4, 0.3


def ridge(parameters: dict[str, Tensor]) -> Tensor:
    return 0.05 * sum((p**2).sum() for p in parameters.values())  # type: ignore[return-value]


TASK = Task(mlp(), CE, penalty=ridge)


class ByHand:
    """F_k and ∇F_k by autograd on a module of the user's own class, and the minibatches of a run."""

    def __init__(self, result: Federated, *, drawn: int, batch: int | None = BATCH) -> None:
        self.data, self.task, self.w0 = result.federation, result.objective.task, result.w0
        self.layout: Layout = result.objective.layout
        self.minibatches = Minibatches(self.data, result.seed, batch, drawn=drawn)

    def minibatch(self, k: int, visit: int, q: int, wanted: int) -> tuple[Tensor, Tensor]:
        index = torch.from_numpy(self.minibatches.take(k, visit, q, wanted))
        return self.data.x[index], self.data.y[index]  # type: ignore[index]

    def part(self, k: int, part: Any) -> tuple[Any, Tensor]:
        return self.data.part(self.data.ids[k], part)

    def out(self, row: Tensor, x: Tensor) -> Tensor:
        return functional_call(self.task.module, self.layout.named(row), (x,))  # type: ignore[no-any-return]

    def f(self, row: Tensor, samples: tuple[Any, Tensor]) -> Tensor:
        x, y = samples
        value = self.task.loss(self.out(row, x), y).mean()
        return value if self.task.penalty is None else value + self.task.penalty(self.layout.named(row))

    def g(self, row: Tensor, samples: tuple[Any, Tensor]) -> Tensor:
        return gradient(lambda row: self.f(row, samples), row)


def gradient(f: Callable[[Tensor], Tensor], row: Tensor) -> Tensor:
    row = row.detach().clone().requires_grad_()
    return torch.autograd.grad(f(row), row)[0]


def beside(solver: Any, name: str = "v", *, steps: Steps = 2) -> Method:
    """A personal solver beside FedAvg."""
    return Method(local=SGD(lr=0.1, steps=steps), personal={name: solver}, batch=BATCH)


# (a) The same minibatch again


class Pair(NamedTuple):
    v: Tensor
    ahead: Tensor


@dataclass(frozen=True, kw_only=True)
class Extragradient:
    """v ← v − η ∇F(v − η ∇F(v)), both on one minibatch."""

    lr: float = LR
    steps: Steps = 2

    init, model = path.keep_a_model, path.serve_row

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return (Ask(), Ask(On.SAME)) * steps

    def start(self, row: Row, down: Down) -> Pair:
        return Pair(row, row)

    def points(self, s: Pair, down: Down, i: int) -> tuple[Vector, ...]:
        return (s[i % 2],)

    def step(self, s: Pair, down: Down, i: int, f: Tensor, g: Tensor) -> Pair:
        ahead = s.v - self.lr * g[0]
        return Pair(ahead if i % 2 else s.v, ahead)

    def keep(self, s: Pair, row: Row, down: Down) -> Row:
        return s.v


@engines
@pytest.mark.parametrize("steps", [2, 4])
def test_the_same_minibatch_again(engine: Any, steps: int) -> None:
    """With 4 steps the last two minibatches are further ones."""
    result = run(TASK, federation(), beside(Extragradient(steps=steps)), rounds=ROUNDS, engine=engine)
    hand = ByHand(result, drawn=2)
    for k in range(5):
        v = hand.w0
        for visit in range(ROUNDS):
            for q in range(steps):
                samples = hand.minibatch(k, visit, q, steps)
                v = v - LR * hand.g(v - LR * hand.g(v, samples), samples)
        assert_allclose(rows(result, "v")[k], v, rtol=0, atol=1e-12)


@engines
def test_two_asks_a_step_for_an_epoch(engine: Any) -> None:
    """Devices are done after different numbers of evaluations."""
    solver = Extragradient(steps=Epochs(count=2))
    result = run(TASK, federation(), beside(solver, steps=Epochs()), rounds=ROUNDS, engine=engine)
    for k, batches in enumerate((1, 1, 2, 1, 1)):
        hand, v = ByHand(result, drawn=batches), result.w0
        for visit in range(ROUNDS):
            for q in range(2 * batches):
                samples = hand.minibatch(k, visit, q, 2 * batches)
                v = v - LR * hand.g(v - LR * hand.g(v, samples), samples)
        assert_allclose(rows(result, "v")[k], v, rtol=0, atol=1e-12)


@dataclass(frozen=True, kw_only=True)
class Hasty(Extragradient):
    """Asks for the same minibatch before its first."""

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return (Ask(On.SAME), Ask()) * steps


@engines
def test_no_same_minibatch_before_the_first(engine: Any) -> None:
    with pytest.raises(InputError, match="same minibatch before its first"):
        run(TASK, federation(), beside(Hasty()), engine=engine)


# (b) Two points in one ask


@dataclass(frozen=True, kw_only=True)
class Curvature:
    """H d ≈ (∇F(w + ε d) − ∇F(w − ε d)) / 2ε, plus the slope (F(w + ε d) − F(w − ε d)) / 2ε in every entry."""

    steps: Steps = 1
    eps: float = 0.5

    init, asks, model = path.keep_a_model, path.one_gradient_a_step, path.serve_row

    def start(self, row: Row, down: Down) -> State:
        return torch.zeros_like(row)

    def points(self, s: State, down: Down, i: int) -> tuple[Vector, ...]:
        d = torch.arange(1.0, len(down.w) + 1, dtype=down.w.dtype)
        return down.w + self.eps * d, down.w - self.eps * d

    def step(self, s: State, down: Down, i: int, f: Tensor, g: Tensor) -> State:
        return (g[0] - g[1] + f[0] - f[1]) / (2 * self.eps)

    def keep(self, s: State, row: Row, down: Down) -> Row:
        return s


@engines
def test_two_points_give_the_hessian_of_a_quadratic(engine: Any) -> None:
    task = Task(linear(), lambda out, y: (out - y) ** 2)
    how = Method(local=SGD(lr=0.01), personal={"Hd": Curvature()}, batch=None)
    data = federation(reals)
    result = run(task, data, how, rounds=1, engine=engine)
    d = np.arange(1.0, 6)
    for id in data.ids:
        x, y = data.part(id, "train")
        A = np.column_stack([np.asarray(x), np.ones(len(y))])
        H, g = 2 / len(A) * A.T @ A, 2 / len(A) * A.T @ (A @ result.w0.numpy() - y.numpy())
        assert_allclose(result.row("Hd", id), H @ d + g @ d, rtol=1e-12)


# (c) Losses on the validation part


class Candidates(NamedTuple):
    v: Tensor
    rows: Tensor  # [C, P]


@dataclass(frozen=True, kw_only=True)
class Greedy:
    """v ← the best on validation data of v − η (∇F(v) + λ (v − w)) over some λ: asks next, then losses only."""

    lambdas: tuple[float, ...] = (0.0, 1.0, 3.0)
    steps: Steps = 3

    init, model = path.keep_a_model, path.serve_row

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return (Ask(), Ask(On.VALIDATION, grad=False)) * steps

    def start(self, row: Row, down: Down) -> Candidates:
        return Candidates(row, torch.stack([row] * len(self.lambdas)))

    def points(self, s: Candidates, down: Down, i: int) -> tuple[Vector, ...]:
        return s.rows.unbind() if i % 2 else (s.v,)

    def step(self, s: Candidates, down: Down, i: int, f: Tensor, g: Tensor | None) -> Candidates:
        if i % 2:
            assert g is None
            return Candidates(s.rows.index_select(0, f.argmin(0, keepdim=True))[0], s.rows)
        assert g is not None
        return Candidates(s.v, torch.stack([s.v - LR * (g[0] + lam * (s.v - down.w)) for lam in self.lambdas]))

    def keep(self, s: Candidates, row: Row, down: Down) -> Row:
        return s.v


@engines
def test_a_greedy_choice_on_validation_losses(engine: Any) -> None:
    """Device b has no validation samples: its losses are all 0 and the first candidate stands."""
    data = federation()
    result = run(TASK, data, beside(Greedy()), rounds=1, engine=engine)
    again = run(TASK, data, beside(Greedy()), rounds=2, engine=engine)
    hand, picks = ByHand(result, drawn=2), []
    for k, id in enumerate(data.ids):
        v = hand.w0
        for visit, expected in enumerate((result, again)):
            w = (hand.w0, result.w)[visit]
            for q in range(3):
                g = hand.g(v, hand.minibatch(k, visit, q, 3))
                candidates = [v - LR * (g + lam * (v - w)) for lam in (0.0, 1.0, 3.0)]
                samples = hand.part(k, "validation")
                losses = [float(hand.f(row, samples)) if len(samples[1]) else 0.0 for row in candidates]
                pick = int(np.argmin(losses))
                picks.append((id, pick))
                v = candidates[pick]
            assert_allclose(rows(expected, "v")[k], v, rtol=0, atol=1e-12)
    assert {pick for id, pick in picks if id == "b"} == {0}
    assert len({pick for _, pick in picks}) > 1


def errors(out: Tensor, y: Tensor, anchor: Tensor) -> Tensor:
    """Of another dtype than the module's."""
    return (out.argmax(1) != y).float()


@dataclass(frozen=True, kw_only=True)
class ByErrors(Greedy):
    """The same by the share of errors on the train part."""

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return (Ask(), Ask(On.TRAIN, of=errors, grad=False)) * steps


@engines
def test_losses_only_may_be_any_number_a_sample(engine: Any) -> None:
    data = federation()
    result = run(Task(mlp(), CE), data, beside(ByErrors()), rounds=1, engine=engine, seed=2)
    hand, picks = ByHand(result, drawn=2), set()
    for k in range(5):
        v, (x, y) = hand.w0, hand.part(k, "train")
        for q in range(3):
            g = hand.g(v, hand.minibatch(k, 0, q, 3))
            candidates = [v - LR * (g + lam * (v - hand.w0)) for lam in (0.0, 1.0, 3.0)]
            wrong = [int((hand.out(row, x).argmax(1) != y).sum()) for row in candidates]
            picks.add(pick := int(np.argmin(wrong)))
            v = candidates[pick]
        assert_allclose(rows(result, "v")[k], v, rtol=0, atol=1e-12)
    assert len(picks) > 1


# (d) Losses and gradients on the whole train part


class Centres(NamedTuple):
    at: Tensor
    centres: Tensor


@dataclass(frozen=True, kw_only=True)
class Nearest:
    """Begins at the best of the centres that came down, by F_k on the whole train part, then descends and sends."""

    steps: Steps = 2

    init, model = path.keep_nothing, path.serve_w
    keep, send = path.leave_row, path.send_delta

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return (Ask(On.TRAIN, grad=False), *path.one_gradient_a_step(self, steps))

    def start(self, row: Row, down: Down) -> Centres:
        assert down.extra is not None
        return Centres(down.w, down.extra)

    def points(self, s: Centres, down: Down, i: int) -> tuple[Vector, ...]:
        return (s.at,) if i else s.centres.unbind()

    def step(self, s: Centres, down: Down, i: int, f: Tensor, g: Tensor | None) -> Centres:
        if g is None:
            return s._replace(at=s.centres.index_select(0, f.argmin(0, keepdim=True))[0])
        return s._replace(at=s.at - LR * g[0])


@dataclass(frozen=True)
class SendsCentres:
    """Three rows around w⁰, the same in each round."""

    def init(self, w0: Vector, K: int) -> State:
        return w0 + 0.7 * normal(3, len(w0), seed=4)

    def down(self, state: State) -> Tensor:
        return state  # type: ignore[no-any-return]

    def step(self, w: Vector, delta: Vector, report: Report, state: State) -> tuple[Vector, State]:
        return w + delta, state


@engines
@pytest.mark.parametrize("steps", [2, Epochs(count=2)], ids=str)
def test_the_best_of_some_centres_on_the_train_part(engine: Any, steps: Steps) -> None:
    data, picks = federation(), set()
    how = Method(local=Nearest(steps=steps), server=SendsCentres(), batch=BATCH)
    result = run(TASK, data, how, rounds=ROUNDS, engine=engine)
    centres, w = SendsCentres().init(result.w0, 5), result.w0
    for visit in range(ROUNDS):
        deltas = []
        for k, batches in enumerate((1, 1, 2, 1, 1)):
            drawn = steps if isinstance(steps, int) else 2 * batches
            hand = ByHand(result, drawn=drawn)
            pick = min(range(3), key=lambda j, hand=hand, k=k: float(hand.f(centres[j], hand.part(k, "train"))))
            picks.add(pick)
            v = centres[pick]
            for q in range(drawn):
                v = v - LR * hand.g(v, hand.minibatch(k, visit, q, drawn))
            deltas.append(v - w)
        w = w + torch.stack(deltas).mean(0)
    assert len(picks) > 1
    assert_allclose(result.w, w, rtol=0, atol=1e-12)


@dataclass(frozen=True, kw_only=True)
class Whole:
    """v ← v − η (∇F on the whole part), as a global solver: it takes no minibatch at all."""

    on: On = On.TRAIN
    steps: Steps = 2
    lr: float = LR
    through: tuple[()] = ()

    init, start, points = path.keep_a_model, path.begin_at_row, path.where_it_stands
    keep, send, model = path.keep_v, path.send_delta, path.serve_row

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return (Ask(self.on),) * steps

    def step(self, s: Walk, down: Down, i: int, f: Tensor, g: Tensor) -> Walk:
        return Walk(s.at - self.lr * g[0], ())


def quiet(p: float = 0.5) -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Linear(4, 5), nn.Dropout(p), nn.Tanh(), nn.Linear(5, 3)))


@engines
@pytest.mark.parametrize("part", ["train", "validation"])
def test_gradients_on_a_whole_part_are_taken_without_dropout(engine: Any, part: Any) -> None:
    task = Task(quiet(), CE, penalty=ridge, transform=lambda x, generator: x * 0)
    how = Method(local=SGD(lr=0.1), personal={"v": Whole(on=On[part.upper()])}, batch=BATCH)
    result = run(task, federation(), how, rounds=ROUNDS, engine=engine)
    hand = ByHand(result, drawn=1)
    hand.task.module.eval()
    for k in range(5):
        v = hand.w0
        for _ in range(ROUNDS * 2):
            v = v - LR * hand.g(v, hand.part(k, part)) if len(hand.part(k, part)[1]) else v
        assert_allclose(rows(result, "v")[k], v, rtol=0, atol=1e-12)


@engines
def test_beside_a_lead_without_minibatches_all_are_further_ones(engine: Any) -> None:
    how = Method(local=Whole(), personal={"v": Local(lr=LR, steps=2)}, batch=BATCH)
    result = run(TASK, federation(), how, rounds=ROUNDS, cohort=3, engine=engine)
    hand, V, w = ByHand(result, drawn=0), result.w0.repeat(5, 1), result.w0
    W, visits = V.clone(), np.zeros(5, dtype=int)
    for drawn in result.history:
        for k in drawn.cohort:
            for q in range(2):
                V[k] = V[k] - LR * hand.g(V[k], hand.minibatch(int(k), int(visits[k]), q, 2))
                W[k] = W[k] - LR * hand.g(W[k], hand.part(int(k), "train"))
            visits[k] += 1
        w = w + (W[drawn.cohort] - w).mean(0)
    assert_allclose(rows(result, "v"), V, rtol=0, atol=1e-12)
    assert_allclose(result.w, w, rtol=0, atol=1e-12)


# (e) Another objective


def symmetric_kl(out: Tensor, y: Tensor, anchor: Tensor) -> Tensor:
    """KL(p‖q) + KL(q‖p) of each sample."""
    p, q = out.log_softmax(-1), anchor.log_softmax(-1)
    return ((p.exp() - q.exp()) * (p - q)).sum(-1)


@dataclass(frozen=True, kw_only=True)
class Distilled:
    """v ← v − η (∇F(v) + μ ∇ SKL(v, w)): the second gradient is of another objective on the same minibatch."""

    of: Criterion = symmetric_kl
    on: On = On.SAME
    mu: float = 0.8
    steps: Steps = 3

    init, model = path.keep_a_model, path.serve_row

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return (Ask(), Ask(self.on, of=self.of)) * steps

    def start(self, row: Row, down: Down) -> Pair:
        return Pair(row, torch.zeros_like(row))

    def points(self, s: Pair, down: Down, i: int) -> tuple[Vector, ...]:
        return (s.v,)

    def step(self, s: Pair, down: Down, i: int, f: Tensor, g: Tensor) -> Pair:
        return Pair(s.v - LR * (s.ahead + self.mu * g[0]), s.ahead) if i % 2 else Pair(s.v, g[0])

    def keep(self, s: Pair, row: Row, down: Down) -> Row:
        return s.v


@engines
@pytest.mark.parametrize("on", [On.SAME, On.TRAIN])
def test_another_objective_sees_the_outputs_of_w(engine: Any, on: On) -> None:
    task, data = Task(mlp(), CE), federation()
    anchors = [run(task, data, beside(Distilled(on=on)), rounds=t, engine=engine).w for t in (1, 2)]
    result = run(task, data, beside(Distilled(on=on)), rounds=ROUNDS, engine=engine)
    hand = ByHand(result, drawn=2)
    for k in range(5):
        v = hand.w0
        for visit, w in enumerate((hand.w0, *anchors)):
            for q in range(3):
                samples = hand.minibatch(k, visit, q, 3)
                x, y = samples if on is On.SAME else hand.part(k, "train")
                anchor = hand.out(w, x).detach()
                skl = gradient(lambda row, x=x, y=y, a=anchor: symmetric_kl(hand.out(row, x), y, a).mean(), v)
                v = v - LR * (hand.g(v, samples) + 0.8 * skl)
        assert_allclose(rows(result, "v")[k], v, rtol=0, atol=1e-12)


@engines
@pytest.mark.parametrize("reduction", ["none", "batchmean"])
@pytest.mark.parametrize("on", [On.SAME, On.TRAIN])
def test_an_objective_that_is_not_one_number_a_sample_is_refused(engine: Any, reduction: str, on: On) -> None:
    """[B, C] or a mean over the batch: each engine would weight them otherwise."""

    def wrong(out: Tensor, y: Tensor, anchor: Tensor) -> Tensor:
        return F.kl_div(out.log_softmax(-1), anchor.softmax(-1), reduction=reduction)

    with pytest.raises(InputError, match="per sample"):
        run(Task(mlp(), CE), federation(), beside(Distilled(of=wrong, on=on)), engine=engine)


# (f) A personal head


@dataclass(frozen=True, kw_only=True)
class Partial:
    """Begins with its own parameters, those that match `mine`, and the rest of w; sends the change of the rest."""

    inner: SGD
    mine: tuple[str, ...]

    init = path.keep_a_model

    @property
    def steps(self) -> Steps:
        return self.inner.steps

    def asks(self, steps: int) -> tuple[Ask, ...]:
        return self.inner.asks(steps)

    def start(self, row: Row, down: Down) -> State:
        return self.inner.start(row, down._replace(w=self.model(row, down)))

    def points(self, s: State, down: Down, i: int) -> tuple[Vector, ...]:
        return self.inner.points(s, down, i)

    def step(self, s: State, down: Down, i: int, f: Tensor, g: Tensor) -> State:
        return self.inner.step(s, down, i, f, g)

    def keep(self, s: State, row: Row, down: Down) -> Row:
        return torch.where(down.layout.mask(*self.mine), s.at, row)

    def send(self, s: State, row: Row, down: Down) -> Sent:
        mask = down.layout.mask(*self.mine)
        return Sent(torch.where(mask, 0.0, s.at - down.w))

    def model(self, row: Row, down: Down) -> Vector:
        return torch.where(down.layout.mask(*self.mine), row, down.w)


@engines
def test_a_personal_head_does_not_leak(engine: Any) -> None:
    module = seeded(lambda: nn.Sequential(OrderedDict(body=nn.Linear(4, 5), act=nn.Tanh(), head=nn.Linear(5, 3))))
    reports: list[Report] = []

    def watched(report: Report) -> Tensor:
        reports.append(report)
        return report.delta.mean(0)

    how = Method(local=Partial(inner=SGD(lr=LR, steps=2), mine=("head.*",)), aggregate=watched, batch=BATCH)
    task = Task(module, CE)
    result = run(task, federation(), how, rounds=ROUNDS, cohort=3, engine=engine)
    mask = result.objective.layout.mask("head.*")
    assert mask.tolist() == [False] * 25 + [True] * 18
    sent = torch.cat([report.delta for report in reports])
    assert not sent[:, mask].any()
    assert sent[:, ~mask].any(0).all()
    assert torch.equal(result.w[mask], result.w0[mask])
    kept, visited = rows(result, "global"), torch.from_numpy(result.visits > 0)
    assert (kept[:, mask] != result.w0[mask]).any(1).equal(visited)
    assert torch.equal(kept[:, ~mask], result.w0[~mask].expand(5, -1))
    for k, id in enumerate(result.federation.ids):
        assert torch.equal(result.row("global", id), torch.where(mask, kept[k], result.w))
    hand, w, V = ByHand(result, drawn=2), result.w0, result.w0.repeat(5, 1)
    visits = np.zeros(5, dtype=int)
    for drawn in result.history:
        deltas = []
        for k in map(int, drawn.cohort):
            v = torch.where(mask, V[k], w)
            for q in range(2):
                v = v - LR * hand.g(v, hand.minibatch(k, int(visits[k]), q, 2))
            V[k] = torch.where(mask, v, V[k])
            deltas.append(torch.where(mask, 0.0, v - w))
            visits[k] += 1
        w = w + torch.stack(deltas).mean(0)
    assert_allclose(result.w, w, rtol=0, atol=1e-12)
    assert_allclose(kept, V, rtol=0, atol=1e-12)


@engines
def test_what_a_device_serves_is_what_is_evaluated(engine: Any) -> None:
    """The global model of a solver with a personal head is another on each device: accuracy is of that."""
    module = seeded(lambda: nn.Sequential(OrderedDict(body=nn.Linear(4, 5), act=nn.Tanh(), head=nn.Linear(5, 3))))
    how = Method(local=Partial(inner=SGD(lr=2.0, steps=4), mine=("head.*",)), batch=BATCH)
    result = run(Task(module, CE), federation(), how, rounds=ROUNDS, engine=engine)
    losses = result.evaluate("train").values["global", "train"]["loss"]
    for k, id in enumerate(result.federation.ids):
        x, y = result.federation.part(id, "train")
        assert_allclose(losses[k], float(CE(result.model("global", id)(x), y).detach()), atol=1e-12)


# What a solver is told


@dataclass(frozen=True, kw_only=True)
class Told:
    """v ← v − η n/(1 + t) ∇F: uses the device's samples and the round, which are numbers or tensors."""

    steps: Steps = 2

    init, asks, points = path.keep_a_model, path.one_gradient_a_step, path.where_it_stands
    keep, through = path.keep_v, ()
    start = path.begin_at_row

    def step(self, s: Walk, down: Down, i: int, f: Tensor, g: Tensor) -> Walk:
        return Walk(s.at - 0.05 * down.n / (1 + down.t) * g[0], ())

    def model(self, row: Row, down: Down) -> Vector:
        return row * down.n + down.t


@engines
def test_a_solver_is_told_the_round_and_its_samples(engine: Any) -> None:
    result = run(TASK, federation(), beside(Told()), rounds=ROUNDS, cohort=3, engine=engine)
    hand, V, visits = ByHand(result, drawn=2), result.w0.repeat(5, 1), np.zeros(5, dtype=int)
    n = result.federation.sizes("train")
    for t, drawn in enumerate(result.history):
        for k in map(int, drawn.cohort):
            for q in range(2):
                V[k] -= 0.05 * n[k] / (1 + t) * hand.g(V[k], hand.minibatch(k, int(visits[k]), q, 2))
            visits[k] += 1
    assert_allclose(rows(result, "v"), V, rtol=0, atol=1e-12)
    for k, id in enumerate(result.federation.ids):
        assert_allclose(result.row("v", id), V[k] * n[k] + ROUNDS, rtol=0, atol=1e-11)


# All of them at once, on the modules that are mapped with care

ALL: dict[str, Any] = {
    "same": Extragradient(steps=3),
    "epochs": Extragradient(steps=Epochs(count=2)),
    "two points": Curvature(),
    "greedy": Greedy(),
    "train": Whole(),
    "validation": Whole(on=On.VALIDATION),
    "distilled": Distilled(),
    "distilled on train": Distilled(on=On.TRAIN),
    "ditto": Ditto(lam=1.0, lr=0.1, steps=4),
}
VARIANTS = {"fused": Vmap(), "unfused": Vmap(fuse=False), "chunks of 2": Vmap(chunk=2)}


def normed() -> nn.Module:
    norm = nn.BatchNorm1d(5, track_running_stats=False)
    return seeded(lambda: nn.Sequential(nn.Linear(4, 5), norm, nn.Tanh(), nn.Linear(5, 3)))


MODULES = {"mlp": mlp, "dropout": quiet, "batch norm": normed}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", MODULES)
def test_vmap_is_loop_whatever_is_asked(name: str, variant: str) -> None:
    task = Task(MODULES[name](), CE, penalty=ridge)
    data = federation(sizes=PAIRS if name == "batch norm" else {"a": (7, 3, 0), "b": (2, 0, 0), "c": (9, 2, 0)})
    how = Method(local=SGD(lr=0.1, steps=2), personal=ALL, batch=BATCH)
    looped, mapped = (run(task, data, how, rounds=2, cohort=2, engine=its) for its in (Loop(), VARIANTS[variant]))
    assert gap(looped, mapped) <= 1e-10


@engines
def test_batch_norm_where_a_device_lacks_the_part_that_is_asked(engine: Any) -> None:
    """Its loss is 0: the samples that stand in for its own must not be one, which batch norm refuses."""
    data = federation(sizes={"a": (7, 3, 0), "b": (5, 0, 0)})
    result = run(Task(normed(), CE), data, beside(Whole(on=On.VALIDATION)), rounds=ROUNDS, engine=engine)
    assert torch.equal(result.row("v", "b"), result.w0)
    assert not torch.equal(result.row("v", "a"), result.w0)


@engines
def test_infinite_losses_of_other_devices_do_not_reach_one_without_samples(engine: Any) -> None:
    """Device b lacks a validation part; on the first sample of device a, log 0 is a loss of b's model."""

    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.v = nn.Parameter(torch.ones(1, dtype=torch.float64))

        def forward(self, x: Tensor) -> Tensor:
            return self.v * x[:, 0]

    x = torch.tensor([[1e-320], [1.0]], dtype=torch.float64)
    data = Federation.from_parts(
        train={"a": (x, x[:, 0]), "b": (x[1:], x[1:, 0])}, validation={"a": (x[1:], x[1:, 0])}, test={}
    )
    task = Task(Scale(), lambda out, y: -(out**4).log())
    result = run(task, data, beside(Whole(on=On.VALIDATION, lr=0.01)), rounds=1, engine=engine)
    assert torch.equal(result.row("v", "b"), result.w0)


@engines
@pytest.mark.parametrize("name", ["mlp", "batch norm"])
def test_whole_parts_by_pieces(engine: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that memory does not hold at once is evaluated by pieces, unless its samples mix."""
    task, data = Task(MODULES[name](), CE, penalty=ridge), federation(sizes=PAIRS)
    how = Method(local=SGD(lr=0.1, steps=2), personal=ALL, aggregate=ByLoss(), batch=BATCH)
    whole = run(task, data, how, rounds=2, engine=engine)
    numbers = whole.evaluate("train", "validation").values
    for module in ("objective", "evaluate"):
        monkeypatch.setattr(f"dittofl.{module}.HELD", 1)
    pieces = run(task, data, how, rounds=2, engine=engine)
    assert gap(whole, pieces) <= 1e-12
    for key, scores in pieces.evaluate("train", "validation").values.items():
        assert_allclose(scores["loss"], numbers[key]["loss"], atol=1e-11)


@engines
def test_asking_leaves_w_alone(engine: Any) -> None:
    """w beside all of these is bitwise what it is alone."""
    if isinstance(engine, Vmap):
        engine = Vmap(fuse=False)
    alone, asked = (
        run(
            Task(quiet(), CE),
            federation(),
            Method(local=SGD(lr=0.1, steps=2), personal=its, batch=BATCH),
            engine=engine,
        )
        for its in ({}, ALL)
    )
    assert same({"w": alone.w}, {"w": asked.w})
    assert set(everything(asked)) == {"w", "global", *ALL}
