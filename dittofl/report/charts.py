"""The page's charts of a condition."""

from collections.abc import Mapping
from math import isfinite, nan

from dittofl.method import GLOBAL
from dittofl.report import series
from dittofl.report.conditions import Condition
from dittofl.report.interval import number
from dittofl.report.svg import SHAPES, Axis, Chart, axis, text

COLOURS = 8
NAME = 16  # letters of a model's name in a chart


def style(place: int) -> str:
    """The classes of a model's colour and, where the colours have gone round, of its dashes."""
    return f"m{place % COLOURS}" + (" dashed" if place >= COLOURS else "")


def symbol(place: int) -> str:
    """A model's mark, for a legend."""
    kind = "open" if place % len(SHAPES) >= 4 else "full"
    path = f'<path class="{kind} {style(place)}" d="{SHAPES[place % len(SHAPES)]}"/>'
    return f'<svg viewBox="-6 -6 12 12" width="12" height="12" aria-hidden="true">{path}</svg>'


def glance(condition: Condition, metric: str, places: Mapping[str, int], ends: tuple[float, float]) -> str:
    """A row a model: a mark at the mean over devices, and a line from there to the mean of their worst tenth."""
    models, letters = condition.models, min(NAME, max(map(len, places)))
    x, y = axis(*ends, metric, count=4), Axis(low=0.0, high=1.0)
    frame = Chart(x=x, y=y, width=300, height=38 + 19 * len(models), letters=letters)
    parts = [frame.columns()]
    for i, model in enumerate(models):
        mean, worst = (condition.score(model, metric, its).mean for its in ("mean", "worst10"))
        place, height = places[model], 1 - (i + 0.5) / len(models)
        name = model if len(model) <= NAME else f"{model[: NAME - 1]}…"
        parts += [frame.row(height, name, mean, worst, style(place)), frame.mark(mean, height, place, style(place))]
    return frame.svg(f"{condition.title}: {metric} of each model, mean over devices and over their worst tenth", *parts)


def curves(condition: Condition, metric: str, places: Mapping[str, int]) -> dict[str, str]:
    """Mean ± std by round for each model, with the global model's mean behind."""
    reference = series.curve(condition, GLOBAL, metric)
    low, high = series.reach(condition, metric)
    last = float(max(run.rounds.t.max(initial=1) for run in condition.runs))
    frame = Chart(x=axis(0.0, last, "round", count=3), y=axis(low, high))
    drawn = {}
    for model in condition.models:
        its = series.curve(condition, model, metric)
        mine = style(places[model])
        drawn[model] = frame.svg(
            f"{metric} of {model} by round, mean and standard deviation over benign devices",
            frame.band(its.t, its.mean - its.std, its.mean + its.std, mine),
            frame.line(reference.t, reference.mean, "behind") if model != GLOBAL else "",
            frame.line(its.t, its.mean, mine),
        )
    return drawn


def histograms(condition: Condition, metric: str, places: Mapping[str, int]) -> dict[str, str]:
    """Share of benign devices by their metric, with the mean as a line."""
    low, high = series.span(condition, metric)
    values = {model: series.devices(condition, model, metric) for model in condition.models}
    bins = {model: series.histogram(its, low, high) for model, its in values.items()}
    top = max(float(heights.max()) for _, heights in bins.values()) or 1.0
    x, y = axis(low, high, f"{metric} of a device", count=3), axis(0.0, top, percent=True, count=3)
    frame, drawn = Chart(x=x, y=y, height=110), {}
    for model, (edges, heights) in bins.items():
        mean = float(values[model].mean()) if len(values[model]) else nan
        drawn[model] = frame.svg(
            f"{metric} of {model} on benign devices: mean {number(mean)}",
            frame.bars(edges, heights, style(places[model])),
            frame.rule(x=mean, style="mean") if isfinite(mean) else "",
        )
    return drawn


def scatter(condition: Condition, metric: str, places: Mapping[str, int]) -> str:
    """Accuracy against fairness: mean over devices by their standard deviation, a mark for each seed and model."""
    (left, right), (low, high) = series.corners(condition, metric)
    frame = Chart(
        x=axis(left, right, "std over devices (fair: left)", count=4), y=axis(low, high, f"mean {metric}"),
        width=300, height=220, top=20,
    )  # fmt: skip
    marks = [
        frame.mark(*point, places[model], style(places[model]))
        for model in condition.models for point in series.points(condition, model, metric)
    ]  # fmt: skip
    empty = "" if any(marks) else text(frame.width / 2, frame.height / 2, "every model diverged", "middle")
    return frame.svg(f"{condition.title}: mean {metric} against its standard deviation", *marks, empty)


def chosen(condition: Condition, choice: str) -> list[tuple[str, str, float]]:
    """Rows, per cent of benign devices that chose them, and shares for the bars."""
    return [(row, f"{100 * share:.0f} %", share) for row, share in series.chosen(condition, choice).items()]


def drawn(condition: Condition) -> str | None:
    """Share of malicious devices in the cohorts by round."""
    its = series.drawn(condition)
    if its is None:
        return None
    frame = Chart(
        x=axis(0.0, float(its.t.max(initial=1)), "round", count=6),
        y=Axis(low=0.0, high=1.0, ticks=(0.0, 0.5, 1.0), percent=True), width=640, height=130,
    )  # fmt: skip
    return frame.svg(
        "share of malicious devices drawn by round", frame.band(its.t, its.low, its.high, "ink"),
        frame.line(its.t, its.mean, "ink"), frame.rule(y=its.expected, style="mean"),
    )  # fmt: skip
