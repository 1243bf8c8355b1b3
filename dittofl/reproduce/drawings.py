"""The figures' charts, as SVG in the page."""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite
from typing import Any

import numpy as np

from dittofl.report.charts import style, symbol
from dittofl.report.svg import Axis, Chart, axis, text
from dittofl.reproduce.compared import Compared

STRONGEST = 3  # defences that Figure 4 shows
OURS = ("global", "Ditto")


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A chart, and what its colours mean."""

    title: str
    svg: str
    legend: tuple[tuple[str, str, str], ...]  # name, classes, symbol


Points = Mapping[str, Sequence[tuple[float, float]]]  # of each series


def _drawn(title: str, frame: Chart, series: Points, *extra: str, lines: bool = True) -> Drawing:
    parts, legend = list(extra), []
    for place, (name, points) in enumerate(series.items()):
        xs, ys = (np.array([point[i] for point in points], dtype=np.float64) for i in (0, 1))
        if lines:
            parts.append(frame.line(xs, ys, style(place)))
        parts += [frame.mark(x, y, place, style(place)) for x, y in zip(xs, ys, strict=True)]
        legend.append((name, style(place), symbol(place)))
    return Drawing(title=title, svg=frame.svg(title, *parts), legend=tuple(legend))


def pictured(title: str, png: bytes) -> Drawing:
    """A picture as it is."""
    its = f'<img alt="{escape(title)}" src="data:image/png;base64,{b64encode(png).decode()}">'
    return Drawing(title=title, svg=its, legend=())


def _share(series: Points, margin: float = 0.02) -> Axis:
    """An axis of accuracies around what there is."""
    values = [y for points in series.values() for _, y in points if isfinite(y)] or [0.0, 1.0]
    return axis(max(0.0, min(values) - margin), min(1.0, max(values) + margin), "accuracy, benign devices")


def by_column(title: str, cells: Sequence[Compared]) -> Drawing:
    """Figure 4: accuracy under every attack of global, Ditto and the defences that are strongest on average."""
    columns = [where for where in dict.fromkeys(cell.where for cell in cells) if where.ratio]
    at = {(cell.method, cell.where): cell.ours.mean for cell in cells}
    methods = list(dict.fromkeys(cell.method for cell in cells))
    means = {name: float(np.mean([at[name, where] for where in columns])) for name in methods if name not in OURS}
    strongest = sorted(means, key=lambda name: -means[name])[:STRONGEST]
    series = {
        name: [(float(i), at[name, where]) for i, where in enumerate(columns)]
        for name in (OURS[0], *strongest, OURS[1])
    }
    frame = Chart(x=Axis(low=-0.5, high=len(columns) - 0.5), y=_share(series), width=620, height=260, top=20)
    names = [
        text(frame.at(float(i), 0)[0], frame.height - frame.bottom + 13, where.name, "middle")
        for i, where in enumerate(columns)
    ]
    return _drawn(title, frame, series, *names)


def by_share(title: str, cells: Sequence[Compared]) -> Drawing:
    """Figure 5: accuracy by the share of malicious devices."""
    series: dict[str, list[tuple[float, float]]] = {}
    for cell in cells:
        series.setdefault(cell.method, []).append((cell.where.ratio, cell.ours.mean))
    x = axis(0.0, 0.8, "malicious devices", percent=True)
    return _drawn(title, Chart(x=x, y=_share(series), width=360, height=240, top=20), series)


def by_spread(title: str, cells: Sequence[Compared]) -> Drawing:
    """Figure 6: variance against accuracy; good is low and to the right."""
    series = {cell.method: [(cell.ours.mean, cell.std.mean**2)] for cell in cells}
    xs, ys = ([its[0][i] for its in series.values() if isfinite(its[0][i])] or [0.0, 1.0] for i in (0, 1))
    x = axis(max(0.0, min(xs) - 0.02), min(1.0, max(xs) + 0.02), "accuracy, benign devices")
    y = axis(0.0, max(ys) * 1.1, "variance over benign devices")
    return _drawn(title, Chart(x=x, y=y, width=360, height=240, top=20), series, lines=False)


def by_round(title: str, records: Sequence[Mapping[str, Any]], value: str, name: str) -> Drawing:
    """Figures 8 and 9: a value by round."""
    series: dict[str, list[tuple[float, float]]] = {}
    for one in records:
        series.setdefault(str(one.get("model", name)), []).append((float(one["t"]), float(one[value])))
    ys = [y for points in series.values() for _, y in points if isfinite(y)] or [0.0, 1.0]
    room = 0.05 * (max(ys) - min(ys)) or 0.05
    x = axis(0.0, max(t for points in series.values() for t, _ in points), "round")
    y = axis(min(ys) - room, max(ys) + room, name)
    return _drawn(title, Chart(x=x, y=y, width=360, height=240, top=20), series)


CHARTS: Mapping[str, Callable[[str, Sequence[Compared]], Drawing]] = {
    "figure4": by_column, "figure5": by_share, "figure6": by_spread,
}  # fmt: skip


def of_cells(name: str, cells: Sequence[Compared]) -> list[Drawing]:
    """The charts of a figure that is made of cells, one a data set whose cells are all made."""
    draw = CHARTS.get(name)
    found = {data: [cell for cell in cells if cell.dataset == data] for data in dict.fromkeys(c.dataset for c in cells)}
    return [draw(data, its) for data, its in found.items() if draw and all(cell.made for cell in its)]


def of_records(name: str, records: Sequence[Mapping[str, Any]]) -> list[Drawing]:
    """The charts of Figures 8 and 9, one a data set, of the first seed."""
    wanted = {
        "figure8": (("accuracy", "accuracy, benign devices"),),
        "figure9": (("train_loss", "train loss, all devices"), ("validation_accuracy", "validation accuracy, all")),
    }.get(name, ())
    found = []
    for data in dict.fromkeys(one.get("dataset", "") for one in records):
        its = [one for one in records if one.get("dataset") == data]
        its = [one for one in its if one.get("seed") == its[0].get("seed")]
        found += [by_round(f"{data}: {label}", its, value, label) for value, label in wanted]
    return found
