"""Modules, losses, labels, metrics and data as users have them: they train, and the same on both engines."""

import copy
import logging
import math
import pickle
import random
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset

from dittofl import (
    A1,
    A2,
    A3,
    SGD,
    Choose,
    Classes,
    Ditto,
    Federated,
    Federation,
    Local,
    Loop,
    Metric,
    Task,
    Uniform,
    Vmap,
    federate,
    hinge,
    personalise,
)
from dittofl.inputs import Inputs, each
from tests.problems import (
    ENGINES,
    PAIRS,
    Make,
    binary,
    classes,
    everything,
    federation,
    gap,
    integers,
    linear,
    mlp,
    named,
    normal,
    pairs,
    reals,
    run,
    same,
    seeded,
    several,
)
from tests.problems import method as shared_method

CE = nn.CrossEntropyLoss()
TINY = 1e-10
# One that takes more steps than w, and one that takes fewer.
PERSONAL = {"ditto": Ditto(lam=0.7, lr=0.2, steps=3), "local": Local(lr=0.1)}
# Larger than a batch of 4 and no multiple of it, smaller, and one more; no part of one sample.
THREE = {"a": (7, 3, 2), "b": (2, 2, 3), "c": (5, 2, 4)}
method = partial(shared_method, personal=PERSONAL)

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())


def agreed(task: Task, data: Federation, *, rounds: int = 5, **options: Any) -> Federated:
    """The run on the loop engine, after the mapped one has given the same rows and the same evaluation."""
    loop, vmap = (run(task, data, method(**options), rounds=rounds, engine=engine) for engine in (Loop(), Vmap()))
    assert gap(loop, vmap) <= TINY
    ours, theirs = loop.evaluate("train", "test").values, vmap.evaluate("train", "test").values
    for key, scores in ours.items():
        for metric, numbers in scores.items():
            np.testing.assert_allclose(numbers, theirs[key][metric], rtol=0, atol=TINY)
    return loop


def row_of(parameters: Iterable[Tensor]) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in parameters])


def of_w(result: Federated, metric: str) -> Any:
    """A metric of w on the test part of every device."""
    return result.evaluate().values["global", "test"][metric]


def by_hand(result: Federated, score: Callable[[Tensor, Tensor], Tensor]) -> Any:
    """What a function of outputs and labels gives for w on the test part of every device."""
    module, data, numbers = result.model(), result.federation, []
    for id in data.ids:
        x, y = data.part(id, "test")
        with torch.no_grad():
            numbers.append(float(score(module(x), y)))
    return np.array(numbers)


# Modules


def images(n: int, seed: int) -> Any:
    return normal(n, 2, 4, 4, seed=seed), integers(3, n, seed=seed + 1)


def bytes_of_images(n: int, seed: int) -> Any:
    return integers(256, n, 1, 4, 4, seed=seed).to(torch.uint8), integers(3, n, seed=seed + 1)


def tokens(n: int, seed: int) -> Any:
    return integers(7, n, 5, seed=seed), integers(3, n, seed=seed + 1)


def next_tokens(n: int, seed: int) -> Any:
    """A label for every token of a sequence: [n, 5]."""
    return integers(7, n, 5, seed=seed), integers(7, n, 5, seed=seed + 1)


def sequences(n: int, seed: int) -> Any:
    return normal(n, 5, 4, seed=seed), integers(3, n, seed=seed + 1)


class Through(nn.Module):
    """A layer 4 → 3 and what a function makes of it and its outputs."""

    def __init__(self, function: Callable[["Through", Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.function = nn.Linear(4, 3), function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, self.layer(x))


class Two(nn.Module):
    """Two inputs by position."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 3), nn.Linear(2, 3)

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.tanh(self.first(a)) * self.second(b)


class Named(nn.Module):
    """Two inputs by name, one of them a token."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.out = nn.Embedding(5, 4), nn.Linear(4, 3)

    def forward(self, *, x: Tensor, token: Tensor) -> Tensor:
        return self.out(torch.tanh(x + self.table(token)))


class Tied(nn.Module):
    """A language model whose decoder is its embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.decoder = nn.Embedding(7, 4), nn.Linear(4, 7)
        self.decoder.weight = self.embedding.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(torch.tanh(self.embedding(x))).transpose(1, 2)  # [n, classes, 5], as torch's loss wants it


class Standardised(nn.Module):
    """Buffers that are read and never written, one of them not saved."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shift", torch.full((4,), 0.5))
        self.register_buffer("scale", torch.full((4,), 2.0), persistent=False)
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer((x - self.shift) / self.scale)


class Own(nn.Module):
    """Parameters of its own, one a number, and some that its forward pass does not use."""

    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(0.5))
        self.tables = nn.ParameterDict({"used": nn.Parameter(torch.ones(4, 3)), "spare": nn.Parameter(torch.ones(2))})
        self.spare = nn.Linear(4, 9)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.tables["used"] * self.temperature


class Functional(nn.Module):
    """Dropout by function calls, of elements and of channels, once in place."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(2, 3, 3, padding=1), nn.Linear(48, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.dropout2d(self.first(x), 0.3, self.training)
        return self.last(F.dropout(torch.tanh(hidden).flatten(1), p=0.4, training=self.training, inplace=True))


class ByKeyword(nn.Module):
    """Dropout of an argument by name."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(training=self.training, input=self.layer(x), p=0.4)


class Attentive(nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(4, 2, batch_first=True), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.attention(x, x, x, need_weights=False)[0].mean(1))


class Masked(nn.Module):
    """Makes a buffer in its first pass, and only reads it from then on."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(20, 3)

    def forward(self, x: Tensor) -> Tensor:
        if not hasattr(self, "mask"):
            self.register_buffer("mask", torch.arange(x.shape[1]) < 4, persistent=False)
        return self.layer((x * self.mask[:, None]).flatten(1))


class Greedy(nn.Module):
    """Changes its inputs in place, which are not its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.sub_(1.0))


class Last(nn.Module):
    """The last hidden state of an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0][:, -1])


def chain(*layers: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(*(layer() for layer in layers))


def of(layer: Callable[..., nn.Module], *values: Any, **options: Any) -> Callable[[], nn.Module]:
    return lambda: layer(*values, **options)


def half_frozen() -> nn.Module:
    module = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    module[0].requires_grad_(False)
    return module


def channels_last() -> nn.Module:
    layers = nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(12, 3)
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)


def transposed() -> nn.Module:
    module = nn.Linear(4, 3)
    module.weight = nn.Parameter(torch.randn(4, 3).T)
    return module


HEAD = of(nn.Linear, 4, 3)
FLAT = chain(of(nn.Flatten), of(nn.Linear, 32, 3))

MODULES: dict[str, tuple[Callable[[], nn.Module], Make]] = {
    "half frozen": (half_frozen, classes),
    "tied": (Tied, next_tokens),
    "buffers": (Standardised, classes),
    "parameters of its own": (Own, classes),
    "tuple": (Two, pairs),
    "dict": (Named, named),
    "tokens": (chain(of(nn.Embedding, 7, 4), of(nn.Flatten), of(nn.Linear, 20, 3)), tokens),
    "bags of tokens": (chain(of(nn.EmbeddingBag, 7, 4, mode="sum"), HEAD), tokens),
    "padded tokens": (chain(of(nn.Embedding, 7, 4, padding_idx=0), of(nn.Flatten), of(nn.Linear, 20, 3)), tokens),
    "bytes": (chain(of(nn.Flatten), of(nn.Linear, 16, 3)), bytes_of_images),
    "convolutions": (
        chain(
            of(nn.Conv2d, 2, 4, 3, padding=1), of(nn.Tanh), of(nn.MaxPool2d, 2), of(nn.Flatten), of(nn.Linear, 16, 3)
        ),
        images,
    ),
    "channels last": (channels_last, images),
    "grouped and transposed convolutions": (
        chain(of(nn.Conv2d, 2, 2, 3, groups=2), of(nn.ConvTranspose2d, 2, 2, 3), FLAT),
        images,
    ),
    "weights that lie transposed": (transposed, classes),
    "dropout": (chain(of(nn.Linear, 4, 6), of(nn.Dropout, 0.4), of(nn.Tanh), of(nn.Linear, 6, 3)), classes),
    "dropout of channels": (chain(of(nn.Conv2d, 2, 2, 1), of(nn.Dropout2d, 0.5), FLAT), images),
    "dropout in place": (chain(of(nn.Linear, 4, 6), of(nn.Dropout, 0.4, inplace=True), of(nn.Linear, 6, 3)), classes),
    "dropout, functional": (Functional, images),
    "dropout, by keyword": (ByKeyword, classes),
    "dropout of everything": (chain(HEAD, of(nn.Dropout, 1.0), of(nn.Linear, 3, 3)), classes),
    "batch norm": (
        chain(of(nn.Linear, 4, 6), of(nn.BatchNorm1d, 6, track_running_stats=False), of(nn.Linear, 6, 3)),
        classes,
    ),
    "batch norm of images": (chain(of(nn.BatchNorm2d, 2, track_running_stats=False), FLAT), images),
    "instance norm": (chain(of(nn.InstanceNorm2d, 2, affine=True), FLAT), images),
    "group norm": (chain(of(nn.GroupNorm, 2, 2), FLAT), images),
    "layer norm": (chain(of(nn.LayerNorm, 4), HEAD), classes),
    "weight norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), classes),
    "attention": (Attentive, sequences),
    "given in evaluation mode": (lambda: chain(HEAD, of(nn.Dropout, 0.5), of(nn.Linear, 3, 3))().eval(), classes),
    "buffer made by the first pass": (Masked, sequences),
    "inputs changed in place": (Greedy, classes),
    "activation in place": (chain(of(nn.ReLU, inplace=True), HEAD), classes),
}


@pytest.mark.parametrize(("build", "make"), MODULES.values(), ids=MODULES.keys())
def test_a_module_trains_and_is_left_as_it_was(build: Callable[[], nn.Module], make: Make) -> None:
    module, data = seeded(build), federation(make, THREE)
    before, modes = copy.deepcopy(module.state_dict()), [layer.training for layer in module.modules()]
    held = copy.deepcopy((data.x, data.y))
    result = agreed(Task(module, CE), data)
    assert same(before, module.state_dict())
    assert [layer.training for layer in module.modules()] == modes
    assert all(parameter.grad is None for parameter in module.parameters())
    assert torch.equal(result.w0, row_of(p for p in module.parameters() if p.requires_grad))
    assert type(result.model()) is type(module)
    assert set(result.model().state_dict()) == set(before)
    assert same(as_dict(held), as_dict((data.x, data.y)))


def as_dict(pair: tuple[Inputs, Tensor]) -> dict[str, Tensor]:
    x, y = pair
    parts = x if isinstance(x, dict) else dict(enumerate(x)) if isinstance(x, tuple) else {"x": x}
    return {str(name): part for name, part in parts.items()} | {"the labels": y}


def test_frozen_parameters_are_no_part_of_a_row_and_stay() -> None:
    module = seeded(half_frozen)
    result = agreed(Task(module, CE), federation())
    assert result.objective.layout.names == ("2.weight", "2.bias")
    assert result.w.shape == (18,)
    for model in (result.model(), result.model("ditto", "a")):
        assert torch.equal(model[0].weight, module[0].weight)  # type: ignore[index]
        assert not torch.equal(model[2].weight, module[2].weight)  # type: ignore[index]
        assert [parameter.requires_grad for parameter in model.parameters()] == [False, False, True, True]


def test_tied_parameters_count_once_and_stay_tied() -> None:
    module = seeded(Tied)
    result = agreed(Task(module, CE), federation(next_tokens))
    assert result.w.shape == (7 * 4 + 7,)
    for model in (result.model(), result.model("ditto", "a")):
        assert model.embedding.weight is model.decoder.weight
        assert not torch.equal(model.embedding.weight, module.embedding.weight)


def test_buffers_stay() -> None:
    result = agreed(Task(seeded(Standardised), CE), federation())
    assert result.w.shape == (15,)
    assert result.model().shift.tolist() == [0.5] * 4
    assert result.model().scale.tolist() == [2.0] * 4


def test_unused_parameters_stay() -> None:
    """In w; the pull of λ keeps them at w in every v_k."""
    module = seeded(Own)
    result = agreed(Task(module, CE), federation())
    for model in (result.model(), result.model("ditto", "a")):
        assert torch.equal(model.spare.weight, module.spare.weight)
        assert not torch.equal(model.temperature, module.temperature)


def test_inputs_changed_in_place_are_those_of_one_pass() -> None:
    """As if the module had made a copy first."""
    greedy = agreed(Task(seeded(Greedy), CE), federation())
    modest = run(Task(seeded(lambda: Through(lambda m, h: h - m.layer.weight.sum(1))), CE), federation(), method())
    assert gap(greedy, modest) <= TINY


# Lazy modules


def lazy() -> nn.Module:
    return nn.Sequential(nn.LazyLinear(5), nn.Tanh(), nn.LazyLinear(3)).double()


def test_lazy_modules() -> None:
    module, before = lazy(), torch.get_rng_state()
    result = agreed(Task(module, CE), federation())
    assert torch.equal(torch.get_rng_state(), before)
    assert result.w.shape == (4 * 5 + 5 + 5 * 3 + 3,)
    assert isinstance(module[0].weight, nn.UninitializedParameter)  # type: ignore[index]
    assert result.model()(normal(2, 4, seed=1)).shape == (2, 3)


def test_lazy_modules_begin_where_the_seed_says() -> None:
    starts = []
    for seed, noise in ((0, 1), (0, 2), (1, 1)):
        torch.manual_seed(noise)
        starts.append(run(Task(lazy(), CE), federation(), method(), seed=seed, rounds=1).w0)
    assert torch.equal(starts[0], starts[1])
    assert not torch.equal(starts[0], starts[2])


# Dropout


@engines
@pytest.mark.parametrize(
    "name", ["dropout", "dropout of channels", "dropout, functional", "dropout, by keyword", "dropout in place"]
)
def test_dropout_is_off_at_evaluation_and_on_in_training(engine: Any, name: str) -> None:
    build, make = MODULES[name]
    result = run(Task(seeded(build), CE), federation(make, THREE), method(), engine=engine)
    np.testing.assert_allclose(of_w(result, "loss"), by_hand(result, F.cross_entropy), atol=TINY)
    np.testing.assert_array_equal(of_w(result, "loss"), of_w(result, "loss"))
    kept = seeded(build)
    for layer in kept.modules():
        if isinstance(layer, nn.Dropout | nn.Dropout2d):
            layer.p = 0.0
    if "," not in name:
        assert not torch.allclose(result.w, run(Task(kept, CE), federation(make, THREE), method(), engine=engine).w)
    other = run(Task(seeded(build), CE), federation(make, THREE), method(), engine=engine, seed=1)
    assert not torch.equal(result.w, other.w)


# What a run hands out


@engines
def test_returned_modules_are_copies_of_the_users_class(engine: Any) -> None:
    module = seeded(Own)
    module.note = "mine"
    result = run(Task(module, CE), federation(), method(), engine=engine)
    first, second, mine = result.model(), result.model(), result.model("ditto", "a")
    assert type(first) is type(mine) is Own
    assert first.note == "mine"
    assert not first.training
    held = everything(result)
    with torch.no_grad():
        for parameter in (*first.parameters(), *mine.parameters()):
            parameter.add_(1.0)
    assert same(held, everything(result))
    assert same(second.state_dict(), result.model().state_dict())
    assert not same(first.state_dict(), second.state_dict())
    assert same(pickle.loads(pickle.dumps(second.state_dict())), second.state_dict())
    second.train()(normal(2, 4, seed=1)).sum().backward()
    assert second.temperature.grad is not None
    assert sum(p.untyped_storage().nbytes() for p in second.parameters()) == 8 * len(result.w)


@engines
def test_returned_modules_do_not_move_with_the_run(engine: Any) -> None:
    result = run(Task(mlp(), CE), federation(), method(), rounds=1, engine=engine)
    models = [result.model(), result.model("ditto", "a")]
    before = [copy.deepcopy(model.state_dict()) for model in models]
    for _ in range(3):
        result.round(Uniform()(result.t, result.federation.K, result.federation.sizes("train"), 0))
    assert all(same(state, model.state_dict()) for state, model in zip(before, models, strict=True))
    assert not torch.equal(result.model()[0].weight, models[0][0].weight)  # type: ignore[index]


@engines
def test_pretrained_weights_are_w0(engine: Any) -> None:
    module = mlp()
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(3):
        optimiser.zero_grad()
        x, y = classes(8, seed=5)
        CE(module(x), y).backward()
        optimiser.step()
    before = copy.deepcopy(module.state_dict())
    places = [parameter.data_ptr() for parameter in module.parameters()]
    gradients = [parameter.grad.clone() for parameter in module.parameters()]  # type: ignore[union-attr]
    result = run(Task(module, CE), federation(), method(), engine=engine)
    assert torch.equal(result.w0, row_of(module.parameters()))
    assert torch.equal(result.w0, row_of(before.values()))
    assert same(before, module.state_dict())
    assert [parameter.data_ptr() for parameter in module.parameters()] == places
    assert all(torch.equal(p.grad, g) for p, g in zip(module.parameters(), gradients, strict=True))  # type: ignore[arg-type]


@engines
def test_runs_side_by_side_do_not_meet(engine: Any) -> None:
    """They share a task, and its module is changed after the calls."""
    task, data, built = Task(mlp(), CE), federation(), mlp()
    alone = [everything(run(Task(built, CE), data, method(), seed=seed, engine=engine)) for seed in (0, 1)]
    both = [federate(task, data, method(), rounds=5, seed=seed, engine=engine) for seed in (0, 1)]
    with torch.no_grad():
        for parameter in task.module.parameters():
            parameter.fill_(9.0)
    *_, last = zip(*both, strict=True)
    assert all(same(expected, everything(result)) for expected, result in zip(alone, last, strict=True))


# Engines that are chosen for the user


def branching(module: Through, h: Tensor) -> Tensor:
    return h if h.detach().sum() > 0 else 2 * h


def branching_in_training(module: Through, h: Tensor) -> Tensor:
    return h * float(h.detach().mean().exp()) if module.training else h


def written(module: Through, h: Tensor) -> Tensor:
    out = torch.zeros(len(h), 3, dtype=h.dtype)
    out[:, 0] = h[:, 1]
    return out + h


class Doubling(torch.autograd.Function):
    """Without a rule for vmap."""

    @staticmethod
    def forward(ctx: Any, h: Tensor) -> Tensor:
        return 2 * h

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return 2 * g


def branching_loss(out: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(out, y, reduction="none") * (2 if bool(out.isfinite().all()) else 1)


def selecting_loss(out: Tensor, y: Tensor) -> Tensor:
    losses = F.cross_entropy(out, y, reduction="none")
    weight = torch.ones_like(losses)
    weight[y == 1] = 3.0
    return weight * losses


def branching_penalty(parameters: Mapping[str, Tensor]) -> Tensor:
    square = (parameters["weight"] ** 2).sum()
    return square if float(square.detach()) < 1e6 else square.sqrt()


def in_order(x: Inputs, generator: torch.Generator) -> Inputs:
    """A transform may do what it likes: it runs outside of any map."""
    return each(x, lambda part: part[np.argsort(part[:, 0].numpy())] if float(part.sum()) > 0 else part)


UNMAPPED = {
    "forward branches": Task(seeded(lambda: Through(branching)), CE),
    "forward branches in training": Task(seeded(lambda: Through(branching_in_training)), CE),
    "forward writes": Task(seeded(lambda: Through(written)), CE),
    "own autograd function": Task(seeded(lambda: Through(lambda _, h: Doubling.apply(h))), CE),
    "loss branches": Task(linear(3), branching_loss),
    "loss selects": Task(linear(3), selecting_loss),
    "penalty branches": Task(linear(3), CE, penalty=branching_penalty),
}


@pytest.mark.parametrize("task", UNMAPPED.values(), ids=UNMAPPED.keys())
def test_what_cannot_be_mapped_falls_back_to_the_loop_and_says_why(task: Task, caplog: Any) -> None:
    with caplog.at_level(logging.WARNING, logger="dittofl"):
        chosen = run(task, federation(), method(), engine=None)
    assert type(chosen.engine).__name__ == "LoopEngine"
    assert gap(chosen, run(task, federation(), method(), engine=Loop())) == 0
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert len(record.getMessage()) <= 400
    assert "cannot be mapped" in record.getMessage()
    assert "loop" in record.getMessage()


def test_a_transform_may_branch_on_every_engine() -> None:
    agreed(Task(mlp(), CE, transform=in_order), federation())


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    return nn.Sequential(layer, nn.Flatten(), nn.Linear(20, 3))


@pytest.mark.parametrize("build", [Last, encoder], ids=["LSTM", "encoder"])
def test_sequence_models_run_on_the_engine_that_is_chosen(build: Callable[[], nn.Module]) -> None:
    task, data = Task(seeded(build), CE), federation(sequences)
    chosen = run(task, data, method(), engine=None)
    assert gap(chosen, run(task, data, method(), engine=Loop())) <= TINY
    np.testing.assert_allclose(of_w(chosen, "loss")[:4], by_hand(chosen, F.cross_entropy)[:4], atol=TINY)


@pytest.mark.parametrize(
    ("build", "make", "engine"),
    [
        (MODULES["convolutions"][0], images, "LoopEngine"),
        (Last, sequences, "LoopEngine"),
        (MODULES["dropout"][0], classes, "VmapEngine"),
        (MODULES["tokens"][0], tokens, "VmapEngine"),
    ],
)
def test_the_engine_chosen_on_a_cpu(build: Callable[[], nn.Module], make: Make, engine: str, caplog: Any) -> None:
    with caplog.at_level(logging.WARNING, logger="dittofl"):
        result = run(Task(seeded(build), CE), federation(make), method(), rounds=1, engine=None)
    assert type(result.engine).__name__ == engine
    assert not caplog.records


def test_gradients_switched_off_around_a_run_do_not_matter() -> None:
    with torch.no_grad():
        off = agreed(Task(mlp(), CE), federation())
    assert gap(off, run(Task(mlp(), CE), federation(), method())) == 0


# Losses and labels


def one(n: int, seed: int) -> Any:
    x, y = binary(n, seed)
    return x, y.double()


def column(n: int, seed: int) -> Any:
    x, y = reals(n, seed)
    return x, y[:, None]


def two_reals(n: int, seed: int) -> Any:
    x, y = reals(n, seed)
    return x, torch.stack([y, -y.abs()], 1)


def counts(n: int, seed: int) -> Any:
    return normal(n, 4, seed=seed), integers(4, n, seed=seed + 1)


def shares(n: int, seed: int) -> Any:
    """Class probabilities for labels."""
    return normal(n, 4, seed=seed), normal(n, 3, seed=seed + 1).softmax(1)


def signs(n: int, seed: int) -> Any:
    x, y = binary(n, seed)
    return x, 2 * y - 1


def sorted_bits(n: int, seed: int) -> Any:
    """All ones come first, and more than a few."""
    x, y = binary(n, seed)
    return x, (torch.arange(n) < n - n // 4).to(y)


def sorted_reals(n: int, seed: int) -> Any:
    """Numbers of which the first few are 0 and 1."""
    x, y = reals(n, seed)
    y[:4] = torch.tensor([0.0, 1.0, 1.0, 0.0], dtype=y.dtype)[:n]
    return x, y


def sigmoid() -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Linear(4, 1), nn.Sigmoid()))


def log_softmax() -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(dim=1)))


def flat() -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)))


class Focal(nn.Module):
    """A loss of the user's own, with a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("gamma", torch.tensor(2.0))

    def forward(self, out: Tensor, y: Tensor) -> Tensor:
        nll = F.cross_entropy(out, y, reduction="none")
        return (1 - torch.exp(-nll)) ** self.gamma * nll


def squares(out: Tensor, y: Tensor) -> Tensor:
    return (out - y) ** 2


def averaged(loss: Callable[..., Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """The same loss with its plain mean over samples."""
    return lambda out, y: loss(out, y).mean()


class Case(NamedTuple):
    """A module and a loss on labels; `hand` is the mean loss, worked out from the outputs and the user's labels."""

    module: nn.Module
    loss: Any
    make: Make
    hand: Callable[[Tensor, Tensor], Tensor]
    right: Callable[[Tensor, Tensor], Tensor] | None = None  # which predictions are right; None: a loss, no accuracy


def top(out: Tensor, y: Tensor) -> Tensor:
    return out.argmax(1) == y


def above(out: Tensor, y: Tensor) -> Tensor:
    return (out[:, 0] > 0) == (y > 0)


WEIGHT = torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64)
EACH = {"reduction": "none"}
SMOOTHED = partial(F.cross_entropy, label_smoothing=0.2)


def narrowed(loss: Callable[..., Tensor], **options: Any) -> Callable[[Tensor, Tensor], Tensor]:
    """A loss of outputs [n, 1] and labels [n]."""
    return lambda out, y: loss(out[:, 0], y.double(), **options)


LOSSES: dict[str, Case] = {
    "cross-entropy": Case(linear(3), CE, classes, F.cross_entropy, top),
    "cross-entropy by name": Case(linear(3), F.cross_entropy, classes, F.cross_entropy, top),
    "cross-entropy asked for a sum": Case(
        linear(3), nn.CrossEntropyLoss(reduction="sum"), classes, F.cross_entropy, top
    ),
    "cross-entropy by part": Case(
        linear(3), SMOOTHED, classes, SMOOTHED, top
    ),
    "smoothed and weighted": Case(
        linear(3), nn.CrossEntropyLoss(weight=WEIGHT, label_smoothing=0.1), classes,
        averaged(partial(F.cross_entropy, weight=WEIGHT, label_smoothing=0.1, **EACH)), top,
    ),
    "a class ignored": Case(
        linear(3), nn.CrossEntropyLoss(ignore_index=0), classes,
        averaged(partial(F.cross_entropy, ignore_index=0, **EACH)), top,
    ),
    "class probabilities": Case(linear(3), CE, shares, F.cross_entropy),
    "a label for every token": Case(
        seeded(Tied), CE, next_tokens, F.cross_entropy, lambda out, y: (out.argmax(1) == y).double().mean(1)
    ),
    "log-likelihood": Case(log_softmax(), nn.NLLLoss(), classes, F.nll_loss, top),
    "margins": Case(linear(3), nn.MultiMarginLoss(), classes, F.multi_margin_loss, top),
    "divergence": Case(
        log_softmax(), nn.KLDivLoss(), shares, averaged(lambda out, y: F.kl_div(out, y, **EACH).mean(1))
    ),
    "two classes": Case(linear(2), CE, binary, F.cross_entropy, top),
    "binary, integers": Case(
        linear(1), nn.BCEWithLogitsLoss(), binary,
        narrowed(F.binary_cross_entropy_with_logits), above,
    ),
    "binary, floats": Case(
        linear(1), nn.BCEWithLogitsLoss(), one, narrowed(F.binary_cross_entropy_with_logits), above
    ),
    "binary, by name": Case(
        linear(1), F.binary_cross_entropy_with_logits, binary,
        narrowed(F.binary_cross_entropy_with_logits), above,
    ),
    "binary, flat outputs": Case(
        flat(), nn.BCEWithLogitsLoss(), binary, lambda out, y: F.binary_cross_entropy_with_logits(out, y.double()),
        lambda out, y: (out > 0) == (y > 0),
    ),
    "binary, columns of labels": Case(
        linear(1), nn.BCEWithLogitsLoss(), lambda n, seed: (binary(n, seed)[0], binary(n, seed)[1][:, None]),
        lambda out, y: F.binary_cross_entropy_with_logits(out, y.double()), lambda out, y: (out > 0) == (y > 0),
    ),
    "binary, positive ones weighted": Case(
        linear(1), nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0)), binary,
        narrowed(F.binary_cross_entropy_with_logits, pos_weight=torch.tensor(3.0)), above,
    ),
    "binary, sorted by label": Case(
        linear(1), nn.BCEWithLogitsLoss(), sorted_bits,
        narrowed(F.binary_cross_entropy_with_logits), above,
    ),
    "binary, probabilities": Case(
        sigmoid(), nn.BCELoss(), binary, narrowed(F.binary_cross_entropy),
        lambda out, y: (out[:, 0] > 0.5) == (y > 0),
    ),
    "several labels": Case(
        linear(3), nn.BCEWithLogitsLoss(), several, lambda out, y: F.binary_cross_entropy_with_logits(out, y.double()),
        lambda out, y: ((out > 0) == (y > 0)).double().mean(1),
    ),
    "several labels, at once": Case(
        linear(3), nn.MultiLabelSoftMarginLoss(), several,
        lambda out, y: F.multilabel_soft_margin_loss(out, y.double()),
        lambda out, y: ((out > 0) == (y > 0)).double().mean(1),
    ),
    "hinge": Case(linear(1), hinge, signs, lambda out, y: F.relu(1 - y * out[:, 0]).mean(), above),
    "soft margin": Case(
        linear(1), nn.SoftMarginLoss(), signs, lambda out, y: F.softplus(-y * out[:, 0]).mean(), above
    ),
    "squares": Case(mlp(1), nn.MSELoss(), reals, narrowed(F.mse_loss)),
    "squares, by name": Case(mlp(1), F.mse_loss, reals, narrowed(F.mse_loss)),
    "squares, columns of labels": Case(mlp(1), nn.MSELoss(), column, F.mse_loss),
    "squares, flat outputs": Case(flat(), nn.MSELoss(), reals, F.mse_loss),
    "squares, two labels": Case(mlp(2), nn.MSELoss(), two_reals, F.mse_loss),
    "squares, labels that are counts": Case(mlp(1), nn.MSELoss(), counts, narrowed(F.mse_loss)),
    "absolute": Case(mlp(1), nn.L1Loss(), reals, narrowed(F.l1_loss)),
    "smooth absolute": Case(mlp(1), nn.SmoothL1Loss(beta=0.5), reals, narrowed(F.smooth_l1_loss, beta=0.5)),
    "Huber": Case(mlp(1), nn.HuberLoss(delta=0.5), reals, narrowed(F.huber_loss, delta=0.5)),
    "Poisson": Case(
        mlp(1), nn.PoissonNLLLoss(), counts, narrowed(F.poisson_nll_loss)
    ),
    "own module": Case(linear(3), Focal(), classes, averaged(Focal()), top),
    "own function": Case(
        linear(3), lambda out, y: -out.log_softmax(1).gather(1, y[:, None])[:, 0], classes, F.cross_entropy, top
    ),
    "own function of columns": Case(
        mlp(1), squares, reals, narrowed(F.mse_loss)
    ),
    "own squares, the first labels are 0 and 1": Case(
        mlp(1), squares, sorted_reals, narrowed(F.mse_loss)
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LOSSES.values(), ids=LOSSES.keys())
def test_a_loss_trains_and_is_what_it_says(case: Case) -> None:
    result = agreed(Task(case.module, case.loss), federation(case.make, THREE))
    np.testing.assert_allclose(of_w(result, "loss"), by_hand(result, case.hand), atol=TINY)
    scores = result.evaluate().values["global", "test"]
    assert ("accuracy" in scores) == (case.right is not None)
    if case.right is not None:
        right = case.right
        expected = by_hand(result, lambda out, y: right(out, y).double().mean())
        np.testing.assert_allclose(scores["accuracy"], expected, atol=TINY)


def test_a_loss_of_the_user_is_not_changed() -> None:
    loss = nn.CrossEntropyLoss(weight=WEIGHT)
    run(Task(linear(3), loss), federation(), method())
    assert loss.reduction == "mean"


def test_a_target_given_goes_before_one_inferred() -> None:
    x, y = classes(8, seed=1)
    data = Federation.from_parts(train={"a": (x, y.clamp(max=1))}, test={"a": (x, y.clamp(max=1))})
    result = agreed(Task(linear(2), CE, target=Classes(2)), data)
    np.testing.assert_allclose(of_w(result, "accuracy"), by_hand(result, lambda out, y: top(out, y).double().mean()))


def svm(parameters: Mapping[str, Tensor]) -> Tensor:
    return 0.01 * (parameters["weight"] ** 2).sum()


def test_the_linear_svm() -> None:
    """mean max(0, 1 − y (x·W + b)) + 0.01 ‖W‖², for w and for every v_k, and trained on too."""
    result = agreed(Task(linear(1), hinge, penalty=svm), federation(signs, PAIRS))
    x, y = (part.numpy() for part in result.federation.part("c", "test"))  # type: ignore[union-attr]
    for name in ("global", *PERSONAL):
        row = result.row(name, "c").numpy()
        expected = np.maximum(0, 1 - y * (x @ row[:4] + row[4])).mean() + 0.01 * (row[:4] ** 2).sum()
        assert math.isclose(result.evaluate().values[name, "test"]["loss"][2], expected, abs_tol=TINY)
    assert not torch.allclose(result.w, run(Task(linear(1), hinge), federation(signs, PAIRS), method()).w)


# Metrics, choices, transforms


def largest_error(out: Tensor, y: Tensor) -> float:
    return float((out.squeeze(-1) - y).abs().max())


METRICS: dict[str, Any] = {
    "largest": Metric(of=largest_error, lower_is_better=True),
    "bias": lambda out, y: (out.squeeze(-1) - y).mean(),
    "off": lambda out, y: (out.squeeze(-1) - y).abs() > 0.5,
    "size": lambda out, y: len(y),
}


def test_regression_has_no_accuracy_and_metrics_of_the_users() -> None:
    result = agreed(Task(mlp(1), nn.L1Loss(), metrics=METRICS), federation(reals))
    evaluation = result.evaluate()
    scores = evaluation.values["global", "test"]
    assert list(scores) == ["loss", *METRICS]
    have = np.array([id != "e" for id in result.federation.ids])  # which has no test part
    assert all(np.isnan(scores[name][~have]).all() for name in scores)
    hand = {
        "largest": lambda out, y: (out[:, 0] - y).abs().max(),
        "bias": lambda out, y: (out[:, 0] - y).mean(),
        "off": lambda out, y: ((out[:, 0] - y).abs() > 0.5).double().mean(),
        "size": lambda out, y: torch.tensor(float(len(y))),
    }
    values = {name: by_hand_where(result, score, have) for name, score in hand.items()}
    for name, expected in values.items():
        np.testing.assert_allclose(scores[name][have], expected, atol=TINY)
    assert evaluation.summary(metric="largest").worst10 == scores["largest"][have].max()
    assert evaluation.summary(metric="bias").worst10 == scores["bias"][have].min()
    assert evaluation.summary(metric="loss").worst10 == scores["loss"][have].max()
    assert evaluation.summary(metric="largest").devices == have.sum()
    assert "largest" in str(evaluation)


def by_hand_where(result: Federated, score: Callable[[Tensor, Tensor], Tensor], which: Iterable[bool]) -> Any:
    module, data = result.model(), result.federation
    parts = [data.part(id, "test") for id, its in zip(data.ids, which, strict=True) if its]
    with torch.no_grad():
        return np.array([float(score(module(x), y)) for x, y in parts])


def test_the_loss_decides_where_there_is_no_accuracy() -> None:
    near, far = Local(lr=0.2, steps=3), Ditto(lam=5.0, lr=0.01)
    rule = Choose(among=("near", "far"), few="far", enough=2)
    result = agreed(
        Task(mlp(1), nn.L1Loss()), federation(reals), personal={"near": near, "far": far}, choose={"rule": rule}
    )
    evaluation = result.evaluate("validation")
    loss = {name: evaluation.values[name, "validation"]["loss"] for name in ("near", "far")}
    enough = result.federation.sizes("validation") >= 2
    expected = np.where(enough & (loss["near"] < loss["far"]), "near", "far")
    assert {"near", "far"} == set(expected[enough])
    assert evaluation.choices["rule"].tolist() == expected.tolist()
    for k, id in enumerate(result.federation.ids):
        assert torch.equal(result.row("rule", id), result.row(expected[k], id))


def shaken(x: Inputs, generator: torch.Generator) -> Inputs:
    return each(x, lambda part: part + 0.5 * torch.randn(part.shape, generator=generator, dtype=part.dtype))


def shaken_in_place(x: Inputs, generator: torch.Generator) -> Inputs:
    return each(x, lambda part: part.add_(0.5 * torch.randn(part.shape, generator=generator, dtype=part.dtype)))


def flipped(x: Inputs, generator: torch.Generator) -> Inputs:
    """Some images left to right."""
    turn = torch.rand(len(x), generator=generator) < 0.5  # type: ignore[arg-type]
    return torch.where(turn[:, None, None, None], x.flip(-1), x)  # type: ignore[union-attr]


TRANSFORMS: dict[str, tuple[Callable[[], nn.Module], Make, Any]] = {
    "noise": (of(nn.Linear, 4, 3), classes, shaken),
    "noise in place": (of(nn.Linear, 4, 3), classes, shaken_in_place),
    "flips": (chain(of(nn.Flatten), of(nn.Linear, 32, 3)), images, flipped),
    "tuple": (Two, pairs, shaken),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_is_seeded_and_only_for_training(name: str) -> None:
    build, make, transform = TRANSFORMS[name]
    data = federation(make, THREE)
    held, before = copy.deepcopy(data.x), torch.get_rng_state()
    task = Task(seeded(build), CE, transform=transform)
    result = agreed(task, data)
    assert torch.equal(torch.get_rng_state(), before)
    assert same(as_dict((held, data.y)), as_dict((data.x, data.y)))
    assert gap(result, run(task, data, method())) == 0
    assert not torch.allclose(result.w, run(Task(seeded(build), CE), data, method()).w)
    assert not torch.allclose(result.w, run(task, data, method(), seed=1).w)
    if name != "tuple":
        np.testing.assert_allclose(of_w(result, "loss"), by_hand(result, F.cross_entropy), atol=TINY)


def test_the_noise_in_place_is_the_noise() -> None:
    ours, theirs = (Task(linear(3), CE, transform=transform) for transform in (shaken, shaken_in_place))
    assert gap(run(ours, federation(), method()), run(theirs, federation(), method())) == 0


# Data as users have them


class Frame:
    """As much of a pandas frame as there need be."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.held, self.columns = columns, list(columns)

    def __getitem__(self, name: str) -> Any:
        return self.held[name]


def test_numpy_torch_datasets_and_tables_train_to_the_same() -> None:
    data = {id: classes(n, seed) for seed, (id, n) in enumerate({"north": 9, "south": 14, "west": 5}.items())}
    sites = [id for id, (_, y) in data.items() for _ in y]
    x, y = (torch.cat([pair[i] for pair in data.values()]).numpy() for i in (0, 1))
    columns = {"site": np.array(sites, object), "ill": y} | {f"x{j}": x[:, j] for j in range(4)}
    federations = [
        Federation.of(data),
        Federation.of({id: (x.numpy(), y.numpy()) for id, (x, y) in data.items()}),
        Federation.of({id: TensorDataset(x, y) for id, (x, y) in data.items()}),
        Federation.from_table(Frame(columns), device="site", label="ill"),
        Federation.from_table(columns, device="site", label="ill"),
    ]
    first, *others = [run(Task(mlp(), CE), its, method(), engine=None) for its in federations]
    assert all(gap(first, other) == 0 for other in others)
    assert first.model("ditto", "south")(normal(2, 4, seed=1)).shape == (2, 3)


def test_single_precision_data_for_a_double_module_and_back() -> None:
    def singles(n: int, seed: int) -> Any:
        x, y = classes(n, seed)
        return x.float(), y

    def rounded(n: int, seed: int) -> Any:
        x, y = classes(n, seed)
        return x.float().double(), y

    assert gap(agreed(Task(mlp(), CE), federation(singles)), run(Task(mlp(), CE), federation(rounded), method())) == 0
    assert run(Task(mlp().float(), CE), federation(), method()).w.dtype == torch.float32


@pytest.mark.parametrize(
    ("plain", "of_numpy"),
    [
        (lambda: Ditto(lam=0.5, lr=0.25), lambda: Ditto(lam=np.float32(0.5), lr=np.float32(0.25))),
        (lambda: Ditto(lam=0.5, lr=0.25), lambda: Ditto(lam=np.float64(0.5), lr=np.float64(0.25))),
        (lambda: SGD(lr=0.25, steps=2), lambda: SGD(lr=0.25, steps=np.int64(2))),
        (lambda: method(batch=4), lambda: method(batch=np.int64(4))),
        (lambda: A1(count=2), lambda: A1(count=np.int64(2))),
        (lambda: A1(ratio=0.5), lambda: A1(ratio=np.float32(0.5))),
        (lambda: short(rounds=2).t, lambda: short(rounds=np.int64(2)).t),
        (lambda: len(short(cohort=2).history[0].cohort), lambda: len(short(cohort=np.int64(2)).history[0].cohort)),
    ],
    ids=["float32", "float64", "steps", "batch", "count", "ratio", "rounds", "cohort"],
)
def test_numbers_of_numpy_are_numbers(plain: Callable[[], Any], of_numpy: Callable[[], Any]) -> None:
    """As they come out of a sweep over np.arange or np.linspace."""
    assert plain() == of_numpy()


def short(**options: Any) -> Federated:
    return run(Task(linear(3), CE), federation(), method(), **{"rounds": 1} | options)


# Nothing outside is touched


def outside() -> tuple[Any, ...]:
    numpy = np.random.get_state()
    return (
        torch.get_rng_state().tolist(),
        (numpy[0], numpy[1].tolist(), *numpy[2:]),  # type: ignore[index,union-attr]
        random.getstate(),
        torch.get_default_dtype(),
        torch.get_num_threads(),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
    )


@engines
@pytest.mark.parametrize("attack", [None, A1(ratio=0.5), A2(ratio=0.5), A3(count=2)], ids=["none", "A1", "A2", "A3"])
def test_a_run_leaves_the_world_as_it_was(engine: Any, attack: Any) -> None:
    """With dropout, a lazy layer, a transform, attacks, choices, evaluation, models and a newcomer."""
    torch.manual_seed(1)
    np.random.seed(2)
    random.seed(3)
    module = nn.Sequential(nn.LazyLinear(5), nn.Dropout(0.3), nn.Linear(5, 3)).double()
    task = Task(module, CE, transform=shaken)
    rule = Choose(among=("ditto", "local"), few="local")
    data, before = federation(), outside()
    result = run(task, data, method(choose={"rule": rule}), rounds=2, cohort=3, engine=engine, attack=attack)
    result.evaluate("train", "validation", "test")
    result.model("rule", "a")
    personalise(result.w, classes(6, seed=9), task=task, solver=Ditto(lam=1.0, lr=0.1), visits=2)
    assert outside() == before


def test_a_run_does_not_depend_on_the_world() -> None:
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)
        task = Task(lazy(), CE, transform=shaken)
        results.append(run(task, federation(), method(), attack=A2(ratio=0.5), rounds=2))
    assert gap(*results) == 0
