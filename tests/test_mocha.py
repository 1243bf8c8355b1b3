"""MOCHA against independent SVMs of scikit-learn, its duality gap, and the relation it learns."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.svm import LinearSVC
from torch import Tensor

from dittofl import A1, A2, A3, Attack, Backdoor, Features, Federation, InputError, Mocha
from dittofl.cli import answer
from dittofl.mocha import Related
from tests.problems import federation, normal, reals

SIZES = (30, 12, 7, 21)


def related(noise: float = 0.3, kinds: int = 2, offset: float = 0.0) -> Federation:
    """Devices of two kinds, whose separating hyperplanes are opposite; y has one column."""

    def one(k: int, n: int) -> tuple[Tensor, Tensor]:
        x = normal(n, 5, seed=k)
        margin = (x @ normal(5, seed=99) + offset) * (1 if k % kinds else -1)
        y = (margin + noise * normal(n, seed=200 + k)).sign()
        return x, y[:, None]

    train, test = ({k: one(first + k, n) for k, n in enumerate(SIZES)} for first in (0, 50))
    return Federation.from_parts(train=train, test=test)


def primal(data: Federation, fit: Related, lam: float) -> float:
    """Σ_k mean hinge + λ/2 ‖W‖_*²: what is left of the objective when Σ is the best for W."""
    hinges = 0.0
    for id, w in zip(data.ids, fit.W, strict=True):
        x, y = data.part(id, "train")
        hinges += float((1 - y[:, 0] * (x @ torch.from_numpy(w[:-1]) + w[-1])).clamp_min(0).mean())  # type: ignore[operator]
    return hinges + lam / 2 * np.linalg.svd(fit.W, compute_uv=False).sum() ** 2


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("lam", [0.02, 0.3])
def test_without_a_relation_it_is_independent_svms(lam: float, bias: bool) -> None:
    data = related()
    fit = Mocha(lam=lam, learn=False, inner=3000, gap=1e-9, share=1.0, bias=bias).fit(data)
    assert fit.gaps[-1] <= 1e-9
    for id, w in zip(data.ids, fit.W, strict=True):
        x, y = data.part(id, "train")
        x = np.column_stack([x, np.ones(len(y))]) if bias else x.numpy()  # type: ignore[union-attr]
        svm = LinearSVC(loss="hinge", C=1 / (len(y) * lam * 4), fit_intercept=False, tol=1e-10, max_iter=10**6)
        assert_allclose(w, svm.fit(x, y[:, 0]).coef_[0], atol=1e-4)


def test_the_gap_is_never_negative_falls_and_ends_the_ascent() -> None:
    """A dual step never lowers D, and at α = 0 the gap is that of W = 0."""
    fit = Mocha(lam=0.1, learn=False, inner=500, gap=1e-3).fit(related())
    assert fit.gaps[0] == 1.0
    assert min(fit.gaps) > 0
    assert fit.gaps[-1] <= 1e-3 < fit.gaps[-2] or fit.gaps[-1] == fit.gaps[-2]
    assert 5 < fit.rounds < 500
    longer = Mocha(lam=0.1, learn=False, inner=500, gap=1e-6).fit(related())
    assert longer.rounds > fit.rounds
    assert_allclose(longer.gaps[: fit.rounds], fit.gaps[: fit.rounds], rtol=1e-12)


def test_each_relation_improves_the_joint_objective() -> None:
    data, lam = related(), 0.05
    fits = [Mocha(lam=lam, outer=outer, inner=2000, gap=1e-6, share=1.0).fit(data) for outer in (1, 2, 4)]
    values = [primal(data, fit, lam) for fit in fits]
    assert all(fit.gaps[-1] <= 1e-6 for fit in fits)
    assert all(b <= a + 1e-5 for a, b in pairwise(values))
    assert values[-1] < values[0] - 1e-3


def test_the_relation_is_that_of_the_tasks() -> None:
    fit = Mocha(lam=0.01).fit(related())
    kind = np.where(np.arange(4) % 2, 1, -1)
    assert (np.sign(fit.relation) == np.outer(kind, kind)).all()
    assert_allclose(np.trace(fit.relation), 1, atol=1e-12)
    assert np.linalg.eigvalsh(fit.relation).min() > -1e-12
    assert_allclose(fit.relation, fit.relation.T, atol=1e-15)


def test_related_devices_help_each_other() -> None:
    """On clean data with few samples a device, the relation is better than none, and than one model for all."""
    data = related(noise=0.0, offset=0.5)
    together, alone = (Mocha(lam=0.01, learn=learn).fit(data).evaluate() for learn in (True, False))
    assert together.summary("mocha", "loss").mean < alone.summary("mocha", "loss").mean
    parts = {part: [data.part(id, part) for id in data.ids] for part in ("train", "test")}  # type: ignore[arg-type]
    x, y = (np.concatenate([its[j] for its in parts["train"]]) for j in (0, 1))
    svm = LinearSVC(loss="hinge", C=1 / (len(y) * 0.01), max_iter=10**6).fit(x, y[:, 0])
    everyone = np.mean([svm.score(x, y[:, 0]) for x, y in parts["test"]])
    accuracies = [one.summary("mocha").mean for one in (together, alone)]
    assert accuracies[0] > accuracies[1] > everyone


def test_a_bias_is_needed_where_hyperplanes_miss_the_origin() -> None:
    with_it, without = (
        Mocha(lam=0.01, bias=bias).fit(related(noise=0.0, offset=2.0)).evaluate() for bias in (True, False)
    )
    assert with_it.summary("mocha").mean > without.summary("mocha").mean + 0.02


def test_evaluation_is_that_of_the_models() -> None:
    data = related()
    fit = Mocha(lam=0.1, bias=True).fit(data)
    evaluation = fit.evaluate("test", "train")
    for k, id in enumerate(data.ids):
        for part in ("test", "train"):
            x, y = data.part(id, part)  # type: ignore[arg-type]
            margin = (y[:, 0] * (x @ torch.from_numpy(fit.W[k, :-1]) + fit.W[k, -1])).numpy()  # type: ignore[operator]
            values = evaluation.values["mocha", part]  # type: ignore[index]
            assert values["accuracy"][k] == np.mean(margin > 0)
            assert_allclose(values["loss"][k], np.maximum(0, 1 - margin).mean(), rtol=1e-12)
    assert "mocha" in str(evaluation)


def test_the_same_fit_again_and_another_seed() -> None:
    one, again, other = (Mocha(lam=0.1, inner=5, outer=2).fit(related(), seed=seed) for seed in (0, 0, 1))
    assert (one.W == again.W).all()
    assert (one.W != other.W).any()


# Attacks


@pytest.mark.parametrize("attack", [A2(count=1), A3(count=1, factor=5.0)], ids=["A2", "A3"])
def test_only_the_malicious_device_is_tampered_with(attack: Attack) -> None:
    """Without a relation nobody else feels it."""
    how = Mocha(lam=0.1, learn=False, inner=30, gap=0.0)
    data = related()
    clean, attacked = how.fit(data), how.fit(data, attack=attack)
    same = (clean.W == attacked.W).all(1)
    assert same.tolist() == (~attacked.malicious).tolist()
    assert attacked.malicious.sum() == 1
    assert np.isfinite(attacked.W).all()
    assert attacked.evaluate().summary("mocha").devices == 3


def test_with_a_relation_the_others_feel_it() -> None:
    clean, attacked = (
        Mocha(lam=0.1, inner=20, gap=0.0).fit(related(), attack=attack) for attack in (None, A2(count=1))
    )
    assert (clean.W != attacked.W).any(1).all()


def test_flipped_labels_turn_a_model_round() -> None:
    how, data = Mocha(lam=0.1, learn=False, inner=200), related()
    clean, attacked = how.fit(data), how.fit(data, attack=A1(count=1))
    sign = np.where(attacked.malicious, -1, 1)[:, None]
    assert_allclose(attacked.W, sign * clean.W, atol=1e-12)
    assert (attacked.evaluate().values["mocha", "test"]["accuracy"] + attacked.malicious).min() > 0.6


def test_the_gap_ends_no_ascent_whose_updates_are_forged() -> None:
    """B is then that of no α, and the gap says nothing."""
    rounds = [
        Mocha(lam=0.1, outer=1, inner=12, gap=100.0).fit(related(), attack=attack).rounds
        for attack in (None, A1(count=1), A2(count=1))
    ]
    assert rounds == [0, 0, 12]


def test_updates_that_are_not_finite_count_for_nothing() -> None:
    nan = Attack(
        count=1,
        poisoned=False,
        update=lambda report, who, draw: report._replace(delta=report.delta.where(~who[:, None], torch.nan)),
    )
    fit = Mocha(lam=0.1, inner=5).fit(related(), attack=nan)
    assert np.isfinite(fit.W).all()


def test_it_is_listed_with_what_it_is_called_by(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["list", "methods"]) == answer(["list", "Mocha"]) == 0
    said = capsys.readouterr().out
    assert "alone  in Python" in said
    assert said.splitlines()[-1] == "In Python: Mocha(lam = …).fit(federation)"


# Mistakes


@pytest.mark.parametrize(
    "mistake", [{"lam": 0.0}, {"outer": 0}, {"inner": 0}, {"share": 0.0}, {"gap": -1.0}, {"learn": 1}, {"bias": None}]
)
def test_mistakes_are_named(mistake: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"Mocha needs .*{next(iter(mistake))}"):
        Mocha(**{"lam": 0.1, **mistake})


def test_mistakes_in_a_fit_are_named() -> None:
    backdoor = Attack(count=1, backdoor=Backdoor(trigger=Features(columns=(0,), value=1.0), target=1, share=0.5))
    for given, sentence in (
        ({"seed": "x"}, "seed='x', expected a whole number"),
        ({"attack": "A1"}, r"attack must be one such as A1\(ratio=\.2\)"),
        ({"attack": A1}, "attack must be one such as"),
        ({"attack": backdoor}, "plants no backdoor"),
    ):
        with pytest.raises(InputError, match=sentence):
            Mocha(lam=0.1).fit(related(), **given)  # type: ignore[arg-type]


def test_data_that_do_not_fit_are_refused() -> None:
    for data, sentence in (
        (federation(), "y in {−1, \\+1}"),
        (federation(reals), "y in {−1, \\+1}"),
        ([1], "fits a Federation"),
        (Federation.of({"a": (torch.ones(3, 2, 2), torch.ones(3))}), "x \\[N, d\\]"),
    ):
        with pytest.raises(InputError, match=sentence):
            Mocha(lam=0.1).fit(data)  # type: ignore[arg-type]
