"""What the figures show is what the formulas say, at the size they have in a paper."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dittofl import InputError
from dittofl.theory import Orthogonal, Point, figures
from dittofl.theory.canvas import WIDTH, canvas
from dittofl.theory.simulation import simulate


@pytest.fixture
def panels(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The axes of the figures that are saved, each figure of a paper's width with nothing outside of it."""
    seen: list[Any] = []

    @contextmanager
    def watched(*given: Any, **named: Any) -> Iterator[Any]:
        with canvas(*given, **named) as axes:
            yield axes
        figure = axes.flat[0].figure
        box = figure.get_tightbbox()
        assert (figure.get_figwidth(), bool(min(box.x0, box.y0) >= 0)) == (WIDTH, True)
        assert (box.x1 <= WIDTH, bool(box.y1 <= figure.get_figheight())) == (True, True)
        assert min(text.get_fontsize() for text in figure.findobj(lambda one: hasattr(one, "get_fontsize"))) >= 5
        seen.extend(axes.flat)

    monkeypatch.setattr(figures, "canvas", watched)
    return seen


def vertical(ax: Any) -> list[float]:
    lines = (np.asarray(line.get_xdata(), dtype=float) for line in ax.get_lines())
    return [x[0] for x in lines if len(x) == 2 and x[0] == x[1]]


def note(ax: Any) -> str:
    return str(ax.figure.legends[0].get_title().get_text())


def half_bars(bars: Any) -> np.ndarray:
    low, high = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()]).T
    return np.asarray(high - low) / 2


def test_figure_2(tmp_path: Path, panels: list[Any]) -> None:
    figures.figure2(tmp_path / "2.png", trials=200)
    assert (tmp_path / "2.png").read_bytes().startswith(b"\x89PNG")
    clean, attacked = panels
    assert_allclose(vertical(clean), [figures.CLEAN.lam_star])
    assert_allclose(vertical(attacked), [figures.ATTACKED.lam_star, figures.ATTACKED.fairest])
    drawn = simulate(figures.CLEAN, figures.LAMS, trials=200, rng=np.random.default_rng(0))
    bars = clean.containers[0]
    assert "standard error" in note(clean)
    assert_allclose(half_bars(bars), np.sqrt(drawn.variance[1:] / 8))
    assert_allclose(bars.lines[0].get_ydata(), drawn.error[1:])
    for ax in panels:
        assert (ax.get_xscale(), ax.get_xlabel(), ax.get_ylim()) == ("log", "λ", (0.002, 0.03))


def test_figure_3(tmp_path: Path, panels: list[Any]) -> None:
    figures.figure3(tmp_path / "3.pdf", trials=200, tau_a=1.5)
    assert (tmp_path / "3.pdf").read_bytes().startswith(b"%PDF")
    above, below = panels[:3], panels[3:]
    assert "1.5" in above[2].get_title()
    assert "standard deviation" in note(above[0])
    assert min(figures.TAUS) > figures.RELATED_PUBLISHED.tau_a  # the paper's panel is not adversarial
    for ax in above:
        local, global_, ditto = (np.asarray(ax.containers[j].lines[0].get_ydata()) for j in range(3))
        assert (ditto < 1.05 * np.minimum(local, global_)).all()
        assert global_[-1] > 3 * local[-1]  # 1/τ = 2: local is better than global
        marks = {bars.lines[0].get_marker() for bars in ax.containers}
        assert len(marks) == 3  # apart without colours too
    clean, _, attacked = above
    at_10 = [[ax.containers[j].lines[0].get_ydata()[0] for j in range(2)] for ax in (clean, attacked)]
    assert at_10[0][1] < at_10[0][0]  # related and clean: global is better
    assert at_10[1][1] > at_10[1][0]  # under attack it never is
    for ax in below:  # λ* grows with relatedness
        x, lam = (np.asarray(its) for its in ax.get_lines()[0].get_data())
        assert (np.diff(lam[np.argsort(x)]) > 0).all()
    assert_allclose(below[0].get_lines()[0].get_ydata()[0], figures.RELATED_CLEAN.s / figures.TAUS[0] ** 2)
    with pytest.raises(InputError, match="tau_a >"):
        figures.figure3(tmp_path / "4.png", tau_a=0.1)


def test_the_exact_lines_of_figure_3_pass_through_what_is_simulated(tmp_path: Path, panels: list[Any]) -> None:
    figures.figure3(tmp_path / "3.svg", trials=4000)
    for ax in panels[:3]:
        lines = [line for line in ax.get_lines() if len(line.get_xdata()) > len(figures.TAUS)]
        for line, bars in zip(lines, ax.containers, strict=True):
            x, order = 1 / np.array(figures.TAUS), np.argsort(line.get_xdata())
            exact = np.interp(x, *(np.asarray(its)[order] for its in line.get_data()))
            assert_allclose(bars.lines[0].get_ydata(), exact, rtol=0.1)
            assert line.get_color() == bars.lines[0].get_color()


@pytest.mark.parametrize(
    "its",
    [
        Point(sigma=2.0, n=5, tau=0.3, K=12, K_a=3, tau_a=1.0),
        Point(sigma=2.0, n=5, tau=0.0, K=12),
        Orthogonal(sigma=1.0, n=8, d=3, beta=4.0, tau=0.5, K=6),
    ],
    ids=["attacked", "all alike", "regression"],
)
def test_a_figure_of_ones_own(its: Any, tmp_path: Path, panels: list[Any]) -> None:
    drawn = its if isinstance(its, Point) else its.with_inputs(np.random.default_rng(0))
    figures.figure_of(tmp_path / "own.png", its, drawn, trials=2000)
    (ax,) = panels
    expected = [its.lam_star, its.fairest] if its.K_a else [its.lam_star] if its.tau else []
    assert_allclose(vertical(ax), expected)
    dots = ax.containers[0].lines[0]
    assert_allclose(dots.get_ydata(), its.error(dots.get_xdata()), rtol=0.1)
    assert_allclose(half_bars(ax.containers[0]), np.sqrt(its.variance(dots.get_xdata()) / its.K_b), rtol=0.1)


def test_the_figure_of_convergence(tmp_path: Path, panels: list[Any]) -> None:
    figures.figure_convergence(tmp_path / "c.png", rounds=12, seeds=(0,), lams=(1.0,))
    assert len(panels) == 4
    assert [len(ax.get_lines()) for ax in panels] == [3, 3, 1, 1]


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pip install 'dittofl\[plots\]'"):
        figures.figure2(tmp_path / "2.png")


def test_a_wrong_path_is_told_before_anything_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "simulate", None)
    monkeypatch.setattr(figures, "run", None)
    for draw in (figures.figure2, figures.figure3, figures.figure_convergence):
        with pytest.raises(InputError, match=r"'x\.doc': end it in \.png, \.pdf or \.svg"):
            draw(tmp_path / "x.doc")
        with pytest.raises(InputError, match="there is no folder"):
            draw(tmp_path / "none" / "x.png")
