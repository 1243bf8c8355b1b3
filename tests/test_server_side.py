"""What reaches the aggregator, what it is tried on, what it gives, and what diverged models are worth."""

import copy
import pickle
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dittofl import SGD, Choose, Ditto, Federation, Loop, Method, Metric, Report, Sent, Split, Task, Vmap, federate
from dittofl.losses import infer, per_sample
from dittofl.target import Real
from dittofl.types import Down, Row, Solver
from tests.problems import ENGINES, TASK, everything, federation, gap, linear, method, mlp, normal, run, same, seeded

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
CE = nn.CrossEntropyLoss()


class Noting:
    """FedAvg's solver that sends a number beside Δ."""

    inner = SGD(lr=0.2, steps=2)
    lr, steps, through = inner.lr, inner.steps, inner.through
    init, asks, start, points = inner.init, inner.asks, inner.start, inner.points
    step, keep, model = inner.step, inner.keep, inner.model

    def send(self, s: Any, row: Row, down: Down) -> Sent:
        return Sent(s.at - down.w, s.at[:2].abs())


def wide() -> tuple[Task, Federation, int]:
    """A module of more than 4096 parameters."""
    data = {k: (normal(6, 4, seed=k), torch.arange(6) % 3) for k in range(3)}
    return Task(seeded(lambda: nn.Linear(4, 1000)), CE), Federation.of(data), 5000


def test_an_aggregator_may_know_how_long_a_row_is() -> None:
    task, data, P = wide()
    kept = torch.arange(P) % 2 == 0
    result = run(task, data, Method(local=SGD(lr=0.1), aggregate=lambda r: r.delta.mean(0) * kept), rounds=1)
    moved = result.w != result.w0
    assert moved.any()
    assert not moved[~kept].any()
    layers = run(
        task, data,
        Method(local=SGD(lr=0.1), aggregate=lambda r: torch.cat([p.mean(0) for p in r.delta.split([4000, 1000], 1)])),
        rounds=1,
    )  # fmt: skip
    assert torch.equal(layers.w[kept], result.w[kept])


def test_an_aggregator_may_work_in_place() -> None:
    def clipped(report: Report) -> Tensor:
        return report.delta.clamp_(-1e-3, 1e-3).mean(0)

    result = run(TASK, federation(), method(aggregate=clipped), rounds=1)
    assert 0 < float((result.w - result.w0).abs().max()) <= 1e-3 + 1e-12


@engines
def test_an_aggregator_may_read_what_comes_beside(engine: Any) -> None:
    def weighted(report: Report) -> Tensor:
        assert report.extra is not None
        assert report.extra.shape == (len(report.delta), 2)
        return (report.delta * report.extra[:, :1]).mean(0)

    result = run(TASK, federation(), method(local=Noting(), aggregate=weighted), engine=engine)
    assert gap(result, run(TASK, federation(), method(local=Noting(), aggregate=weighted))) <= 1e-10


class Late(Noting):
    """Cannot send before it has stepped."""

    def send(self, s: Any, row: Row, down: Down) -> Sent:
        if torch.equal(s.at, down.w):
            raise RuntimeError("nothing to send")
        return Sent(s.at - down.w, s.at[:2].abs())


def test_a_solver_that_must_step_before_it_sends() -> None:
    assert isinstance(Late(), Solver)
    plain = method(local=Late(), aggregate=lambda r: r.delta.mean(0) * (r.extra.shape[1] / 2))
    mean = method(aggregate=lambda r: r.delta.mean(0))
    assert same(everything(run(TASK, federation(), plain)), everything(run(TASK, federation(), mean)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_w_keeps_its_dtype(dtype: torch.dtype) -> None:
    data = {k: (normal(6, 4, seed=k).float(), torch.arange(6) % 3) for k in range(3)}
    how = Method(local=SGD(lr=0.1), aggregate=lambda r: r.delta.to(dtype).mean(0))
    assert run(Task(mlp().float(), CE), Federation.of(data), how, rounds=2).w.dtype == torch.float32


# Diverged models


class Finite:
    """A user's metric that refuses what is not finite, as scikit-learn's do."""

    lower_is_better: ClassVar[bool] = False

    def __call__(self, out: Tensor, y: Tensor) -> Tensor:
        if not bool(out.isfinite().all()):
            raise ValueError("Input contains NaN")
        return (out.argmax(1) == y).double().mean()


@engines
def test_a_diverged_model_is_never_right(engine: Any) -> None:
    """All labels are 0, which is the argmax of NaN."""
    data = {k: (normal(20, 4, seed=k), torch.zeros(20, dtype=torch.int64)) for k in range(4)}
    split = Split(train=0.5, validation=0.3, test=0.2)
    personal = {"well": Ditto(lam=0.1, lr=0.1)}
    choose = {"rule": Choose(among=("bad", "well"), few="bad")}
    task = Task(mlp(), CE, metrics={"hit": Metric(of=Finite())})
    with pytest.warns(UserWarning, match="diverges"):  # from the constructor
        personal["bad"] = Ditto(lam=1.0, lr=1e200, steps=5)
    result = run(task, Federation.of(data, split=split), Method(local=SGD(lr=0.1), personal=personal, choose=choose),
                 rounds=3, engine=engine)  # fmt: skip
    assert not result.row("bad", 0).isfinite().all()
    found = result.evaluate("validation", "test")
    for metric in ("accuracy", "loss", "hit"):
        assert np.isnan(found.values["bad", "test"][metric]).all()
        assert np.isfinite(found.values["well", "test"][metric]).all()
    assert found.choices["rule"].tolist() == ["well"] * 4
    assert np.isnan(found.summary("bad").mean)


def test_one_diverged_device_leaves_the_others_their_numbers() -> None:
    data = {id: (x.clone(), y) for id, (x, y) in {k: federation().part(k, "train") for k in "abc"}.items()}
    parts = Federation.from_parts(train=data, test={"a": data["a"], "c": data["c"]})
    result = run(Task(mlp(), CE, metrics={"hit": Finite()}), parts, method(personal={"v": Ditto(lam=0.1, lr=0.1)}))
    rows = result.rows["v"]
    rows.put(np.array([0]), torch.full_like(rows.get(np.array([0])), float("inf")))
    scores = result.evaluate("test").values["v", "test"]
    for metric in ("accuracy", "loss", "hit"):
        assert np.isnan(scores[metric]).tolist() == [True, True, False]  # diverged, without test data, well


# What is handed out


@engines
def test_models_handed_back_are_contiguous(engine: Any) -> None:
    conv = seeded(lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.Flatten(), nn.Linear(16, 3)))
    data = {k: (normal(10, 2, 4, 4, seed=k), torch.arange(10) % 3) for k in range(3)}
    result = run(Task(conv, CE), Federation.of(data), method(), rounds=2, engine=engine)
    for model in (result.model(), result.model("ditto", device=1)):
        assert all(p.is_contiguous() for p in model.parameters())
        assert all(p.requires_grad for p in model.parameters())
        assert nn.utils.parameters_to_vector(model.parameters()).shape == result.w.shape


@pytest.mark.parametrize("engine", [Loop(), Vmap()], ids=str)
@pytest.mark.parametrize("name", ["global", "ditto"])
def test_a_row_is_a_copy(engine: Any, name: str) -> None:
    result = run(TASK, federation(), method(), rounds=1, cohort=2, engine=engine)
    before = {**everything(result), "w0": result.w0.clone()}
    for id in result.federation.ids:
        result.row(name, id).zero_()
    assert same({**everything(result), "w0": result.w0}, before)


@engines
def test_a_run_can_be_pickled_and_goes_on(engine: Any) -> None:
    rounds = federate(TASK, federation(), method(), rounds=2, engine=engine)
    result = next(rounds)
    ids = np.arange(5)
    others = [pickle.loads(pickle.dumps(result)), copy.deepcopy(result)]
    result.round(ids)
    for other in others:
        other.round(ids)
        assert same(everything(other), everything(result))


# Modules that mix in training alone


class Centred(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Any:
        return self.layer(x - x.mean(0) if self.training else x)


def test_mixing_in_training_alone_is_seen() -> None:
    """Were short minibatches filled up, the engines would differ."""
    task = Task(seeded(Centred), CE)
    one, other = (run(task, federation(), method(batch=None), engine=engine) for engine in ENGINES.values())
    assert one.objective.mixes
    assert gap(one, other) <= 1e-10


# Small things


@pytest.mark.parametrize("loss", [nn.KLDivLoss(), nn.functional.kl_div])
def test_distributions_are_neither_right_nor_wrong(loss: Any) -> None:
    out = torch.randn(4, 3).log_softmax(1)
    assert infer(per_sample(loss), out, torch.eye(3)[:, [0, 1, 2]]) == Real()


@pytest.mark.parametrize("lam", [1e6, 1e39, 1e300])
def test_a_huge_lambda_serves_w(lam: float) -> None:
    """λ → ∞ pins v to w^t, in single precision too."""
    data = {k: (normal(6, 4, seed=k).float(), normal(6, seed=k).float()) for k in range(3)}
    personal = {"v": Ditto(lam=lam, lr=1.0, proximal=True)}
    how = Method(local=SGD(lr=0.1), personal=personal)
    results = []
    for result in federate(Task(linear().float(), nn.MSELoss()), Federation.of(data), how, rounds=2, engine=Loop()):
        results.append((result.w.clone(), result.row("v", 0)))
    assert float((results[1][1] - results[0][0]).abs().max()) <= 1e-5  # w^1, the last round's anchor
