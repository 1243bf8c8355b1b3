"""`dittofl theory`: which λ to expect, and what it gains."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dittofl.errors import InputError, require

LAMS = (0.0, 0.1, 1.0, 10.0, float("inf"))
NAMES = {0.0: "0 (local)", float("inf"): "∞ (global)"}


def _checked(_: Any, __: Any, figure: Path | None) -> Path | None:
    """Before anything is computed."""
    if figure is not None:
        from dittofl.theory.canvas import check

        check(figure)
    return figure


FIGURE = click.option(
    "--figure", type=click.Path(path_type=Path, dir_okay=False), callback=_checked,
    help="Draw it into this .png, .pdf or .svg.",
)  # fmt: skip


@click.group()
def theory() -> None:
    """The paper's theory. The best λ and its error, exact and simulated, and how fast v_k converges."""


def problem(command: Any) -> Any:
    """The options of both estimation problems."""
    count = click.IntRange(min=1)
    for option in reversed((
        click.option("--sigma", type=float, default=0.8, show_default=True, help="Std of a sample's noise."),
        click.option("--tau", type=float, default=0.1, show_default=True, help="Std of benign devices' true models."),
        click.option("--n", type=count, default=30, show_default=True, help="Samples of a device."),
        click.option("--devices", type=click.IntRange(min=2), default=8, show_default=True, help="K."),
        click.option("--malicious", type=click.IntRange(min=0), default=0, show_default=True, help="K_a of them."),
        click.option("--tau-a", type=float, help="Std of malicious devices' models; the paper's is above --tau."),
        click.option("--trials", type=click.IntRange(min=2), default=2000, show_default=True, help="Of simulations."),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
        FIGURE,
    )):  # fmt: skip
        command = option(command)
    return command


@theory.command("point-estimation")
@problem
@click.option(
    "--figures", type=click.Path(path_type=Path, file_okay=False),
    help="Draw the paper's Figures 2 and 3, in the paper's settings, into this folder, as PNG and PDF.",
)  # fmt: skip
def point_estimation(figures: Path | None, n: int, **given: Any) -> None:
    """F_k = ½ (w − x̄_k)²: every device estimates a mean."""
    from dittofl.theory.point import Point

    its = Point(n=n, **_named(given))
    if figures is not None:
        with _written(figures, "--figures"):
            figures.mkdir(parents=True, exist_ok=True)
    _told(its, its, given)
    if figures is not None:
        from dittofl.theory.figures import figure2, figure3

        for name, draw in (("figure2", figure2), ("figure3", figure3)):
            for ending in (".png", ".pdf"):
                path = figures / f"{name}{ending}"
                with _written(path, "--figures"):
                    draw(path, trials=given["trials"], seed=given["seed"])
                click.echo(str(path))


@theory.command("linear-regression")
@problem
@click.option("--d", type=click.IntRange(min=1), default=5, show_default=True, help="Dimensions.")
@click.option("--beta", type=float, help="X_kᵀX_k = β I (default: n).")
def linear_regression(n: int, d: int, beta: float | None, **given: Any) -> None:
    """F_k = 1/(2n) ‖X_k w − y_k‖² with X_kᵀX_k = β I."""
    import numpy as np

    from dittofl.theory.orthogonal import Orthogonal

    its = Orthogonal(n=n, d=d, beta=float(n) if beta is None else beta, **_named(given))
    _told(its, its.with_inputs(np.random.default_rng(given["seed"])), given)


@theory.command()
@click.option("--rounds", type=click.IntRange(min=2), default=400, show_default=True)
@click.option("--lam", "lams", type=float, multiple=True, default=(0.1, 1.0), show_default=True, help="λ; repeat it.")
@click.option("--seeds", type=click.IntRange(min=1), default=2, show_default=True, help="Runs to average.")
@click.option("--solver", type=click.Choice(["fedavg", "fedprox"]), default="fedavg", show_default=True)
@FIGURE
def convergence(rounds: int, lams: tuple[float, ...], seeds: int, solver: str, figure: Path | None) -> None:
    """‖v_k^t − v_k*‖² against ‖w^t − w*‖² on quadratics, with partial participation.

    A figure shows both solvers.
    """
    from dittofl.theory.convergence import FEDAVG, FEDPROX, Quadratics, run
    from dittofl.theory.figures import convergence_of

    solvers = {"fedavg": FEDAVG, "fedprox": FEDPROX}
    wanted = solvers if figure is not None else (solver,)
    traces = {
        name: run(Quadratics(), lams=lams, rounds=rounds, seeds=range(seeds), solved=solvers[name]) for name in wanted
    }
    trace = traces[solver]
    click.echo(f"{'':<10}{'at round ' + str(int(trace.t[-1])):>16}{'~ 1/t to the power':>20}{'largest over g(t)':>19}")
    click.echo(f"{'w':<10}{trace.w[-1]:>16.3g}{-trace.slope(trace.w):>20.2f}{1:>19}")
    for lam, v in trace.v.items():
        name = f"v, λ={lam:g}"
        click.echo(f"{name:<10}{v[-1]:>16.3g}{-trace.slope(v):>20.2f}{trace.ratio(lam).max():>19.2f}")
    if figure is not None:
        with _written(figure, "--figure"):
            convergence_of(figure, traces)
        click.echo(str(figure))


def _named(given: dict[str, Any]) -> dict[str, Any]:
    attacked, tau_a = given["malicious"] > 0, given["tau_a"]
    require(not attacked or tau_a is not None, f"--malicious {given['malicious']} needs --tau-a: give their spread")
    require(attacked or tau_a is None, f"--tau-a {tau_a} is of malicious devices: say how many, with --malicious")
    names = {"sigma": "sigma", "tau": "tau", "devices": "K", "malicious": "K_a", "tau_a": "tau_a"}
    return {ours: given[theirs] for theirs, ours in names.items()}


def _told(exact: Any, drawn: Any, given: dict[str, Any]) -> None:
    """A line for every λ: the exact error and spread over benign devices, and both simulated."""
    import numpy as np

    from dittofl.theory.simulation import simulate

    lams = sorted({*LAMS, exact.lam_star})
    its = simulate(drawn, lams, trials=given["trials"], rng=np.random.default_rng(given["seed"]))
    star = "λ*_a" if given["malicious"] else "λ*"
    least = f"{_number(exact.lam_star)}   least error {exact.least_error:.6f}"
    click.echo(f"{star} = {least}   fairest λ {_number(exact.fairest)}\n")
    click.echo(f"{'λ':<14}{'error':>11}{'simulated':>24}{'variance':>12}{'simulated':>24}")
    for i, lam in enumerate(lams):
        name = NAMES.get(lam, f"{star} = {lam:.4g}" if lam == exact.lam_star else f"{lam:g}")
        error, variance = float(exact.error(lam)), float(exact.variance(lam))
        click.echo(
            f"{name:<14}{error:>11.6f}{its.error[i]:>14.6f} ± {its.error_se[i]:.5f}"
            f"{variance:>12.3g}{its.variance[i]:>15.3g} ± {its.variance_se[i]:.1g}"
        )
    if given["figure"] is not None:
        from dittofl.theory.figures import figure_of

        with _written(given["figure"], "--figure"):
            figure_of(given["figure"], exact, drawn, trials=given["trials"], seed=given["seed"])
        click.echo(f"\n{given['figure']}")


def _number(lam: float) -> str:
    return "∞" if lam == float("inf") else f"{lam:.4f}"


@contextmanager
def _written(path: Path, option: str) -> Iterator[None]:
    """What goes wrong in writing a figure, told in one sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}): choose another {option}") from error
