"""Every personal method on one trajectory, and the greedy choice of λ."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from dittofl import (
    A3,
    APFL,
    EWC,
    SKL,
    Ditto,
    Epochs,
    Greedy,
    InputError,
    Local,
    Loop,
    Mapper,
    PerFedAvg,
    PFedMe,
    Vmap,
    finetune,
)
from tests.problems import ENGINES, TASK, Median, everything, federation, gap, method, rows, run
from tests.test_protocol import ByHand

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
JOINT: dict[str, Any] = {
    "ditto": Ditto(lam=1.0, lr=0.1, steps=2),
    "fisher": EWC(lam=10.0, lr=0.1, steps=2),
    "kl": SKL(lam=1.0, lr=0.1, steps=2),
    "apfl": APFL(lr=0.1, steps=2),
    "adaptive": APFL(lr=0.1, steps=2, adaptive=True),
    "mapper": Mapper(lr=0.1, steps=2),
    "pfedme": PFedMe(lam=5.0, lr=0.1, inner_lr=0.1, steps=2),
    "greedy": Greedy(lr=0.1, steps=2),
}
FINAL: dict[str, Any] = {
    **finetune(lr=0.1, stops=(2, Epochs(count=2)))[0],
    "ditto from w": Ditto(lam=1.0, lr=0.1, steps=4),
    "ewc": EWC(lam=10.0, lr=0.1, steps=4),
    "skl": SKL(lam=1.0, lr=0.1, steps=4),
}


def test_all_beside_ditto_in_one_run_under_replacement() -> None:
    """Loop and vmap agree on every row, and w is that of FedAvg alone."""
    ends = []
    for engine in ENGINES.values():
        how = method(personal=JOINT, final=FINAL, aggregate=Median())
        end = run(TASK, federation(), how, rounds=3, cohort=4, attack=A3(count=1), engine=engine)
        end.finish()
        ends.append(end)
    assert gap(*ends) <= 1e-10
    bare = run(TASK, federation(), method(personal={}, aggregate=Median()), rounds=3, cohort=4, attack=A3(count=1))
    assert torch.equal(ends[0].w, bare.w)
    evaluation = ends[0].evaluate("test", "train")
    assert {model for model, _ in evaluation.values} == {"global", *JOINT, *FINAL}
    served = torch.stack([ends[0].row(name, "c") for name in (*JOINT, *FINAL)])
    distances = torch.cdist(served, served) + torch.eye(len(served))
    assert float(distances.min()) > 1e-6


@pytest.mark.parametrize("local", [PerFedAvg(lr=0.1, inner=0.1), PFedMe(lam=5.0, lr=0.1, inner_lr=0.1), Mapper(lr=0.1)])
def test_other_global_solvers_beside_ditto(local: Any) -> None:
    ends = []
    for engine in ENGINES.values():
        how = method(
            local=local, personal={"ditto": JOINT["ditto"]}, final={"tuned": Local(lr=0.1)}, aggregate=Median()
        )
        end = run(TASK, federation(), how, rounds=3, cohort=4, attack=A3(count=1), engine=engine)
        end.finish()
        ends.append(end)
    assert gap(*ends) <= 1e-10


@pytest.mark.parametrize("engine", [Loop(), Vmap(fuse=False)], ids=["loop", "vmap"])
def test_w_without_fusing_is_bitwise_that_without_them(engine: Any) -> None:
    from dittofl import Vmap

    engine = Vmap(fuse=False) if isinstance(engine, Vmap) else engine
    with_all, without = (
        run(TASK, federation(), method(personal=personal), rounds=3, cohort=3, engine=engine)
        for personal in (JOINT, {})
    )
    assert torch.equal(with_all.w, without.w)


# Greedy


@engines
def test_greedy_takes_the_step_with_the_lowest_validation_loss(engine: Any) -> None:
    """Device b has no validation samples: it takes λ = 2."""
    lams, lr = (0.0, 2.0, 9.0), 0.2
    how = method(personal={"v": Greedy(lr=lr, steps=3, lams=lams)})
    earlier = [run(TASK, federation(), how, rounds=t, engine=engine).w for t in (1, 2)]
    result = run(TASK, federation(), how, rounds=3, engine=engine)
    hand, chosen = ByHand(result, drawn=2), []
    for k, id in enumerate(result.federation.ids):
        v = result.w0
        for visit, w in enumerate((result.w0, *earlier)):
            for q in range(3):
                g = hand.g(v, hand.minibatch(k, visit, q, 3))
                tried = [v - lr * (g + lam * (v - w)) for lam in lams]
                best = 1 if id == "b" else int(np.argmin([float(hand.f(u, hand.part(k, "validation"))) for u in tried]))
                chosen += [best] if visit and id != "b" else []
                v = tried[best]
        assert_allclose(rows(result, "v")[k], v, rtol=0, atol=1e-12)
    assert len(set(chosen)) > 1


@engines
def test_greedy_among_one_is_ditto(engine: Any) -> None:
    personal = {"one": Greedy(lr=0.2, lams=(0.7,)), "ditto": Ditto(lam=0.7, lr=0.2)}
    result = run(TASK, federation(), method(personal=personal), engine=engine)
    assert_allclose(rows(result, "one"), rows(result, "ditto"), rtol=0, atol=1e-15)


@pytest.mark.parametrize("mistake", [{"lams": ()}, {"lams": (1, 1)}, {"lams": (-1.0,)}, {"few": 3.0}])
def test_mistakes_in_greedy_are_named(mistake: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"Greedy needs .*{next(iter(mistake))}"):
        Greedy(**{"lr": 0.1, **mistake})


@pytest.mark.parametrize(
    ("solver", "mistake"),
    [
        (EWC, {"lam": -1.0}),
        (EWC, {"fisher": 0}),
        (SKL, {"lam": float("inf")}),
        (SKL, {"summed": 1}),
    ],
)
def test_mistakes_are_named(solver: Any, mistake: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{solver.__name__} needs .*{next(iter(mistake))}"):
        solver(**{"lr": 0.1, "lam": 1.0, **mistake})


def test_rows_of_two_runs_are_equal() -> None:
    """The same run again is bitwise the same, final rows too."""
    one, other = (run(TASK, federation(), method(personal=JOINT, final=FINAL), rounds=2, cohort=3) for _ in range(2))
    one.finish()
    other.finish()
    a, b = everything(one), everything(other)
    assert all(torch.equal(a[name], b[name]) for name in a)
