"""dittofl/metrics.py: closed form, a naive reference, invariances, and what happens to devices without a number."""

from dataclasses import fields
from fractions import Fraction
from math import ceil, isnan
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from dittofl.errors import InputError
from dittofl.metrics import Summary, summarise

Numbers = NDArray[np.float64]
Cohort = tuple[Numbers, NDArray[np.int64], NDArray[np.bool_]]

NUMBERS = [field.name for field in fields(Summary) if field.name != "devices"]


@st.composite
def cohorts(draw: st.DrawFn) -> Cohort:
    """Values, sizes (some 0, whose values are NaN) and a mask over 1..40 devices."""
    K = draw(st.integers(1, 40))
    values = draw(arrays(np.float64, K, elements=st.floats(-1e3, 1e3)))
    sizes = draw(arrays(np.int64, K, elements=st.integers(0, 50)))
    return np.where(sizes > 0, values, np.nan), sizes, draw(arrays(np.bool_, K))


def naive(values: Numbers, sizes: NDArray[np.int64], which: NDArray[np.bool_], lower_is_better: bool) -> list[float]:
    """The summary in exact rational arithmetic, in the order of NUMBERS."""
    kept = [(Fraction(x), int(n)) for x, n, in_ in zip(values, sizes, which, strict=True) if in_ and n > 0]
    x = sorted((value for value, _ in kept), reverse=lower_is_better)
    mean = sum(x) / len(x)
    weighted = sum(value * n for value, n in kept) / sum(n for _, n in kept)
    variance = sum((value - mean) ** 2 for value in x) / len(x)
    std = float(variance) ** 0.5
    tenth = ceil(Fraction(len(x), 10))
    worst, best = sum(x[:tenth]) / tenth, sum(x[-tenth:]) / tenth
    return [float(q) for q in (mean, weighted, std, variance, float(mean) - std, worst, best, min(x))]


def numbers(summary: Summary) -> list[float]:
    return [getattr(summary, name) for name in NUMBERS]


def test_closed_form() -> None:
    s = summarise(np.array([0.2, 0.4, 0.9]), np.array([1, 1, 8]))
    assert_allclose(numbers(s), [0.5, 0.78, (0.26 / 3) ** 0.5, 0.26 / 3, 0.5 - (0.26 / 3) ** 0.5, 0.2, 0.9, 0.2])
    assert s.devices == 3


def test_lower_is_better_swaps_worst_and_best_and_nothing_else() -> None:
    x, n = np.array([3.0, 1.0, 2.0]), np.array([1, 2, 3])
    up, down = summarise(x, n).as_dict(), summarise(x, n, lower_is_better=True).as_dict()
    assert (down["worst10"], down["best10"], down["min"]) == (3.0, 1.0, 1.0)
    assert down | {"worst10": 1.0, "best10": 3.0} == up


@given(cohorts(), st.booleans())
def test_equals_the_naive_reference(cohort: Cohort, lower_is_better: bool) -> None:
    values, sizes, which = cohort
    s = summarise(values, sizes, which, lower_is_better=lower_is_better)
    assert s.devices == np.count_nonzero(which & (sizes > 0))
    if s.devices:
        reference = naive(values, sizes, which, lower_is_better)
        assert_allclose(numbers(s), reference, rtol=1e-9, atol=1e-9)


@given(cohorts(), st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_devices_does_not_matter(cohort: Cohort, random: Random, lower_is_better: bool) -> None:
    values, sizes, which = cohort
    order = random.sample(range(len(values)), len(values))
    before = summarise(values, sizes, which, lower_is_better=lower_is_better)
    after = summarise(values[order], sizes[order], which[order], lower_is_better=lower_is_better)
    assert_array_equal(numbers(after), numbers(before))


@given(st.floats(-1e6, 1e6), st.lists(st.integers(1, 1000), min_size=1, max_size=40))
def test_equal_values_have_no_spread(value: float, sizes: list[int]) -> None:
    s = summarise(np.full(len(sizes), value), np.array(sizes))
    assert (s.std, s.variance) == (0.0, 0.0)
    assert {s.mean, s.weighted_mean, s.mean_minus_std, s.worst10, s.best10, s.min} == {value}


def test_the_mean_counts_devices_and_the_weighted_mean_samples() -> None:
    x = np.array([0.0, 1.0])
    few, many = summarise(x, np.array([1, 1])), summarise(x, np.array([1, 999]))
    assert (few.mean, few.weighted_mean) == (0.5, 0.5)
    assert (many.mean, many.weighted_mean) == (0.5, 0.999)


def test_a_small_spread_survives_a_large_offset() -> None:
    x = 1e9 + np.array([0.0, 1.0, 2.0, 3.0])
    assert summarise(x, np.ones(4, dtype=np.int64)).variance == 1.25


@pytest.mark.parametrize("K", range(1, 26))
def test_a_tenth_of_the_devices_rounds_up(K: int) -> None:
    tenth = 1 if K <= 10 else 2 if K <= 20 else 3
    s = summarise(np.arange(1.0, K + 1), np.full(K, 7))
    assert s.worst10 == (tenth + 1) / 2
    assert s.best10 == K - (tenth - 1) / 2


def test_devices_without_samples_are_left_out() -> None:
    x, n = np.array([np.nan, 1.0, np.nan, 3.0]), np.array([0, 5, 0, 5])
    assert summarise(x, n) == summarise(x[[1, 3]], n[[1, 3]])
    assert summarise(x, n).devices == 2


def test_which_selects_devices() -> None:
    x, n = np.array([0.9, 0.1, 0.7]), np.array([3, 1, 2])
    benign = np.array([True, False, True])
    assert summarise(x, n, benign) == summarise(x[benign], n[benign])
    assert summarise(x, n, np.ones(3, dtype=np.bool_)) == summarise(x, n)


@pytest.mark.parametrize("K", [0, 3])
def test_no_device_left(K: int) -> None:
    s = summarise(np.full(K, np.nan), np.zeros(K, dtype=np.int64))
    assert all(isnan(number) for number in numbers(s))
    assert s.devices == 0


@pytest.mark.parametrize("diverged", [np.nan, np.inf])
def test_a_diverged_model_is_not_hidden(diverged: float) -> None:
    x, n = np.array([0.5, diverged]), np.array([1, 1])
    s = summarise(x, n, lower_is_better=True)
    assert all(isnan(number) for number in numbers(s))
    assert s.devices == 2
    assert summarise(x, n, np.array([True, False])).mean == 0.5


def test_huge_values_have_an_infinite_variance_and_raise_no_warning() -> None:
    s = summarise(np.array([-1e300, 1e300]), np.array([1, 1]))
    assert (s.mean, s.variance, s.min) == (0.0, np.inf, -1e300)


def test_values_of_less_precision_are_summed_in_double() -> None:
    x = np.array([0, 1, 1], dtype=np.float32)
    assert summarise(x, np.ones(3, dtype=np.int64)).mean == 2 / 3


def test_as_dict_has_every_number_by_name() -> None:
    s = summarise(np.array([1.0]), np.array([2]))
    assert list(s.as_dict()) == [*NUMBERS, "devices"]
    assert s.as_dict() == dict.fromkeys(NUMBERS, 1.0) | {"std": 0.0, "variance": 0.0, "devices": 1}


@pytest.mark.parametrize(
    ("K", "sizes", "which", "sentence"),
    [
        ((2,), (3,), None, r"one entry a device, got shapes \(2,\), \(3,\)"),
        ((2,), (2,), np.array([True]), r"got shapes \(2,\), \(2,\), \(1,\)"),
        ((2, 2), (2, 2), np.ones((2, 2), dtype=np.bool_), r"got shapes \(2, 2\)"),
        ((2,), (2,), np.array([0, 1]), r"got int64: pass booleans"),
    ],
)
def test_mistakes_are_named(
    K: tuple[int, ...], sizes: tuple[int, ...], which: NDArray[np.bool_], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        summarise(np.zeros(K), np.ones(sizes, dtype=np.int64), which)
