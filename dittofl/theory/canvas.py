"""Figures of the size they have in a paper, in colours that are apart for every kind of colour vision."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dittofl.errors import InputError, require

# Okabe, Ito 2008
BLUE, ORANGE, GREEN, PURPLE, YELLOW, SKY, GREY = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666",
)  # fmt: skip
WIDTH = 6.75  # inches, the text of a two-column page
STYLE: Mapping[Any, Any] = {
    "font.size": 8, "axes.titlesize": 8, "legend.fontsize": 7.5, "legend.frameon": False, "axes.linewidth": 0.6,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25, "grid.linewidth": 0.5,
    "lines.linewidth": 1.2, "lines.markersize": 3, "xtick.major.width": 0.6, "ytick.major.width": 0.6,
    "svg.hashsalt": "dittofl", "pdf.fonttype": 42,
}  # fmt: skip


def check(path: str | Path) -> Path:
    """Refuses a file that a figure cannot be written to, before anything is computed for it."""
    path = Path(path)
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("figures need matplotlib, which is missing: pip install 'dittofl[plots]'") from error
    known = path.suffix.lower()[1:] in Figure().canvas.get_supported_filetypes()
    require(known, f"a figure cannot be written as {path.name!r}: end it in .png, .pdf or .svg")
    require(path.parent.is_dir(), f"there is no folder {path.parent} for {path.name}: make it first")
    return path


@contextmanager
def canvas(
    path: str | Path, *, height: float, columns: int, rows: Sequence[float] = (1,), note: str = ""
) -> Iterator[Any]:
    """Axes [rows, columns] to draw on; the figure is saved at the end, with a note and one legend of all labels below.

    `height` is in inches, `rows` holds the rows' relative heights. No pyplot: that would keep figures
    in a global state.
    """
    path = check(path)
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(dict(STYLE)):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.subplots(len(rows), columns, squeeze=False, height_ratios=rows)
        yield axes
        named = [ax.get_legend_handles_labels() for ax in axes.flat]
        legend = {label: handle for its in named for handle, label in zip(*its, strict=True)}
        below = {"ncols": 3, "title": note, "title_fontsize": 7.5}
        figure.legend(legend.values(), legend.keys(), loc="outside lower center", **below)
        metadata = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(path.suffix.lower())
        figure.savefig(path, dpi=300, metadata=metadata)
