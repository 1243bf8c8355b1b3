"""Figures 2 and 3 of the paper, with error bars that say what they are, and the convergence of v_k.

Bars come from Var, the variance of the squared error over the K_b benign devices averaged over trials: √Var is their
standard deviation, √(Var/K_b) the standard error of the benign mean. The paper says standard deviation throughout, but
its Figure 2 shows the standard error. Needs matplotlib: `pip install 'dittofl[plots]'`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from dittofl.errors import require
from dittofl.theory.canvas import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, YELLOW, canvas, check
from dittofl.theory.convergence import FEDAVG, FEDPROX, Quadratics, Trace, run
from dittofl.theory.orthogonal import Orthogonal
from dittofl.theory.point import Point
from dittofl.theory.simulation import Problem, Simulated, simulate

# Figure 2: the settings and the λ of the authors' simulation.
CLEAN = Point(sigma=0.8, n=30, tau=0.1, K=8)
ATTACKED = Point(sigma=0.8, n=30, tau=0.1, K=16, K_a=8, tau_a=0.5)
LAMS = [*np.arange(0, 3, 0.2), *np.arange(3, 10, 0.5), *np.arange(10, 200, 10)]

# Figure 3: the τ whose 1/τ lies on the paper's axis, 2 to 12.
TAUS = [0.0001 + 0.05 * i for i in range(2, 11)]
RELATED_CLEAN = Point(sigma=1.0, n=20, tau=0.1, K=20)
RELATED_PUBLISHED = Point(sigma=0.5, n=10, tau=0.1, K=10, K_a=3, tau_a=0.1)
GLOBAL = 1000.0  # the λ that stands for "global" there

ERROR = "mean squared error,\nbenign devices"
STANDARD_ERROR = "lines: exact; bars: ± one standard error of the mean over the benign devices of a trial"
STANDARD_DEVIATION = "lines: exact; marks: simulated; bars: + one standard deviation over the benign devices of a trial"
THREE = {"local (λ = 0)": (ORANGE, "s"), "global (λ → ∞)": (GREEN, "^"), "Ditto (λ = λ*)": (BLUE, "o")}
RATES = {"fedavg": "FedAvg, g(t) of order 1/t", "fedprox": "FedProx, g(t) of order 1/√t"}


def figure2(path: str | Path, *, trials: int = 10_000, seed: int = 0) -> None:
    """E (ŵ_k(λ) − w_k)² against λ, clean and with adversaries: simulated, exact, λ* as a line (Figure 2, fig:pe).

    Bars are ± one standard error of the mean over the benign devices of a trial, as in the paper's panels.
    """
    rng = np.random.default_rng(seed)
    with canvas(path, height=2.9, columns=2, note=STANDARD_ERROR) as axes:
        for ax, problem in zip(axes[0], (CLEAN, ATTACKED), strict=True):
            _against_lambda(ax, problem, simulate(problem, LAMS, trials=trials, rng=rng))
            ax.set(xlim=(0.15, 105), ylim=(0.002, 0.03))
        axes[0, 1].set_ylabel("")
        axes[0, 0].set_title("clean: 8 devices")
        axes[0, 1].set_title("adversarial: 8 of 16 devices, $\\tau_a$ = 0.5")


def figure_of(
    path: str | Path, exact: Point | Orthogonal, drawn: Problem, *, trials: int = 2000, seed: int = 0
) -> None:
    """Figure 2's panel for a problem of one's own: `exact` has the closed forms, `drawn` is what is simulated."""
    middle = exact.lam_star if 0 < exact.lam_star < math.inf else 1.0
    lams = [0.0, *np.geomspace(middle / 30, middle * 30, 30)]
    with canvas(path, height=3.2, columns=1, note=STANDARD_ERROR) as axes:
        rng = np.random.default_rng(seed)
        _against_lambda(axes[0, 0], exact, simulate(drawn, lams, trials=trials, rng=rng))
        axes[0, 0].set(xlim=(lams[1] / 1.2, lams[-1] * 1.2), ylim=(0, None))


def _against_lambda(ax: Any, problem: Point | Orthogonal, drawn: Simulated) -> None:
    inside = drawn.lam > 0  # λ = 0 has no place on a logarithmic axis
    lams = np.geomspace(drawn.lam[inside].min() / 1.4, drawn.lam.max() * 1.2, 200)
    bars = np.sqrt(drawn.variance / problem.K_b)[inside]
    dots = {"fmt": "o", "markersize": 2.2, "elinewidth": 0.8, "color": BLUE, "ecolor": SKY}
    ax.errorbar(drawn.lam[inside], drawn.error[inside], bars, label="Ditto, simulated", **dots)
    ax.plot(lams, problem.error(lams), color=BLUE, label="Ditto, exact")
    for name, lam, style in (("local (λ = 0)", 0.0, ":"), ("global (λ → ∞)", math.inf, "--")):
        ax.axhline(float(problem.error(lam)), color=GREY, linestyle=style, linewidth=1, label=f"{name}, exact")
    apart = problem.fairest > 1.001 * problem.lam_star
    _line(
        ax, problem.lam_star, ORANGE, "λ of the least error: $\\lambda^*$, $\\lambda^*_a$", "right" if apart else "left"
    )
    if apart:
        _line(ax, problem.fairest, GREEN, "λ of the least variance", "left")
    ax.set(xlabel="λ", ylabel=ERROR, xscale="log")
    ax.xaxis.set_major_formatter("{x:g}")


def _line(ax: Any, lam: float, colour: str, label: str, side: str) -> None:
    """A vertical line at λ with its value beside it."""
    if not 0 < lam < math.inf:
        return
    ax.axvline(lam, color=colour, linewidth=1.2, label=label)
    where = {"xytext": (3 if side == "left" else -3, 0), "textcoords": "offset points", "ha": side}
    ax.annotate(f"{lam:#.3g}", (lam, 0.02), xycoords=ax.get_xaxis_transform(), color=colour, **where)


def figure3(path: str | Path, *, trials: int = 10_000, seed: int = 0, tau_a: float = 1.0) -> None:
    """The error against relatedness 1/τ of local, global and Ditto at λ*(τ), and λ*(τ) below (Figure 3, fig:pe_2).

    Bars are one standard deviation over the benign devices of a trial, as in the paper, but upwards only, as most would
    pass 0, and on a logarithmic axis, which shows local and Ditto apart. In the paper's panel "adversarial" τ_a = 0.1
    is below every τ shown: no device is further from θ than a benign one. The last panel is adversarial: τ_a ≥ 1.
    """
    require(tau_a > max(TAUS), f"figure3 needs tau_a > {max(TAUS):g}, the largest τ shown, got tau_a={tau_a}")
    rng = np.random.default_rng(seed)
    panels = {
        "clean: 20 devices": RELATED_CLEAN,
        "as published: 3 of 10 devices,\n$\\tau_a$ = 0.1 ≤ τ": RELATED_PUBLISHED,
        f"adversarial: 3 of 10 devices,\n$\\tau_a$ = {tau_a:g}": replace(RELATED_PUBLISHED, tau_a=tau_a),
    }
    with canvas(path, height=3.7, columns=3, rows=(3, 1), note=STANDARD_DEVIATION) as axes:
        for (above, below), (title, problem) in zip(axes.T, panels.items(), strict=True):
            _against_relatedness(above, problem, trials, rng)
            between = [replace(problem, tau=tau) for tau in np.linspace(TAUS[0], TAUS[-1], 80)]
            exact = np.array([one.error([0.0, GLOBAL, one.lam_star]) for one in between])
            for error, (colour, _) in zip(exact.T, THREE.values(), strict=True):
                above.plot([1 / one.tau for one in between], error, color=colour, linewidth=1)
            below.plot([1 / one.tau for one in between], [one.lam_star for one in between], color=BLUE)
            above.set(title=title, yscale="log", ylim=(0.006, 0.7), xlim=(1.6, 10.6))
            below.set(xlabel="relatedness 1/τ", xlim=(1.6, 10.6), ylim=(0, 5.4))
            above.tick_params(labelbottom=False)
        axes[0, 0].set_ylabel(ERROR)
        axes[1, 0].set_ylabel("λ*")


def _against_relatedness(ax: Any, problem: Point, trials: int, rng: np.random.Generator) -> None:
    problems = [replace(problem, tau=tau) for tau in TAUS]
    drawn = [simulate(one, [0.0, GLOBAL, one.lam_star], trials=trials, rng=rng) for one in problems]
    x = 1 / np.array(TAUS)
    for j, (label, (colour, mark)) in enumerate(THREE.items()):
        error = np.array([one.error[j] for one in drawn])
        up = np.sqrt([one.variance[j] for one in drawn])
        dots = {"fmt": mark, "markersize": 2.6, "elinewidth": 0.8, "color": colour, "label": label}
        # Aside by a little, so that bars do not cover each other.
        ax.errorbar(x + 0.07 * (j - 1), error, [np.zeros_like(up), up], **dots)


def figure_convergence(
    path: str | Path, *, rounds: int = 1000, seeds: Sequence[int] = range(4), lams: Sequence[float] = (0.1, 1.0, 10.0)
) -> None:
    """E ‖v_k^t − v_k*‖² against t for FedAvg (g of order 1/t) and FedProx (1/√t), and its ratio to g(t) below it."""
    check(path)
    solvers = {"fedavg": FEDAVG, "fedprox": FEDPROX}
    options: dict[str, Any] = {"lams": lams, "rounds": rounds, "seeds": seeds}
    convergence_of(path, {name: run(Quadratics(), solved=solved, **options) for name, solved in solvers.items()})


def convergence_of(path: str | Path, traces: Mapping[str, Trace]) -> None:
    """The panels of traces of "fedavg" and "fedprox"."""
    colours = (BLUE, ORANGE, GREEN, PURPLE, YELLOW, SKY)
    with canvas(path, height=4.6, columns=len(traces), rows=(3, 2)) as axes:
        for (above, below), (name, trace) in zip(axes.T, traces.items(), strict=True):
            above.loglog(trace.t, trace.w, color=GREY, label="$w^t$")
            above.loglog(
                trace.t, trace.g, color="black", linestyle="--", linewidth=1, label="g(t), the least bound of w"
            )
            for (lam, v), colour in zip(trace.v.items(), cycle(colours)):
                above.loglog(trace.t, v, color=colour, label=f"$v_k^t$, λ = {lam:g}")
                below.loglog(trace.t, trace.ratio(lam), color=colour)
            above.set_title(RATES[name])
            below.set_xlabel("round t")
        axes[0, 0].set_ylabel("squared distance\nto the optimum")
        axes[1, 0].set_ylabel("squared distance\nof $v_k^t$ over g(t)")
