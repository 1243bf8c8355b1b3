"""One HTML page a table: ours beside the paper's, and the claims that rest on it."""

from collections.abc import Sequence
from importlib import resources

from jinja2 import Environment, StrictUndefined

from dittofl.reproduce.compared import Compared, tally
from dittofl.reproduce.decided import averages, verdicts
from dittofl.reproduce.render import NOTES, grids, heading
from dittofl.reproduce.tables import Table


def page(table: Table, cells: Sequence[Compared], charts: Sequence[str] = ()) -> str:
    """The page as text; its style is that of the report on runs."""
    reported = resources.files("dittofl.report").joinpath("page.html").read_text(encoding="utf-8")
    style = reported.partition("<style>")[2].partition("</style>")[0]
    template = resources.files("dittofl.reproduce").joinpath("page.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    names = {cell.dataset for cell in cells}
    return environment.from_string(template).render(
        title=f"{heading(table.name)}: {table.title}", style=style,
        sentences=(tally(cells), *NOTES, *averages(cells)), charts=charts,
        tables=grids(table, cells), claims=[its for its in verdicts(cells) if its[1] in names],
    )  # fmt: skip
