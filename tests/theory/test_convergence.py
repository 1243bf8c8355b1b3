"""‖v_k^t − v_k*‖² under the theorem's step sizes, with partial participation and minibatches."""

from functools import cache

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from dittofl import SGD, InputError, Inverse
from dittofl.bind import bind
from dittofl.theory import convergence
from dittofl.theory.convergence import FEDAVG, FEDPROX, Quadratics, Solved, Trace, run
from dittofl.theory.steps import Power, global_steps, local_steps

torch.set_num_threads(1)
QUADRATICS = Quadratics(K=6, cohort=2)


@cache
def trace(solved: Solved) -> Trace:
    return run(QUADRATICS, lams=(0.5, 3.0), rounds=400, seeds=(0, 1), solved=solved)


def bounded(ratio: np.ndarray) -> bool:
    """The later half of the marks, which are geometric in t, never exceeds the earlier one."""
    half = len(ratio) // 2
    return bool(ratio[half:].max() <= ratio[:half].max())


@pytest.mark.parametrize("lam", [0.5, 3.0])
def test_personal_models_converge_at_the_rate_of_fedavg(lam: float) -> None:
    """O(1/t): t times the distance is bounded, and the exponent is −1."""
    its = trace(FEDAVG)
    assert bounded(its.v[lam] * (its.t + its.shape.shift))
    assert its.slope(its.v[lam]) < -0.8
    assert its.v[lam][-1] < 0.02 * its.v[lam][0]


@pytest.mark.parametrize("lam", [0.5, 3.0])
def test_personal_models_inherit_the_rate_of_another_solver(lam: float) -> None:
    its = trace(FEDPROX)
    assert (its.w <= its.g * (1 + 1e-12)).all()
    assert bounded(its.ratio(lam))
    assert its.slope(its.v[lam]) < -0.3
    assert its.slope(its.w) > -0.9  # else this would be FedAvg's rate again


def test_constant_steps_have_no_such_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks above can fail: w then hovers about w*, v_k about v_k*."""
    decaying = convergence.local_steps
    monkeypatch.setattr(convergence, "local_steps", lambda *given: Power(lr=decaying(*given).lr, shift=1e12))
    hovering = Solved(local=lambda lr: SGD(lr=lr.lr, steps=2), q=1.0)
    its = run(QUADRATICS, lams=(3.0,), rounds=300, seeds=(0, 1), solved=hovering)
    for distance in (its.w, its.v[3.0]):
        assert its.slope(distance) > -0.3
        assert not bounded(distance * (its.t + its.shape.shift))


def test_without_noise_they_converge_to_their_own_optimum() -> None:
    """All devices and all samples in every step, w by one: what is measured then falls to 0, for no other v_k*."""
    exact = Quadratics(K=6, cohort=6, n=30, batch=30)
    its = run(exact, lams=(0.5, 3.0), rounds=150, seeds=(0,), solved=Solved(local=lambda lr: SGD(lr=lr), q=0.5))
    for distance in (its.w, *its.v.values()):
        assert distance[-1] < 1e-5 * distance[0]


def test_what_is_called_the_optimum_is_one() -> None:
    """∇F_k(v_k*) + λ (v_k* − w*) = 0 and Σ_k ∇F_k(w*) = 0, with gradients of the task that is trained."""
    drawn, lam = QUADRATICS.drawn(), 0.8
    objective = bind(drawn.task(), drawn.federation(), 0)
    c = drawn.problem.moments(drawn.y)
    w, v = drawn.problem.w_star(c), drawn.problem.estimate(c, lam)

    def gradient(k: int, row: np.ndarray) -> np.ndarray:
        at = torch.tensor(row, requires_grad=True)
        x, y = drawn.federation().part(str(k), "train")
        out = torch.func.functional_call(objective.module, {"weight": at[None]}, (x,))[:, 0]
        return torch.autograd.grad((0.5 * (out - y) ** 2).mean(), at)[0].numpy()

    assert_allclose([gradient(k, v[k]) for k in range(6)], -lam * (v - w), atol=1e-12)
    assert_allclose(sum(gradient(k, w) for k in range(6)), 0, atol=1e-12)
    assert torch.equal(objective.w0, torch.zeros(4, dtype=torch.float64))


def test_no_global_draw() -> None:
    before = torch.get_rng_state()
    run(QUADRATICS, rounds=2, seeds=(0,))
    assert torch.equal(torch.get_rng_state(), before)


# Step sizes


def test_each_v_takes_the_steps_of_its_lambda_and_its_chance_to_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(convergence, "local_steps", lambda *given: seen.append(given) or local_steps(*given))
    run(QUADRATICS, lams=(0.5, 3.0), rounds=2, seeds=(0,), solved=FEDPROX)
    assert seen == [(lam, *QUADRATICS.drawn().curvature, 2 / 6, 0.5) for lam in (0.5, 3.0)]


@pytest.mark.parametrize("q", [0.25, 0.5, 1.0])
def test_the_step_sizes_meet_the_theorem(q: float) -> None:
    """η = 2g/(A(μ+λ)p_k) with g(t+1)/g(t) ≥ 1 − g(t)/A, of which only g/A = shape/T₀ matters; η(0) = 1/(L+λ)."""
    mu, L, lam, p = 0.5, 4.0, 2.0, 0.3
    eta, t = local_steps(lam, mu, L, p, q), np.arange(5000.0)
    g_over_A = eta(t) * (mu + lam) * p / 2
    assert (g_over_A[1:] / g_over_A[:-1] >= 1 - g_over_A[:-1]).all()
    assert_allclose(eta(0), 1 / (L + lam), rtol=1e-12)


def test_a_geometric_rate_never_meets_it() -> None:
    for A in (1e-3, 1.0, 1e3):
        g = 0.9 ** np.arange(500.0)
        assert not (g[1:] / g[:-1] >= 1 - g[:-1] / A).all()


def test_at_q_1_they_are_those_of_the_lemma_shifted() -> None:
    mu, L, lam, p = 0.5, 4.0, 2.0, 0.3
    eta = local_steps(lam, mu, L, p)
    for t in (0, 7, 100):
        assert_allclose(eta(t), 2 / ((t + eta.shift) * (mu + lam) * p), rtol=1e-12)
        assert_allclose(global_steps(mu, L)(t), 2 / (mu * (t + 8 * L / mu)), rtol=1e-12)
        assert_allclose(eta(t), Inverse(lr=eta.lr, tau=eta.shift)(t), rtol=1e-12)


def test_mistakes_are_told() -> None:
    with pytest.raises(InputError, match="cohort ≤ K"):
        Quadratics(K=3, cohort=4)
    with pytest.raises(InputError, match="n > d"):
        Quadratics(n=3, d=3)
    with pytest.raises(InputError, match="0 < q ≤ 1"):
        Power(lr=0.1, shift=1.0, q=2.0)
    with pytest.raises(InputError, match="seed"):
        run(QUADRATICS, seeds=())
    with pytest.raises(InputError, match="λ"):
        run(QUADRATICS, lams=())
