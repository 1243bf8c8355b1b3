"""Both engines do the same, and no number depends on chunks, personal solvers, evaluation or the order of devices."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

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
    BySize,
    ClipNorm,
    Cosine,
    Decay,
    Ditto,
    Down,
    Epochs,
    Federation,
    InputError,
    Local,
    Loop,
    Method,
    Momentum,
    Prox,
    Real,
    Sent,
    Task,
    Vmap,
    federate,
    hinge,
)
from dittofl.inputs import Inputs, each
from dittofl.optimiser import Walk
from dittofl.solver import path
from tests.problems import (
    ENGINES,
    PAIRS,
    PERSONAL,
    TASK,
    binary,
    classes,
    everything,
    federation,
    gap,
    integers,
    linear,
    method,
    mlp,
    named,
    normal,
    pairs,
    reals,
    rows,
    run,
    same,
    saved,
    seeded,
    several,
    signs,
)

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
# Without fusion w is bitwise what it is alone.
UNFUSED = {"loop": Loop(), "vmap": Vmap(fuse=False), "vmap in chunks": Vmap(fuse=False, chunk=2)}
unfused = pytest.mark.parametrize("engine", UNFUSED.values(), ids=UNFUSED.keys())


# Loop = Vmap


class Two(nn.Module):
    """Two inputs, positional or by name."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 3), nn.Linear(2, 3)

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        return torch.tanh(self.first(x)) + self.second(z)


class Tokens(nn.Module):
    """An embedding beside numbers; keyword arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.out = nn.Embedding(5, 4), nn.Linear(4, 3)

    def forward(self, *, token: Tensor, x: Tensor) -> Tensor:
        return self.out(torch.tanh(x + self.table(token)))


class Tied(nn.Module):
    """One weight used twice, one parameter frozen, functional dropout of channels too."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.out = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)
        self.b.weight = self.a.weight
        self.out.bias.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.dropout1d(torch.tanh(self.a(x))[:, :, None], 0.3, self.training).squeeze(-1)
        return self.out(F.dropout(torch.tanh(self.b(hidden)), 0.4, self.training))


class Centred(nn.Module):
    """Mixes its batch: an output depends on the other samples."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.out = nn.Linear(4, 3)
        with torch.no_grad():
            self.out.weight.mul_(scale)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(x - x.mean(0))


def dropped() -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.Tanh(), nn.Linear(6, 3), nn.Dropout(0.2)))


def normed() -> nn.Module:
    norm = nn.BatchNorm1d(5, track_running_stats=False)
    return seeded(lambda: nn.Sequential(nn.Linear(4, 5), norm, nn.Tanh(), nn.Linear(5, 3)))


def convolved() -> nn.Module:
    layers = nn.Conv1d(1, 2, 3, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(8, 3)
    return seeded(lambda: nn.Sequential(nn.Unflatten(1, (1, 4)), *layers))


def shaken(x: Inputs, generator: torch.Generator) -> Inputs:
    return each(x, lambda part: part + 0.3 * torch.randn(part.shape, generator=generator, dtype=part.dtype))


def ridge(parameters: Mapping[str, Tensor]) -> Tensor:
    return 0.1 * sum((p**2).sum() for p in parameters.values())  # type: ignore[return-value]


def convolved2d() -> nn.Module:
    layers = nn.Conv2d(2, 3, 2, padding=1), nn.Tanh(), nn.Conv2d(3, 2, 1), nn.Flatten(), nn.Linear(12, 3)
    return seeded(lambda: nn.Sequential(nn.Unflatten(1, (2, 1, 2)), *layers))


CE = nn.CrossEntropyLoss()
WEIGHTED = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64), label_smoothing=0.1)
SVM = Task(linear(), hinge, penalty=ridge)
CHAINS = {
    "adamw": Ditto(lam=0.5, lr=0.05, steps=3, through=(Adam(), Decay(rate=0.1))),
    "clipped": Ditto(lam=0.5, lr=Cosine(lr=0.3, rounds=4), steps=2, through=(ClipNorm(norm=0.2), Momentum(beta=0.5))),
    "proximal": Ditto(lam=9.0, lr=0.3, steps=2, through=(Momentum(nesterov=True),), proximal=True),
}
EPOCHS = {
    "two": Ditto(lam=0.5, lr=0.1, steps=Epochs(count=2)),
    "three": Local(lr=0.1, steps=3, through=(Adam(),)),
    "one": Local(lr=0.1, steps=Epochs(), through=(Momentum(),)),
}


class Case(NamedTuple):
    task: Task
    data: Federation
    how: Method
    options: Mapping[str, Any] = {}


CASES = {
    "plain": Case(TASK, federation(), method()),
    "A1": Case(TASK, federation(), method(), {"attack": A1(ratio=0.4)}),
    "A2": Case(TASK, federation(), method(), {"attack": A2(ratio=0.4), "cohort": 3}),
    "A2 std": Case(TASK, federation(), method(), {"attack": A2(count=2, std=0.1, poisoned=False)}),
    "A3": Case(TASK, federation(), method(), {"attack": A3(ratio=0.4), "cohort": 3}),
    "A3 factor": Case(TASK, federation(), method(), {"attack": A3(count=5, factor=0.5)}),
    "cohort": Case(TASK, federation(), method(), {"cohort": 2, "sampling": BySize()}),
    "full batch": Case(TASK, federation(), method(batch=None)),
    "chains": Case(TASK, federation(), method(local=Prox(mu=0.3, lr=0.1, steps=2), personal=CHAINS)),
    "epochs": Case(TASK, federation(), method(local=SGD(lr=0.1, steps=Epochs()), personal=EPOCHS, batch=3)),
    "epochs beside steps": Case(TASK, federation(), method(personal=EPOCHS, batch=3), {"cohort": 3}),
    "dropout": Case(Task(dropped(), CE), federation(), method()),
    "dropout, epochs": Case(Task(dropped(), CE), federation(), method(personal=EPOCHS, batch=3)),
    "tied, functional dropout": Case(Task(seeded(Tied), CE), federation(), method()),
    "batch norm": Case(Task(normed(), CE), federation(sizes=PAIRS), method()),
    "mixing": Case(Task(seeded(lambda: Centred(1.0)), CE), federation(sizes=PAIRS), method()),
    "mixing, from zero": Case(Task(seeded(lambda: Centred(0.0)), CE), federation(sizes=PAIRS), method()),
    "mixing, small devices": Case(
        Task(seeded(lambda: Centred(1.0)), CE), federation(sizes={"a": (1, 0, 0), "b": (3, 0, 0)}), method()
    ),
    "transform": Case(Task(mlp(), CE, transform=shaken), federation(), method()),
    "transform of a tuple": Case(Task(seeded(Two), CE, transform=shaken), federation(pairs), method()),
    "transform, dropout": Case(Task(dropped(), CE, transform=shaken), federation(), method()),
    "tuple": Case(Task(seeded(Two), CE), federation(pairs), method()),
    "dict": Case(Task(seeded(Tokens), CE), federation(named), method()),
    "penalty": Case(Task(mlp(), CE, penalty=ridge), federation(), method()),
    "weights": Case(Task(mlp(), WEIGHTED), federation(), method()),
    "svm": Case(SVM, federation(signs), method(), {"attack": A1(count=2)}),
    "binary": Case(Task(linear(), nn.BCEWithLogitsLoss()), federation(binary), method(), {"attack": A1(count=2)}),
    "multi-label": Case(Task(mlp(), nn.BCEWithLogitsLoss()), federation(several), method(), {"attack": A1(count=2)}),
    "regression": Case(Task(mlp(1), nn.MSELoss()), federation(reals), method()),
    "regression, own loss": Case(
        Task(mlp(1), lambda out, y: (out - y).abs() ** 1.5, target=Real()), federation(reals), method()
    ),
    "huber": Case(Task(mlp(1), nn.HuberLoss()), federation(reals), method()),
    "convolution": Case(Task(convolved(), CE), federation(), method()),
    "convolution in two dimensions": Case(Task(convolved2d(), CE), federation(), method()),
}
VARIANTS = {
    "fused": Vmap(),
    "unfused": Vmap(fuse=False),
    "chunks of 1": Vmap(chunk=1),
    "chunks of 2": Vmap(chunk=2),
    "unfused chunks of 2": Vmap(chunk=2, fuse=False),
}


@cache
def looped(name: str) -> Any:
    case = CASES[name]
    return run(case.task, case.data, case.how, engine=Loop(), **case.options)


# For the time it takes: all variants of some, two of what is mapped with care, the fused engine for the rest.
EVERY = ("epochs", "dropout")
CAREFUL = ("plain", "A2", "A3", "cohort", "batch norm", "transform, dropout", "penalty", "regression", "dict")
COMPARED = [
    *[(name, variant) for name in EVERY for variant in VARIANTS],
    *[(name, "unfused chunks of 2") for name in CAREFUL],
    *[(name, "fused") for name in CASES if name not in EVERY],
]


@pytest.mark.parametrize(("name", "variant"), COMPARED)
def test_vmap_is_loop(name: str, variant: str) -> None:
    case = CASES[name]
    mapped = run(case.task, case.data, case.how, engine=VARIANTS[variant], **case.options)
    assert gap(looped(name), mapped) <= 1e-10
    ours, theirs = looped(name).evaluate("train", "test"), mapped.evaluate("train", "test")
    for key, scores in ours.values.items():
        for metric, numbers in scores.items():
            np.testing.assert_allclose(numbers, theirs.values[key][metric], rtol=0, atol=1e-9)


def undropped() -> nn.Module:
    module = dropped()
    for layer in module.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    return module


WITHOUT = dict.fromkeys(("A1", "A2 std", "A3 factor", "epochs", "transform", "penalty", "weights"), CASES["plain"])
WITHOUT |= {
    "dropout": CASES["plain"]._replace(task=Task(undropped(), CE)),
    "mixing": CASES["mixing"]._replace(task=Task(linear(3), CE)),
    "chains": CASES["chains"]._replace(how=method(local=CASES["chains"].how.local)),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_what_is_compared_takes_part(name: str) -> None:
    """Without it the result is another; else the equality of engines would say nothing."""
    plain = WITHOUT[name]
    result = run(plain.task, plain.data, plain.how, engine=Loop(), **plain.options)
    key = "clipped" if name == "chains" else "w"
    other = rows(result, "ditto") if name == "chains" else result.w
    assert not torch.allclose(everything(looped(name))[key], other, atol=1e-3)


def seen(engine: Any, *layers: nn.Module, **options: Any) -> list[Tensor]:
    """What the last layers of two devices see of one sample of ones in two rounds: ∇F_k, as the loss is the output."""
    module = seeded(lambda: nn.Sequential(*layers, nn.Linear(200, 1, bias=False)))
    task = Task(module, lambda out, y: out + 0 * y, target=Real(), **options)
    ones = torch.ones(1, 200, dtype=torch.float64)
    data = Federation.from_parts(train={k: (ones, torch.zeros(1)) for k in range(2)}, test={})
    how = Method(local=Gradient(), personal={"first": Local(lr=1.0)}, aggregate=lambda report: report.delta[0])
    found = []
    for result in federate(task, data, how, rounds=2, engine=engine):
        found += [*rows(result, "global")]
        if result.t == 1:
            assert torch.allclose(result.w0 - rows(result, "first"), rows(result, "global"))  # w and v see the same
    assert len(found) == 4
    assert not any(torch.equal(one, other) for a, one in enumerate(found) for other in found[:a])
    return found


@dataclass(frozen=True, kw_only=True)
class Gradient:
    """v = ∇F_k(w^t) of one minibatch, kept."""

    steps: int = 1

    init, asks, model = path.keep_a_model, path.one_gradient_a_step, path.serve_w
    start = path.begin_at_w
    through = ()

    def points(self, s: Walk, down: Down, i: int) -> tuple[Tensor, ...]:
        return (down.w,)

    def step(self, s: Walk, down: Down, i: int, f: Tensor, g: Tensor) -> Walk:
        return Walk(g[0], ())

    def keep(self, s: Walk, row: Tensor, down: Down) -> Tensor:
        return s.at

    def send(self, s: Walk, row: Tensor, down: Down) -> Sent:
        return Sent(s.at)


@engines
@pytest.mark.parametrize(("p", "layers", "kept"), [(0.25, 1, 0.75), (0.5, 2, 0.25)])
def test_dropout_masks(engine: Any, p: float, layers: int, kept: float) -> None:
    """A mask of its own for each device, minibatch and layer; their mean is no dropout."""
    for mask in seen(engine, *[nn.Dropout(p) for _ in range(layers)]):
        ones = mask.abs() > 1e-12
        assert abs(float(ones.double().mean()) - kept) < 0.1
        assert torch.allclose(mask[ones], torch.full((), 1 / kept, dtype=torch.float64))


@engines
def test_a_transform_draws_anew_for_each_device_and_minibatch(engine: Any) -> None:
    for x in seen(engine, transform=shaken):
        assert 0.2 < float(x.std()) < 0.4
        assert abs(float(x.mean()) - 1) < 0.1


# What no number depends on


FIVE = {**PERSONAL, "further": Ditto(lam=0.2, lr=0.1, steps=7), "adam": Local(lr=0.01, through=(Adam(),))}
SMOOTH = {"plain": TASK, "dropout": Task(dropped(), CE), "transform": Task(mlp(), CE, transform=shaken)}


def waves(n: int, seed: int) -> tuple[Tensor, Tensor]:
    return normal(n, 1, 16, seed=seed), integers(3, n, seed=seed + 1)


def convolved_waves() -> nn.Module:
    """The convolutions of all models become one with groups, which rounds by their number in a fused call."""
    layers = nn.Conv1d(1, 6, 3, padding=1), nn.Tanh(), nn.Conv1d(6, 4, 3), nn.Flatten(), nn.Linear(56, 3)
    return seeded(lambda: nn.Sequential(*layers))


ALONE = {name: (task, federation()) for name, task in SMOOTH.items()}
ALONE["rounding"] = Task(convolved_waves(), CE), federation(waves, {"a": (20, 0, 0), "b": (7, 0, 0), "c": (33, 0, 0)})


@unfused
@pytest.mark.parametrize("name", ALONE)
def test_w_does_not_know_the_personal_solvers(engine: Any, name: str) -> None:
    options = {"engine": engine, "cohort": 3, "attack": A2(count=2)}
    alone, beside = (
        [r.w for r in federate(*ALONE[name], method(personal=its), rounds=3, **options)] for its in ({}, FIVE)
    )
    assert all(torch.equal(a, b) for a, b in zip(alone, beside, strict=True))
    assert len({tuple(w.tolist()) for w in alone}) == 3


@pytest.mark.parametrize("features", [5, 37, 101])
def test_where_rows_and_samples_lie_in_memory_does_not_matter(features: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Personal solvers change how many devices' samples are gathered side by side; products round by alignment."""
    monkeypatch.setattr("dittofl.engine.samples.GATHERED", 10_000)
    sizes = {str(k): (5 + 3 * k, 0, 0) for k in range(12)}
    data = federation(lambda n, seed: (normal(n, features, seed=seed).float(), integers(3, n, seed=seed + 1)), sizes)
    task = Task(seeded(lambda: nn.Sequential(nn.Linear(features, 33), nn.Tanh(), nn.Linear(33, 3))).float(), CE)
    alone, beside = (
        run(task, data, Method(local=SGD(lr=0.1, steps=2), personal=its, batch=3), rounds=3, engine=Loop())
        for its in ({"adam": FIVE["adam"]}, FIVE)
    )
    assert torch.equal(alone.w, beside.w)
    assert torch.equal(rows(alone, "adam"), rows(beside, "adam"))


@unfused
def test_a_personal_model_does_not_know_the_others(engine: Any) -> None:
    """Bitwise on the loop; a fused call rounds by the number of its models."""
    options = {"rounds": 3, "cohort": 3, "engine": engine}
    beside = run(TASK, federation(), method(personal=FIVE), **options)
    for name, solver in FIVE.items():
        alone = run(TASK, federation(), method(personal={name: solver}), **options)
        assert float((rows(alone, name) - rows(beside, name)).abs().max()) <= (0 if engine == Loop() else 1e-14)


@engines
def test_a_personal_row_moves_only_when_its_device_is_drawn(engine: Any) -> None:
    data, seen = federation(), []
    before = None
    for result in federate(TASK, data, method(), rounds=6, cohort=2, engine=engine):
        now = {name: rows(result, name) for name in PERSONAL}
        before = before or {name: result.w0.expand(data.K, -1) for name in PERSONAL}
        drawn = np.isin(np.arange(data.K), result.history[-1].cohort)
        for name in PERSONAL:
            assert ((now[name] != before[name]).any(1).numpy() == drawn).all()
        before, seen = now, [*seen, *result.history[-1].cohort]
    assert result.visits.tolist() == np.bincount(seen, minlength=data.K).tolist()


@engines
@pytest.mark.parametrize("name", SMOOTH)
def test_evaluation_changes_nothing(engine: Any, name: str) -> None:
    options = {"rounds": 3, "cohort": 3, "attack": A1(count=2), "engine": engine}
    never = run(SMOOTH[name], federation(), method(), **options)
    for always in federate(SMOOTH[name], federation(), method(), **options):
        always.evaluate("train", "validation", "test")
        always.row("ditto", "a"), always.model("local", "b"), always.model()
    assert same(everything(never), everything(always))


@engines
def test_a_seed_is_a_seed(engine: Any) -> None:
    data = federation()
    options = {"rounds": 2, "cohort": 3, "attack": A2(count=2), "engine": engine}
    for task in SMOOTH.values():
        one, again, other = (run(task, data, method(), seed=seed, **options) for seed in (1, 1, 2))
        assert same(everything(one), everything(again))
        assert float((one.w - other.w).abs().max()) > 1e-3


@engines
def test_a_longer_run_passes_through_a_shorter_one(engine: Any) -> None:
    options = {"cohort": 3, "attack": A2(count=2), "engine": engine}
    short = run(TASK, federation(), method(personal=CHAINS), rounds=3, **options)
    for long in federate(TASK, federation(), method(personal=CHAINS), rounds=6, **options):
        if long.t == 3:
            assert same(everything(short), everything(long))
    assert not same(everything(short), everything(long))
    assert [d.cohort.tolist() for d in long.history[:3]] == [d.cohort.tolist() for d in short.history]


@engines
def test_a_run_goes_on_where_an_equal_one_was_saved(engine: Any) -> None:
    """From the saved w⁰ too, which devices serve that were never visited: the module may by now begin elsewhere."""
    options = {"cohort": 1, "attack": A2(count=2), "engine": engine}
    whole, half = (run(TASK, federation(), method(), rounds=rounds, **options) for rounds in (4, 2))
    elsewhere = Task(mlp(), CE)
    nn.init.ones_(elsewhere.module[0].bias)  # type: ignore[index]
    *_, resumed = federate(elsewhere, federation(), method(), rounds=4, resume=saved(half), **options)
    assert same(everything(whole), everything(resumed))
    assert whole.visits.tolist() == resumed.visits.tolist()
    assert 0 in whole.visits
    other = federate(Task(mlp(3), CE), federation(), method(server=Held()), rounds=4, **options)
    with pytest.raises(InputError, match="the saved state has other parts than this run's"):
        other.run.restore(saved(half))


class Held:
    """A server with a state, which the others lack."""

    def init(self, w0: Tensor, K: int) -> Tensor:
        return torch.zeros(K)

    def down(self, state: Tensor) -> None:
        return None

    def step(self, w: Tensor, delta: Tensor, report: Any, state: Tensor) -> tuple[Tensor, Tensor]:
        return w + delta, state


@pytest.mark.parametrize("engine", [Vmap(chunk=1), Vmap(chunk=2), Vmap(fuse=False)], ids=str)
def test_draws_do_not_depend_on_the_engine(engine: Vmap) -> None:
    """Cohorts, malicious devices and poisoned labels are equal; equal minibatches follow from equal results above."""
    options = {"cohort": 3, "attack": A1(count=2)}
    one, other = (run(TASK, federation(), method(), engine=its, **options) for its in (Loop(), engine))
    assert [d.cohort.tolist() for d in one.history] == [d.cohort.tolist() for d in other.history]
    assert one.malicious.tolist() == other.malicious.tolist()
    assert torch.equal(one.setting.y, other.setting.y)


@engines
def test_a_device_does_not_know_its_cohort(engine: Any) -> None:
    """What others hold, and how long they work, has no say in a device's minibatches and dropout masks."""
    task, data = Task(dropped(), CE), {id: federation().part(id, "train") for id in "abcde"}
    how = method(local=SGD(lr=0.1, steps=Epochs()), personal={"v": Local(lr=0.1, steps=Epochs(count=2))}, batch=3)
    together = run(task, Federation.from_parts(train=data, test={}), how, engine=engine)
    for id, its in data.items():
        alone = run(task, Federation.from_parts(train={id: its}, test={}), how, engine=engine)
        assert float((alone.row("v", id) - together.row("v", id)).abs().max()) <= 1e-14


@engines
def test_the_order_of_devices_does_not_matter(engine: Any) -> None:
    """With all devices in each round: minibatches, dropout masks and transforms depend on ids. The mean may round."""
    task = Task(dropped(), CE, transform=shaken)
    data = {id: federation().part(id, "train") for id in "abcde"}
    one, other = (
        run(task, Federation.from_parts(train={id: data[id] for id in order}, test={}), method(), engine=engine)
        for order in ("abcde", "debac")
    )
    assert float((one.w - other.w).abs().max()) <= 1e-14
    for name in PERSONAL:
        for id in data:
            assert float((one.row(name, id) - other.row(name, id)).abs().max()) <= 1e-13


@engines
def test_rows_in_many_small_blocks(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store of rows grows block by block; bitwise the same as one block."""
    options = {"rounds": 4, "cohort": 2, "engine": engine}
    one = everything(run(TASK, federation(), method(), **options))
    for rows_a_block in (1, 2):
        monkeypatch.setattr("dittofl.engine.rows.BLOCK", rows_a_block * 43 * 8)
        monkeypatch.setattr("dittofl.engine.loop.GROUP", 1, raising=False)
        many = run(TASK, federation(), method(), **options)
        assert len(many.rows["ditto"].blocks) > 1
        assert same(one, everything(many))


@engines
def test_the_module_of_the_user_is_never_changed(engine: Any) -> None:
    module = dropped().eval()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    run(Task(module, CE), federation(), method(), engine=engine).evaluate()
    assert not any(layer.training for layer in module.modules())
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    assert all(parameter.grad is None for parameter in module.parameters())


@engines
def test_the_model_of_a_run_is_a_copy(engine: Any) -> None:
    """Writing into what a run hands out does not write into the run."""
    result = run(TASK, federation(), method(), engine=engine)
    before = everything(result)
    for model in (result.model(), result.model("ditto", "a"), result.model("global", "a")):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(1)
    result.row("ditto", "a").add_(1)
    assert same(before, everything(result))


# Float32, the dtype of practice


@engines
def test_single_precision_stays_single_and_near(engine: Any) -> None:
    single = run(Task(mlp().float(), CE), federation(), method(), engine=engine)
    assert {tensor.dtype for tensor in everything(single).values()} == {torch.float32}
    double = everything(run(TASK, federation(), method()))
    for name, tensor in everything(single).items():
        assert torch.allclose(tensor.double(), double[name], atol=1e-5)


@engines
def test_adam_in_single_precision_is_torchs(engine: Any) -> None:
    """The bias corrections 1 − βᵗ lose four digits where they are taken in float32."""
    x, y = classes(6, 0)
    data = Federation.from_parts(train={"a": (x.float(), y)}, test={})
    how = method(personal={"v": Local(lr=0.05, steps=3, through=(Adam(),))}, batch=None)
    result = run(Task(mlp().float(), CE), data, how, rounds=1, engine=engine)
    module = mlp().float()
    adam = torch.optim.Adam(module.parameters(), lr=0.05)
    for _ in range(3):
        adam.zero_grad()
        CE(module(x.float()), y).backward()
        adam.step()
    expected = nn.utils.parameters_to_vector(module.parameters()).detach()
    assert float((result.row("v", "a") - expected).abs().max()) <= 3e-7


# Modules that no engine can train are refused in a sentence, not by a traceback in some round


@engines
def test_unseeded_randomness_is_refused(engine: Any) -> None:
    class Shaky(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.noise = nn.Linear(4, 3), nn.RReLU()

        def forward(self, x: Tensor) -> Tensor:
            return self.noise(self.inner(x))

    with pytest.raises(InputError):
        run(Task(seeded(Shaky), CE), federation(), method(), engine=engine)


@engines
def test_a_mixing_module_evaluates_devices_with_one_sample_or_refuses_them(engine: Any) -> None:
    """Batch norm with batch statistics fails on a batch of one, which splits of small devices give."""
    sizes = {**PAIRS, "c": (11, 2, 1)}
    try:
        result = run(Task(normed(), CE), federation(sizes=sizes), method(), engine=engine).evaluate()
    except InputError:
        return
    assert np.isfinite(result.values["global", "test"]["loss"]).all()


def test_auto_falls_back_to_the_loop_where_a_loss_cannot_be_mapped() -> None:
    def loss(out: Tensor, y: Tensor) -> Tensor:
        if float(out.detach().sum()) > 1e9:
            raise OverflowError
        return F.cross_entropy(out, y, reduction="none")

    automatic = run(Task(mlp(), loss), federation(), method(), engine=None)
    assert gap(automatic, run(Task(mlp(), loss), federation(), method())) == 0
    with pytest.raises(InputError, match="mapped"):
        run(Task(mlp(), loss), federation(), method(), engine=Vmap())


@pytest.mark.parametrize("seed", [np.int64(3), -1, 2**64 - 1])
def test_any_whole_number_is_a_seed(seed: Any) -> None:
    assert gap(*(run(TASK, federation(), method(), seed=its) for its in (seed, int(seed)))) == 0
