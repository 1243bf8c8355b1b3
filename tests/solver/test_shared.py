"""Methods with a server of their own, or a part of the model that is not shared: L2SGD, IFCA, partial models."""

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn

from dittofl import (
    IFCA,
    L2SGD,
    SGD,
    Adam,
    Clusters,
    Decay,
    Federation,
    InputError,
    Local,
    Method,
    Momentum,
    Partial,
    Report,
    Share,
    Task,
)
from tests.problems import (
    ENGINES,
    POINT,
    TASK,
    Median,
    federation,
    method,
    normal,
    points,
    rows,
    run,
    seeded,
)
from tests.test_protocol import ByHand

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
NUMBERS = {"a": (1.0, 2.0, 6.0), "b": (-4.0,), "c": (0.5, 0.5), "d": (10.0, 20.0, 30.0, 40.0)}
MEANS = np.array([3.0, -4.0, 0.5, 25.0])


# L2SGD


@engines
@pytest.mark.parametrize(("lam", "cohort"), [(0.5, 4), (2.0, 2)])
def test_l2sgd_has_the_fixed_point_of_its_objective(engine: Any, lam: float, cohort: int) -> None:
    """Σ ½ (v_k − x̄_k)² + λ/2 (v_k − v̄)² is least at v_k = (x̄_k + λ x̄) / (1 + λ), with partial participation too."""
    how = Method(local=L2SGD(lam=lam, lr=0.8 / (1 + lam), steps=3), server=Share(), batch=None)
    result = run(POINT, points(NUMBERS), how, rounds=120, cohort=cohort, engine=engine)
    assert_allclose(rows(result, "global")[:, 0], (MEANS + lam * MEANS.mean()) / (1 + lam), rtol=0, atol=1e-7)
    assert_allclose(result.w.item(), MEANS.mean(), rtol=0, atol=1e-7)


@engines
def test_w_is_the_mean_of_all_personal_models_at_every_round(engine: Any) -> None:
    how = method(local=L2SGD(lam=0.5, lr=0.2, steps=2), server=Share(), personal={})
    for rounds in (1, 2, 5):
        result = run(TASK, federation(), how, rounds=rounds, cohort=2, engine=engine)
        assert_allclose(result.w, rows(result, "global").mean(0), rtol=0, atol=1e-14)
        assert torch.equal(result.row("global", "c"), rows(result, "global")[2])


@engines
def test_the_moving_mean_of_the_authors_program(engine: Any) -> None:
    """w̄ ← w̄ + (1/K) Σ_{k∈S} (v_k − w̄)."""
    lam, eta = 1.0, 0.3
    how = Method(local=L2SGD(lam=lam, lr=eta, moving=True), server=Share(), batch=None)
    result = run(POINT, points(NUMBERS), how, rounds=4, cohort=2, engine=engine)
    V, w = np.zeros(4), 0.0
    for drawn in result.history:
        k = drawn.cohort
        V[k] -= eta * (V[k] - MEANS[k] + lam * (V[k] - w))
        w += (V[k] - w).sum() / 4
    assert_allclose(rows(result, "global")[:, 0], V, rtol=0, atol=1e-12)
    assert_allclose(result.w.item(), w, rtol=0, atol=1e-12)


@engines
def test_l2sgd_with_lambda_0_is_local(engine: Any) -> None:
    l2sgd = run(TASK, federation(), method(local=L2SGD(lam=0.0, lr=0.2, steps=2), server=Share()), engine=engine)
    local = run(TASK, federation(), method(personal={"v": Local(lr=0.2, steps=2)}), engine=engine)
    assert_allclose(rows(l2sgd, "global"), rows(local, "v"), rtol=0, atol=1e-15)


def test_l2sgd_warns_where_its_step_diverges() -> None:
    with pytest.warns(UserWarning, match="L2SGD's step diverges"):
        L2SGD(lam=20.0, lr=0.1)


# IFCA


@engines
def test_ifca_with_one_centre_is_fedavg(engine: Any) -> None:
    one = method(local=IFCA(lr=0.2, steps=2), server=Clusters(groups=1), aggregate=Median())
    ifca, fedavg = (run(TASK, federation(), how, cohort=3, engine=engine) for how in (one, method(aggregate=Median())))
    assert torch.equal(ifca.w, fedavg.w)
    for name in fedavg.method.personal:
        assert torch.equal(rows(ifca, name), rows(fedavg, name))
    assert torch.equal(ifca.row("global", "b"), fedavg.w)


def planted(K: int = 6) -> Federation:
    """Devices of two kinds: y = ±x."""

    def one(k: int, n: int) -> tuple[Tensor, Tensor]:
        x = normal(n, 4, seed=k)
        return x, x.sum(1, keepdim=True) * (1 if k % 2 else -1)

    return Federation.from_parts(
        train={k: one(k, 12 + k) for k in range(K)}, test={k: one(50 + k, 5) for k in range(K)}
    )


@engines
def test_ifca_finds_planted_clusters(engine: Any) -> None:
    task = Task(seeded(lambda: nn.Linear(4, 1)), nn.MSELoss())
    how = Method(local=IFCA(lr=0.1, steps=3), server=Clusters(groups=2, spread=0.3), batch=None)
    result = run(task, planted(), how, rounds=60, cohort=4, engine=engine)
    chosen = rows(result, "global")[:, 0]
    assert chosen.tolist() in ([0, 1] * 3, [1, 0] * 3)
    assert result.evaluate().summary("global", "loss").mean < 1e-4
    for k in range(6):
        assert_allclose(result.row("global", str(k))[:4], np.full(4, 1.0 if k % 2 else -1.0), atol=0.02)
    centres = result.server_state
    assert_allclose(result.w, centres.mean(0), rtol=0, atol=1e-15)


@engines
def test_a_round_of_ifca_by_hand(engine: Any) -> None:
    server = Clusters(groups=3, spread=0.5)
    result = run(TASK, federation(), method(local=IFCA(lr=0.2, steps=2), server=server), rounds=1, engine=engine)
    hand, centres = ByHand(result, drawn=2), server.init(result.w0, 5)
    picks, deltas = [], []
    for k in range(5):
        losses = [float(hand.f(c, hand.part(k, "train"))) for c in centres]
        picks.append(int(np.argmin(losses)))
        v = centres[picks[-1]]
        for q in range(2):
            v = v - 0.2 * hand.g(v, hand.minibatch(k, 0, q, 2))
        deltas.append(v - centres[picks[-1]])
    expected = centres.clone()
    for j in set(picks):
        expected[j] += torch.stack([d for d, pick in zip(deltas, picks, strict=True) if pick == j]).mean(0)
    assert len(set(picks)) > 1
    assert_allclose(result.server_state, expected, rtol=0, atol=1e-12)
    assert rows(result, "global")[:, 0].tolist() == picks


def test_centres_are_those_of_their_seed() -> None:
    w0 = normal(5, seed=0)
    one, again, other = (Clusters(groups=3, seed=seed).init(w0, 9) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert torch.equal(one[0], w0)
    assert not torch.equal(one[1], other[1])
    assert not torch.equal(one[1], one[2])


# Partial


def bodied() -> Task:
    build = lambda: nn.Sequential(OrderedDict(body=nn.Linear(4, 5), act=nn.Tanh(), head=nn.Linear(5, 3)))  # noqa: E731
    return Task(seeded(build), nn.CrossEntropyLoss())


CHAINS: dict[str, Any] = {"plain": (), "momentum": (Decay(rate=0.1), Momentum(beta=0.9)), "adam": (Adam(),)}


@engines
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize(
    ("own", "first"), [("head.*", 0), ("head.*", 2), ("body.*", 0)], ids=["FedPer", "FedRep", "LG"]
)
def test_what_is_a_devices_own_never_leaves_it(engine: Any, own: str, first: int, chain: str) -> None:
    reports: list[Report] = []

    def watched(report: Report) -> Tensor:
        reports.append(report)
        return report.delta.mean(0)

    local = Partial(own=(own,), lr=0.2, steps=2, first=first, through=CHAINS[chain])
    result = run(bodied(), federation(), method(local=local, personal={}, aggregate=watched), cohort=3, engine=engine)
    mask = result.objective.layout.mask(own)
    sent = torch.cat([report.delta for report in reports])
    assert not sent[:, mask].any()
    assert sent[:, ~mask].any(0).all()
    assert torch.equal(result.w[mask], result.w0[mask])
    kept, visited = rows(result, "global"), torch.from_numpy(result.visits > 0)
    assert (kept[:, mask] != result.w0[mask]).any(1).equal(visited)
    for k, id in enumerate(result.federation.ids):
        assert torch.equal(result.row("global", id), torch.where(mask, kept[k], result.w))


@engines
def test_fedrep_by_hand(engine: Any) -> None:
    """Two steps of the head alone, then one of the body."""
    how = method(local=Partial(own=("head.*",), lr=0.3, steps=1, first=2), personal={})
    result = run(bodied(), federation(), how, rounds=2, engine=engine)
    mask = result.objective.layout.mask("head.*")
    hand, w, V = ByHand(result, drawn=3), result.w0, result.w0.repeat(5, 1)
    for visit in range(2):
        deltas = []
        for k in range(5):
            v = torch.where(mask, V[k], w)
            for q in range(3):
                v = v - 0.3 * hand.g(v, hand.minibatch(k, visit, q, 3)) * (mask if q < 2 else ~mask)
            V[k] = torch.where(mask, v, V[k])
            deltas.append(torch.where(mask, 0.0, v - w))
        w = w + torch.stack(deltas).mean(0)
    assert_allclose(result.w, w, rtol=0, atol=1e-12)
    assert_allclose(rows(result, "global"), V, rtol=0, atol=1e-12)


@engines
def test_a_model_that_is_all_a_devices_own_is_local(engine: Any) -> None:
    how = method(local=Partial(own=("*",), lr=0.1), personal={})
    alone = run(TASK, federation(), how, engine=engine)
    local = run(TASK, federation(), method(local=SGD(lr=0.1), personal={"v": Local(lr=0.1)}), engine=engine)
    assert torch.equal(alone.w, alone.w0)
    assert torch.equal(rows(alone, "global"), rows(local, "v"))


@engines
def test_batch_norm_parameters_stay(engine: Any) -> None:
    norm = lambda: nn.BatchNorm1d(5, track_running_stats=False)  # noqa: E731
    module = seeded(lambda: nn.Sequential(OrderedDict(a=nn.Linear(4, 5), norm=norm(), b=nn.Linear(5, 3))))
    data = federation(sizes={"a": (7, 3, 2), "b": (9, 2, 3), "c": (5, 2, 2)})
    how = method(local=Partial(own=("norm.*",), lr=0.2), personal={})
    result = run(Task(module, nn.CrossEntropyLoss()), data, how, engine=engine)
    mask = result.objective.layout.mask("norm.*")
    assert torch.equal(result.w[mask], result.w0[mask])
    assert (rows(result, "global")[:, mask] != result.w0[mask]).any(1).all()


@engines
def test_a_pattern_without_a_parameter_is_refused_before_training(engine: Any) -> None:
    with pytest.raises(InputError, match=r"no parameter matches 'haed\.\*'"):
        run(bodied(), federation(), method(local=Partial(own=("haed.*",), lr=0.1)), rounds=0, engine=engine)


@pytest.mark.parametrize("mistake", [{"own": "head.*"}, {"own": ()}, {"own": (1,)}, {"first": -1}, {"steps": 0}])
def test_mistakes_in_partial_are_named(mistake: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"Partial needs .*{next(iter(mistake))}"):
        Partial(**{"own": ("head.*",), "lr": 0.1, **mistake})


# Solvers and servers that only work together


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        ({"local": L2SGD(lam=1.0, lr=0.1)}, r"L2SGD works with the server Share alone, got Add\(lr=1\.0\)"),
        ({"local": IFCA(lr=0.1)}, r"IFCA works with the server Clusters alone, got Add"),
        ({"local": IFCA(lr=0.1), "server": Share()}, "IFCA works with the server Clusters alone, got Share"),
        (
            {"local": SGD(lr=0.1), "server": Share()},
            r"Share reads what L2SGD sends: give .* local=L2SGD\(…\), got SGD",
        ),
        ({"local": SGD(lr=0.1), "server": Clusters(groups=2)}, "Clusters reads what IFCA sends"),
        ({"local": SGD(lr=0.1), "personal": {"v": IFCA(lr=0.1)}}, "IFCA works with the server Clusters alone"),
        ({"local": SGD(lr=0.1), "final": {"v": IFCA(lr=0.1)}}, "IFCA works with the server Clusters alone"),
    ],
)
def test_a_wrong_pair_is_refused_at_once(pair: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Method(**pair)
