"""What the figures show is what the formulas say."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dittofl import InputError
from dittofl.theory import figures
from dittofl.theory.simulation import simulate


@pytest.fixture
def panels(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The axes of the figures that are saved."""
    seen: list[Any] = []
    save = figures._save
    monkeypatch.setattr(figures, "_save", lambda figure, path, ax: (seen.extend(figure.axes), save(figure, path, ax)))
    return seen


def vertical(ax: Any) -> list[float]:
    lines = (np.asarray(line.get_xdata(), dtype=float) for line in ax.get_lines())
    return [x[0] for x in lines if len(x) == 2 and x[0] == x[1]]


def test_figure_2(tmp_path: Path, panels: list[Any]) -> None:
    figures.figure2(tmp_path / "2.png", trials=200)
    assert (tmp_path / "2.png").read_bytes().startswith(b"\x89PNG")
    clean, attacked = panels
    assert_allclose(vertical(clean), [figures.CLEAN.lam_star])
    assert_allclose(vertical(attacked), [figures.ATTACKED.lam_star, figures.ATTACKED.fairest])
    drawn = simulate(figures.CLEAN, figures.LAMS, trials=200, rng=np.random.default_rng(0))
    bars = clean.containers[0]
    assert "standard error" in bars.get_label()
    low, high = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()]).T
    assert_allclose((high - low) / 2, np.sqrt(drawn.variance[1:] / 8))
    assert_allclose(bars.lines[0].get_ydata(), drawn.error[1:])
    assert all(ax.get_xscale() == "log" and ax.get_xlabel() == "λ" for ax in panels)


def test_figure_3(tmp_path: Path, panels: list[Any]) -> None:
    figures.figure3(tmp_path / "3.pdf", trials=200, tau_a=1.5)
    assert (tmp_path / "3.pdf").read_bytes().startswith(b"%PDF")
    assert len(panels) == 3
    assert "1.5" in panels[2].get_title()
    assert min(figures.TAUS) > figures.RELATED_PUBLISHED.tau_a  # the paper's panel is not adversarial
    for ax in panels:
        local, global_, ditto = (np.asarray(ax.containers[j].lines[0].get_ydata()) for j in range(3))
        assert (ditto < 1.05 * np.minimum(local, global_)).all()
        assert global_[-1] > 3 * local[-1]  # 1/τ = 2: local is better than global
        assert all("std. dev." in bars.get_label() for bars in ax.containers)
    clean, _, attacked = panels
    at_10 = [[ax.containers[j].lines[0].get_ydata()[0] for j in range(2)] for ax in (clean, attacked)]
    assert at_10[0][1] < at_10[0][0]  # related and clean: global is better
    assert at_10[1][1] > at_10[1][0]  # under attack it never is
    with pytest.raises(InputError, match="tau_a >"):
        figures.figure3(tmp_path / "4.png", tau_a=0.1)


def test_the_figure_of_convergence(tmp_path: Path, panels: list[Any]) -> None:
    figures.figure_convergence(tmp_path / "c.png", rounds=12, seeds=(0,), lams=(1.0,))
    assert len(panels) == 4
    assert [len(ax.get_lines()) for ax in panels] == [3, 3, 1, 1]


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pip install 'dittofl\[plots\]'"):
        figures.figure2(tmp_path / "2.png")
