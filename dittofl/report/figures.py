"""Figures for a paper, as SVG and PNG, by matplotlib (the extra `plots`)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dittofl.errors import InputError
from dittofl.experiment.files import told
from dittofl.method import GLOBAL
from dittofl.report import series
from dittofl.report.conditions import Condition, conditions, lead_metric
from dittofl.report.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Apart for every kind of colour vision (after Okabe, Ito 2008), and darkened until thin lines show on white.
COLOURS = ("#4a4f57", "#0072b2", "#c4500a", "#00805e", "#a8467f", "#8f6b00", "#3d86c6", "#7a5230")
MARKS = "os^DxP*v"
STYLE: Mapping[Any, Any] = {
    "font.size": 8, "axes.titlesize": 8, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6,
    "lines.linewidth": 1.2, "legend.frameon": False, "xtick.major.width": 0.6, "ytick.major.width": 0.6,
    "text.parse_math": False, "text.usetex": False, "svg.hashsalt": "dittofl", "svg.fonttype": "path",
}  # fmt: skip
PANEL = (1.9, 1.5)  # inches


def figures(results: Sequence[Result], folder: Path, metric: str | None = None) -> list[Path]:
    """Draws every figure into a folder and returns the files; what is there under these names is replaced."""
    found = conditions(results)
    metric, places = lead_metric(found, metric), series.order(found)
    with styled(), told(folder):
        folder.mkdir(parents=True, exist_ok=True)
        return [path for name, figure in _all(found, metric, places) for path in _saved(figure, folder, name)]


def _all(found: Sequence[Condition], metric: str, places: Mapping[str, int]) -> "Iterator[tuple[str, Figure]]":
    for i, condition in enumerate(found, 1):
        word = f"{i}-{re.sub(r'[^A-Za-z0-9.=-]+', '-', condition.title).strip('-.')[:60]}"
        yield f"curves-{word}", curves(condition, metric, places)
        yield f"histograms-{word}", histograms(condition, metric, places)
    yield "fairness", fairness(found, metric, places)
    if any(condition.choices for condition in found):
        yield "chosen", chosen([(c, name) for c in found for name in c.choices], places)
    if any(series.drawn(condition) for condition in found):
        yield "malicious", malicious([c for c in found if series.drawn(c)])


def curves(condition: Condition, metric: str, places: Mapping[str, int]) -> "Figure":
    """Mean ± std by round, a panel a model; thin: the global model's mean."""
    figure, panels = _panels(condition.models)
    reference, (low, high) = series.curve(condition, GLOBAL, metric), series.reach(condition, metric)
    for model, panel in zip(condition.models, panels, strict=True):
        its, colour = series.curve(condition, model, metric), _colour(places[model])
        panel.fill_between(its.t, its.mean - its.std, its.mean + its.std, color=colour, alpha=0.2, linewidth=0)
        if model != GLOBAL:
            panel.plot(reference.t, reference.mean, color=_colour(0), linewidth=0.6)
        panel.plot(its.t, its.mean, color=colour, linestyle="--" if places[model] >= len(COLOURS) else "-")
        panel.set_ylim(low, high)
    _named(figure, "round", metric)
    return figure


def histograms(condition: Condition, metric: str, places: Mapping[str, int]) -> "Figure":
    """Share of benign devices by their metric, a panel a model; dashed: the mean."""
    figure, panels = _panels(condition.models)
    low, high = series.span(condition, metric)
    for model, panel in zip(condition.models, panels, strict=True):
        values = series.devices(condition, model, metric)
        edges, heights = series.histogram(values, low, high)
        panel.bar(edges[:-1], heights, np.diff(edges) * 0.94, align="edge", color=_colour(places[model]))
        if len(values) and np.isfinite(values).all():
            panel.axvline(min(float(values.mean()), high), color="black", linewidth=0.8, linestyle="--")
    _named(figure, f"{metric} of a device", "share of devices")
    return figure


def fairness(found: Sequence[Condition], metric: str, places: Mapping[str, int]) -> "Figure":
    """Mean against standard deviation over devices, a panel a condition, a mark a seed."""
    figure, panels = _panels([condition.title for condition in found], share=False)
    for condition, panel in zip(found, panels, strict=True):
        for model in condition.models:
            xs, ys = zip(*series.points(condition, model, metric), strict=True)
            place = places[model]
            panel.locator_params(nbins=4)
            panel.plot(xs, ys, MARKS[place % len(MARKS)], color=_colour(place), markersize=3.5, label=model)
    marks = {name: mark for panel in panels for mark, name in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.set_figwidth(figure.get_figwidth() + 1)
    figure.legend(marks.values(), marks.keys(), loc="outside right center")
    _named(figure, "standard deviation over devices", f"mean {metric}")
    return figure


def chosen(choices: Sequence[tuple[Condition, str]], places: Mapping[str, int]) -> "Figure":
    """Share of benign devices that chose each row, a panel a choice."""
    figure, panels = _panels([condition.title for condition, _ in choices], share=False)
    for (condition, name), panel in zip(choices, panels, strict=True):
        shares = series.chosen(condition, name)
        panel.bar(list(shares), list(shares.values()), color=[_colour(places[row]) for row in shares])
        panel.set_ylim(0, 1)
        panel.tick_params(axis="x", rotation=30)
    _named(figure, "", "share of devices")
    return figure


def malicious(found: Sequence[Condition]) -> "Figure":
    """Share of malicious devices among those drawn by round; dashed: their share of all devices."""
    figure, panels = _panels([condition.title for condition in found])
    for condition, panel in zip(found, panels, strict=True):
        if its := series.drawn(condition):
            panel.fill_between(its.t, its.low, its.high, color=COLOURS[0], alpha=0.25, linewidth=0)
            panel.plot(its.t, its.mean, color=COLOURS[0], linewidth=0.8)
            panel.axhline(its.expected, color="black", linewidth=0.8, linestyle="--")
        panel.set_ylim(0, 1)
    _named(figure, "round", "malicious in the cohort")
    return figure


@contextmanager
def styled() -> Iterator[None]:
    """Our style, for this block; matplotlib is wanted here and nowhere else."""
    try:
        import matplotlib
    except ImportError as error:
        raise InputError("figures need matplotlib, which is not installed: pip install 'dittofl[plots]'") from error
    with matplotlib.rc_context(dict(STYLE)):
        yield


def _panels(titles: Sequence[str], *, share: bool = True) -> "tuple[Figure, list[Axes]]":
    """A figure with a small panel for each title, at most three in a row."""
    from matplotlib.figure import Figure

    across = 2 if len(titles) == 4 else min(len(titles), 3)
    down = -(-len(titles) // across)
    figure = Figure(figsize=(max(PANEL[0] * across, 2.6), PANEL[1] * down + 0.4), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False, sharex=share, sharey=share).ravel().tolist()
    for panel in grid[len(titles) :]:
        panel.remove()
    for title, panel in zip(titles, grid, strict=False):
        panel.set_title(title if len(title) <= 40 else f"{title[:39]}…", loc="left")
        panel.tick_params(labelbottom=True, labelleft=True)
    return figure, grid[: len(titles)]


def _named(figure: "Figure", x: str, y: str) -> None:
    figure.supxlabel(x, fontsize=8)
    figure.supylabel(y, fontsize=8)


def _saved(figure: "Figure", folder: Path, name: str) -> Iterator[Path]:
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # found once, for both files
    for ending, metadata in (("svg", {"Date": None}), ("png", {})):
        path = folder / f"{name}.{ending}"
        figure.savefig(path, dpi=300, metadata=metadata)
        yield path


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]
