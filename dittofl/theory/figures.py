"""Figures 2 and 3 of the paper, with error bars that say what they are, and the convergence of v_k.

Bars come from Var, the variance of the squared error over the K_b benign devices averaged over trials: √Var is their
standard deviation, √(Var/K_b) the standard error of the benign mean. The paper says standard deviation throughout, but
its Figure 2 shows the standard error. Needs matplotlib: `pip install 'dittofl[plots]'`.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dittofl.errors import InputError, require
from dittofl.theory.convergence import FEDAVG, FEDPROX, Quadratics, run
from dittofl.theory.point import Point
from dittofl.theory.simulation import Simulated, simulate

# Figure 2: the settings and the λ of the authors' simulation.
CLEAN = Point(sigma=0.8, n=30, tau=0.1, K=8)
ATTACKED = Point(sigma=0.8, n=30, tau=0.1, K=16, K_a=8, tau_a=0.5)
LAMS = [*np.arange(0, 3, 0.2), *np.arange(3, 10, 0.5), *np.arange(10, 200, 10)]

# Figure 3: the τ whose 1/τ lies on the paper's axis, 2 to 12.
TAUS = [0.0001 + 0.05 * i for i in range(2, 11)]
RELATED_CLEAN = Point(sigma=1.0, n=20, tau=0.1, K=20)
RELATED_PUBLISHED = Point(sigma=0.5, n=10, tau=0.1, K=10, K_a=3, tau_a=0.1)
GLOBAL = 1000.0  # the λ that stands for "global" there

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#666666"
COLOURS = (BLUE, ORANGE, GREEN, "#cc79a7", "#e69f00", "#56b4e9")
FIGURE3_COLOURS = {"local": ORANGE, "global": GREEN, "Ditto (λ*)": BLUE}


def _canvas(columns: int, lines: int = 1) -> tuple[Any, Any]:
    """A figure and its axes. No pyplot: that would keep figures in a global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("figures need matplotlib, which is missing: pip install 'dittofl[plots]'") from error
    figure = Figure(figsize=(4.4 * columns, 3.6 * lines + 0.6), dpi=150, layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25, linewidth=0.6)
    return figure, axes.flat


def _save(figure: Any, path: str | Path, ax: Any) -> None:
    """Saves it with the legend of one panel below all of them."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    figure.savefig(path)


def figure2(path: str | Path, *, trials: int = 10_000, seed: int = 0) -> None:
    """Test error against λ, clean and with adversaries: simulated, exact, λ* as a vertical line (Figure 2, fig:pe).

    Bars are ± one standard error of the mean over the benign devices of a trial, as in the paper's panels.
    """
    figure, (left, right) = _canvas(2)
    rng = np.random.default_rng(seed)
    for ax, problem in ((left, CLEAN), (right, ATTACKED)):
        _against_lambda(ax, problem, simulate(problem, LAMS, trials=trials, rng=rng))
        ax.set(xlabel="λ", ylabel="test error on benign devices", xscale="log", xlim=(0.15, 105), ylim=(0, 0.03))
    left.set_title("clean: 8 devices")
    right.set_title("adversarial: 8 of 16 devices, $\\tau_a$ = 0.5")
    _save(figure, path, right)


def _against_lambda(ax: Any, problem: Point, drawn: Simulated) -> None:
    lams, inside = np.geomspace(0.15, 105, 200), drawn.lam > 0  # λ = 0 has no place on a logarithmic axis
    bars = np.sqrt(drawn.variance / problem.K_b)[inside]
    label = "Ditto, simulated ± standard error over benign devices"
    points = {"fmt": "o", "markersize": 2.5, "elinewidth": 0.7, "capsize": 1.5, "color": BLUE, "label": label}
    ax.errorbar(drawn.lam[inside], drawn.error[inside], bars, **points)
    ax.plot(lams, problem.error(lams), color=BLUE, linewidth=1, label="Ditto, exact")
    for name, lam, style in (("local", 0.0, ":"), ("global", math.inf, "--")):
        ax.axhline(float(problem.error(lam)), color=GREY, linestyle=style, linewidth=1, label=f"{name}, exact")
    _line(ax, problem.lam_star, ORANGE, "least error: $\\lambda^*$, $\\lambda^*_a$", "right" if problem.K_a else "left")
    if problem.K_a:
        _line(ax, problem.fairest, GREEN, "least variance over benign devices", "left")


def _line(ax: Any, lam: float, colour: str, label: str, side: str) -> None:
    """A vertical line at λ with its value beside it."""
    ax.axvline(lam, color=colour, linewidth=1.4, label=label)
    where = {"xytext": (4 if side == "left" else -4, 0), "textcoords": "offset points", "ha": side}
    ax.annotate(f"{lam:.2f}", (lam, 0.96), xycoords=ax.get_xaxis_transform(), color=colour, fontsize=9, **where)


def figure3(path: str | Path, *, trials: int = 10_000, seed: int = 0, tau_a: float = 1.0) -> None:
    """Test error against relatedness 1/τ of local, global and Ditto at λ*(τ) (Figure 3, fig:pe_2).

    Bars are one standard deviation over the benign devices of a trial, as in the paper, but upwards only, as most would
    pass 0, and on a logarithmic axis, which shows local and Ditto apart. In the paper's panel "adversarial" τ_a = 0.1
    is below every τ shown: no device is further from θ than a benign one. The last panel is adversarial: τ_a ≥ 1.
    """
    require(tau_a > max(TAUS), f"figure3 needs tau_a > {max(TAUS):g}, the largest τ shown, got tau_a={tau_a}")
    figure, axes = _canvas(3)
    rng = np.random.default_rng(seed)
    titles = {
        "clean: 20 devices": RELATED_CLEAN,
        "as published: 3 of 10 devices, $\\tau_a$ = 0.1 ≤ τ": RELATED_PUBLISHED,
        f"adversarial: 3 of 10 devices, $\\tau_a$ = {tau_a:g}": replace(RELATED_PUBLISHED, tau_a=tau_a),
    }
    for ax, (title, problem) in zip(axes, titles.items(), strict=True):
        _against_relatedness(ax, problem, trials, rng)
        ax.set(title=title, xlabel="relatedness 1/τ", ylabel="test error on benign devices", yscale="log")
        ax.set_ylim(0.006, 0.7)
    _save(figure, path, axes[0])


def _against_relatedness(ax: Any, problem: Point, trials: int, rng: np.random.Generator) -> None:
    problems = [replace(problem, tau=tau) for tau in TAUS]
    drawn = [simulate(one, [0.0, GLOBAL, one.lam_star], trials=trials, rng=rng) for one in problems]
    exact = np.array([one.error([0.0, GLOBAL, one.lam_star]) for one in problems])
    x = 1 / np.array(TAUS)
    for j, (name, colour) in enumerate(FIGURE3_COLOURS.items()):
        error = np.array([one.error[j] for one in drawn])
        up = np.sqrt([one.variance[j] for one in drawn])
        label = f"{name}: exact, simulated + std. dev. over benign devices"
        points = {"fmt": "o", "markersize": 3, "elinewidth": 1, "capsize": 2, "color": colour, "label": label}
        # Aside by a little, so that bars do not cover each other.
        ax.errorbar(x + 0.07 * (j - 1), error, [np.zeros_like(up), up], **points)
        ax.plot(x, exact[:, j], color=colour, linewidth=1)


def figure_convergence(
    path: str | Path, *, rounds: int = 1000, seeds: Sequence[int] = range(4), lams: Sequence[float] = (0.1, 1.0, 10.0)
) -> None:
    """E ‖v_k^t − v_k*‖² against t for FedAvg (g of order 1/t) and FedProx (1/√t), and its ratio to g(t) below it."""
    figure, axes = _canvas(2, 2)
    panels = {"FedAvg, g(t) of order 1/t": FEDAVG, "FedProx, g(t) of order 1/√t": FEDPROX}
    for above, below, (title, solved) in zip(axes[:2], axes[2:], panels.items(), strict=True):
        trace = run(Quadratics(), lams=lams, rounds=rounds, seeds=seeds, solved=solved)
        above.loglog(trace.t, trace.w, color=GREY, label="w")
        above.loglog(trace.t, trace.g, color="black", linestyle="--", linewidth=1, label="g(t), least bound of w")
        for (lam, v), colour in zip(trace.v.items(), COLOURS * len(lams), strict=False):
            above.loglog(trace.t, v, color=colour, label=f"v, λ = {lam:g}")
            below.loglog(trace.t, trace.ratio(lam), color=colour)
        above.set(title=title, xlabel="round t", ylabel="squared distance to the optimum")
        below.set(xlabel="round t", ylabel="squared distance of v over g(t)")
    _save(figure, path, axes[0])
