"""Small charts as SVG text: colours are classes, so that a page's light and dark style reach into them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from dittofl.report.results import Numbers

SHAPES = (  # paths around (0, 0): circle, square, triangle, diamond, cross, star of lines
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0", "M-3.5,-3.5h7v7h-7z", "M0,-4.5L4.2,3.5H-4.2z", "M0,-5L5,0L0,5L-5,0z",
    "M-4,-4L4,4M-4,4L4,-4", "M0,-5V5M-5,0H5",
)  # fmt: skip
POINTS = 150  # of a line at most


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A range, and how its ends are told."""

    low: float
    high: float
    name: str = ""
    ticks: tuple[float, ...] = ()
    percent: bool = False

    def share(self, value: float) -> float:
        """Where a value lies between the ends, 0 to 1; what lies beyond is drawn on the end."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def told(self, value: float) -> str:
        return f"{100 * value:.3g} %" if self.percent else f"{value:.4g}".replace("e+", "e")


def axis(low: float, high: float, name: str = "", *, percent: bool = False, count: int = 4) -> Axis:
    """An axis with about so many round numbers on it.

    >>> axis(0.0, 1.0).ticks
    (0.0, 0.5, 1.0)
    """
    step = 10.0 ** math.floor(math.log10((high - low) / count))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return Axis(low=low, high=high, name=name, ticks=tuple(i * step for i in range(first, last + 1)), percent=percent)


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A frame of two axes; its methods give the SVG of what is drawn in it."""

    x: Axis
    y: Axis
    width: int = 210
    height: int = 140
    top: int = 8
    bottom: int = 30
    right: int = 14
    letters: int = 0  # of the names of rows, where y is no number

    @property
    def left(self) -> int:
        """Room for the numbers of y, or for names of rows."""
        numbers = max((len(self.y.told(value)) for value in self.y.ticks), default=0)
        return 16 + round(6.8 * self.letters) if self.letters else 14 + 6 * numbers

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Pixels of a point."""
        across, up = self.width - self.left - self.right, self.height - self.top - self.bottom
        return self.left + across * self.x.share(x), self.top + up * (1 - self.y.share(y))

    def frame(self) -> str:
        """Grid, numbers and names of the axes."""
        parts, floor = [], self.height - self.bottom
        for value in self.y.ticks:
            _, y = self.at(self.x.low, value)
            parts.append(f'<path class="grid" d="M{self.left},{y:.1f}H{self.width - self.right}"/>')
            parts.append(text(self.left - 5, y + 3.5, self.y.told(value), "end"))
        for value in self.x.ticks:
            x, _ = self.at(value, self.y.low)
            parts.append(text(x, floor + 13, self.x.told(value), "middle"))
        parts.append(f'<path class="axis" d="M{self.left},{floor}H{self.width - self.right}"/>')
        parts.append(text((self.left + self.width - self.right) / 2, self.height - 3, self.x.name, "middle", "name"))
        if self.y.name:
            parts.append(text(self.left, self.top - 4, self.y.name, "start", "name"))
        return "".join(parts)

    def line(self, xs: Numbers, ys: Numbers, style: str) -> str:
        """A line, broken where a value is not finite."""
        kept = _thinned(len(xs))
        words, pen = [], "M"
        for x, y in zip(xs[kept], ys[kept], strict=True):
            if math.isfinite(y):
                words.append("{}{:.1f},{:.1f}".format(pen, *self.at(x, y)))
            pen = "L" if math.isfinite(y) else "M"
        return f'<path class="line {style}" d="{"".join(words)}"/>' if words else ""

    def band(self, xs: Numbers, low: Numbers, high: Numbers, style: str) -> str:
        """The area between two lines, where both are finite."""
        kept = [i for i in _thinned(len(xs)) if math.isfinite(low[i]) and math.isfinite(high[i])]
        if not kept:
            return ""
        there, back = ([self.at(xs[i], ys[i]) for i in its] for ys, its in ((high, kept), (low, kept[::-1])))
        return f'<path class="band {style}" d="M{"L".join(f"{x:.1f},{y:.1f}" for x, y in there + back)}z"/>'

    def bars(self, edges: Numbers, heights: Numbers, style: str) -> str:
        """A histogram."""
        words = []
        for a, b, height in zip(edges[:-1], edges[1:], heights, strict=True):
            (x0, y0), (x1, y1) = self.at(a, self.y.low), self.at(b, height)
            if height > 0:
                words.append(f"M{x0 + 0.5:.1f},{y0:.1f}V{y1:.1f}H{x1 - 0.5:.1f}V{y0:.1f}z")
        return f'<path class="bar {style}" d="{"".join(words)}"/>'

    def mark(self, x: float, y: float, shape: int, style: str) -> str:
        """A point; the name of its shape is its place among SHAPES."""
        if not (math.isfinite(x) and math.isfinite(y)):
            return ""
        px, py = self.at(x, y)
        kind = "open" if shape % len(SHAPES) >= 4 else "full"
        return (
            f'<path class="{kind} {style}" transform="translate({px:.1f},{py:.1f})" d="{SHAPES[shape % len(SHAPES)]}"/>'
        )

    def row(self, height: float, name: str, x: float, end: float, style: str) -> str:
        """A named row with a line from a point to its end; nothing but the name where one is not finite."""
        y = self.at(self.x.low, height)[1]
        name = text(self.left - 10, y + 3.5, name, "end", f"row {style}")
        if not (math.isfinite(x) and math.isfinite(end)):
            return name
        (x0, _), (x1, _) = self.at(x, 0.0), self.at(end, 0.0)
        return f'{name}<path class="line {style}" d="M{x0:.1f},{y:.1f}H{x1:.1f}M{x1:.1f},{y - 4:.1f}v8"/>'

    def columns(self) -> str:
        """The grid of a chart of rows."""
        top, floor = self.top, self.height - self.bottom
        places = [self.at(value, 0.0)[0] for value in self.x.ticks]
        return "".join(f'<path class="grid" d="M{x:.1f},{top}V{floor}"/>' for x in places)

    def rule(self, *, x: float | None = None, y: float | None = None, style: str) -> str:
        """A line across the frame at one value."""
        (x0, y0), (x1, y1) = (
            self.at(self.x.low if x is None else x, self.y.low if y is None else y),
            self.at(self.x.high if x is None else x, self.y.high if y is None else y),
        )
        return f'<path class="rule {style}" d="M{x0:.1f},{y0:.1f}L{x1:.1f},{y1:.1f}"/>'

    def svg(self, title: str, *parts: str) -> str:
        """The whole chart; the title is what a reader without eyes for it gets."""
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        return f'<svg {size} role="img" aria-label="{escape(title)}">{self.frame()}{"".join(parts)}</svg>'


def text(x: float, y: float, words: str, anchor: str, style: str = "tick") -> str:
    """Words, escaped."""
    return (
        f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>' if words else ""
    )


def _thinned(n: int) -> Sequence[int]:
    """Indices of at most POINTS points, with the first and last."""
    return np.unique(np.linspace(0, n - 1, min(n, POINTS)).round().astype(int)).tolist() if n else []
