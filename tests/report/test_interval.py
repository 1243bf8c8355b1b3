"""Student's t by closed forms and against SciPy's."""

import math

import numpy as np
import pytest

from dittofl.report.interval import EXACT, interval, number, student

stats = pytest.importorskip("scipy.stats", reason="the oracle comes with scikit-learn")


def test_one_and_two_degrees_of_freedom_in_closed_form() -> None:
    assert student(1) == pytest.approx(math.tan(math.pi / 2 * 0.95), rel=1e-12)
    assert student(2) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)), rel=1e-12)


@pytest.mark.parametrize("nu", [1, 2, 3, 4, 5, 12, 24, 99, EXACT, EXACT + 1, 999, 10**6])
def test_every_degree_of_freedom_is_that_of_scipy(nu: int) -> None:
    assert student(nu) == pytest.approx(stats.t.ppf(0.975, nu), rel=1e-6)


def test_an_interval_is_that_of_scipy() -> None:
    x = np.random.default_rng(0).normal(3, 2, 11)
    low, high = stats.t.interval(0.95, len(x) - 1, x.mean(), stats.sem(x))
    assert (interval(x).low, interval(x).high) == (pytest.approx(low), pytest.approx(high))


def test_where_there_is_no_interval() -> None:
    assert interval([2.0]).mean == 2.0
    assert math.isnan(interval([2.0]).half)
    assert interval([2.0]).sign == 0
    assert math.isnan(interval([]).mean)
    assert math.isnan(interval([1.0, math.inf]).half)
    assert [interval(x).sign for x in ([1.0, 1.01], [-1.0, -1.01], [-1.0, 1.0])] == [1, -1, 0]


def test_numbers_of_every_size_stay_short() -> None:
    told = [number(x) for x in (0.0, 1 / 3, 99.9994, 123456789.0, math.nan, math.inf)]
    assert told == ["0.000", "0.333", "99.999", "1.235e+08", "nan", "inf"]
