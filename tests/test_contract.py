"""What every public piece of a kind must obey. Pieces are discovered: a new one needs one line in the tables below."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torch.func import vmap
from torch.utils import _pytree as pytree

import dittofl
import dittofl.aggregate
import dittofl.attack
import dittofl.optimiser
import dittofl.sampling
import dittofl.schedule
import dittofl.server
import dittofl.solver
from dittofl import SGD, Attack, Cosine, Ditto, InputError, Local, Mean, Method, Report, Task
from dittofl.attack.updates import Draw
from dittofl.seeds import Purpose, generator
from dittofl.types import (
    Aggregator,
    Ask,
    GlobalSolver,
    Grouping,
    NeedsServer,
    NeedsSolver,
    Server,
    Solver,
    State,
    Vector,
)
from tests.problems import (
    ENGINES,
    TASK,
    ByLoss,
    Median,
    everything,
    federation,
    gap,
    method,
    mlp,
    normal,
    rows,
    run,
    same,
)

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())

# The parameters that each public class cannot be built without, and those that make it do something.
SOLVERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.2, "steps": 2},
    "Prox": {"mu": 0.5, "lr": 0.2, "steps": 2},
    "Local": {"lr": 0.2, "steps": 3},
    "Ditto": {"lam": 0.5, "lr": 0.2, "steps": 3},
    "L2SGD": {"lam": 0.5, "lr": 0.2, "steps": 3},
    "EWC": {"lam": 5.0, "lr": 0.2, "steps": 3, "fisher": 2},
    "SKL": {"lam": 0.5, "lr": 0.2, "steps": 3},
    "APFL": {"lr": 0.2, "steps": 3, "adaptive": True},
    "Mapper": {"lr": 0.2, "steps": 3},
    "PerFedAvg": {"lr": 0.2, "inner": 0.1, "steps": 2},
    "PFedMe": {"lam": 2.0, "lr": 0.2, "inner_lr": 0.1, "inner": 3, "steps": 2},
    "IFCA": {"lr": 0.2, "steps": 2},
    "Partial": {"own": ("2.*",), "lr": 0.2, "steps": 2, "first": 1},
    "Greedy": {"lr": 0.2, "steps": 3},
    "Scaffold": {"lr": 0.2, "steps": 3},
    "RSA": {"lam": 0.3, "lr": 0.2, "steps": 2},
}
AGGREGATORS: dict[str, dict[str, Any]] = {
    "Mean": {},
    "Stateless": {"rule": Median()},
    "Tilt": {"t": 2.0},
    "QFFL": {"q": 1.0, "lr": 0.2},
    "AFL": {"lr": 0.5},
    "MGDA": {"eps": 0.2},
    "Krum": {"f": 1},
    "MultiKrum": {"f": 1},
    "KNorm": {"f": 1},
    "KLoss": {"f": 1},
    "Clip": {},
    "Median": {},
    "TrimmedMean": {"f": 1},
    "GeometricMedian": {},
    "CentredClip": {"steps": 2},
    "NearestNeighbourMixing": {"f": 1},
    "Bucketing": {"size": 2},
    "Bulyan": {"ratio": 0.2},
}
TIED = ("Bulyan",)  # its last choices are among few rows, whose scores are equal: the earliest is taken
RESCALING = ("QFFL", "MGDA")  # whose δ has a length of its own
SERVERS: dict[str, dict[str, Any]] = {
    "Add": {"lr": 0.7},
    "Clusters": {"groups": 2},
    "Share": {},
    "Control": {},
    "Votes": {"lam": 0.3, "lr": 0.2},
    "FedAvgM": {},
    "FedAdagrad": {"lr": 0.1},
    "FedAdam": {"lr": 0.1},
    "FedYogi": {"lr": 0.1},
}
UPDATES: dict[str, dict[str, Any]] = {
    "Gaussian": {},
    "Replace": {},
    "SignFlip": {},
    "ALIE": {},
    "IPM": {},
    "FangKrum": {},
    "FangTrimmedMean": {},
    "MinMax": {},
    "MinSum": {},
    "ModelReplacement": {},
    "Send": {"value": 3.0},
    "Forge": {"loss": 10.0, "size": 3, "extra": 2.0, "times": True},
}
RELABELS: dict[str, dict[str, Any]] = {"Mirror": {"C": 3}, "Relabel": {"source": 1, "target": 0}}
TRIGGERS: dict[str, dict[str, Any]] = {
    "Patch": {"value": 2.0, "size": 2},
    "Features": {"columns": (0, 2), "value": 2.0},
}
BACKDOORS: dict[str, dict[str, Any]] = {
    "Backdoor": {"trigger": dittofl.Features(columns=(0, 2), value=2.0), "target": 1, "share": 0.4},
}
SAMPLINGS: dict[str, dict[str, Any]] = {"Uniform": {}, "BySize": {}}
TRANSFORMS: dict[str, dict[str, Any]] = {
    "Momentum": {},
    "Adam": {},
    "Decay": {"rate": 0.1},
    "ClipNorm": {"norm": 0.2},
}
SCHEDULES: dict[str, dict[str, Any]] = {
    "Geometric": {"lr": 0.3, "factor": 0.5},
    "Inverse": {"lr": 0.3, "tau": 2},
    "Cosine": {"lr": 0.3, "rounds": 4},
}


def public(module: ModuleType, *methods: str) -> dict[str, type]:
    """The public final classes of a package's exports, or of a module, that have some methods of their own."""
    names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    found = {name: getattr(module, name) for name in names if inspect.isclass(getattr(module, name))}
    return {
        name: kind
        for name, kind in found.items()
        if kind.__module__.startswith(module.__name__)
        and not getattr(kind, "_is_protocol", False)
        and all(inspect.isfunction(inspect.getattr_static(kind, its, None)) for its in methods)
    }


def called_with(first: str) -> dict[str, type]:
    """The public attacks that are functions of a report, of labels, or of samples."""
    found = public(dittofl.attack, "__call__")
    return {
        name: kind for name, kind in found.items() if [*inspect.signature(kind.__call__).parameters][1:2] == [first]
    }


def hashed(found: dict[str, type]) -> dict[str, type]:
    """Those that hold no tensors."""
    return {name: kind for name, kind in found.items() if kind.__hash__ is not object.__hash__}


KINDS: dict[str, tuple[dict[str, type], dict[str, dict[str, Any]]]] = {
    "SOLVERS": (public(dittofl.solver, "asks", "start", "points", "step", "keep", "model"), SOLVERS),
    "AGGREGATORS": (public(dittofl.aggregate, "init", "__call__"), AGGREGATORS),
    "SERVERS": (public(dittofl.server, "init", "down", "step"), SERVERS),
    "UPDATES": (called_with("report"), UPDATES),
    "RELABELS": (called_with("y"), RELABELS),
    "TRIGGERS": (called_with("x"), TRIGGERS),
    "BACKDOORS": (hashed(public(dittofl.attack, "plant", "probes")), BACKDOORS),
    "SAMPLINGS": (public(dittofl.sampling, "__call__"), SAMPLINGS),
    "TRANSFORMS": (public(dittofl.optimiser, "init", "apply"), TRANSFORMS),
    "SCHEDULES": (public(dittofl.schedule, "__call__"), SCHEDULES),
}


def built(kind: str, name: str) -> Any:
    classes, table = KINDS[kind]
    if name not in table:
        pytest.fail(f"{name} is public but has no entry in {kind} of tests/test_contract.py: add what it is built with")
    return classes[name](**table[name])


def each(kind: str) -> Any:
    return pytest.mark.parametrize("name", KINDS[kind][0])


PIECES = pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in KINDS[kind][0]])


def tensors(state: State) -> bool:
    return all(isinstance(leaf, Tensor) for leaf in pytree.tree_leaves(state))


def beside(solver: Solver) -> dict[str, Any]:
    """The server, and the global solver, that a solver goes with."""
    if not isinstance(solver, NeedsServer):
        return {}
    return {"server": built("SERVERS", solver.server.__name__), "local": solver}


def sends_to(server: Server) -> dict[str, Any]:
    """The global solver that a server goes with."""
    return {"local": built("SOLVERS", server.solver)} if isinstance(server, NeedsSolver) else {}


def close(one: Method, **options: Any) -> None:
    """Three rounds with it are the same on both engines."""
    looped, mapped = (
        run(TASK, federation(), one, rounds=3, cohort=4, engine=engine, **options) for engine in ENGINES.values()
    )
    assert gap(looped, mapped) <= 1e-10


# Every piece


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_names_public_pieces_only(kind: str) -> None:
    classes, table = KINDS[kind]
    assert classes
    assert not set(table) - set(classes)


def test_a_new_piece_without_an_entry_fails_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(SERVERS, "Add")
    with pytest.raises(pytest.fail.Exception, match=r"Add is public but has no entry in SERVERS"):
        built("SERVERS", "Add")


@PIECES
def test_it_is_a_frozen_dataclass_that_prints_as_it_is_written(kind: str, name: str) -> None:
    piece = built(kind, name)
    assert dataclasses.is_dataclass(piece)
    for field in dataclasses.fields(piece):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(piece, field.name, None)
    assert hash(piece) == hash(built(kind, name))
    namespace = {its: getattr(dittofl, its) for its in dittofl.__all__}
    if name == "Stateless":
        namespace["Median"] = Median  # a function of a report, not the aggregator
    assert eval(repr(piece), namespace) == piece == built(kind, name)


@PIECES
def test_its_docstring_begins_with_an_equation(kind: str, name: str) -> None:
    """Whose sign may be =, ←, ↦, ∝ or ~."""
    first = (KINDS[kind][0][name].__doc__ or "").strip().partition("\n\n")[0]
    assert any(sign in first for sign in "=←↦∝~→"), f"{name} begins with {first!r}: state its rule as an equation"


# Solvers


@each("SOLVERS")
def test_a_solver_is_one_by_its_protocol(name: str) -> None:
    solver = built("SOLVERS", name)
    assert isinstance(solver, Solver)
    w0 = normal(7, seed=0)
    assert solver.init(w0).dim() == 1
    for steps in range(4):
        asks = solver.asks(steps)
        assert all(isinstance(ask, Ask) for ask in asks)
        assert solver.asks(steps + 1)[: len(asks)] == asks


@each("SOLVERS")
def test_a_solver_is_the_same_on_both_engines(name: str) -> None:
    solver = built("SOLVERS", name)
    close(method(personal={"it": solver}, **beside(solver)))
    if isinstance(solver, GlobalSolver):
        close(method(**{"local": solver, "personal": {}, **beside(solver)}))


@each("SOLVERS")
def test_the_state_of_a_solver_is_made_of_tensors(name: str) -> None:
    solver = built("SOLVERS", name)
    result = run(TASK, federation(), method(**beside(solver)), rounds=2)
    w = result.w
    down = result.down()._replace(n=5)
    row = solver.init(result.w0)
    state = solver.start(row, down)
    for i, ask in enumerate(solver.asks(2)):
        assert tensors(state)
        points = solver.points(state, down, i)
        assert all(point.shape == w.shape for point in points)
        g = normal(len(points), len(w), seed=i) if ask.grad else None
        state = solver.step(state, down, i, torch.arange(len(points)).to(w), g)
    assert tensors(state)
    assert solver.keep(state, row, down).shape == row.shape
    assert solver.model(row, down).shape == w.shape
    if isinstance(solver, GlobalSolver):
        sent = solver.send(state, row, down)
        assert sent.delta.shape == w.shape
        assert bool(sent.delta.isfinite().all())
        assert bool(sent.delta.any())
    else:
        assert not hasattr(solver, "send")


# Aggregators


def report(m: int = 6) -> Report:
    sizes = torch.arange(1, m + 1) ** 2
    return Report(normal(m, 11, seed=2), sizes, loss=normal(m, seed=3).exp(), place=torch.arange(m))


@each("AGGREGATORS")
def test_an_aggregator_is_one_by_its_protocol_and_changes_nothing(name: str) -> None:
    rule, given = built("AGGREGATORS", name), report()
    assert isinstance(rule, Aggregator)
    before = Report(*(None if field is None else field.clone() for field in given))
    state = rule.init(given.delta[0])
    assert tensors(state)
    delta, after = rule(given, state)
    assert (delta.shape, delta.dtype) == ((11,), torch.float64)
    assert bool(delta.isfinite().all())
    assert tensors(after)
    for field, copy in zip(given, before, strict=True):
        assert field is copy or torch.equal(field, copy)


@pytest.mark.parametrize("name", [name for name in KINDS["AGGREGATORS"][0] if name not in TIED])
def test_the_order_of_reports_does_not_matter(name: str) -> None:
    rule, given = built("AGGREGATORS", name), report()
    delta, _ = rule(given, rule.init(given.delta[0]))
    for seed in range(5):
        order = torch.randperm(6, generator=torch.Generator().manual_seed(seed))
        permuted, _ = rule(given.rows(order), rule.init(given.delta[0]))
        assert_allclose(permuted, delta, rtol=0, atol=1e-14)


@each("AGGREGATORS")
def test_an_aggregator_of_one_report_is_that_report(name: str) -> None:
    rule, given = built("AGGREGATORS", name), report(1)
    delta, _ = rule(given, rule.init(given.delta[0]))
    if name in RESCALING:
        delta = delta * given.delta[0].norm() / delta.norm()
    assert_allclose(delta, given.delta[0], atol=1e-14)


@each("AGGREGATORS")
def test_an_aggregator_is_the_same_on_both_engines(name: str) -> None:
    close(method(aggregate=built("AGGREGATORS", name)))


@dataclass(frozen=True)
class Send:
    """Malicious devices send a value in one entry of a field of the report."""

    value: float
    field: str = "delta"

    def __call__(self, report: Report, who: Tensor, draw: Draw) -> Report:
        values = getattr(report, self.field).clone()
        values[who] = (
            torch.where(torch.arange(values[0].numel()) == 0, self.value, values[who].flatten(1)).view_as(values[who])
            if values.dim() > 1
            else self.value
        )
        return report._replace(**{self.field: values})


class Recorder:
    """An aggregator that keeps what it got."""

    def __init__(self, inner: Aggregator) -> None:
        self.inner, self.losses, self.got = inner, inner.losses, list[Report]()

    def init(self, w0: Vector) -> State:
        return self.inner.init(w0)

    def __call__(self, report: Report, state: State) -> tuple[Vector, State]:
        self.got.append(report)
        return self.inner(report, state)


@engines
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@each("AGGREGATORS")
def test_bad_rows_are_dropped_and_counted(name: str, value: float, engine: Any) -> None:
    clean = Recorder(built("AGGREGATORS", name))
    run(TASK, federation(), method(aggregate=clean), rounds=1, engine=engine)
    attack = Attack(count=2, poisoned=False, update=Send(value))
    result = run(TASK, federation(), method(aggregate=clean.inner), rounds=1, attack=attack, engine=engine)
    drawn = result.history[0]
    assert (drawn.malicious, drawn.dropped) == (2, 2)
    benign = torch.from_numpy(~result.malicious[drawn.cohort])
    assert int(benign.sum()) == 3
    delta, _ = clean.inner(clean.got[0].rows(benign), clean.inner.init(result.w0))
    assert torch.equal(result.w, result.w0 + delta)


@engines
@pytest.mark.parametrize("field", ["delta", "loss"])
def test_if_all_rows_are_bad_w_stands_and_the_round_counts(engine: Any, field: str) -> None:
    attack = Attack(ratio=1.0, poisoned=False, update=Send(float("nan"), field))
    rule = Recorder(ByLoss())
    result = run(TASK, federation(), method(aggregate=rule), rounds=2, cohort=3, attack=attack, engine=engine)
    assert (result.t, len(result.history), result.visits.sum()) == (2, 2, 6)
    assert [drawn.dropped for drawn in result.history] == [3, 3]
    assert torch.equal(result.w, result.w0)
    assert not rule.got
    moved = (rows(result, "ditto") != result.w0).any(1).numpy()
    assert moved.tolist() == (result.visits > 0).tolist()


@engines
def test_a_plain_function_is_an_aggregator(engine: Any) -> None:
    one, other = (
        run(TASK, federation(), method(aggregate=rule), engine=engine)
        for rule in (lambda report: report.delta.median(0).values, dittofl.aggregate.Stateless(Median()))
    )
    assert same(everything(one), everything(other))
    assert one.aggregator_state == ()


@engines
@pytest.mark.parametrize("rule", [lambda report: report.delta.mean(), lambda report: report.delta[:1]])
def test_an_update_of_another_shape_is_refused_not_broadcast(engine: Any, rule: Callable[[Report], Tensor]) -> None:
    """A mean over all entries, forgotten dimension, would be added to every parameter."""
    with pytest.raises(InputError):
        run(TASK, federation(), method(aggregate=rule), rounds=1, engine=engine)


# Losses: F_k(w^t) on the whole train part, with the penalty and without dropout


def ridge(parameters: Mapping[str, Tensor]) -> Tensor:
    return 0.1 * sum((p**2).sum() for p in parameters.values())  # type: ignore[return-value]


def losses(engine: Any, attack: Attack | None = None) -> tuple[Any, list[Report]]:
    module = nn.Sequential(nn.Dropout(0.5), mlp())
    rule = Recorder(ByLoss())
    task = Task(module, nn.CrossEntropyLoss(), penalty=ridge)
    result = run(task, federation(), method(aggregate=rule), rounds=2, cohort=4, attack=attack, engine=engine)
    return result, rule.got


@engines
def test_an_aggregator_may_ask_for_losses(engine: Any) -> None:
    result, reports = losses(engine)
    ws = [result.w0, result.w0 + ByLoss()(reports[0], ())[0]]
    for w, drawn, got in zip(ws, result.history, reports, strict=True):
        module = result.objective.module_of(w)
        for k, loss in zip(drawn.cohort, got.loss, strict=True):  # type: ignore[arg-type]
            x, y = result.federation.part(result.federation.ids[k], "train")
            expected = nn.functional.cross_entropy(module(x), y) + ridge(dict(module.named_parameters()))
            assert_allclose(float(loss), float(expected.detach()), rtol=0, atol=1e-12)
    assert torch.equal(reports[0].size, torch.from_numpy(result.federation.sizes("train")[result.history[0].cohort]))


def test_losses_are_the_same_on_both_engines_and_on_poisoned_labels() -> None:
    clean = losses(ENGINES["loop"])[1]
    poisoned = [losses(engine, Attack(count=2))[1] for engine in ENGINES.values()]
    for ours, theirs in zip(*poisoned, strict=True):
        assert_allclose(ours.loss, theirs.loss, rtol=0, atol=1e-12)
    assert not torch.allclose(clean[0].loss, poisoned[0][0].loss)  # type: ignore[arg-type]


def test_no_losses_are_reported_unasked() -> None:
    rule = Recorder(Mean())
    run(TASK, federation(), method(aggregate=rule), rounds=1)
    assert rule.got[0].loss is None


# Servers


@each("SERVERS")
def test_a_server_is_the_same_on_both_engines(name: str) -> None:
    server = built("SERVERS", name)
    assert isinstance(server, Server)
    close(method(server=server, **sends_to(server)))
    given, w = report()._replace(extra=torch.arange(6.0)), normal(11, seed=9)
    state = server.init(w, 20)
    delta = given.delta[: server.groups] if isinstance(server, Grouping) else given.delta[0]
    assert tensors(state)
    assert server.down(state) is None or isinstance(server.down(state), Tensor)
    new, state = server.step(w, delta, given, state)
    assert (new.shape, new.dtype) == (w.shape, w.dtype)
    assert tensors(state)
    assert torch.equal(w, normal(11, seed=9))


# Attacks on updates


@each("UPDATES")
def test_an_attack_rewrites_malicious_rows_only(name: str) -> None:
    given, who = report(), torch.tensor([False, True, False, True, False, False])

    def draw(row: int) -> torch.Generator:
        return generator(0, Purpose.NOISE, row)

    one, again = (built("UPDATES", name)(given, who, draw) for _ in range(2))
    changed = torch.zeros(6, dtype=torch.bool)
    for ours, same_again, honest, before in zip(one, again, given, report(), strict=True):
        if honest is not None:
            assert torch.equal(ours, same_again)
            assert torch.equal(ours[~who], honest[~who])
            assert torch.equal(honest, before)
            assert ours.dtype == honest.dtype
            changed |= (ours != honest).reshape(6, -1).any(1)
    assert torch.equal(changed, who)


@each("UPDATES")
def test_an_attack_is_the_same_on_both_engines(name: str) -> None:
    close(method(aggregate=ByLoss()), attack=Attack(ratio=0.5, update=built("UPDATES", name)))


@each("RELABELS")
def test_a_relabelling_keeps_labels_legal_and_changes_some(name: str) -> None:
    y = torch.tensor([0, 1, 2, 1])
    new = built("RELABELS", name)(y, np.zeros(4, dtype=np.uint64))
    assert new.dtype == y.dtype
    assert bool(((new >= 0) & (new < 3)).all())
    assert not torch.equal(new, y)
    assert y.tolist() == [0, 1, 2, 1]
    close(method(), attack=Attack(count=2, relabel=built("RELABELS", name)))


@each("TRIGGERS")
def test_a_trigger_changes_a_copy_and_the_same_place_of_every_sample(name: str) -> None:
    for x in (normal(3, 4, 5, seed=1), torch.zeros(3, 4, 5, dtype=torch.uint8), normal(0, 4, 5, seed=1)):
        before = x.clone()
        new = built("TRIGGERS", name)(x)
        assert torch.equal(x, before)
        assert (new.shape, new.dtype) == (x.shape, x.dtype)
        assert bool((new[new != x] == 2).all())
        assert all(torch.equal(one == 2, new[0] == 2) and bool((one == 2).any()) for one in new)


@each("BACKDOORS")
def test_a_backdoor_is_the_same_on_both_engines(name: str) -> None:
    attack = Attack(ratio=0.5, backdoor=built("BACKDOORS", name))
    close(method(), attack=attack)
    clean, planted = (run(TASK, federation(), method(), attack=it, rounds=2) for it in (None, attack))
    assert not torch.equal(clean.w, planted.w)


# Samplings


@each("SAMPLINGS")
def test_a_sampling_draws_distinct_devices(name: str) -> None:
    sampling, sizes = built("SAMPLINGS", name), np.array([3, 1, 50, 7, 7])
    for m in range(1, 6):
        ids = sampling(4, m, sizes, 0)
        assert len(set(ids.tolist())) == m
        assert set(ids.tolist()) <= set(range(5))
        assert ids.tolist() == sampling(4, m, sizes, 0).tolist()
    assert len({tuple(sampling(t, 3, sizes, 0)) for t in range(20)}) > 1
    assert any(tuple(sampling(t, 3, sizes, 0)) != tuple(sampling(t, 3, sizes, 1)) for t in range(20))


@each("SAMPLINGS")
def test_a_sampling_is_the_same_on_both_engines(name: str) -> None:
    close(method(), sampling=built("SAMPLINGS", name))


# Transforms and schedules


@each("TRANSFORMS")
def test_a_transform_is_a_pure_function_that_can_be_mapped(name: str) -> None:
    link = built("TRANSFORMS", name)
    V, D = normal(3, 8, seed=1), normal(3, 8, seed=2)
    states = [link.init(v) for v in V]
    assert all(map(tensors, states))
    ones = [link.apply(d, state, v) for d, state, v in zip(D, states, V, strict=True)]
    together, state = vmap(lambda d, v: link.apply(d, link.init(v), v))(D, V)
    assert tensors(state)
    for one, row in zip(ones, together, strict=True):
        assert_allclose(one[0], row, rtol=1e-14)
    assert torch.equal(V, normal(3, 8, seed=1))
    assert torch.equal(D, normal(3, 8, seed=2))
    assert link.apply(D[0].float(), link.init(V[0].float()), V[0].float())[0].dtype == torch.float32


@each("TRANSFORMS")
def test_a_transform_is_the_same_on_both_engines(name: str) -> None:
    through = (built("TRANSFORMS", name),)
    personal = {
        "ditto": Ditto(lam=1.0, lr=0.1, steps=3, through=through),
        "proximal": Ditto(lam=1.0, lr=0.1, steps=3, through=through, proximal=True),
        "local": Local(lr=0.1, steps=3, through=through),
    }
    close(method(local=SGD(lr=0.1, steps=3, through=through), personal=personal))
    plain, changed = (
        run(TASK, federation(), method(local=SGD(lr=0.1, steps=3, through=its)), rounds=1) for its in ((), through)
    )
    assert not torch.equal(plain.w, changed.w)


@each("SCHEDULES")
def test_a_schedule_takes_numbers_and_tensors(name: str) -> None:
    schedule = built("SCHEDULES", name)
    numbers = [schedule(t) for t in range(8)]
    assert all(isinstance(eta, float) and eta >= 0 for eta in numbers)
    assert numbers[0] == 0.3
    for dtype in (torch.float64, torch.int64):
        etas = [float(schedule(torch.tensor(t, dtype=dtype))) for t in range(8)]
        assert_allclose(etas, numbers, rtol=1e-6 if dtype == torch.int64 else 1e-14, atol=1e-8)


@each("SCHEDULES")
def test_a_schedule_is_the_same_on_both_engines(name: str) -> None:
    lr = built("SCHEDULES", name)
    personal = {"ditto": Ditto(lam=1.0, lr=lr, steps=3), "proximal": Ditto(lam=1.0, lr=lr, proximal=True)}
    close(method(local=SGD(lr=lr, steps=2), personal=personal))


def test_a_cosine_that_has_ended_stands_still() -> None:
    """η = 0 is a step, not a division by nothing."""
    how = method(local=SGD(lr=Cosine(lr=0.3, rounds=2)), personal={"v": Ditto(lam=1.0, lr=Cosine(lr=0.3, rounds=2))})
    short, long = (everything(run(TASK, federation(), how, rounds=rounds)) for rounds in (2, 4))
    assert same(short, long)
