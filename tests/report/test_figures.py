"""Figures for a paper: every file is there and is what it says; without matplotlib a sentence says what to install."""

import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from dittofl.errors import InputError
from dittofl.report import Condition, Result, conditions, series
from dittofl.report.figures import figures
from tests.report.made import made


def test_every_figure_is_an_svg_and_a_png(results: dict[str, Result], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures come with the extra `plots`")
    files = figures([results["A1-2"]], tmp_path / "new" / "folder")
    assert sorted({file.stem for file in files}) == [
        "chosen",
        "curves-1-A1",
        "fairness",
        "histograms-1-A1",
        "malicious",
    ]
    for file in files:
        if file.suffix == ".svg":
            assert ElementTree.parse(file).getroot().tag.endswith("svg")
        else:
            assert file.read_bytes().startswith(b"\x89PNG")
    assert sorted(file.suffix for file in files) == [".png"] * 5 + [".svg"] * 5


def test_names_may_hold_anything_and_models_may_diverge(results: dict[str, Result], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures come with the extra `plots`")
    odd = made({"global": [float("nan")] * 3, "$x_{$": [1.0, 2.0, 3.0]}, metric="loss", name="a/b: $\\alpha$ ../c")
    assert {file.parent for file in figures([odd], tmp_path)} == {tmp_path}


def test_without_matplotlib_one_sentence_says_what_to_install(
    results: dict[str, Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'dittofl\[plots\]'"):
        figures([results["alone"]], tmp_path)
    assert not list(tmp_path.iterdir())


def one(*runs: Result) -> Condition:
    (condition,) = conditions(runs)
    return condition


def test_a_histogram_counts_every_device_once() -> None:
    edges, heights = series.histogram(np.array([-9.0, 0.05, 0.5, 0.55, 0.95, 1.0, 7.0, np.nan]), 0.0, 1.0)
    assert (edges[0], edges[-1]) == (0.0, 1.0)
    assert (heights * 8).tolist() == [2, 0, 0, 0, 0, 2, 0, 0, 0, 3]


def test_curves_are_means_over_seeds(results: dict[str, Result]) -> None:
    runs = [results["A1-2"], results["A1-10"]]
    its = series.curve(one(*runs), "ditto", "accuracy")
    naive = [[run.curves.values["ditto", "accuracy", s][1] for run in runs] for s in ("mean", "std")]
    assert its.t.tolist() == [2, 4, 6]
    assert (its.mean[1], its.std[1]) == (pytest.approx(np.mean(naive[0])), pytest.approx(np.mean(naive[1])))


def test_choices_of_benign_devices_add_up(results: dict[str, Result]) -> None:
    run = results["A1-2"]
    shares = series.chosen(one(run), "ditto")
    assert list(shares) == ["lam=0.1", "lam=1", "lam=2"]
    assert sum(shares.values()) == pytest.approx(1)
    picks = [pick for pick, bad in zip(run.devices.choices["ditto"], run.devices.malicious, strict=True) if not bad]
    assert shares["lam=1"] == pytest.approx(picks.count("lam=1") / len(picks))


@pytest.mark.parametrize("most", [1, 2, 4, 120])
def test_malicious_shares_by_round_keep_their_mean(results: dict[str, Result], most: int) -> None:
    run = results["A1-10"]
    its = series.drawn(one(run), most)
    assert its is not None
    assert len(its.t) <= most
    assert its.high.max() == (run.rounds.malicious / 3).max()
    if len(its.t) in (1, 2, 3, 6):  # steps of equal length
        assert its.mean.mean() == pytest.approx((run.rounds.malicious / 3).mean())
    assert its.expected == pytest.approx(2 / 7)
    assert series.drawn(one(results["clean-2"])) is None


def test_the_worst_devices_come_first_and_those_that_diverged_before_them() -> None:
    found = series.worst(
        one(made({"global": [0.5, 0.1, np.nan, 0.3], "v": [1, 1, 1, 1]}, malicious=[1])), "global", "accuracy"
    )
    assert [its.device for its in found] == ["device 2", "device 3", "device 0"]
    losses = series.worst(one(made({"global": [0.5, 0.1, np.inf, 0.3]}, metric="loss")), "global", "loss", 2)
    assert [its.device for its in losses] == ["device 2", "device 0"]
