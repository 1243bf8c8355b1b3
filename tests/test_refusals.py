"""More of what is refused in one sentence: modules that change themselves, functions that turn bad, a server's side."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dittofl import (
    A2,
    SGD,
    Attack,
    Binary,
    Classes,
    Cosine,
    Ditto,
    Federation,
    InputError,
    Loop,
    Method,
    Metric,
    Momentum,
    Report,
    Task,
    Vmap,
    lambda_rule,
    personalise,
)
from tests.test_broken_inputs import (
    BITS,
    CE,
    REALS,
    TOKENS,
    Acts,
    Broken,
    Wrapped,
    X,
    Y,
    assert_told,
    data,
    last,
    start,
)
from tests.test_broken_inputs import linear as layer


class Clamped(nn.Module):
    """Keeps its weight within a box, as a side effect of forward; without effect on the first weights where wide."""

    def __init__(self, *, box: float, on: str = "data", training: bool | None = None) -> None:
        super().__init__()
        self.layer, self.box, self.on, self.when = nn.Linear(3, 3), box, on, training

    def forward(self, x: Tensor) -> Any:
        with torch.no_grad():
            if self.when in (None, self.training):
                weight = self.layer.weight
                (weight.data if self.on == "data" else weight).clamp_(-self.box, self.box)
        return self.layer(x)


class Rescaled(nn.Module):
    def __init__(self, kind: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.table, self.head = kind(7, 3, max_norm=100.0), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Any:
        h = self.table(x)
        return self.head(h if h.dim() == 2 else h.mean(1))


class Tempered(nn.Module):
    """A loss that wants to learn."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, out: Tensor, y: Tensor) -> Any:
        return F.cross_entropy(out * self.scale, y, reduction="none")


class Serving:
    """A server whose step answers as it is told."""

    def __init__(self, answer: Callable[[Tensor], Any]) -> None:
        self.answer = answer

    def init(self, w0: Tensor, K: int) -> tuple[()]:
        return ()

    def down(self, state: Any) -> None:
        return None

    def step(self, w: Tensor, delta: Tensor, report: Report, state: Any) -> Any:
        return self.answer(w + delta)


def raised(error: Exception) -> Any:
    raise error


def squeezed(out: int = 1) -> nn.Module:
    return Acts(lambda _, h: h[:, :out].squeeze())


def served(answer: Callable[[Tensor], Any]) -> Callable[[], object]:
    return lambda: start(method={"server": Serving(answer)})


def scheduled(lr: Callable[[int], Any], rounds: int = 5) -> Callable[[], object]:
    return lambda: last(method={"local": SGD(lr=lr), "personal": {}}, rounds=rounds)


def newcomer(**changes: Any) -> Callable[[], object]:
    batched = nn.Sequential(nn.BatchNorm1d(3, track_running_stats=False), layer())
    given = {"task": Task(batched, CE), "solver": Ditto(lam=1.0, lr=0.1)} | changes
    return lambda: personalise(torch.zeros(18), (X, Y), **given)


REFUSED: dict[str, Broken] = {
    "squeeze of all dimensions": (
        lambda: start(squeezed(), nn.BCEWithLogitsLoss(), on=data(y=BITS)),
        r"batch of one.*\(\).*\.squeeze\(-1\)",
    ),
    "squeeze of one sample": (lambda: start(squeezed(), nn.MSELoss(), on=data(X[:1], REALS[:1])), r"\(\)"),
    "clamp of .data": (lambda: start(Clamped(box=0.05)), r"changes its parameter 'layer.weight'.*penalty"),
    "clamp without effect so far": (lambda: start(Clamped(box=10.0)), r"changes its parameter 'layer.weight'"),
    "clamp under no_grad": (lambda: start(Clamped(box=10.0, on="self")), r"changes its parameter 'layer.weight'"),
    "clamp in training": (lambda: start(Clamped(box=10.0, training=True)), r"changes its parameter 'layer.weight'"),
    "clamp at evaluation": (lambda: start(Clamped(box=10.0, training=False)), r"changes its parameter 'layer.weight'"),
    "embedding with max_norm": (lambda: start(Rescaled(nn.Embedding), on=data(TOKENS)), r"table.*max_norm"),
    "embedding bag with max_norm": (lambda: start(Rescaled(nn.EmbeddingBag), on=data(TOKENS)), r"table.*max_norm"),
    "loss that learns": (lambda: start(loss=Tempered()), r"loss has parameters.*'scale'.*into the module"),
    "loss that is a mean": (lambda: start(loss=Wrapped()), r"\[4\].*\(\).*reduction='none'"),
    "target of text": (lambda: Classes("3"), r"Classes needs C .*'3'"),  # type: ignore[arg-type]
    "target of no class": (lambda: Classes(0), r"Classes needs C .*0"),
    "threshold of text": (lambda: Binary(threshold="0"), r"Binary needs .*'0'"),  # type: ignore[arg-type]
    "λ of text": (lambda: lambda_rule(strong=False, lr=0.1, lambdas=("a",)), r"lambdas=\('a',\)"),  # type: ignore[arg-type]
    "λ of nothing": (lambda: lambda_rule(strong=False, lr=0.1, lambdas=(None, 1)), r"lambdas=\(None, 1\)"),  # type: ignore[arg-type]
    "fuse of text": (lambda: Vmap(fuse="no"), r"fuse=True or False.*'no'"),  # type: ignore[arg-type]
    "fuse of nothing": (lambda: Vmap(fuse=None), r"fuse=True or False.*None"),  # type: ignore[arg-type]
    "compile of a number": (lambda: Vmap(compile=1), r"compile=True or False.* 1|compile=1"),  # type: ignore[arg-type]
    "nesterov of text": (lambda: Momentum(nesterov="no"), r"Momentum needs nesterov=True or False.*'no'"),  # type: ignore[arg-type]
    "poisoned of text": (lambda: A2(count=1, poisoned="no"), r"poisoned=True or False.*'no'"),  # type: ignore[arg-type]
    "strong of a number": (lambda: Attack(count=1, strong=0), r"strong=True or False.* got strong=0"),  # type: ignore[arg-type]
    "direction of text": (lambda: Metric(of=len, lower_is_better="yes"), r"lower_is_better=True or False.*'yes'"),  # type: ignore[arg-type]
    "lr beyond all floats": (lambda: SGD(lr=10**400), r"lr > 0.*1000"),
    "seed of text": (lambda: start(seed="1"), r"seed='1', expected a whole number"),
    "seed of a split": (lambda: Federation.of({"a": (X, Y)}, seed=True), r"seed=True, expected a whole number"),
    "resume of a path": (lambda: start(resume="runs/1"), r"resume must be .*'runs/1'"),
    "part that is a list": (lambda: last().evaluate().summary(part=["test"]), r"\['test'\] was not evaluated"),  # type: ignore[arg-type]
    "newcomer with minibatches of one": (newcomer(batch=1), r"batch=1 .*GroupNorm"),
    "schedule that fails": (scheduled(lambda t: [0.1, 0.1][t]), r"schedule of 'global'.*round 2.*IndexError"),
    "schedule below 0": (scheduled(lambda t: 0.1 - 0.05 * t), r"schedule of 'global'.*lr ≥ 0.*-0\.0.* round 3"),
    "schedule of NaN": (scheduled(lambda t: 0.1 if t < 1 else float("nan")), r"schedule of 'global'.*nan.*round 1"),
    "newcomer's schedule": (
        newcomer(solver=Ditto(lam=1.0, lr=lambda t: [0.1, 0.1][t])),
        r"schedule of 'Ditto'.*round 2.*IndexError",
    ),
    "server's step into a matrix": (served(lambda w: (w[None], ())), r"server's step .*\[12\].*\(1, 12\)"),
    "server's step without a state": (served(lambda w: w), r"server's step must return \(w, state\)"),
    "server's step into nothing": (served(lambda w: (None, ())), r"server's step .*None"),
    "server's step that fails": (served(lambda w: raised(KeyError("gone"))), r"server's step fails.*gone"),
    "aggregator into numpy": (
        lambda: start(method={"aggregate": lambda report: report.delta.numpy().mean(0)}),
        r"aggregator must give one row, \[12\].*ndarray",
    ),
}


@pytest.mark.parametrize("broken", REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.filterwarnings("ignore")
def test_it_is_told(broken: Broken) -> None:
    torch.manual_seed(0)
    assert_told(broken)


def test_a_schedule_may_end_at_zero() -> None:
    run = last(method={"local": SGD(lr=Cosine(lr=0.1, rounds=2)), "personal": {}}, rounds=4)
    assert run.t == 4


def test_parameters_that_stay_are_no_writes() -> None:
    """Weight norm computes its weight anew in each forward pass, and writes nothing that a row holds."""
    normed = nn.utils.parametrizations.weight_norm(layer())
    assert last(loss=CE, module=normed).t == 1


@pytest.mark.parametrize("compile", [True, None])
def test_without_a_compiler(compile: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CXX", "/nowhere/g++")
    if compile:
        with pytest.raises(InputError, match=r"Vmap\(compile=True\) needs a C\+\+ compiler.*install"):
            start(engine=Vmap(compile=True))
    else:
        assert last(engine=Vmap()).t == 1


def test_a_gpu_without_a_compiler_runs_uncompiled_and_says_so(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    from dittofl.engine import compiler

    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    assert not compiler.compiles(None, "cuda")
    assert "uncompiled" in caplog.text
    monkeypatch.setattr(compiler, "missing", lambda kind: "")
    assert compiler.compiles(None, "cuda")
    assert not compiler.compiles(None, "cpu")
    assert compiler.compiles(True, "cpu")


def test_it_was_the_mistake_that_was_refused() -> None:
    assert last(method={"server": Serving(lambda w: (w.double(), ()))}, engine=Loop()).w.dtype == torch.float32
    assert Method(local=SGD(lr=0.1), personal=lambda_rule(strong=False, lr=0.1, lambdas=[1, 2])[0]).personal
