"""docs/reproduction.md, from the CSV files of a reproduction and the explanations beside them.

python -m dittofl.reproduce.document results docs/reproduction.md            # writes it
python -m dittofl.reproduce.document results docs/reproduction.md --check    # says whether it follows
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from dittofl.errors import InputError
from dittofl.experiment.files import read_csv, write
from dittofl.report.interval import number
from dittofl.report.tables import Table
from dittofl.reproduce import explained, tidy, unmet
from dittofl.reproduce.compared import Compared, of_folder, tally
from dittofl.reproduce.decided import averages, claims
from dittofl.reproduce.explained import Explained
from dittofl.reproduce.measured import measures
from dittofl.reproduce.observed import figures_say
from dittofl.reproduce.render import NOTES, grids, heading, listed, paper, short
from dittofl.reproduce.special import SPECIALS
from dittofl.reproduce.tables import TABLES

EXPLANATIONS = "explanations.toml"
AGAIN_SHOWN = ("figure4", "figure6")  # cells of Tables 5, 7 and 9, as charts
DRAWN = """## Figures 4 to 6

Figures 4 and 6 show cells of Tables 5 and 7 to 9, Figure 5 adds TERM with larger t. `dittofl reproduce figure4` and its
like draw them into a page.
"""
DERIVED = ("figure2", "figure3", "figure7")
LISTED = ("table4", "figure7", "figure8", "figure9")
INTRODUCTION = """# Reproduction

The tables and figures of Li, Hu, Beirami, Smith 2021, ours beside the paper's. This page is generated from the files in
`results/` by `make results`, and `make results-check` says whether it follows from them; do not edit it.

- The headline is the paper's: accuracy over all test samples of benign devices after the last round, and the standard
  deviation of the devices' accuracies. The paper's numbers are of one run each.
- Malicious devices are those that the authors' program drew, and at seed 0 so are the cohorts; other seeds draw other
  cohorts (`dittofl/reproduce/draws.py`).
- A cell *agrees* where the paper's number is within .0155 of ours, or within the range of our last ten evaluations over
  all seeds, widened by .01 on both sides. Every other cell is listed below its table with what explains it.
- Where the paper contradicts itself we take the number that more of its tables have (`printed` in
  `dittofl/reproduce/paper.csv`). Figures 5 to 9 do not name their data set: Fashion-MNIST and Vehicle are our choice.
- What validation data choose (the best λ, ε of FedMGDA+, λ of MOCHA once on the clean column) is chosen on runs that
  hold out the last tenth of each train part, by the accuracy on benign devices, and reported of runs that train on all
  of it. Each device's own λ is of the run that holds out.
"""
AGAIN = """## Make it again

    dittofl reproduce table7 table5 table6 figure5 figure7 figure8 figure9 --only Vehicle --only 'Vehicle (lr .01)' \\
        --seeds 0:3 --jobs 2 --data FOLDER
    dittofl reproduce figure2 figure3
    dittofl reproduce table9 table5 --only 'Fashion MNIST,global' --only 'Fashion MNIST,dynamic' \\
        --device cuda --precision tf32 --jobs 3 --minutes 9    # on a GPU; again until nothing is missing
    make results                                               # this page

Several runs share a GPU best under NVIDIA's MPS (`nvidia-cuda-mps-control -d` before).

Runs are kept in `results/runs` (not in the repository), and whatever is there is not run again. Runs made elsewhere
are put there, and `dittofl reproduce NAME --as-is` writes the tables. `results/runs.csv` has the identity, data,
machine and code of every run.
"""


def document(folder: Path) -> str:
    """The page's text."""
    cells = of_folder(folder)
    entries, reasons = explained.read(folder / EXPLANATIONS), unmet.read(folder / EXPLANATIONS)
    wrong = [*explained.check(cells, entries), *unmet.check(cells, reasons)]
    if wrong:
        raise InputError(f"{folder / EXPLANATIONS}: {wrong[0]}" + (f", and {len(wrong) - 1} more" * (len(wrong) > 1)))
    parts = [
        INTRODUCTION,
        *_summary(cells, reasons),
        *figures_say({name: _records(folder / f"{name}.csv") for name in DERIVED}),
    ]
    for name in TABLES:
        its = [cell for cell in cells if cell.table == name]
        if any(cell.made for cell in its) and name not in AGAIN_SHOWN:
            parts += _table(name, its, entries)
    parts.append(DRAWN)
    parts += [*_listed(folder), *_absent(cells), AGAIN, *_provenance(folder)]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _summary(cells: Sequence[Compared], reasons: Sequence[unmet.Unmet]) -> Iterator[str]:
    yield "## In short\n"
    yield "\n".join(f"- {sentence}" for sentence in averages(cells)) + "\n"
    yield _markdown(measures(cells))
    yield "## Claims\n"
    yield _markdown(claims(cells))
    yield "\n".join(unmet.told(cells, reasons)) + "\n"


def _table(name: str, cells: Sequence[Compared], entries: Sequence[Explained]) -> Iterator[str]:
    yield f"## {heading(name)}: {TABLES[name].title}\n"
    yield f"{tally(cells)} {NOTES[0]}\n"
    made = {cell.dataset for cell in cells if cell.made}
    for dataset, grid in zip(dict.fromkeys(cell.dataset for cell in cells), grids(TABLES[name], cells), strict=True):
        if dataset in made:
            yield f"### {heading(name)}: {dataset}\n"
            yield _markdown(grid)
            yield from _explanations([cell for cell in explained.deviating(cells) if cell.dataset == dataset], entries)


def _explanations(cells: Sequence[Compared], entries: Sequence[Explained]) -> Iterator[str]:
    """Each explanation with the cells that it covers, the first that does."""
    first = {id(cell): next(one for one in entries if one.covers(cell)) for cell in cells}
    for one in entries:
        mine = [cell for cell in cells if first[id(cell)] is one]
        if mine:
            yield explained.sentence(one, map(_cell, mine))
    if cells:
        yield ""


def _cell(cell: Compared) -> str:
    return f"{cell.method} {cell.where.name}: {number(cell.ours.mean)} ({short(cell.std.mean)}), paper {paper(cell)}"


def _records(path: Path) -> list[Mapping[str, str]]:
    with tidy.foreign(path):
        return [*read_csv(path)] if path.is_file() else []


def _listed(folder: Path) -> Iterator[str]:
    """Table 4, and the figures that are no cells."""
    for name in LISTED:
        if records := _records(folder / f"{name}.csv"):
            yield f"## {heading(name)}: {SPECIALS[name].title}\n"
            yield _markdown(listed(SPECIALS[name], records))


def _absent(cells: Sequence[Compared]) -> Iterator[str]:
    made = {cell.table for cell in cells if cell.made}
    names = [name for name in TABLES if name not in made and name.startswith("table")]
    told = "the paper's numbers are in `dittofl/reproduce/paper.csv`"
    lacks = {name: " or ".join(dict.fromkeys(part.bench.name for part in TABLES[name].sections)) for name in names}
    yield "## Not decidable here\n"
    yield "".join(f"- {heading(name)} ({TABLES[name].title}): no run of {lacks[name]}; {told}.\n" for name in names)


def _provenance(folder: Path) -> Iterator[str]:
    runs = tidy.recorded(folder / tidy.RUNS)
    yield "## Where the numbers are from\n"
    kinds = Counter((run["device"], run["precision"], run["torch"], run["dittofl_git"]) for run in runs)
    for (device, precision, torch, commit), count in sorted(kinds.items()):
        which = (device, precision, torch, commit)
        its = [run for run in runs if (run["device"], run["precision"], run["torch"], run["dittofl_git"]) == which]
        hours = sum(float(run["seconds"]) for run in its) / 3600
        code = f"code at {commit[:12]}" if commit else "code not from a checkout"
        yield f"- {count} runs on {device or 'a CPU'}, {precision}, torch {torch}, {code}: {hours:.1f} hours of runs."


def _markdown(table: Table) -> str:
    """A table without its title, which is a heading here."""
    return table.markdown().partition("\n\n")[2].rstrip() + "\n"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("page", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Write nothing; say whether the page follows from the files.")
def main(folder: Path, page: Path, check: bool) -> None:
    """Writes the page of a folder of results."""
    try:
        text = document(folder)
        if not check:
            write(page, text.encode())
    except InputError as error:
        raise click.ClickException(str(error)) from error
    if check and not (page.is_file() and page.read_text(encoding="utf-8") == text):
        raise click.ClickException(f"{page} does not follow from {folder}: run `make results` and commit both")


if __name__ == "__main__":
    main()
