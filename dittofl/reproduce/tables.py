"""What every table of the paper, and every figure that is made of such cells, consists of."""

from dataclasses import dataclass

from dittofl.reproduce import line
from dittofl.reproduce.bench import BENCHES, CELEBA, FASHION, FEMNIST, SCRIPT, SKEWED, STACKOVERFLOW, VEHICLE, Bench
from dittofl.reproduce.column import Column, column
from dittofl.reproduce.line import Line, Section


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table: sections of one data set each."""

    name: str
    title: str
    sections: tuple[Section, ...]


def _section(bench: Bench, *lines: Line, columns: tuple[Column, ...] = (), ours: bool = False) -> Section:
    return Section(bench=bench, lines=lines, columns=columns or bench.columns, ours=ours)


def _full(name: str, bench: Bench, *extra: Line, but: str = "") -> Table:
    """A full table: the global methods, all defences but one that is not run, and Ditto with every fixed λ."""
    defences = tuple(its for its in (*line.DEFENDED, line.MGDA) if its.label != but)
    lines = (line.FEDAVG, line.LOCAL, line.FAIR, *defences, *extra, *line.lambdas(bench))
    return Table(name=name, title=f"Full results on {bench.name}", sections=(_section(bench, *lines),))


def _personal(bench: Bench) -> Section:
    lines = (line.FEDAVG, line.LOCAL, line.finetuning(bench), *line.PERSONAL, line.best("Ditto", bench))
    return _section(bench, *lines, columns=(Column(), column("A1 50%")))


def _augmented(bench: Bench, *names: str, ours: bool = False, at: tuple[str, ...] = ()) -> Section:
    """Ditto beside a robust w."""
    defences = tuple(line.plain(name) for name in names)
    both = tuple(line.best(f"Ditto + {name}", bench, f"Ditto + {name}") for name in names)
    chosen = tuple(map(column, at)) or bench.columns[1:]
    return _section(bench, line.FEDAVG, *defences, line.best("Ditto", bench), *both, columns=chosen, ours=ours)


_WITH_RULE = (FEMNIST, FASHION, CELEBA, VEHICLE, STACKOVERFLOW)
_OURS = ("clean", "A1 50%", "A3 20%")
_TABLE7 = _full("table7", VEHICLE, line.RELATED)
_TILTED = tuple(line.plain(f"TERM, t={t}", f"TERM t={t}") for t in (1, 2, 5))
_A1 = tuple(map(column, ("clean", "A1 20%", "A1 50%", "A1 80%")))

TABLES = {
    its.name: its
    for its in (
        Table(
            name="table1", title="Accuracy and fairness",
            sections=tuple(_section(b, line.FEDAVG, line.LOCAL, line.FAIR, line.RULE) for b in (FASHION, FEMNIST)),
        ),
        Table(
            name="table2", title="Other personalisation methods", sections=tuple(map(_personal, (FEMNIST, CELEBA)))
        ),
        Table(
            name="table3", title="Ditto with robust baselines",
            sections=(
                _augmented(FEMNIST, "clipping", at=("A1 20%", "A1 80%", "A2 20%", "A2 80%", "A3 10%", "A3 20%")),
            ),
        ),
        Table(
            name="table5", title="λ chosen by each device",
            sections=tuple(_section(b, line.best("best lambda", b), line.DYNAMIC_LAMBDA) for b in _WITH_RULE),
        ),
        Table(
            name="table6", title="Ditto with robust baselines, in full",
            sections=(
                _augmented(FEMNIST, "clipping"), _augmented(CELEBA, "multi-Krum"),
                _augmented(FASHION, "clipping", "multi-Krum", ours=True, at=_OURS),
                _augmented(VEHICLE, "clipping", "multi-Krum", ours=True),
            ),
        ),
        Table(
            name="table7", title=_TABLE7.title,
            sections=(
                *_TABLE7.sections, _section(SCRIPT, line.FEDAVG, line.LOCAL, *line.lambdas(SCRIPT), ours=True),
            ),
        ),
        _full("table8", FEMNIST, line.finetuning(FEMNIST)),
        _full("table9", FASHION, line.finetuning(FASHION)),
        _full("table10", SKEWED, line.finetuning(SKEWED), but="FedMGDA+"),
        _full("table11", CELEBA, line.finetuning(CELEBA)),
        _full("table12", STACKOVERFLOW, but="multi-Krum"),
        Table(
            name="figure4", title="Robustness",
            sections=tuple(
                _section(b, line.FEDAVG, *line.DEFENDED, line.MGDA, line.RULE, ours=b is VEHICLE)
                for b in (FASHION, FEMNIST, VEHICLE)
            ),
        ),
        Table(
            name="figure5", title="Fair methods under label poisoning",
            sections=tuple(_section(b, line.FEDAVG, *_TILTED, columns=_A1, ours=True) for b in (FASHION, VEHICLE)),
        ),
        Table(
            name="figure6", title="Robustness against fairness under label poisoning",
            sections=tuple(
                _section(b, line.FEDAVG, *line.DEFENDED, line.RULE, columns=(column("A1 50%"),), ours=True)
                for b in (FASHION, VEHICLE)
            ),
        ),
    )
}  # fmt: skip

__all__ = ["BENCHES", "TABLES", "Table"]
