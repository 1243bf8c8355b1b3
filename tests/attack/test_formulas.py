"""Every attack on updates against its formula, written naively in numpy."""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from torch import Tensor

from dittofl import (
    ALIE,
    IPM,
    Along,
    FangKrum,
    FangTrimmedMean,
    Forge,
    MinMax,
    MinSum,
    ModelReplacement,
    Report,
    Send,
    SignFlip,
)
from dittofl.attack.alie import quantile
from dittofl.attack.colluding import distances

Rows = NDArray[np.float64]
EXACT = {torch.float64: 1e-9, torch.float32: 1e-4}


class Drawn(NamedTuple):
    report: Report
    who: Tensor
    benign: Rows
    own: Rows

    def known(self, omniscient: bool) -> Rows:
        first, second = (self.benign, self.own) if omniscient else (self.own, self.benign)
        return first if len(first) else second


def cohorts(count: int, *, dtype: torch.dtype = torch.float64, least: int = 1, most: int = 12) -> Iterator[Drawn]:
    """Cohorts of any size and any share of attackers, at any scale and offset."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        m, P = rng.integers(least, most + 1), rng.integers(1, 30)
        f = rng.integers(0, m + 1) if least == 1 else rng.integers(1, (m - 3) // 2 + 1)
        rows = 10.0 ** rng.integers(-3, 3) * (rng.normal(size=(m, P)) + rng.choice([0, 0.3, 5]) * rng.normal(size=P))
        who = torch.from_numpy(rng.permutation(m) < f)
        delta = torch.from_numpy(rows).to(dtype)
        rows = delta.double().numpy()
        yield Drawn(Report(delta, torch.arange(1, m + 1)), who, rows[~who.numpy()], rows[who.numpy()])


def draw(row: int) -> torch.Generator:
    return torch.Generator().manual_seed(row)


def sent(attack: Any, drawn: Drawn) -> Rows:
    """What the attackers send; the benign rows must be those that were given, to the bit."""
    new = attack(drawn.report, drawn.who, draw)
    assert torch.equal(new.delta[~drawn.who], drawn.report.delta[~drawn.who])
    assert new.delta.dtype == drawn.report.delta.dtype
    return new.delta[drawn.who].double().numpy()  # type: ignore[no-any-return]


def agrees(attack: Any, formula: Callable[[Drawn], Rows], count: int = 200) -> None:
    for dtype, tolerance in EXACT.items():
        for drawn in cohorts(count, dtype=dtype):
            if drawn.who.any():
                expected = formula(drawn)
                scale = np.abs(np.concatenate([drawn.benign, drawn.own])).max() + np.abs(expected).max()
                assert_allclose(sent(attack, drawn), np.broadcast_to(expected, drawn.own.shape), atol=tolerance * scale)


def deviation(rows: Rows) -> Rows:
    if len(rows) == 1:
        return np.abs(rows[0]) / 2
    return np.array([math.sqrt(sum((x - column.mean()) ** 2 for x in column) / len(rows)) for column in rows.T])


def test_sign_flip() -> None:
    agrees(SignFlip(), lambda drawn: -drawn.own)
    agrees(SignFlip(factor=3.0), lambda drawn: -3 * drawn.own)


# A little is enough


def normal_share(z: float) -> float:
    return 0.5 * (1 + math.erf(z / math.sqrt(2)))


@pytest.mark.parametrize("m", range(1, 60))
def test_the_quantile_is_that_of_the_supporters_needed(m: int) -> None:
    """Φ(z) (m − f) benign rows lie below it: with the f attackers beyond, at most s benign ones are needed."""
    for f in range(1, m + 1):
        z, supporters = quantile(m, f), m // 2 + 1 - f
        share = (m - f - max(supporters, 1)) / (m - f) if f < m else 0.0
        if share <= 0.5:
            assert z == 1.5
        else:
            assert z > 0
            assert normal_share(z) == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize("omniscient", [False, True])
@pytest.mark.parametrize("z", [None, 0.4, -2.0])
def test_alie(z: float | None, omniscient: bool) -> None:
    def formula(drawn: Drawn) -> Rows:
        rows = drawn.known(omniscient)
        factor = quantile(len(drawn.who), len(drawn.own)) if z is None else z
        return rows.mean(0) - factor * deviation(rows)

    agrees(ALIE(z=z, omniscient=omniscient), formula)


@pytest.mark.parametrize("omniscient", [False, True])
def test_ipm(omniscient: bool) -> None:
    agrees(IPM(omniscient=omniscient), lambda drawn: -0.5 * drawn.known(omniscient).mean(0))
    agrees(IPM(epsilon=4.0, omniscient=omniscient), lambda drawn: -4.0 * drawn.known(omniscient).mean(0))


def test_ipm_turns_the_mean_round_where_it_says() -> None:
    for drawn in cohorts(200):
        m, f = len(drawn.who), len(drawn.own)
        if 0 < f < m:
            for epsilon, sign in ((0.99 * (m - f) / f, 1), (1.01 * (m - f) / f, -1)):
                mean = np.concatenate([drawn.benign, sent(IPM(epsilon=epsilon), drawn)]).mean(0)
                assert np.sign(mean @ drawn.benign.mean(0)) == sign


# Fang et al.


def krum(rows: Rows, f: int) -> int:
    """The row that Krum picks, the earliest of equals, by loops."""
    scores = []
    for i, row in enumerate(rows):
        squares = sorted(((row - other) ** 2).sum() for j, other in enumerate(rows) if j != i)
        scores.append(sum(squares[: max(len(rows) - f - 2, 0)]))
    return int(np.argmin(scores))


def searched(drawn: Drawn, threshold: float = 1e-5) -> tuple[float, Rows]:
    """λ and s by the paper's search, asking Krum itself each time."""
    return searched_among(drawn.benign, len(drawn.own), threshold)


def searched_among(benign: Rows, f: int, threshold: float) -> tuple[float, Rows]:
    m, P = len(benign) + f, benign.shape[1]
    squares = [sorted(((a - b) ** 2).sum() for j, b in enumerate(benign) if j != i) for i, a in enumerate(benign)]
    nearest = min(sum(its[: m - f - 2]) for its in squares)
    lam = math.sqrt(nearest / ((m - 2 * f - 1) * P)) + max(np.linalg.norm(row) for row in benign) / math.sqrt(P)
    s = np.sign(benign.mean(0))
    while lam >= threshold and krum(np.concatenate([np.tile(-lam * s, (f, 1)), benign]), f) >= f:
        lam /= 2
    return lam, s


def test_fang_krum() -> None:
    halved = 0
    for drawn in cohorts(300, least=5, most=16):
        lam, s = searched(drawn)
        assert_allclose(sent(FangKrum(), drawn), np.tile(-lam * s, (len(drawn.own), 1)), rtol=1e-9)
        halved += lam < searched(drawn, threshold=math.inf)[0]
    assert halved > 100


def test_fang_krum_of_attackers_who_see_themselves_alone() -> None:
    """Krum among their own rows and one crafted row, then two, until it picks one."""
    more = 0
    for drawn in cohorts(300, least=9, most=20):
        f = len(drawn.own)
        if f > 3:
            found = [searched_among(drawn.own, crafted, 1e-5) for crafted in range(1, f - 1)]
            lam, s = next((its for its in found if its[0] >= 1e-5), (0.0, found[0][1]))
            if lam:
                more += lam != found[0][0]
                assert_allclose(sent(FangKrum(omniscient=False), drawn), np.tile(-lam * s, (f, 1)), rtol=1e-9)
    assert more > 5


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_fang_krum_fools_krum(dtype: torch.dtype) -> None:
    """Wherever it stands in the cohort; with twice as much it would not, or the search began there."""
    fooled = 0
    for drawn in cohorts(300, dtype=dtype, least=5, most=16):
        f, new = len(drawn.own), FangKrum()(drawn.report, drawn.who, draw).delta.double().numpy()
        lam = np.abs(new[drawn.who.numpy()][0]).max()
        if lam >= 1e-5:
            fooled += 1
            assert bool(drawn.who[krum(new, f)])
            assert new[drawn.who.numpy()][0] @ drawn.benign.mean(0) < 0
            twice = np.where(drawn.who.numpy()[:, None], 2 * new, new)
            assert not drawn.who[krum(twice, f)] or 2 * lam > 1.001 * searched(drawn, threshold=math.inf)[0]
    assert fooled > 200


@pytest.mark.parametrize("reach", [2.0, 1.5])
def test_fang_trimmed_mean(reach: float) -> None:
    for drawn in cohorts(100):
        if not drawn.who.any():
            continue
        rows, new = drawn.known(True), sent(FangTrimmedMean(reach=reach), drawn)
        for place, row in zip(np.flatnonzero(drawn.who), new, strict=True):
            u = torch.rand(rows.shape[1], generator=draw(int(place)), dtype=torch.float64).numpy()
            for j, column in enumerate(rows.T):
                near = column.max() if column.mean() < 0 else column.min()
                away = near > 0 if column.mean() < 0 else near <= 0  # times b leads away from the rows
                far = near * reach if away else near / reach
                assert row[j] == pytest.approx(near + u[j] * (far - near), rel=1e-12)
                assert row[j] >= column.max() if column.mean() < 0 else row[j] <= column.min()


def test_fang_trimmed_mean_of_attackers_who_see_themselves_alone() -> None:
    for drawn in cohorts(100):
        if not drawn.who.any():
            continue
        new, mean, sigma = sent(FangTrimmedMean(omniscient=False), drawn), drawn.own.mean(0), deviation(drawn.own)
        for place, row in zip(np.flatnonzero(drawn.who), new, strict=True):
            u = torch.rand(len(mean), generator=draw(int(place)), dtype=torch.float64).numpy()
            assert_allclose(row, np.where(mean < 0, mean + (3 + u) * sigma, mean - (3 + u) * sigma), rtol=1e-9)


# Min-max and min-sum


def perturbed(along: Along, rows: Rows) -> Rows:
    mean = rows.mean(0)
    return {Along.UNIT: -mean / np.linalg.norm(mean), Along.SIGN: -np.sign(mean), Along.STD: -deviation(rows)}[along]


def largest_gamma(rows: Rows, p: Rows, farthest: Callable[[Rows], float], bound: float) -> float:
    """The search by halving steps of the paper's Algorithm 1, from a start that is large enough."""
    gamma = step = 4 * np.abs(rows).sum() / np.linalg.norm(p)
    best = 0.0
    for _ in range(60):
        step /= 2
        if farthest(rows.mean(0) + gamma * p - rows) <= bound:
            best, gamma = gamma, gamma + step
        else:
            gamma -= step
    return best


SQUARES: dict[type, tuple[Callable[[Rows], float], Callable[[Rows], float]]] = {
    MinMax: (lambda gaps: (gaps**2).sum(1).max(), lambda pairs: pairs.max()),
    MinSum: (lambda gaps: (gaps**2).sum(), lambda pairs: pairs.sum(1).max()),
}


@pytest.mark.parametrize("kind", SQUARES)
@pytest.mark.parametrize("along", Along)
@pytest.mark.parametrize("omniscient", [True, False])
def test_min_max_and_min_sum(kind: Any, along: Along, omniscient: bool) -> None:
    of_gaps, of_pairs = SQUARES[kind]
    compared = 0
    for drawn in cohorts(100):
        rows = drawn.known(omniscient)
        if drawn.who.any() and len(rows) > 1:
            p = perturbed(along, rows)
            pairs = np.array([[((a - b) ** 2).sum() for b in rows] for a in rows])
            gamma = largest_gamma(rows, p, of_gaps, of_pairs(pairs))
            new = sent(kind(along=along, omniscient=omniscient), drawn)
            scale = np.abs(rows).max()
            assert_allclose(new, np.tile(rows.mean(0) + gamma * p, (len(new), 1)), rtol=0, atol=1e-7 * scale)
            assert of_gaps(new[0] - rows) == pytest.approx(of_pairs(pairs), rel=1e-6)
            compared += 1
    assert compared > 40


def test_distances_are_right_for_near_equal_rows_far_from_0() -> None:
    for seed in range(50):
        rows = 50 + 1e-3 * np.random.default_rng(seed).normal(size=(7, 40))
        for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 0.05)):
            given = torch.from_numpy(rows).to(dtype)
            naive = [[float(((a - b) ** 2).sum()) for b in given.double()] for a in given.double()]
            assert_allclose(distances(given).numpy(), naive, rtol=tolerance, atol=1e-12)


# Replacement


@pytest.mark.parametrize(("n", "eta"), [(None, 1.0), (30, 1.0), (None, 0.25)])
def test_replacement(n: int | None, eta: float) -> None:
    def formula(drawn: Drawn) -> Rows:
        return (n or len(drawn.who)) / eta * drawn.own.mean(0) / len(drawn.own)

    agrees(ModelReplacement(n=n, eta=eta), formula)
    agrees(
        ModelReplacement(n=n, eta=eta, omniscient=True),
        lambda drawn: formula(drawn) - drawn.benign.sum(0) / len(drawn.own),
    )


@pytest.mark.parametrize("eta", [1.0, 0.5])
def test_replacement_leaves_the_attackers_model(eta: float) -> None:
    """w + η mean(Δ) = X, whatever the benign devices send; without their updates, X and η times their share."""
    for drawn in cohorts(200):
        if len(drawn.own) and len(drawn.benign):
            m, X = len(drawn.who), drawn.own.mean(0)
            exact = np.concatenate([drawn.benign, sent(ModelReplacement(eta=eta, omniscient=True), drawn)])
            about = np.concatenate([drawn.benign, sent(ModelReplacement(eta=eta), drawn)])
            scale = np.abs(exact).max()
            assert_allclose(eta * exact.mean(0), X, atol=1e-12 * scale)
            assert_allclose(eta * about.mean(0), X + eta * drawn.benign.sum(0) / m, atol=1e-12 * scale)


def test_replacement_counts_the_reports_that_are_averaged() -> None:
    """Those that are not finite are dropped before the mean, benign or the attackers' own."""
    for drawn in cohorts(100, least=5):
        m, f = len(drawn.who), len(drawn.own)
        bad = torch.tensor([torch.nonzero(~drawn.who)[0], torch.nonzero(drawn.who)[0]] if 1 < f < m else [])
        if len(bad):
            given = drawn.report._replace(delta=drawn.report.delta.index_fill(0, bad, math.nan))
            new = ModelReplacement(omniscient=True)(given, drawn.who, draw).delta
            averaged = new[new.isfinite().all(1)]
            X = given.delta[drawn.who & given.delta.isfinite().all(1)].mean(0)
            assert len(averaged) == m - 1
            assert_allclose(averaged.mean(0), X, atol=1e-11 * float(averaged.abs().max()))


# Broken reports


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e30, 0, -2.5])
def test_senders_of_one_value(value: float) -> None:
    for drawn in cohorts(20):
        assert_allclose(sent(Send(value=value), drawn), np.full_like(drawn.own, value))


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e30, 0, -2.5, 7, 10**6])
@pytest.mark.parametrize("times", [False, True])
def test_forged_losses_and_sizes(value: float, times: bool) -> None:
    for drawn in cohorts(20):
        given = drawn.report._replace(loss=torch.linspace(0.5, 2, len(drawn.who), dtype=torch.float64))
        new = Forge(loss=value, size=value, times=times)(given, drawn.who, draw)
        assert new.delta is given.delta
        for ours, honest in ((new.loss, given.loss), (new.size, given.size)):
            assert torch.equal(ours[~drawn.who].double(), honest[~drawn.who].double())
            expected = value * honest[drawn.who].double() if times else torch.full((len(drawn.own),), float(value))
            assert_allclose(ours[drawn.who].double(), expected)
        assert new.size.dtype == (torch.int64 if isinstance(value, int) else torch.float64)


@pytest.mark.parametrize("times", [False, True])
def test_forged_extras(times: bool) -> None:
    """Numbers or rows beside Δ, as solvers send them."""
    for drawn in cohorts(20):
        for shape in ((), (3,), (2, 2)):
            extra = torch.from_numpy(np.random.default_rng(1).normal(size=(len(drawn.who), *shape)))
            new = Forge(extra=-5.0, times=times)(drawn.report._replace(extra=extra), drawn.who, draw).extra
            assert torch.equal(new[~drawn.who], extra[~drawn.who])
            assert_allclose(new[drawn.who], -5 * extra[drawn.who] if times else -5.0)
    assert Forge(extra=1.0)(drawn.report, drawn.who, draw).extra is None


def test_only_what_is_named_is_forged() -> None:
    drawn = next(cohorts(1, least=5))
    given = drawn.report._replace(loss=torch.ones(len(drawn.who)))
    assert Forge(loss=3.0)(given, drawn.who, draw).size is given.size
    assert Forge(size=3)(given, drawn.who, draw).loss is given.loss
    assert Forge(loss=3.0)(drawn.report, drawn.who, draw).loss is None
