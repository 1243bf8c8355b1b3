"""A reproduced table for a terminal, as Markdown and as LaTeX."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from dittofl.report.interval import number
from dittofl.report.tables import Table
from dittofl.reproduce.column import Column
from dittofl.reproduce.compared import Compared, tally
from dittofl.reproduce.special import Special
from dittofl.reproduce.tables import Table as Reproduced

NOTES = (
    "Accuracy on benign devices' test data (standard deviation over benign devices); ours: mean over seeds ± half of "
    "the 95 % interval; range: least and greatest of the last ten evaluations over all seeds; bold: differs "
    "from the paper by more than .0155, and the paper's number is outside the range widened by .01.",
)


def grids(table: Reproduced, cells: Sequence[Compared]) -> list[Table]:
    """One table a data set: three lines for each method, columns as in the paper."""
    return [
        _grid(table, name, [cell for cell in cells if cell.dataset == name])
        for name in dict.fromkeys(cell.dataset for cell in cells)
    ]


def _grid(table: Reproduced, dataset: str, cells: Sequence[Compared]) -> Table:
    columns = list(dict.fromkeys(cell.where for cell in cells))
    at = {(cell.method, cell.where): cell for cell in cells}
    rows: list[tuple[str, ...]] = []
    stressed = set[tuple[int, int]]()
    for method in dict.fromkeys(cell.method for cell in cells):
        lines = {"ours": ours, "range": reach, "paper": paper, "difference": gap}
        for what, tell in lines.items():
            known = [at.get((method, where)) for where in columns]
            told = [tell(cell) if cell is not None else "" for cell in known]
            if what == "difference":
                stressed |= {(len(rows), j + 2) for j, c in enumerate(known) if c is not None and c.agrees is False}
            if any(told) or what == "ours":
                rows.append((method, what, *told))
    remarks = dict.fromkeys(row.remark for cell in cells for row in cell.rows if row.remark)
    picked = [f"{cell.method} {cell.where.name}: {cell.chosen}" for cell in cells if cell.chosen]
    return Table(
        title=f"{heading(table.name)}. {table.title}: {dataset}. {tally(cells)}",
        columns=("method", "", *(where.name for where in columns)), rows=tuple(rows), best=frozenset(stressed),
        notes=tuple(filter(None, (*(f"Note: {its}." for its in remarks), _chosen(picked)))),
    )  # fmt: skip


def listed(its: Special, records: Sequence[Mapping[str, Any]]) -> Table:
    """Records, a line each; what all of them say alike is said once."""
    keys = tuple(records[0]) if records else ("", "")
    rows = [tuple(_cell(one.get(key, "")) for key in keys) for one in records]
    alike = [
        key for key, values in zip(keys, zip(*rows, strict=True), strict=False) if len(set(values)) == 1 < len(rows)
    ]
    shown = [i for i, key in enumerate(keys) if key not in alike]
    said = ", ".join(f"{key} {rows[0][keys.index(key)]}" for key in alike if rows[0][keys.index(key)])
    return Table(
        title=f"{heading(its.name)}. {its.title}", columns=tuple(keys[i] for i in shown),
        rows=tuple(tuple(row[i] for i in shown) for row in rows), notes=(f"Of all lines: {said}.",) if said else (),
    )  # fmt: skip


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _chosen(picked: Sequence[str]) -> str:
    return f"Chosen on benign devices' validation data: {'; '.join(picked)}." if picked else ""


def heading(name: str) -> str:
    """Table 9 of table9.

    >>> heading("table9"), heading("figure4")
    ('Table 9', 'Figure 4')
    """
    kind = name.rstrip("0123456789")
    return f"{kind.capitalize()} {name.removeprefix(kind)}"


def ours(cell: Compared) -> str:
    """Mean ± half of its interval (std)."""
    if not cell.made:
        return "–"
    return f"{cell.ours.text()} ({short(cell.std.mean)})"


def reach(cell: Compared) -> str:
    return f"{number(cell.low)} to {number(cell.high)}" if isfinite(cell.low) else ""


def paper(cell: Compared) -> str:
    """As the paper prints it."""
    if not isfinite(cell.paper):
        return ""
    return number(cell.paper) + (f" ({short(cell.paper_std)})" if isfinite(cell.paper_std) else "")


def gap(cell: Compared) -> str:
    return number(cell.difference, signed=True) if cell.made and isfinite(cell.paper) else ""


def short(value: float) -> str:
    """Two decimals, without the zero before them.

    >>> short(0.0812)
    '.08'
    """
    return f"{value:.2f}".removeprefix("0")


def latex(table: Reproduced, cells: Sequence[Compared]) -> str:
    r"""As LaTeX with booktabs: each cell ours above the paper's, bold where they differ by more than noise."""
    parts = [rf"% {heading(table.name)}: {table.title}", r"% needs \usepackage{booktabs,makecell}"]
    for name in dict.fromkeys(cell.dataset for cell in cells):
        its = [cell for cell in cells if cell.dataset == name]
        columns = list(dict.fromkeys(cell.where for cell in its))
        parts += [rf"\begin{{tabular}}{{l{'c' * len(columns)}}}", r"\toprule"]
        parts.append(" & ".join([escaped(name), *(escaped(where.name) for where in columns)]) + r" \\ \midrule")
        parts += [_latex_row(method, columns, its) for method in dict.fromkeys(cell.method for cell in its)]
        parts += [r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join(parts)


def _latex_row(method: str, columns: Sequence[Column], cells: Sequence[Compared]) -> str:
    at = {cell.where: cell for cell in cells if cell.method == method}
    told = []
    for where in columns:
        cell = at.get(where)
        mine = ours(cell).replace("±", r"$\pm$").replace("–", "--") if cell is not None else ""
        mine = rf"\textbf{{{mine}}}" if cell is not None and cell.agrees is False else mine
        theirs = paper(cell) if cell is not None else ""
        told.append(rf"\makecell{{{mine}\\{{\small {theirs}}}}}" if theirs else mine)
    return " & ".join([escaped(method), *told]) + r" \\"


def escaped(text: str) -> str:
    """Text in LaTeX.

    >>> escaped("A1 20%")
    'A1 20\\\\%'
    """
    return text.replace("%", r"\%").replace("_", r"\_").replace("&", r"\&").replace("λ", r"$\lambda$")
