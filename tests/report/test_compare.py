"""Paired differences in closed form, and what cannot be compared."""

import math

import numpy as np
import pytest

from dittofl.errors import InputError
from dittofl.report import Result, compare
from tests.report.made import made

stats = pytest.importorskip("scipy.stats", reason="the oracle comes with scikit-learn")

W, V = [0.5, 0.6, 0.7, 0.8], [0.7, 0.7, 0.7, 0.7]


def test_one_run_is_compared_over_its_devices() -> None:
    (row,) = compare([made({"global": W, "ditto": V})]).rows
    ends = stats.ttest_rel(V, W).confidence_interval(0.95)
    assert (row.model.name, row.reference.name, row.over) == ("ditto", "global", "4 devices")
    assert row.mean.mean == pytest.approx(0.05)
    assert (row.mean.low, row.mean.high) == (pytest.approx(ends.low), pytest.approx(ends.high))
    assert (row.better, row.worse) == (0.5, 0.25)
    assert row.worst10.mean == pytest.approx(0.2)  # ⌈4/10⌉ = 1 device: .7 − .5


def test_several_seeds_are_compared_over_seeds() -> None:
    runs = [
        made({"global": [0.5, 0.5], "ditto": [0.5 + gap, 0.5 + 2 * gap]}, seed=s) for s, gap in enumerate([0.1, 0.2])
    ]
    (row,) = compare(runs).rows
    assert row.over == "2 seeds"
    assert row.mean.mean == pytest.approx((0.15 + 0.3) / 2)
    assert row.mean.half == pytest.approx(math.tan(math.pi / 2 * 0.95) * 0.15 / 2)  # t₁ s/√2 with s = .15/√2
    assert row.better == 1.0


def test_only_devices_that_are_benign_in_both_count() -> None:
    runs = [
        made({"global": [0.1, 0.5, 0.5, 0.9]}, name="clean", malicious=[0]),
        made({"global": [0.9, 0.4, 0.3, 0.1]}, name="A1", malicious=[3]),
    ]
    (row,) = compare(runs).rows
    assert row.over == "2 devices"
    assert row.mean.mean == pytest.approx(-0.15)


def test_devices_are_paired_by_their_ids_and_not_by_their_places() -> None:
    runs = [
        made({"global": [1.0, 2.0, 3.0]}, ids=["a", "b", "c"]),
        made({"global": [3.0, 9.0, 1.0]}, ids=["c", "x", "a"], name="b"),
    ]
    (row,) = compare(runs).rows
    assert row.over == "2 devices"
    assert (row.mean.mean, row.mean.half) == (0.0, 0.0)


def test_less_loss_is_better() -> None:
    (row,) = compare([made({"global": [2.0, 2.1, 2.2], "ditto": [1.0, 1.1, 1.3]}, metric="loss")]).rows
    assert row.mean.mean < 0
    assert (row.sign, row.better, row.worse) == (1, 1.0, 0.0)
    assert row.worst10.mean == pytest.approx(1.3 - 2.2)


def test_a_model_that_diverged_is_not_hidden() -> None:
    (row,) = compare([made({"global": [math.inf, 1.0], "ditto": [math.inf, 1.0]}, metric="loss")]).rows
    assert math.isnan(row.mean.mean)
    assert math.isnan(row.better)
    assert row.sign == 0


def test_runs_without_a_device_in_common_are_refused() -> None:
    with pytest.raises(InputError, match="share no benign device"):
        compare([made({"global": W}), made({"global": W}, ids=list("abcd"), name="other")])


def test_other_data_and_other_seeds_are_said() -> None:
    one, other = made({"global": W}), made({"global": V}, name="other", fingerprint="e" * 64)
    assert "test data of other-0 and made-0 differ" in compare([one, other]).warnings[0]
    assert compare([one, made({"global": V}, name="other")]).warnings == ()
    assert "no seed in common" in compare([one, made({"global": V}, seed=1, spec={"rounds": 9})]).warnings[0]


def references(runs: list[Result], against: str | None) -> list[str]:
    return [str(row.reference) for row in compare(runs, against=against).rows]


def test_the_reference_is_the_one_that_is_named() -> None:
    runs = [made({"global": W, "ditto": V}, name="clean"), made({"global": W, "ditto": V}, name="A1")]
    assert references(runs, None) == ["clean: global"] * 3
    assert references(runs, "ditto") == ["clean: ditto"] * 3
    assert references(runs, "A1:ditto") == references(runs, "A1-0:ditto") == ["A1: ditto"] * 3
    assert references(runs, ":global") == ["clean: global", "A1: global"]
    with pytest.raises(InputError, match="did you mean 'A1:ditto'"):
        compare(runs, against="A1:dito")


def test_a_metric_is_that_of_all_runs() -> None:
    runs = [made({"global": W}), made({"global": W}, metric="f1", name="b")]
    with pytest.raises(InputError, match="no metric called 'accuracy'"):
        compare(runs, "accuracy")


def test_real_runs_against_a_naive_oracle(results: dict[str, Result]) -> None:
    found = compare([results[name] for name in ("clean-2", "clean-10", "A1-2", "A1-10")])
    row = next(row for row in found.rows if str(row.model) == "A1: ditto")
    means = []
    for seed in (2, 10):
        clean, attacked = results[f"clean-{seed}"].devices, results[f"A1-{seed}"].devices
        gaps = [
            attacked.values["ditto", "accuracy"][k] - clean.values["global", "accuracy"][clean.ids.index(device)]
            for k, device in enumerate(attacked.ids) if not attacked.malicious[k]
        ]  # fmt: skip
        means.append(np.mean(gaps))
    assert row.mean.mean == pytest.approx(np.mean(means))
    assert row.over == "2 seeds"
    assert found.warnings == ()
