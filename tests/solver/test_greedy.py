"""The greedy choice of λ, and choices among models that diverged."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from dittofl import IFCA, Clusters, Ditto, Greedy, InputError, Mapper
from tests.problems import ENGINES, TASK, federation, method, rows, run
from tests.test_protocol import ByHand

engines = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())


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


# Choices among several models


@pytest.mark.parametrize("solver", [Greedy(lr=0.1), Mapper(lr=0.1), IFCA(lr=0.1)])
def test_a_model_that_diverged_is_never_chosen(solver: Any) -> None:
    result = run(TASK, federation(), method(local=IFCA(lr=0.1), server=Clusters(groups=3)), rounds=1)
    down = result.down()._replace(n=5)
    i = next(i for i, ask in enumerate(solver.asks(1)) if not ask.grad)
    row = solver.init(result.w0 + 1)

    def kept(*f: float) -> Any:
        return solver.keep(solver.step(solver.start(row, down), down, i, torch.tensor(f), None), row, down)

    assert torch.equal(kept(math.nan, 2.0, 1.0), kept(3.0, 2.0, 1.0))
    assert not torch.equal(kept(math.nan, 2.0, 1.0), kept(0.0, 2.0, 1.0))
