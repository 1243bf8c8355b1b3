"""One HTML page a table or figure: ours beside the paper's, and the claims that rest on it."""

from collections.abc import Sequence
from importlib import resources

from jinja2 import Environment, StrictUndefined

from dittofl.report.tables import Table
from dittofl.reproduce.compared import Compared, tally
from dittofl.reproduce.decided import Decided, averages, verdicts
from dittofl.reproduce.drawings import Drawing
from dittofl.reproduce.render import NOTES, grids, heading
from dittofl.reproduce.special import Special
from dittofl.reproduce.tables import Table as Reproduced


def of_cells(
    table: Reproduced, cells: Sequence[Compared], every: Sequence[Compared], charts: Sequence[Drawing] = ()
) -> str:
    """A table's page as text; claims are decided by every cell there is, as they rest on several tables."""
    names = {cell.dataset for cell in cells}
    return _page(
        f"{heading(table.name)}: {table.title}", (tally(cells), *NOTES, *averages(every)), charts, grids(table, cells),
        [its for its in verdicts(every) if its[1] in names],
    )  # fmt: skip


def of_records(its: Special, table: Table, charts: Sequence[Drawing] = ()) -> str:
    """The page of what is not made of cells."""
    return _page(f"{heading(its.name)}: {its.title}", (), charts, [table], [])


def _page(
    title: str, sentences: Sequence[str], charts: Sequence[Drawing], tables: Sequence[Table], claims: Sequence[Decided]
) -> str:
    """Its style is that of the report on runs."""
    reported = resources.files("dittofl.report").joinpath("page.html").read_text(encoding="utf-8")
    style = reported.partition("<style>")[2].partition("</style>")[0]
    template = resources.files("dittofl.reproduce").joinpath("page.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(
        title=title, style=style, sentences=sentences, charts=charts, tables=tables, claims=claims
    )
