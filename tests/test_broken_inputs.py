"""Whatever a user gets wrong is refused in one sentence, by the constructor or by `federate(...)`, before any training.

What is wrong with data alone stands in test_federation. Here: data against module and loss, modules, parameters.
"""

import itertools
import random
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dittofl import (
    A1,
    A2,
    A3,
    SGD,
    Adam,
    Add,
    Attack,
    Binary,
    Choose,
    Classes,
    ClipNorm,
    Cosine,
    Decay,
    Ditto,
    Epochs,
    Federated,
    Federation,
    Gaussian,
    Geometric,
    InputError,
    Inverse,
    Local,
    Loop,
    Mean,
    Method,
    Metric,
    Momentum,
    Prox,
    Replace,
    Task,
    Uniform,
    Vmap,
    federate,
    hinge,
    lambda_rule,
    personalise,
)

torch.set_num_threads(1)

Broken = tuple[Callable[[], object], str]  # what is wrong, and what the message must say of it

N = 10
GEN = torch.Generator().manual_seed(0)
X = torch.randn(N, 3, generator=GEN)
Y = torch.arange(N) % 3
BITS = torch.arange(N) % 2
REALS = torch.linspace(-2.5, 2.5, N)
IMAGES = torch.rand(N, 1, 8, 8, generator=GEN)
TOKENS = torch.arange(5 * N).view(N, 5) % 7
CE = nn.CrossEntropyLoss()
NAN, INF = float("nan"), float("inf")


def changed(values: Tensor, value: Any, place: int = 5) -> Tensor:
    """One entry replaced: the sixth, which is behind the samples that a module is tried on."""
    values = values.clone()
    values[place] = value
    return values


def data(x: Any = X, y: Tensor = Y, bob: Any = None) -> Federation:
    """Three devices that hold the same in order, of which bob may hold something else."""
    return Federation.from_parts(train={"ann": (x, y), "bob": bob or (x, y), "cy": (x, y)}, test={"ann": (x, y)})


def linear(out: int = 3) -> nn.Module:
    return nn.Linear(3, out)


def how(**changes: Any) -> Method:
    return Method(**{"local": SGD(lr=0.1), "personal": {"own": Ditto(lam=1.0, lr=0.1)}, "batch": 4} | changes)


def start(
    module: Any = None, loss: Any = CE, *, on: Federation | None = None, method: dict[str, Any] | None = None,
    task: dict[str, Any] | None = None, **options: Any,
) -> Iterator[Federated]:  # fmt: skip
    """The call of `federate`, with one thing of it broken; no round is run."""
    module = linear() if module is None else module
    return federate(Task(module, loss, **task or {}), on or data(), how(**method or {}), **{"rounds": 1} | options)


def last(on: Federation | None = None, loss: Any = CE, **options: Any) -> Federated:
    """A federation after a round, for what can only be asked then."""
    *_, run = start(loss=loss, on=on, **options)
    return run


class Acts(nn.Module):
    """A linear layer, then whatever is done with its outputs."""

    def __init__(self, then: Callable[[nn.Module, Tensor], Any]) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.then = then

    def forward(self, x: Tensor) -> Any:
        return self.then(self, self.layer(x))


def raises(error: Exception) -> Any:
    raise error


def shifted(x: Tensor, generator: torch.Generator, own: torch.Generator) -> Tensor:
    return x + torch.randn(3, generator=own)


# Data against module and loss


class Counted(nn.Module):
    """Counts its calls in a buffer, out of place."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls = self.calls + 1
        return self.layer(x)


def embedded() -> nn.Module:
    return nn.Sequential(nn.Embedding(7, 2), nn.Flatten(), nn.Linear(10, 3))


DATA: dict[str, Broken] = {
    "label too large": (lambda: start(on=data(bob=(X, changed(Y, 7)))), r"'bob'.* 7.*Classes\(C=3\)"),
    "label too large for a test part": (
        lambda: start(on=Federation.from_parts(train={"a": (X, Y)}, test={"a": (X, changed(Y, 3))})),
        r"'a'.* 3.*C=3",
    ),
    "label below 0": (lambda: start(on=data(bob=(X, changed(Y, -1)))), r"'bob'.* -1.*C=3"),
    "labels from 1": (lambda: start(on=data(y=Y + 1)), r"'ann'.* 3.*C=3"),
    "labels beyond the target given": (
        lambda: start(on=data(), task={"target": Classes(2)}),
        r"'ann'.* 2.*Classes\(C=2\)",
    ),
    "target of more classes than outputs": (
        lambda: start(on=data(bob=(X, changed(Y, 4))), task={"target": Classes(5)}),
        r"(?=.*\b4\b|.*C=5).*(output|'bob')",
    ),
    "0 and 1 for the hinge": (lambda: start(linear(1), hinge, on=data(y=BITS)), r"hinge.*[−-]1.*1|[−-]1.*hinge"),
    "signs for binary cross-entropy": (
        lambda: start(linear(1), nn.BCEWithLogitsLoss(), on=data(y=2 * BITS - 1)),
        r"'ann'.*-1.*Binary|-1.*0 (and|or) 1",
    ),
    "signs for BCELoss": (
        lambda: start(nn.Sequential(linear(1), nn.Sigmoid()), nn.BCELoss(), on=data(y=2 * BITS - 1)),
        r"'ann'.*-1.*Binary",
    ),
    "one sign for binary cross-entropy": (
        lambda: start(linear(1), nn.BCEWithLogitsLoss(), on=data(bob=(X, changed(BITS, 2)), y=BITS)),
        r"'bob'.* 2",
    ),
    "class labels for a regression loss": (lambda: start(linear(3), nn.MSELoss()), r"(loss|y).*\(4,( 3)?\)"),
    "class labels for a regression loss, as many outputs as samples": (
        lambda: start(linear(4), nn.MSELoss()),
        r"\(4, 4\).*\(4,\)",
    ),
    "real labels for cross-entropy": (lambda: start(on=data(y=REALS.abs() / 2)), r"y .*float.*(int|class)"),
    "class numbers as floats for cross-entropy": (lambda: start(on=data(y=Y.float())), r"y .*float.*(int|class)"),
    "one output for cross-entropy": (lambda: start(linear(1), on=data(y=BITS)), r"Classes\(C=1\)|one output|\(4, 1\)"),
    "column of labels for cross-entropy": (lambda: start(on=data(y=Y[:, None])), r"\(4, 1\).*flatten it"),
    "several labels for one output": (
        lambda: start(linear(1), nn.MSELoss(), on=data(y=torch.stack([REALS] * 2, 1))),
        r"\(4,( 1)?\).*\(4, 2\)",
    ),
    "one label for several outputs": (
        lambda: start(linear(3), nn.BCEWithLogitsLoss(), on=data(y=BITS)),
        r"\(4, 3\).*\(4,\)",
    ),
    "column of labels for flat outputs": (
        lambda: start(Acts(lambda _, h: h[:, 0]), nn.MSELoss(), on=data(y=REALS[:, None])),
        r"\(4,\).*\(4, 1\)",
    ),
    "a loss of one's own that broadcasts": (
        lambda: start(Acts(lambda _, h: h[:, 0]), lambda out, y: (out - y) ** 2, on=data(y=REALS[:, None])),
        r"loss.*\(4, ?4\)",
    ),
    "images of too few channels": (
        lambda: start(nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.LazyLinear(3)), on=data(IMAGES)),
        r"\(4, 1, 8, 8\)",
    ),
    "images of the wrong size": (
        lambda: start(nn.Sequential(nn.Flatten(), nn.Linear(784, 3)), on=data(IMAGES)),
        r"\(4, 1, 8, 8\)",
    ),
    "too many features": (lambda: start(nn.Linear(2, 3)), r"\(4, 3\).*(mat1|in_features)"),
    "integer features": (lambda: start(on=data(torch.arange(3 * N).view(N, 3))), r"int64.*float"),
    "tokens as floats": (
        lambda: start(embedded(), on=data(TOKENS.float())),
        r"float32.*(int|Long)",
    ),
    "tokens as bytes": (
        lambda: start(embedded(), on=data(TOKENS.to(torch.uint8))),
        r"uint8 counts as images, .* int64",
    ),
    "token beyond the vocabulary": (lambda: start(embedded(), on=data(TOKENS, bob=(changed(TOKENS, 7), Y))), r"'bob'"),
    "category beyond the vocabulary of its column": (
        lambda: start(Columns(), on=data(PAIRS, bob=(changed(PAIRS, torch.tensor([5, 0])), Y))),
        r"'bob'",
    ),
    "other keys than the module's": (lambda: start(on=data({"image": X})), r"'image'"),
    "a tuple for a module of one input": (lambda: start(on=data((X, X))), r"\(4, 3\).*positional"),
    "loss of no kind": (lambda: start(loss="mse"), r"loss must be .*'mse'"),
    "loss class": (lambda: start(loss=nn.CrossEntropyLoss), r"loss must be .*CrossEntropyLoss\(\)"),
    "loss that returns a mean": (lambda: start(loss=lambda out, y: F.cross_entropy(out, y)), r"one value per sample"),
    "loss module that returns a mean": (lambda: start(loss=Wrapped()), r"one value per sample"),
    "loss that returns a float": (lambda: start(loss=lambda out, y: 1.0), r"one value per sample.* 1\.0"),
    "loss that returns a list": (lambda: start(loss=lambda out, y: [0.0] * len(y)), r"one value per sample"),
    "loss that returns nothing": (lambda: start(loss=lambda out, y: None), r"one value per sample.*None"),
    "y beside outputs": (
        lambda: start(nn.Sequential(nn.Linear(3, 1), nn.Flatten(0)), nn.MSELoss(), on=data(y=REALS[:, None])),
        r"one value per sample, \[4\].*\(4, 4\): give y the shape of the outputs",
    ),
    "loss that leaves one out": (
        lambda: start(loss=lambda out, y: F.cross_entropy(out, y, reduction="none")[1:]),
        r"one value per sample, \[4\].*\(3,\)",
    ),
    "loss that normalises over the batch": (
        lambda: start(loss=lambda out, y: F.cross_entropy(out - out.mean(0), y, reduction="none")),
        r"loss.*(sample|batch)",
    ),
    "loss that fails": (lambda: start(loss=lambda out, y: raises(KeyError("gone"))), r"the loss fails.*gone"),
    "loss that fails at length": (
        lambda: start(loss=lambda out, y: raises(ValueError("so long " * 100 + "\nsecond line"))),
        r"the loss fails.*so long",
    ),
    "loss of three arguments": (lambda: start(linear(1), nn.GaussianNLLLoss(), on=data(y=REALS)), r"the loss fails"),
    "loss of NaN": (lambda: start(loss=lambda out, y: out[:, 0] * NAN), r"loss.*(NaN|nan|finite)"),
    "loss of Inf": (lambda: start(loss=lambda out, y: out[:, 0].abs() + INF), r"loss.*(Inf|inf|finite)"),
    "loss without a gradient": (
        lambda: start(loss=lambda out, y: (out.argmax(1) != y).float()),
        r"loss.*(gradient|differentiable|depend)",
    ),
    "loss of integers": (lambda: start(loss=lambda out, y: (out.argmax(1) != y).long()), r"loss.*(int|gradient|float)"),
    "weights for too few classes": (lambda: start(loss=nn.CrossEntropyLoss(weight=torch.ones(2))), r"the loss fails"),
    "target of no kind": (lambda: start(task={"target": "classes"}), r"target.*'classes'"),
    "target class": (lambda: start(task={"target": Binary}), r"target.*Binary"),
    "transform of no kind": (lambda: start(task={"transform": "flip"}), r"transform.*'flip'"),
    "transform that drops samples": (lambda: start(task={"transform": lambda x, g: x[:1]}), r"transform.*sample"),
    "transform that doubles samples": (
        lambda: start(task={"transform": lambda x, g: torch.cat([x, x])}),
        r"transform.*sample",
    ),
    "transform into no tensor": (lambda: start(task={"transform": lambda x, g: x.tolist()}), r"transform.*list"),
    "transform into nothing": (lambda: start(task={"transform": lambda x, g: x.mul_(2) and None}), r"transform"),
    "transform into another shape": (
        lambda: start(task={"transform": lambda x, g: x[:, :2]}),
        r"transform|module fails.*\(4, 2\)",
    ),
    "transform into another dtype": (lambda: start(task={"transform": lambda x, g: x.double()}), r"transform.*float64"),
    "transform without a generator": (
        lambda: start(task={"transform": lambda x: x}),
        r"transform.*(generator|argument)",
    ),
    "transform by the global generator": (
        lambda: start(task={"transform": lambda x, g: x + torch.randn_like(x)}),
        r"transform.*generator",
    ),
    "transform by the generator of numpy": (
        lambda: start(task={"transform": lambda x, g: x * float(np.random.rand())}),
        r"transform.*generator",
    ),
    "transform by a generator of its own": (
        lambda: start(task={"transform": partial(shifted, own=torch.Generator())}),
        r"transform.*equal generator",
    ),
    "loss that draws": (
        lambda: start(loss=lambda out, y: F.cross_entropy(F.dropout(out, 0.1), y, reduction="none")),
        r"loss.*(random|sample|generator)",
    ),
    "transform that fails": (lambda: start(task={"transform": lambda x, g: x["a"]}), r"transform"),
    "penalty of no kind": (lambda: start(task={"penalty": 0.01}), r"penalty.*0\.01"),
    "penalty of a vector": (lambda: start(task={"penalty": lambda p: p["bias"] ** 2}), r"penalty.*\(3,\)"),
    "penalty of text": (lambda: start(task={"penalty": lambda p: "much"}), r"penalty.*'?much"),
    "penalty of nothing": (lambda: start(task={"penalty": lambda p: None}), r"penalty.*None"),
    "penalty of NaN": (lambda: start(task={"penalty": lambda p: p["bias"].sum() * NAN}), r"penalty.*(NaN|nan|finite)"),
    "penalty on a stranger": (lambda: start(task={"penalty": lambda p: p["head"].sum()}), r"penalty.*head"),
    "metric of no kind": (lambda: start(task={"metrics": {"auc": 1}}), r"metric 'auc'.* 1"),
    "metric of a Metric of no kind": (lambda: start(task={"metrics": {"auc": Metric(of=1)}}), r"(?i)metric.* 1"),
    "metric called accuracy": (lambda: start(task={"metrics": {"accuracy": F.l1_loss}}), r"'accuracy'.*rename"),
    "metric called loss": (lambda: start(task={"metrics": {"loss": F.l1_loss}}), r"'loss'.*rename"),
    "metric without a name": (lambda: start(task={"metrics": {3: F.l1_loss}}), r"metric.* 3"),
    "metrics in a list": (lambda: start(task={"metrics": [F.l1_loss]}), r"metrics.*(dict|mapping|list)"),
    "batch norm and a device of one sample": (
        lambda: start(
            nn.Sequential(nn.BatchNorm1d(3, track_running_stats=False), linear()), on=data(bob=(X[:1], Y[:1]))
        ),
        r"'bob'.*(one|1) .*sample",
    ),
    "batch norm and minibatches of one sample": (
        lambda: start(nn.Sequential(nn.BatchNorm1d(3, track_running_stats=False), linear()), method={"batch": 1}),
        r"batch",
    ),
}


PAIRS = torch.stack([torch.arange(N) % 3, torch.arange(N)], 1)  # a category of 3 beside one of 10


class Columns(nn.Module):
    """A table for each category."""

    def __init__(self) -> None:
        super().__init__()
        self.few, self.many, self.head = nn.Embedding(3, 2), nn.Embedding(N, 2), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.cat([self.few(x[:, 0]), self.many(x[:, 1])], 1))


class Wrapped(nn.Module):
    """A loss that averages out of our reach."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.CrossEntropyLoss()

    def forward(self, out: Tensor, y: Tensor) -> Tensor:
        return self.inner(out, y)


# Modules


def layered(layer: nn.Module, shape: tuple[int, ...]) -> Iterator[Federated]:
    """A layer between others, on inputs of its shape."""
    x = torch.rand(N, *shape, generator=torch.Generator().manual_seed(1))
    return start(nn.Sequential(layer, Gathered(), nn.Flatten(), nn.LazyLinear(3)), on=data(x))


class Gathered(nn.Module):
    """Takes the outputs of a recurrent layer."""

    def forward(self, x: Any) -> Tensor:
        return x[0] if isinstance(x, tuple) else x


class Attentive(nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, dropout=0.1, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.attention(x, x, x)[0].mean(1))


def attended(h: Tensor) -> Tensor:
    """Attention with dropout, as its fifth positional argument."""
    return F.scaled_dot_product_attention(h, h, h, None, 0.2)


class Held(nn.Module):
    """A module that holds what cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.lock = nn.Linear(3, 3), threading.Lock()

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


def filled(module: nn.Module, value: float) -> nn.Module:
    with torch.no_grad():
        list(module.parameters())[-1].view(-1)[0] = value
    return module


def diagonal() -> nn.Module:
    """Power iteration on its weight soon stands still."""
    module = linear()
    with torch.no_grad():
        module.get_parameter("weight").copy_(torch.diag(torch.tensor([8.0, 1.0, 1.0])))
    return module


def frozen(module: nn.Module) -> nn.Module:
    return module.requires_grad_(False)


def bags() -> nn.Module:
    return nn.Sequential(nn.EmbeddingBag(7, 3, sparse=True), linear())


def scripted() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(linear())


def traced() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(linear(), X)


def noisy_in_training(module: nn.Module, h: Tensor) -> Tensor:
    return h + torch.randn_like(h) if module.training else h


def counts_in_training(module: nn.Module, h: Tensor) -> Tensor:
    if module.training:
        module.get_buffer("steps").add_(1)
    return h


def with_buffer(module: nn.Module) -> nn.Module:
    module.register_buffer("steps", torch.zeros(()))
    return module


UNSEEDED = r"random.*(nn\.Dropout|transform)"
UNSTEADY = r"differ from pass to pass.*(nn\.Dropout|transform)"


def drawing(generator: torch.Generator, *, training: bool = True) -> Callable[[nn.Module, Tensor], Tensor]:
    """Noise in one mode, of a generator that nobody else has seen; a copy of the module takes it along."""
    return lambda module, h: h + torch.randn(3, generator=generator) if module.training == training else h


def counting(count: Iterator[int]) -> Callable[[nn.Module, Tensor], Tensor]:
    return lambda _, h: h * next(count)


RUNNING = r"track_running_stats=False"

MODULES: dict[str, Broken] = {
    "function": (lambda: start(lambda x: x), r"nn\.Module.*function"),
    "class": (lambda: start(nn.Linear), r"(class|instance).*Linear|Linear.*(class|instance)"),
    "state dict": (lambda: start(linear().state_dict()), r"nn\.Module.*OrderedDict"),
    "nothing": (lambda: federate(Task(None, CE), data(), how(), rounds=1), r"nn\.Module.*None"),  # type: ignore[arg-type]
    "module and loss exchanged": (lambda: start(CE, linear()), r"module"),
    "no parameter": (lambda: start(nn.Flatten()), r"no parameter to train.*requires_grad"),
    "all frozen": (lambda: start(frozen(linear())), r"no parameter to train.*requires_grad"),
    "NaN weight": (lambda: start(filled(linear(), NAN)), r"'bias'.*NaN"),
    "Inf weight": (lambda: start(filled(linear(), INF)), r"'bias'.*Inf"),
    "NaN weight of a branch not taken": (
        lambda: start(nn.ModuleList([linear(), filled(linear(), NAN)]).forward),
        r"nn\.Module",
    ),
    "NaN weight of an unused layer": (
        lambda: start(spare(Acts(lambda _, h: h), filled(linear(), NAN))),
        r"'spare\.bias'.*NaN",
    ),
    "NaN weight that is frozen": (lambda: start(nn.Sequential(frozen(filled(linear(), NAN)), linear())), r"finite|NaN"),
    "two dtypes": (
        lambda: start(spare(Acts(lambda _, h: h), linear().double())),
        r"'spare\.weight'.*float64.*'layer\.weight'.*float32",
    ),
    "two dtypes that do not meet": (lambda: start(nn.Sequential(linear(), linear().double())), r"'1\.weight'.*float64"),
    "half precision": (lambda: start(linear().half()), r"'weight'.*float16.*float\(\)"),
    "bfloat16": (lambda: start(linear().bfloat16()), r"'weight'.*bfloat16.*float\(\)"),
    "complex weights": (lambda: start(linear().to(torch.complex64)), r"'weight'.*complex64"),
    "weights on meta": (lambda: start(nn.Linear(3, 3, device="meta")), r"meta"),
    "batch norm": (lambda: layered(nn.BatchNorm1d(3), (3,)), r"^0 \(BatchNorm1d\).*GroupNorm.*" + RUNNING),
    "batch norm of images": (lambda: layered(nn.BatchNorm2d(2), (2, 4, 4)), r"BatchNorm2d.*" + RUNNING),
    "batch norm of volumes": (lambda: layered(nn.BatchNorm3d(2), (2, 2, 2, 2)), r"BatchNorm3d.*" + RUNNING),
    "lazy batch norm": (lambda: layered(nn.LazyBatchNorm1d(), (3,)), r"BatchNorm1d.*" + RUNNING),
    "synchronised batch norm": (lambda: layered(nn.SyncBatchNorm(3), (3,)), r"SyncBatchNorm.*" + RUNNING),
    "batch norm in evaluation mode": (lambda: layered(nn.BatchNorm1d(3).eval(), (3,)), RUNNING),
    "instance norm 1d": (
        lambda: layered(nn.InstanceNorm1d(2, track_running_stats=True), (2, 4)),
        r"InstanceNorm1d.*" + RUNNING,
    ),
    "instance norm 2d": (
        lambda: layered(nn.InstanceNorm2d(2, track_running_stats=True), (2, 4, 4)),
        r"InstanceNorm2d.*" + RUNNING,
    ),
    "instance norm 3d": (
        lambda: layered(nn.InstanceNorm3d(2, track_running_stats=True), (2, 4, 4, 4)),
        r"InstanceNorm3d.*" + RUNNING,
    ),
    "instance norm in evaluation mode": (
        lambda: layered(nn.InstanceNorm3d(2, track_running_stats=True).eval(), (2, 4, 4, 4)),
        r"InstanceNorm3d.*" + RUNNING,
    ),
    "dropout in an LSTM": (
        lambda: layered(nn.LSTM(3, 4, num_layers=2, dropout=0.5), (5, 3)),
        r"^0 \(LSTM\).*dropout=0",
    ),
    "dropout in a GRU": (lambda: layered(nn.GRU(3, 4, num_layers=2, dropout=0.5), (5, 3)), r"GRU.*dropout=0"),
    "dropout in attention": (
        lambda: start(Attentive(), on=data(torch.rand(N, 5, 4))),
        r"^attention \(MultiheadAttention\).*dropout=0",
    ),
    "dropout in an encoder layer": (
        lambda: layered(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.1, batch_first=True), (5, 4)),
        r"self_attn \(MultiheadAttention\).*dropout=0",
    ),
    "dropout in functional attention": (
        lambda: start(Acts(lambda _, h: attended(h[:, None])[:, 0])),
        UNSEEDED,
    ),
    "alpha dropout": (lambda: start(nn.Sequential(linear(), nn.AlphaDropout(0.2))), UNSEEDED),
    "feature alpha dropout": (
        lambda: layered(nn.FeatureAlphaDropout(0.2), (2, 4, 4)),
        UNSEEDED,
    ),
    "noise": (lambda: start(Acts(lambda _, h: h + torch.randn(3))), UNSEEDED),
    "noise like": (lambda: start(Acts(lambda _, h: h + torch.rand_like(h))), UNSEEDED),
    "noise in place": (lambda: start(Acts(lambda _, h: h + torch.empty(3).normal_())), UNSEEDED),
    "noise of a distribution": (
        lambda: start(Acts(lambda _, h: torch.distributions.Normal(h, 1.0).rsample())),
        UNSEEDED,
    ),
    "noise by another in-place draw": (lambda: start(Acts(lambda _, h: h + torch.empty(3).cauchy_())), UNSEEDED),
    "noise of numpy": (lambda: start(Acts(lambda _, h: h + float(np.random.rand()))), UNSEEDED),
    "noise of a generator of its own": (lambda: start(Acts(drawing(torch.Generator()))), UNSTEADY),
    "noise of its own at evaluation": (lambda: start(Acts(drawing(torch.Generator(), training=False))), UNSTEADY),
    "a scale that grows with every pass": (lambda: start(Acts(counting(itertools.count(1)))), UNSTEADY),
    "noise of Python": (lambda: start(Acts(lambda _, h: h * random.random())), UNSEEDED),
    "noise in training": (lambda: start(Acts(noisy_in_training)), UNSEEDED),
    "noise in training, given in evaluation mode": (
        lambda: start(Acts(noisy_in_training).eval()),
        UNSEEDED,
    ),
    "randomised ReLU": (lambda: start(nn.Sequential(linear(), nn.RReLU())), UNSEEDED),
    "randomised pooling": (lambda: layered(nn.FractionalMaxPool2d(2, output_size=2), (2, 6, 6)), UNSEEDED),
    "dropout that evaluation does not switch off": (lambda: start(Acts(lambda _, h: F.dropout(h, 0.5))), UNSEEDED),
    "buffer changed": (lambda: start(Counted()), r"buffer 'calls'.*stateless"),
    "buffer changed in training": (lambda: start(with_buffer(Acts(counts_in_training))), r"buffer 'steps'"),
    "buffer changed in training, given in evaluation mode": (
        lambda: start(with_buffer(Acts(counts_in_training)).eval()),
        r"buffer 'steps'",
    ),
    "spectral norm": (lambda: start(nn.utils.parametrizations.spectral_norm(linear())), r"buffer '\S*_[uv]'"),
    "spectral norm that has converged": (
        lambda: start(nn.utils.parametrizations.spectral_norm(diagonal(), n_power_iterations=50)),
        r"buffer '\S*_[uv]'",
    ),
    "spectral norm, the older": (lambda: start(nn.utils.spectral_norm(linear())), r"buffer '\S*_[uv]'"),
    "a tuple of outputs": (lambda: start(Acts(lambda _, h: (h, h))), r"one tensor.*tuple"),
    "a dict of outputs": (lambda: start(Acts(lambda _, h: {"logits": h})), r"one tensor.*dict"),
    "no output": (lambda: start(Acts(lambda _, h: None)), r"one tensor.*None"),
    "one output for the batch": (lambda: start(Acts(lambda _, h: h.mean())), r"one output per sample, \[4.*\(\)"),
    "too few outputs": (lambda: start(Acts(lambda _, h: h[:2])), r"one output per sample, \[4.*\(2, 3\)"),
    "outputs with the samples behind": (lambda: start(Acts(lambda _, h: h.T)), r"one output per sample.*\(3, 4\)"),
    "outputs without a gradient": (lambda: start(Acts(lambda _, h: h.detach())), r"(gradient|depend).*|detach"),
    "integer outputs": (lambda: start(Acts(lambda _, h: h.round().long())), r"int64|gradient"),
    "complex outputs": (lambda: start(Acts(lambda _, h: h.to(torch.complex64))), r"complex"),
    "infinite outputs": (lambda: start(Acts(lambda _, h: h / 0)), r"not finite.*weights.*scale"),
    "data parallel": (lambda: start(nn.DataParallel(linear())), r"DataParallel.*plain"),
    "script": (lambda: start(scripted()), r"(?i)script.*plain"),
    "trace": (lambda: start(traced()), r"(?i)trace.*plain|Module wraps.*plain"),
    "compiled": (lambda: start(torch.compile(linear())), r"(?i)(compile|Optimized).*plain"),
    "sparse embedding": (
        lambda: start(nn.Sequential(nn.Embedding(7, 3, sparse=True), linear()), on=data(Y)),
        r"^0 \(Embedding\).*sparse=False",
    ),
    "sparse bags": (lambda: start(bags(), on=data(TOKENS)), r"EmbeddingBag.*sparse=False"),
    "lock within": (lambda: start(Held()), r"cannot be copied.*lock"),
    "tensor of a graph within": (lambda: start(holding(linear(), torch.ones(1, requires_grad=True) * 2)), r"copied"),
    "forward that fails": (lambda: start(Acts(lambda _, h: raises(KeyError("gone")))), r"module fails.*\(4, 3\).*gone"),
    "forward that fails in many words": (
        lambda: start(Acts(lambda _, h: raises(RuntimeError("\n\nso long " + "and wide " * 100 + "\nend")))),
        r"module fails.*so long",
    ),
    "forward of two inputs": (lambda: start(nn.Bilinear(3, 3, 3)), r"module fails.*\(4, 3\).*input2"),
    "forward not there": (lambda: start(nn.ModuleList([linear()])), r"module fails.*forward"),
    "cannot be mapped on the engine chosen": (
        lambda: start(Acts(lambda _, h: h * float(h.sum())), engine=Vmap()),
        r"cannot be mapped.*Loop\(\)",
    ),
    "cannot be mapped in training on the engine chosen": (
        lambda: start(Acts(lambda m, h: h * float(h.sum()) if m.training else h), engine=Vmap()),
        r"cannot be mapped.*Loop\(\)",
    ),
    "loss cannot be mapped on the engine chosen": (
        lambda: start(
            loss=lambda out, y: F.cross_entropy(out, y, reduction="none") * (1 + 0 * int(y.max())), engine=Vmap()
        ),
        r"cannot be mapped.*Loop\(\)",
    ),
    "penalty cannot be mapped on the engine chosen": (
        lambda: start(task={"penalty": lambda p: p["bias"].sum() if p["bias"].sum() > 0 else 0.0}, engine=Vmap()),
        r"cannot be mapped.*Loop\(\)",
    ),
}


def spare(module: nn.Module, layer: nn.Module) -> nn.Module:
    """The module with a layer that its forward pass does not use."""
    module.add_module("spare", layer)
    return module


def holding(module: nn.Module, value: Any) -> nn.Module:
    module.held = value
    return module


# Parameters


def attacked(attack: Any, **options: Any) -> Iterator[Federated]:
    return start(attack=attack, **options)


def torch_sgd() -> Any:
    """Its repr has several lines."""
    return torch.optim.SGD(linear().parameters(), lr=0.1)


def chosen(**changes: Any) -> Choose:
    return Choose(**{"among": ("own",), "few": "own"} | changes)


def newcomer(**changes: Any) -> nn.Module:
    given = {
        "w": torch.zeros(12),
        "data": (X, Y),
        "task": Task(linear(), CE),
        "solver": Ditto(lam=1.0, lr=0.1),
    } | changes
    return personalise(given.pop("w"), given.pop("data"), **{"visits": 1} | given)


MATRIX = np.zeros((2, 2))

SOLVERS: dict[str, Broken] = {
    **{
        f"lr {lr!r:.20}": (lambda lr=lr: SGD(lr=lr), r"SGD needs lr")
        for lr in (0, -0.1, NAN, INF, "0.1", None, True, (0.1,), 1j, MATRIX)
    },
    "lr of Ditto": (lambda: Ditto(lam=1.0, lr=0), r"Ditto needs .*lr.*lr=0"),
    "lr of Local": (lambda: Local(lr=-1), r"Local needs .*lr.*lr=-1"),
    "lr of text that reads as a number": (lambda: SGD(lr="0.1"), r"lr='0\.1'"),
    "lam of text that reads as a number": (lambda: Ditto(lam="1", lr=0.1), r"lam='1'"),
    "lr of Prox": (lambda: Prox(mu=1.0, lr="a"), r"Prox needs .*lr.*lr='a'"),
    "schedule class": (lambda: SGD(lr=Geometric), r"SGD.*lr=.*Geometric"),
    "schedule without a round": (lambda: SGD(lr=lambda: 0.1), r"SGD.*lr"),
    "schedule of text": (lambda: SGD(lr=lambda t: "fast"), r"SGD.*lr.*fast"),
    "schedule below 0": (lambda: SGD(lr=lambda t: -0.1), r"SGD.*lr.*-0\.1"),
    **{
        f"lam {lam!r:.20}": (lambda lam=lam: Ditto(lam=lam, lr=0.1), r"Ditto needs .*lam=")
        for lam in (-1, INF, NAN, "1", None, True, MATRIX)
    },
    **{f"mu {mu!r}": (lambda mu=mu: Prox(mu=mu, lr=0.1), r"Prox needs .*mu=") for mu in (-0.5, INF, NAN, "1", None)},
    **{
        f"steps {steps!r}": (lambda steps=steps: Local(lr=0.1, steps=steps), r"Local needs steps.*steps=")
        for steps in (0, -1, 1.5, True, "2", None, Epochs(count=1).count / 2)
    },
    "no epochs": (lambda: SGD(lr=0.1, steps=Epochs(count=0)), r"steps.*count=0"),
    "half an epoch": (lambda: SGD(lr=0.1, steps=Epochs(count=0.5)), r"steps.*count=0\.5"),
    "epochs class": (lambda: SGD(lr=0.1, steps=Epochs), r"steps.*Epochs"),
    **{
        f"through {name}": (lambda through=through: SGD(lr=0.1, through=through), r"SGD needs through=")
        for name, through in {
            "no tuple": Momentum(),
            "list": [Momentum()],
            "number": (1,),
            "nothing": None,
            "class": (Momentum,),
            "torch optimiser": (torch_sgd(),),
            "module": (linear(),),
        }.items()
    },
    "a mean by rubbish": (lambda: Mean(by_size="no"), r"Mean needs by_size=True or False"),
    "proximal through rubbish": (lambda: Ditto(lam=1.0, lr=0.1, proximal="no"), r"proximal"),
    "momentum 1": (lambda: Momentum(beta=1), r"Momentum needs .*beta=1"),
    "momentum of text": (lambda: Momentum(beta="a"), r"Momentum needs .*beta='?a"),
    "beta1 of nothing": (lambda: Adam(beta1=None), r"Adam needs .*beta1=None"),
    "beta2 1": (lambda: Adam(beta2=1.0), r"Adam needs .*beta2=1\.0"),
    "eps 0": (lambda: Adam(eps=0), r"Adam needs .*eps"),
    "decay below 0": (lambda: Decay(rate=-0.1), r"Decay needs .*rate.*-0\.1"),
    "decay of text": (lambda: Decay(rate="a"), r"Decay needs .*rate.*a"),
    "norm 0": (lambda: ClipNorm(norm=0), r"ClipNorm needs .*norm.*norm=0"),
    "norm NaN": (lambda: ClipNorm(norm=NAN), r"ClipNorm needs .*norm.*norm=nan"),
    "norm of text": (lambda: ClipNorm(norm="a"), r"ClipNorm needs .*norm.*a"),
    "geometric of text": (lambda: Geometric(lr="a", factor=0.5), r"Geometric needs .*lr='a'"),
    "geometric factor 0": (lambda: Geometric(lr=0.1, factor=0), r"Geometric needs .*factor=0"),
    "geometric every 0": (lambda: Geometric(lr=0.1, factor=0.5, every=0), r"Geometric needs .*every=0"),
    "geometric NaN": (lambda: Geometric(lr=NAN, factor=0.5), r"Geometric needs .*lr=nan"),
    "inverse tau 0": (lambda: Inverse(lr=0.1, tau=0), r"Inverse needs .*tau=0"),
    "inverse of nothing": (lambda: Inverse(lr=None, tau=1.0), r"Inverse needs .*lr=None"),
    "cosine that rises": (lambda: Cosine(lr=0.1, end=0.2, rounds=5), r"Cosine needs .*end=0\.2"),
    "cosine of no rounds": (lambda: Cosine(lr=0.1, rounds=0), r"Cosine needs .*rounds=0"),
    "choose none": (lambda: chosen(among=()), r"Choose needs among=.*\(\)"),
    "choose in a list": (lambda: chosen(among=["own"]), r"Choose needs among=.*\['own'\]"),
    "choose in text": (lambda: chosen(among="own"), r"Choose needs among=.*'own'"),
    "choose by number": (lambda: chosen(among=(1, "own")), r"Choose needs among=.*1"),
    "choose twice the same": (lambda: chosen(among=("own", "own")), r"Choose.*'own'.*"),
    "few elsewhere": (lambda: chosen(few="other"), r"few= .*\['own'\].*'other'"),
    "enough 0": (lambda: chosen(enough=0), r"enough.*enough=0"),
    "enough of text": (lambda: chosen(enough="4"), r"enough.*enough='4'"),
    "enough NaN": (lambda: chosen(enough=NAN), r"enough.*enough=nan"),
    "no lambdas": (lambda: lambda_rule(strong=False, lr=0.1, lambdas=()), r"lambdas.*\(\)"),
    "lambdas of text": (lambda: lambda_rule(strong=False, lr=0.1, lambdas="0.1"), r"lambdas.*0\.1"),
    "one lambda for lambdas": (lambda: lambda_rule(strong=False, lr=0.1, lambdas=0.1), r"lambdas.*0\.1"),
    "lambda below 0": (lambda: lambda_rule(strong=True, lr=0.1, lambdas=(-1.0,)), r"lam=-1"),
    "lambdas that share a name": (
        lambda: lambda_rule(strong=False, lr=0.1, lambdas=(0.12345671, 0.12345672)),
        r"lam=0\.123457|lambdas",
    ),
    "strong of nothing": (lambda: lambda_rule(strong=None, lr=0.1), r"strong.*None"),
    "newcomer of a wrong row": (lambda: newcomer(w=torch.zeros(11)), r"w must be a row of 12.*\(11,\)"),
    "newcomer of a module for w": (lambda: newcomer(w=linear()), r"w must be a row of 12.*Linear"),
    "newcomer of a list for w": (lambda: newcomer(w=[0.0] * 12), r"w must be a row of 12"),
    "newcomer of NaN": (lambda: newcomer(w=torch.full((12,), NAN)), r"\bw\b.*(NaN|nan|finite)"),
    "newcomer of no visit": (lambda: newcomer(visits=0), r"visits.*whole number.*|whole number.*visits=0"),
    "newcomer of true visits": (lambda: newcomer(visits=True), r"visits.*whole number.*|whole number.*visits=True"),
    "newcomer of half a visit": (lambda: newcomer(visits=1.5), r"visits.*whole number.*|whole number.*visits=1\.5"),
    "newcomer's batch 0": (lambda: newcomer(batch=0), r"batch.*0"),
    "newcomer's batch of text": (lambda: newcomer(batch="4"), r"batch.*'4'"),
    "newcomer's solver class": (lambda: newcomer(solver=Ditto), r"solver.*Ditto"),
    "newcomer's solver of no kind": (lambda: newcomer(solver=0.1), r"solver.*0\.1"),
    "newcomer's solver that keeps nothing": (lambda: newcomer(solver=SGD(lr=0.1)), r"SGD"),
    "newcomer's task of no kind": (lambda: newcomer(task=linear()), r"(?i)task.*Linear"),
    "newcomer's seed": (lambda: newcomer(seed="a"), r"seed.*'a'"),
    "newcomer's data of no kind": (lambda: newcomer(data=X), r"newcomer.*pair"),
    "newcomer's labels": (lambda: newcomer(data=(X, Y + 1)), r"newcomer.* 3.*C=3"),
    "newcomer without data": (lambda: newcomer(data=(X[:0], Y[:0])), r"newcomer.*no samples"),
}


def personal(solver: Any, name: Any = "own") -> Method:
    return how(personal={name: solver})


class Wide:
    """An aggregator that returns one number too many."""

    losses = False

    def init(self, w0: Tensor) -> tuple[()]:
        return ()

    def __call__(self, report: Any, state: Any) -> Any:
        return torch.cat([report.delta.mean(0), torch.zeros(1)]), state


class Bare:
    """An aggregator that forgets to return its state."""

    losses = False

    def init(self, w0: Tensor) -> tuple[()]:
        return ()

    def __call__(self, report: Any, state: Any) -> Any:
        return report.delta.mean(0)


METHODS: dict[str, Broken] = {
    "local personal": (lambda: how(local=Ditto(lam=1.0, lr=0.1)), r"local=.*Ditto.*personal="),
    "local class": (lambda: how(local=SGD), r"local=.*SGD"),
    "local of no kind": (lambda: how(local=0.1), r"local=.*0\.1"),
    "local of torch": (lambda: how(local=torch_sgd()), r"local=.*SGD"),
    "local module": (lambda: how(local=nn.Sequential(linear(), linear())), r"local=.*Sequential"),
    "personal number": (lambda: personal(0.1), r"personal\['own'\].*0\.1"),
    "personal class": (lambda: personal(Ditto), r"personal\['own'\].*Ditto"),
    "personal of torch": (lambda: personal(torch_sgd()), r"personal\['own'\].*SGD"),
    "personal choice": (lambda: personal(chosen()), r"personal\['own'\].*Choose"),
    "personal without a name": (lambda: how(personal=Ditto(lam=1.0, lr=0.1)), r"personal.*(dict|name|mapping)"),
    "personal in a list": (lambda: how(personal=[Ditto(lam=1.0, lr=0.1)]), r"personal.*(dict|name|mapping)"),
    **{
        f"personal called {name!r}": (lambda name=name: personal(Local(lr=0.1), name), rf"called {name!r}: rename")
        for name in ("global", "", 1, None)
    },
    "choose among strangers": (
        lambda: how(choose={"rule": chosen(among=("own", "x"))}),
        r"choose\['rule'\].*\['x'\].*\['own'\]",
    ),
    "choose among strangers beside very many": (
        lambda: how(personal=MANY, choose={"rule": chosen(among=("own",))}),
        r"choose\['rule'\].*\['own'\]",
    ),
    "choose among w": (lambda: how(choose={"rule": chosen(among=("own", "global"))}), r"choose\['rule'\].*'global'"),
    "choose called as a row": (lambda: how(choose={"own": chosen()}), r"choose\['own'\].*rename"),
    "choose called global": (lambda: how(choose={"global": chosen()}), r"choose\['global'\].*rename"),
    "choose called nothing": (lambda: how(choose={"": chosen()}), r"(choose\[''\]|called '').*rename"),
    "choose called by number": (lambda: how(choose={1: chosen()}), r"(choose\[1\]|called 1).*rename"),
    "choose of no kind": (lambda: how(choose={"rule": ("own",)}), r"choose\['rule'\] must be a Choose"),
    "choose without a name": (lambda: how(choose=chosen()), r"choose.*(dict|name|mapping)"),
    **{
        f"batch {batch!r}": (lambda batch=batch: how(batch=batch), r"batch.*batch=")
        for batch in (0, -1, 2.5, True, "32")
    },
    "aggregate of no kind": (lambda: how(aggregate="mean"), r"aggregate must be .*'mean'"),
    "aggregate matrix": (lambda: how(aggregate=MATRIX), r"aggregate must be "),
    "aggregate class": (lambda: how(aggregate=Mean), r"aggregate.*Mean"),
    "server of no kind": (lambda: how(server=0.1), r"server must be .*Add\(\).*0\.1"),
    "server class": (lambda: how(server=Add), r"server must be .*Add\(\)"),
    "server of torch": (lambda: how(server=torch_sgd()), r"server must be .*SGD"),
    "server's lr 0": (lambda: Add(lr=0), r"Add needs .*lr.*lr=0"),
    "server's lr of text": (lambda: Add(lr="1"), r"Add needs .*lr.*lr='1'"),
    "server's lr NaN": (lambda: Add(lr=NAN), r"Add needs .*lr.*lr=nan"),
    "aggregate into the wrong shape": (
        lambda: start(method={"aggregate": lambda report: report.delta.mean(1)}),
        r"aggregat.*12",
    ),
    "aggregate into the whole matrix": (
        lambda: start(method={"aggregate": lambda report: report.delta}),
        r"aggregat.*\(3, 12\)",
    ),
    "aggregate into no tensor": (
        lambda: start(method={"aggregate": lambda report: report.delta.mean(0).tolist()}),
        r"aggregat.*list",
    ),
    "aggregate that forgets to return": (lambda: start(method={"aggregate": lambda report: None}), r"aggregat.*None"),
    "aggregate of two arguments": (lambda: start(method={"aggregate": lambda a, b: a}), r"aggregat.*argument"),
    "aggregate that fails": (lambda: start(method={"aggregate": lambda report: report.deltas}), r"aggregat.*deltas"),
    "aggregator into the wrong shape": (lambda: start(method={"aggregate": Wide()}), r"(?i)aggregat.*13.*12|12.*13"),
    "aggregator without its state": (lambda: start(method={"aggregate": Bare()}), r"(?i)aggregat.*state"),
}


# The call


class Drawn:
    """A sampling rule that returns what it is given, from some round on."""

    def __init__(self, ids: Any, since: int = 0) -> None:
        self.ids, self.since = ids, since

    def __call__(self, t: int, m: int, sizes: Any, seed: int) -> Any:
        return self.ids if t >= self.since else np.arange(m)


def ids(*values: int) -> Any:
    return np.array(values)


def regression(**options: Any) -> Iterator[Federated]:
    return start(linear(1), nn.MSELoss(), on=data(y=REALS), **{"engine": Loop()} | options)


TASK = Task(linear(), CE)

CALL: dict[str, Broken] = {
    "module for a task": (lambda: federate(linear(), data(), how(), rounds=1), r"(?i)task.*Linear"),
    "task class": (lambda: federate(Task, data(), how(), rounds=1), r"(?i)task"),
    "dict for a federation": (
        lambda: federate(TASK, {"a": (X, Y)}, how(), rounds=1),
        r"(?i)federation.*dict.*Federation\.of",
    ),
    "arrays for a federation": (lambda: federate(TASK, (X, Y), how(), rounds=1), r"(?i)federation.*Federation\.of"),
    "solver for a method": (lambda: federate(TASK, data(), SGD(lr=0.1), rounds=1), r"(?i)method.*SGD"),
    "method class": (lambda: federate(TASK, data(), Method, rounds=1), r"(?i)method"),
    "federation and method exchanged": (
        lambda: federate(TASK, how(), data(), rounds=1),
        r"(?i)federation.*Method|method.*Federation",
    ),
    **{
        f"rounds {rounds!r:.10}": (
            lambda rounds=rounds: start(rounds=rounds),
            r"rounds.*whole number|whole number.*rounds",
        )
        for rounds in (-1, 2.0, True, "3", None, MATRIX)
    },
    **{
        f"cohort {cohort!r:.10}": (lambda cohort=cohort: start(cohort=cohort), r"cohort.*\b3\b")
        for cohort in (0, -1, 4, 2.0, True, "2", MATRIX)
    },
    **{
        f"seed {seed!r:.10}": (lambda seed=seed: start(seed=seed), r"seed")
        for seed in ("0", 1.5, None, NAN, torch.zeros(2, 2))
    },
    "device cuda": (
        lambda: raises(InputError("'cuda': use it")) if torch.cuda.is_available() else start(device="cuda"),
        r"device 'cuda'.*device='cpu'|'cuda'",
    ),
    **{
        f"device {device!r}": (lambda device=device: start(device=device), r"device.*device='cpu'")
        for device in ("cudaa", "", "cuda:99", "meta", None, 1.5, 99)
    },
    **{
        f"engine {engine!r:.30}": (lambda engine=engine: start(engine=engine), r"engine.*Loop\(\)|engine.*Vmap\(\)")
        for engine in ("vmap", "", 0, False, Loop, Vmap, MATRIX)
    },
    "chunk 0": (lambda: Vmap(chunk=0), r"Vmap needs .*chunk=0"),
    "chunk 1.5": (lambda: Vmap(chunk=1.5), r"Vmap needs .*chunk=1\.5"),
    "chunk true": (lambda: Vmap(chunk=True), r"Vmap needs .*chunk=True"),
    "sampling of no kind": (lambda: start(sampling="uniform"), r"sampling.*'uniform'"),
    "sampling 0": (lambda: start(sampling=0), r"sampling.* 0"),
    "sampling class": (lambda: start(sampling=Uniform), r"sampling.*Uniform"),
    "sampling of other arguments": (lambda: start(sampling=lambda K, m: [0]), r"sampling.*argument"),
    "sampling twice the same": (lambda: start(sampling=Drawn(ids(0, 0)), cohort=2), r"sampling.*(distinct|\[0, 0\])"),
    "sampling beyond": (lambda: start(sampling=Drawn(ids(0, 3)), cohort=2), r"sampling.*\b3\b"),
    "sampling below": (lambda: start(sampling=Drawn(ids(0, -1)), cohort=2), r"sampling.*-1"),
    "sampling too few": (lambda: start(sampling=Drawn(ids(0)), cohort=2), r"sampling.*\b2\b"),
    "sampling none": (lambda: start(sampling=Drawn(ids()), cohort=2), r"sampling.*\b2\b"),
    "sampling in text": (lambda: start(sampling=Drawn(["ann", "bob"]), cohort=2), r"sampling.*ann"),
    "sampling fractions": (lambda: start(sampling=Drawn(np.array([0.0, 1.5])), cohort=2), r"sampling.*(1\.5|float)"),
    "sampling nothing": (lambda: start(sampling=Drawn(None), cohort=2), r"sampling.*None"),
}

ATTACKS: dict[str, Broken] = {
    "both": (lambda: A1(ratio=0.5, count=1), r"one of ratio=, count=, devices=, got ratio=0\.5 and count=1"),
    "neither": (lambda: A2(), r"one of ratio=, count=, devices=, got none"),
    **{
        f"ratio {ratio!r}": (lambda ratio=ratio: Attack(ratio=ratio), r"ratio.*ratio=")
        for ratio in (1.5, -0.1, NAN, INF, "0.5", True, 1j)
    },
    **{
        f"count {count!r}": (lambda count=count: A3(count=count), r"count.*count=")
        for count in (-1, 1.5, "1", True, NAN)
    },
    "count beyond K": (lambda: attacked(A1(count=4)), r"4 malicious.*has 3.*lower count"),
    "relabel of no kind": (lambda: A1(count=1, relabel="flip"), r"relabel.*'flip'"),
    "update of no kind": (lambda: Attack(count=1, update="noise"), r"update.*'noise'"),
    "update class": (lambda: Attack(count=1, update=Replace), r"update.*Replace"),
    "factor below 0": (lambda: A3(count=1, factor=-1), r"Replace needs .*factor=-1"),
    "factor of text": (lambda: Replace(factor="10"), r"Replace needs .*factor='10'"),
    "std 0": (lambda: A2(count=1, std=0), r"Gaussian needs .*std=0"),
    "std NaN": (lambda: Gaussian(std=NAN), r"Gaussian needs .*std=nan"),
    "std of text": (lambda: Gaussian(std="1"), r"Gaussian needs .*std='1'"),
    "name of an attack": (lambda: attacked("A1"), r"(?i)attack.*'A1'"),
    "attack not called": (lambda: attacked(A1), r"(?i)attack.*A1"),
    "attack class": (lambda: attacked(Attack), r"(?i)attack.*Attack"),
    "ratio for an attack": (lambda: attacked(0.5), r"(?i)attack.*0\.5"),
    "label attack on real labels": (lambda: regression(attack=A1(ratio=0.5)), r"real-valued.*relabel=|poisoned=False"),
    "A3 on real labels": (lambda: regression(attack=A3(count=1)), r"real-valued.*(relabel=|poisoned=False)"),
    "relabel into too few": (lambda: attacked(A1(count=3, relabel=lambda y, drawn: y[1:])), r"relabel must give 10 "),
    "relabel into illegal ones": (lambda: attacked(A1(count=3, relabel=lambda y, drawn: y + 1)), r"relabel.*legal"),
    "relabel into a list": (lambda: attacked(A1(count=3, relabel=lambda y, drawn: y.tolist())), r"relabel must give"),
    "relabel into another dtype": (
        lambda: attacked(A1(count=3, relabel=lambda y, drawn: y * 0.5)),
        r"relabel.*(float|dtype|legal)",
    ),
    "relabel into NaN": (
        lambda: regression(attack=A1(count=3, relabel=lambda y, drawn: y * NAN)),
        r"relabel.*(NaN|finite|legal)",
    ),
    "relabel of one argument": (lambda: attacked(A1(count=3, relabel=lambda y: y)), r"relabel.*argument"),
    "relabel that fails": (lambda: attacked(A1(count=3, relabel=lambda y, drawn: y["a"])), r"relabel"),
}

BEFORE = {
    f"{kind}: {name}": broken
    for kind, table in {
        "data": DATA, "module": MODULES, "solver": SOLVERS, "method": METHODS, "call": CALL, "attack": ATTACKS
    }.items()
    for name, broken in table.items()
}  # fmt: skip


# What exists only later


def measured(metric: Callable[..., Any]) -> object:
    """A metric that is as it should be on ann, and not on bob, who holds less."""
    test = {"ann": (X, Y), "bob": (X[:2], Y[:2])}
    on = Federation.from_parts(train={"ann": (X, Y), "bob": (X, Y)}, test=test)
    return last(on, task={"metrics": {"raw": lambda out, y: out[:, 0] if len(y) > 2 else metric(out, y)}}).evaluate()


MANY = {f"ditto, lam={lam}": Ditto(lam=float(lam), lr=0.1) for lam in range(20)}


def lonely() -> Federation:
    return Federation.from_parts(train={"ann": (X, Y)}, test={"ann": (X[:1], Y[:1])})


LATER: dict[str, Broken] = {
    "part": (lambda: last().evaluate("tests"), r"'test'.*'tests'"),
    "parts in a list": (lambda: last().evaluate(["test"]), r"'test'.*\['test'\]"),
    "model of a summary": (lambda: last().evaluate().summary("mine"), r"'mine'.*'own' on 'test'"),
    "part of a summary": (lambda: last().evaluate().summary(part="train"), r"'train'.*'global' on 'test'"),
    "metric of a summary": (lambda: last().evaluate().summary(metric="auc"), r"'auc'.*accuracy, loss"),
    "list for a metric": (lambda: last().evaluate().summary(metric=["loss"]), r"\['loss'\].*accuracy, loss"),
    "list for a model": (lambda: last().evaluate().summary(["own"]), r"\['own'\].*'own' on 'test'"),
    "whom": (lambda: last().evaluate().summary(whom="malicious"), r"'benign' or 'all'.*'malicious'"),
    "whom of a list": (lambda: last().evaluate().summary(whom=["all"]), r"'benign' or 'all'.*\['all'\]"),
    "accuracy of real labels": (
        lambda: next(regression()).evaluate().summary(),
        r"'accuracy'.*loss",
    ),
    "model": (lambda: last().model("mine", "ann"), r"'mine'.*global, own"),
    "model without a device": (lambda: last().model("own"), r"'own'.*device="),
    "model of an unknown device": (lambda: last().model("own", "anna"), r"'anna'.*'ann'"),
    "global model of an unknown device": (lambda: last().model(device="dora"), r"'dora'.*choose one"),
    "unknown model without a device": (lambda: last().model("mine"), r"'mine'"),
    "row": (lambda: last().row("mine", "ann"), r"'mine'.*global, own"),
    "row by a list": (lambda: last().row(["own"], "ann"), r"\['own'\].*global, own"),
    "row of an unknown device": (lambda: last().row("own", 7), r"'7'.*choose one"),
    "metric of outputs": (lambda: measured(lambda out, y: out), r"'raw'.*\[2\].*\(2, 3\)"),
    "metric of text": (lambda: measured(lambda out, y: "good"), r"'raw'.*(good|str)"),
    "metric of nothing": (lambda: measured(lambda out, y: None), r"'raw'.*None"),
    "metric that fails": (lambda: measured(lambda out, y: raises(ZeroDivisionError("no one"))), r"'raw'.*no one"),
    "model among very many": (lambda: last(method={"personal": MANY}).model("mine"), r"'mine'"),
    "model of a summary among very many": (
        lambda: last(method={"personal": MANY}).evaluate("train", "test").summary("mine"),
        r"'mine'",
    ),
    "update into the wrong shape": (
        lambda: next(attacked(Attack(count=3, update=lambda report, who, draw: report._replace(delta=report.delta.T)))),
        r"update.*\(12, 3\)",
    ),
    "update into nothing": (
        lambda: next(attacked(Attack(count=3, update=lambda report, who, draw: None))),
        r"update.*None",
    ),
    "sampling that turns bad": (
        lambda: list(start(sampling=Drawn(ids(0, 0), since=1), cohort=2, rounds=2)),
        r"sampling.*(distinct|\[0, 0\])",
    ),
    "batch norm and a test part of one sample": (
        lambda: next(
            start(nn.Sequential(nn.BatchNorm1d(3, track_running_stats=False), linear()), on=lonely())
        ).evaluate(),
        r"'ann'.*(one|1) .*sample",
    ),
}

# Whatever a sentence says, it says what was expected or what to do.
ADVICE = re.compile(r": [a-z]|must|needs?\b|expected|use |give |say |there are|, got ")


def assert_told(broken: Broken) -> None:
    make, words = broken
    with pytest.raises(InputError) as caught:
        make()
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) <= 300
    assert ADVICE.search(sentence), sentence
    assert re.search(words, sentence), sentence


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("broken", BEFORE.values(), ids=BEFORE.keys())
@pytest.mark.filterwarnings("ignore")
def test_it_is_refused_before_training(broken: Broken) -> None:
    assert_told(broken)


@pytest.mark.parametrize("broken", LATER.values(), ids=LATER.keys())
@pytest.mark.filterwarnings("ignore")
def test_it_is_refused_when_it_happens(broken: Broken) -> None:
    assert_told(broken)


def test_nothing_is_wrong_with_what_is_broken_here() -> None:
    """Every table starts from a run that works, or its refusals would mean nothing."""
    run = last(method={"choose": {"rule": chosen()}}, attack=A1(count=1), sampling=Drawn(ids(0, 2)), cohort=2)
    assert {"global", "own", "rule"} == {model for model, _ in run.evaluate("train", "test").values}
    assert isinstance(newcomer(), nn.Linear)
    assert next(regression(attack=A3(count=1, poisoned=False))).t == 1


@pytest.mark.parametrize("then", [lambda _, h: h + torch.randn(3), lambda _, h: raises(KeyError("gone"))])
def test_a_refusal_leaves_the_global_generators(then: Callable[[nn.Module, Tensor], Any]) -> None:
    module = Acts(then)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # type: ignore[index]
    with pytest.raises(InputError):
        start(module)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before[1:]  # type: ignore[index]


def test_a_refusal_keeps_its_cause() -> None:
    with pytest.raises(InputError) as caught:
        start(Acts(lambda _, h: raises(KeyError("gone"))))
    assert isinstance(caught.value.__cause__, KeyError)
