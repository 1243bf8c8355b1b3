"""Distances, norms and orders in themselves: digits, overflow, columns that no sample sees, more than 16 M elements."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from dittofl import Clip, KNorm, Krum, Median, Report, TrimmedMean
from dittofl.aggregate.cohort import Cohort
from dittofl.aggregate.distances import SAMPLE, amidst, squares
from dittofl.aggregate.order import in_order, merge_exchange, network
from dittofl.aggregate.ranks import ascending
from tests.problems import normal


def cohort(rows: Tensor) -> Cohort:
    return Cohort.of(Report(rows, torch.ones(len(rows))))


def exact(rows: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """By differences, in extended precision."""
    wide = rows.double().numpy().astype(np.longdouble)
    return np.array([((wide - row) ** 2).sum(1) for row in wide]).astype(np.float64)


@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("offset", [0.0, 50.0, -1e6])
def test_near_equal_rows_far_from_0_keep_their_distances(offset: float, spread: float) -> None:
    for m, P in ((2, 3), (7, 500), (40, 3000)):
        for rows in (offset + spread * normal(m, P, seed=m), (offset + spread * normal(m, P, seed=m)).float()):
            assert_allclose(squares(cohort(rows)), exact(rows), rtol=1e-8)


def test_equal_rows_have_distance_0_however_far_out_they_are() -> None:
    rows = torch.cat(
        [normal(5, 300, seed=0), 1e30 * normal(1, 300, seed=1).repeat(4, 1), normal(1, 300, seed=2).repeat(3, 1)]
    )
    found = squares(cohort(rows))
    assert not found[5:9, 5:9].any()
    assert not found[9:, 9:].any()
    assert_allclose(found, exact(rows), rtol=1e-9)


def test_groups_at_every_scale() -> None:
    """Each group's inner distances are far below what the others' leave of 16 digits."""
    rows = torch.cat(
        [10.0**scale + 10.0 ** (scale - 9) * normal(3, 50, seed=scale + 40) for scale in range(-30, 31, 6)]
    )
    assert_allclose(squares(cohort(rows)), exact(rows), rtol=1e-6)


def test_what_a_sample_of_columns_does_not_see() -> None:
    """A row like the others but in columns that are not looked at is taken for their middle; distances stand it."""
    P = 1001
    rows = 50 + 1e-4 * normal(9, P, seed=0)
    unseen = torch.ones(P, dtype=torch.bool)
    unseen[torch.linspace(0, P - 1, SAMPLE).long()] = False
    rows[4, ~unseen] = rows[:, ~unseen].mean(0)
    rows[4, unseen] = 1e30
    assert amidst(cohort(rows)) == 4
    assert_allclose(squares(cohort(rows)), exact(rows), rtol=1e-8)


@pytest.mark.parametrize("huge", [1e150, 1e200, 1e300])
def test_rows_whose_squares_do_not_fit(huge: float) -> None:
    rows = normal(6, 40, seed=0)
    rows[2], rows[4] = huge, -huge
    assert torch.equal(
        Krum(f=2)(Report(rows, torch.ones(6)), ())[0], Krum(f=0)(Report(rows[[0, 1, 3, 5]], torch.ones(4)), ())[0]
    )
    assert torch.equal(
        KNorm(f=2)(Report(rows, torch.ones(6)), ())[0],
        torch.full((6,), 0.25)[[0, 1, 3, 5]].double() @ rows[[0, 1, 3, 5]],
    )
    clipped = Clip(norm=1.0)(Report(rows[[2]], torch.ones(1)), ())[0]
    assert_allclose(clipped, np.full(40, 40**-0.5), rtol=1e-12)
    tiny = cohort(normal(3, 9, seed=1) / huge).norms()
    assert_allclose(tiny * huge, normal(3, 9, seed=1).norm(dim=1), rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_norms_are_those_of_float64(dtype: torch.dtype) -> None:
    for P in (1, 1000, 300_000):
        rows = (normal(4, P, seed=P) * 10.0 ** torch.tensor([[-20.0], [0.0], [15.0], [30.0]])).to(dtype)
        assert_allclose(cohort(rows).norms(), rows.double().norm(dim=1), rtol=1e-12)


def test_a_cohort_of_some_rows_scaled_is_what_its_report_says() -> None:
    whole = Report(normal(6, 9, seed=0), torch.arange(6), normal(6, seed=1), place=torch.arange(10, 16))
    part = (
        Cohort.of(whole).only(torch.tensor([4, 1, 2])).scaled(torch.tensor([2.0, -1.0, 0.5])).only(torch.tensor([0, 2]))
    )
    report = part.report()
    assert_allclose(report.delta, whole.delta[[4, 2]] * torch.tensor([[2.0], [0.5]]))
    assert report.size.tolist() == part.size.tolist() == [4, 2]
    assert report.place.tolist() == part.place.tolist() == [14, 12]  # type: ignore[union-attr]
    assert torch.equal(report.loss, part.loss)  # type: ignore[arg-type]
    assert_allclose(part.sum(torch.tensor([0.3, 0.7]).double()), torch.tensor([0.3, 0.7]).double() @ report.delta)
    assert_allclose(torch.cat([block.clone() for _, block in part.blocks(torch.float64)], 1), report.delta)
    assert_allclose(part.norms(), report.delta.norm(dim=1))
    assert_allclose(part.gram(report.delta[1]), (report.delta - report.delta[1]) @ (report.delta - report.delta[1]).T)


# Order


@pytest.mark.parametrize("m", [*range(1, 18), 31, 32, 33, 100])
def test_a_network_sorts(m: int) -> None:
    """Zeros and ones: what sorts those sorts everything (Knuth, 5.3.4 Z)."""
    bits = torch.arange(2 ** min(m, 12))
    rows = ((bits >> torch.arange(min(m, 12))[:, None]) & 1).float()
    rows = torch.cat(
        [rows, torch.rand(m - len(rows), rows.shape[1], generator=torch.Generator().manual_seed(m)).round()]
    )
    for first, last in ((0, m - 1), ((m - 1) // 2, m // 2), (m // 5, m - 1 - m // 5)):
        found = in_order(rows[torch.randperm(m)].clone(), first, last)
        assert torch.equal(torch.stack(found), rows.sort(0).values[first : last + 1])
    assert len(network(m, (m - 1) // 2, m // 2)) <= len(list(merge_exchange(m)))


def test_ties_up_to_rounding_are_ties() -> None:
    assert ascending(torch.tensor([2.0, 1.0 + 2e-16, 1.0, 2.0 - 4e-16, 0.0], dtype=torch.float64)).tolist() == [
        4,
        1,
        2,
        0,
        3,
    ]
    assert ascending(torch.tensor([float("inf"), 1.0, float("inf")], dtype=torch.float64)).tolist() == [1, 0, 2]


def test_more_than_16_million_elements() -> None:
    rows = torch.randint(0, 100, (5, 4_000_000), generator=torch.Generator().manual_seed(0)).float()
    report, some = Report(rows, torch.ones(5)), torch.arange(0, 4_000_000, 9973)
    middle = rows[:, some].sort(0).values
    assert torch.equal(Median()(report, ())[0][some], middle[2])
    assert_allclose(TrimmedMean(f=1)(report, ())[0][some], middle[1:4].mean(0), rtol=1e-6)
