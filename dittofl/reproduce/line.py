"""Rows of the paper's tables: which model of which run a cell reports, and how it is chosen where there are several."""

from dataclasses import dataclass

from dittofl.method import GLOBAL
from dittofl.reproduce.bench import Bench
from dittofl.reproduce.column import Column
from dittofl.reproduce.family import ALPHAS, DYNAMIC, EPSILONS, MOCHA, PULLS


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A model beside a global method."""

    family: str
    model: str = GLOBAL

    @property
    def name(self) -> str:
        """What a choice is told as: the model, or the global method where that is what is chosen."""
        return self.family if self.model in (GLOBAL, "mocha") else self.model


@dataclass(frozen=True, kw_only=True)
class Line:
    """A row. Among several candidates the accuracy on benign devices' validation data chooses, as in the paper.

    A choice is made on a run that holds the validation data out, and reported of the one that trains on all of the
    train part. With `held` the cell itself is of the run that holds out: each device's own λ.
    """

    label: str
    among: tuple[Candidate, ...]
    held: bool = False
    chosen_at: Column | None = None  # one choice for all columns, made there; None: each column its own

    def matches(self, word: str) -> bool:
        """Whether `--only` means this row."""
        return self.label.lower().startswith(word.lower())


@dataclass(frozen=True, kw_only=True)
class Section:
    """Rows and columns of one data set."""

    bench: Bench
    lines: tuple[Line, ...]
    columns: tuple[Column, ...]
    ours: bool = False  # not in the paper


def plain(label: str, family: str | None = None, model: str = GLOBAL) -> Line:
    """A row without a choice."""
    return Line(label=label, among=(Candidate(family=label if family is None else family, model=model),))


def best(label: str, bench: Bench, family: str = "FedAvg") -> Line:
    """Ditto with the fixed λ that benign devices' validation data choose."""
    return Line(label=label, among=tuple(Candidate(family=family, model=f"lam={lam:g}") for lam in bench.fixed))


def lambdas(bench: Bench) -> tuple[Line, ...]:
    """A row for every fixed λ."""
    return tuple(plain(f"Ditto, lambda={lam:g}", "FedAvg", f"lam={lam:g}") for lam in bench.fixed)


def finetuning(bench: Bench) -> Line:
    """Plain fine-tuning, of the run that has the other fine-tuned models too where Table 2 needs them."""
    return plain("finetuning", "finetuned" if bench.preset in ("femnist", "celeba") else "finetuning", "finetuning")


def tuned(label: str, family: str, models: tuple[str, ...]) -> Line:
    """Hyper-parameters chosen among models beside one w."""
    return Line(label=label, among=tuple(Candidate(family=family, model=model) for model in models))


FEDAVG, LOCAL, FAIR = plain("global", "FedAvg"), plain("local", "FedAvg", "local"), plain("fair", "TERM t=1")
RULE = Line(label="Ditto", among=(Candidate(family="FedAvg", model=DYNAMIC),), held=True)
DYNAMIC_LAMBDA = Line(label="dynamic lambda", among=RULE.among, held=True)
DEFENDED = tuple(plain(name) for name in ("median", "Krum", "multi-Krum", "clipping", "k-norm", "k-loss"))
MGDA = Line(label="FedMGDA+", among=tuple(Candidate(family=f"FedMGDA+ eps={e:g}") for e in EPSILONS))
RELATED = Line(
    label="MOCHA", among=tuple(Candidate(family=f"MOCHA lam={lam:g}", model="mocha") for lam in MOCHA),
    chosen_at=Column(),
)  # fmt: skip
PERSONAL = (
    Line(label="L2SGD", among=tuple(Candidate(family=f"L2SGD lam={lam:g}") for lam in PULLS)),
    tuned("EWC", "finetuned", tuple(f"EWC lam={lam:g}" for lam in (0.1, 1.0, 10.0))),
    tuned("SKL", "finetuned", tuple(f"SKL lam={lam:g}" for lam in (0.01, 0.1, 1.0))),
    plain("Per-FedAvg", model="finetuned"),
    plain("mapper"),
    tuned("APFL", "APFL", tuple(f"alpha={alpha:g}" for alpha in ALPHAS)),
)
