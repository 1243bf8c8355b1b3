"""Tables for a terminal, a pipe, Markdown and CSV."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

from rich import box
from rich.table import Table as Rich
from rich.text import Text

from dittofl.experiment.files import as_csv
from dittofl.report.compare import Comparison
from dittofl.report.conditions import Condition, lead_metric, lower_is_better
from dittofl.report.interval import Interval, number, percent

HEADLINE = {"mean": "mean", "std": "std", "worst10": "worst 10 %"}
Cell = str | Interval


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of text and intervals; the first two columns say of what, and another first cell begins a group."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()  # cells to stress
    signed: bool = False
    notes: tuple[str, ...] = ()

    def text(self) -> list[list[str]]:
        """The cells as people read them."""
        return [
            [cell.text(signed=self.signed) if isinstance(cell, Interval) else cell for cell in row] for row in self.rows
        ]

    def rich(self) -> Rich:
        """For a terminal; a group's name stands above its rows."""
        table = Rich(title=Text(self.title), caption=Text("\n".join(self.notes)), box=box.SIMPLE_HEAD, pad_edge=False)
        table.title_justify = table.caption_justify = "left"
        table.add_column(Text(self.columns[1]), overflow="fold", min_width=16)
        for name in self.columns[2:]:
            table.add_column(Text(name), justify="right", no_wrap=True)
        rows = self.text()
        for i, row in enumerate(rows):
            if i == 0 or rows[i - 1][0] != row[0]:
                table.add_row(Text(row[0], style="italic"))
            last = i + 1 < len(rows) and rows[i + 1][0] != row[0]
            styled = [Text(cell, style="bold" if (i, j) in self.best else "") for j, cell in enumerate(row[2:], 2)]
            table.add_row(Text(f"  {row[1]}"), *styled, end_section=last)
        return table

    def plain(self) -> str:
        """For a pipe: every row whole, two blanks or more between columns."""
        lines = [[f"{name} " for name in self.columns], *([f"{cell} " for cell in line] for line in self.text())]
        for i, j in self.best:
            lines[i + 1][j] = lines[i + 1][j][:-1] + "*"
        widths = [max(len(line[j]) for line in lines) for j in range(len(self.columns))]
        for line in lines:
            line[:] = [c.ljust(w) if j < 2 else c.rjust(w) for j, (c, w) in enumerate(zip(line, widths, strict=True))]
        notes = [note.replace("bold:", "*:") for note in self.notes]
        return "\n".join([self.title, *(" ".join(line).rstrip() for line in lines), *notes])

    def markdown(self) -> str:
        """For a README."""
        lines = [[_safe(cell) for cell in row] for row in self.text()]
        for i, j in self.best:
            lines[i][j] = f"**{lines[i][j]}**"
        rule = ["---" if j < 2 else "---:" for j in range(len(self.columns))]
        body = [f"| {' | '.join(row)} |" for row in ([_safe(name) for name in self.columns], rule, *lines)]
        return "\n".join([self.title, "", *body, "", *self.notes])

    def csv(self) -> str:
        """For a program: every digit, and the half of an interval in a column of its own."""
        split: list[list[object]] = []
        for name, *cells in zip(self.columns, *self.rows, strict=True):
            intervals = [cell for cell in cells if isinstance(cell, Interval)]
            split.append([name, *(cell.mean if isinstance(cell, Interval) else cell for cell in cells)])
            if intervals:
                split.append([f"{name} ±", *(cell.half for cell in intervals)])
        return as_csv(zip(*split, strict=True))


def overview(found: Sequence[Condition], metric: str | None = None) -> Table:
    """Every condition and model: mean, std and worst 10 % over benign devices after the last round."""
    metric = lead_metric(found, metric)
    lower, best = lower_is_better(found, metric), set()
    rows: list[tuple[Cell, ...]] = []
    for condition in found:
        scores = {m: [condition.score(m, metric, its) for its in HEADLINE] for m in condition.models}
        for j, statistic in enumerate(HEADLINE):
            means = [its[j].mean for its in scores.values()]
            low = lower or statistic == "std"
            top = min((x for x in means if x == x), key=lambda x: x if low else -x, default=nan)
            tops = [i for i, x in enumerate(means) if x == x and number(x) == number(top)]
            best |= {(len(rows) + i, j + 2) for i in tops if len(means) > 1}
        rows += [(condition.title, model, *its) for model, its in scores.items()]
    part = " and ".join(dict.fromkeys(run.part for c in found for run in c.runs))
    return Table(
        title=f"{metric} on {part} data, benign devices, last round" + (" (lower is better)" if lower else ""),
        columns=("condition", "model", *HEADLINE.values()), rows=tuple(rows), best=frozenset(best),
        notes=(_seeds(found),),
    )  # fmt: skip


def comparison(told: Comparison) -> Table:
    """Every model against its reference."""
    references = list(dict.fromkeys(str(row.reference) for row in told.rows))
    against = references[0] if len(references) == 1 else "each condition's own " + ", ".join(
        dict.fromkeys(row.reference.name for row in told.rows))  # fmt: skip
    rows = tuple(
        (
            row.model.condition.title, row.model.name, row.mean, row.over, percent(row.better), percent(row.worse),
            number(row.worst10.mean, signed=True),
        )
        for row in told.rows
    )  # fmt: skip
    return Table(
        title=f"{told.metric} on {told.part} data minus that of {against}, device by device"
        + (" (lower is better)" if told.lower else ""),
        columns=("condition", "model", "difference", "over", "better", "worse", "worst 10 %"),
        rows=rows, signed=True, best=frozenset((i, 2) for i, row in enumerate(told.rows) if row.sign > 0),
        notes=(
            "Devices benign in both; ± half of the 95 % interval over what the next column says; better, worse: shares "
            "of devices; worst 10 %: the model's minus the reference's; bold: clearly better.", *told.warnings,
        ),
    )  # fmt: skip


def _seeds(found: Sequence[Condition]) -> str:
    counts = sorted({len(condition.runs) for condition in found})
    if counts == [1]:
        return "One seed; bold: the best of a condition."
    told = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return (
        f"Mean over {told} seeds ± half of its 95 % interval over seeds (Student's t); bold: the best of a condition."
    )


def _safe(text: str) -> str:
    """Text in a cell of Markdown."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
