"""A federation's partition as a picture: how many samples its devices have, and of which classes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dittofl.errors import require
from dittofl.experiment.files import told
from dittofl.federation import PARTS, Federation
from dittofl.report.figures import COLOURS, styled
from dittofl.report.holdings import classes, holdings
from dittofl.types import Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDINGS = (".svg", ".png")
SHADES = (COLOURS[1], "#e0a021", "#8fc1e3")  # train, validation, test
FEW, NAMES = 60, 20  # devices or classes that are bars apart; classes that are all named


def save(federation: Federation, path: Path, title: str) -> None:
    """Draws it into a file; one of that name is replaced."""
    require(path.suffix in ENDINGS, f"a picture ends in {' or '.join(ENDINGS)}, got {path}: rename it")
    with styled(), told(path):
        picture(federation, title).savefig(path, dpi=200, metadata={"Date": None} if path.suffix == ".svg" else None)


def picture(federation: Federation, title: str) -> "Figure":
    """Devices by size, samples by class, and each device's shares of the classes; or y, where there are no classes."""
    from matplotlib.figure import Figure

    found = classes(federation)
    figure = Figure(figsize=(6.4, 4.2 if len(found) else 2.2), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=9)
    grid = figure.add_gridspec(1 + bool(len(found)), 2)
    _sizes(figure.add_subplot(grid[0, 0]), federation)
    figure.legend(loc="outside upper right", ncols=len(PARTS), fontsize=7)
    panel = figure.add_subplot(grid[0, 1])
    if len(found):
        n = holdings(federation, found)
        _classes(panel, n.sum(0), found)
        _shares(figure, figure.add_subplot(grid[1, :]), n.sum(1), found)
    else:
        panel.hist(federation.y.double().flatten().numpy(), bins=40, color=SHADES[0])
        panel.set(xlabel="y", ylabel="samples")
    return figure


def _sizes(panel: "Axes", federation: Federation) -> None:
    order = np.argsort(federation.bounds[:, 0] - federation.bounds[:, 3], kind="stable")
    n = np.diff(federation.bounds, axis=1)[order].T
    _stacked(panel, n, first=1)
    panel.set(xlabel="devices, largest first", ylabel="samples", xlim=(0.4, federation.K + 0.6))


def _classes(panel: "Axes", n: Ints, found: Ints) -> None:
    _stacked(panel, n, first=0)
    panel.set(xlabel="class", ylabel="samples")
    _named(panel.xaxis, found)


def _stacked(panel: "Axes", n: Ints, first: int) -> None:
    """The samples of every part, [3, bars], on top of each other: bars, or where they are many one area."""
    x, tops = np.arange(first, first + n.shape[1]), n.cumsum(0)
    for j, part in enumerate(PARTS):
        if n[j].any() and len(x) <= FEW:
            panel.bar(x, n[j], 0.85, tops[j] - n[j], color=SHADES[j], label=part, linewidth=0)
        elif n[j].any():
            panel.fill_between(x, tops[j] - n[j], tops[j], step="mid", color=SHADES[j], label=part, linewidth=0)
    panel.set_ylim(bottom=0)


def _shares(figure: "Figure", panel: "Axes", n: Ints, found: Ints) -> None:
    shares = (n / n.sum(1, keepdims=True)).T
    drawn = panel.imshow(shares, aspect="auto", interpolation="nearest", cmap="Blues", vmin=0, vmax=shares.max())
    figure.colorbar(drawn, ax=panel, pad=0.01, label="share of its samples").outline.set_linewidth(0.4)
    panel.spines[["left", "bottom"]].set_visible(False)
    panel.set(xlabel="device", ylabel="class")
    _named(panel.yaxis, found)


def _named(axis: Any, found: Ints) -> None:
    """The classes, all of them or every so many."""
    step = -(-len(found) // NAMES)
    axis.set_ticks(np.arange(0, len(found), step), [str(one) for one in found[::step]])
