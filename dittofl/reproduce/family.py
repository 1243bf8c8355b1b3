"""What determines w: a global method. Every personal model beside it shares its run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dittofl.errors import InputError
from dittofl.experiment.signature import Table
from dittofl.reproduce.bench import Bench
from dittofl.reproduce.column import Column

EPOCHS = 50  # of fine-tuning
DYNAMIC = "dynamic"  # the model that each device's own λ gives


@dataclass(frozen=True, kw_only=True)
class Family:
    """A global method, and which personal models run beside it."""

    name: str
    aggregate: Callable[[int], Table] | None = None  # of f, the malicious devices expected in a cohort
    local: Callable[[Bench], Table] | None = None  # None: FedAvg's steps
    server: Table | None = None
    personal: Callable[[Bench], dict[str, Table]] | None = None
    final: Callable[[Bench], dict[str, Table]] | None = None
    ditto: bool = False  # all λ; the λ rule where validation data are held out, else local training
    mocha: Mapping[str, Any] = field(default_factory=dict)  # parameters, for MOCHA, which is no solver of a row
    traced: bool = False  # whether every evaluation is followed by the final visit

    @property
    def word(self) -> str:
        """As folders are called."""
        kept = [letter if letter.isalnum() or letter in ".=" else "-" for letter in self.name]
        return "".join(kept).strip("-")

    def method(self, bench: Bench, where: Column, *, held: bool) -> Table:
        """The method's table of a spec."""
        personal = self.personal(bench) if self.personal else {}
        choose: Table = {}
        if self.ditto and not (held or self.aggregate):  # no w has a say in it: once, beside FedAvg's, will do
            personal |= {"local": _local(bench)}
        if self.ditto:
            personal |= {f"lam={lam:g}": _ditto(bench, lam) for lam in bench.fixed}
        if self.ditto and held:
            lambdas = bench.candidates[bench.strong(where)] if bench.candidates else None
            rule = {"kind": "LambdaRule", "strong": bench.strong(where), **_walk(bench)}
            choose = {DYNAMIC: rule | ({} if lambdas is None else {"lambdas": list(lambdas)})}
        table: Table = bench.shared | {"local": self.local(bench) if self.local else bench.local}
        if self.aggregate:
            table["aggregate"] = self.aggregate(bench.expected(where))
        final = self.final(bench) if self.final else {}
        parts = {"server": self.server, "personal": personal, "final": final, "choose": choose}
        return table | {key: its for key, its in parts.items() if its}


def _walk(bench: Bench) -> Table:
    return {key: bench.local[key] for key in ("lr", "steps")}


def _local(bench: Bench) -> Table:
    return {"kind": "Local", **_walk(bench)}


def _ditto(bench: Bench, lam: float) -> Table:
    return {"kind": "Ditto", "lam": lam, **_walk(bench)}


def _tuning(kind: str, **given: Any) -> Callable[[Bench], Table]:
    """A final solver of E epochs at the data set's rate."""
    return lambda bench: {"kind": kind, "lr": bench.local["lr"], "steps": {"kind": "Epochs", "count": EPOCHS}, **given}


def _finals(bench: Bench) -> dict[str, Table]:
    """Fine-tuning from w^T, plain and pulled back."""
    rows = {"finetuning": _tuning("Local")}
    rows |= {f"EWC lam={lam:g}": _tuning("EWC", lam=lam) for lam in (0.1, 1.0, 10.0)}
    rows |= {f"SKL lam={lam:g}": _tuning("SKL", lam=lam) for lam in (0.01, 0.1, 1.0)}
    return {name: make(bench) for name, make in rows.items()}


def _joint(bench: Bench) -> dict[str, Table]:
    return {JOINT: _ditto(bench, PULL)}


def _stops(bench: Bench) -> dict[str, Table]:
    """Fine-tuning on Ditto's objective, with several stops."""
    its = {"kind": "Ditto", "lam": PULL, "lr": bench.local["lr"]}
    return {f"{TUNED}{count}": its | {"steps": {"kind": "Epochs", "count": count}} for count in STOPS}


def _l2sgd(lam: float) -> Callable[[Bench], Table]:
    return lambda bench: {"kind": "L2SGD", "lam": lam, **_walk(bench)}


def _meta(bench: Bench) -> Table:
    return {"kind": "PerFedAvg", "lr": 0.01, "inner": bench.local["lr"], "steps": bench.local["steps"]}


def _apfl(bench: Bench) -> dict[str, Table]:
    return {f"alpha={alpha:g}": {"kind": "APFL", "alpha": alpha, **_walk(bench)} for alpha in ALPHAS}


def _always(table: Table) -> Callable[[int], Table]:
    """An aggregator that expects no number of malicious devices."""
    return lambda f: table


JOINT, TUNED, PULL, STOPS = "joint", "epochs=", 0.1, (1, 5, 20, 50)  # of Figures 7 and 8
EPSILONS, ALPHAS, PULLS = (0.0, 0.1, 0.5, 1.0), (0.25, 0.5, 0.75), (0.1, 1.0, 2.0)
MOCHA = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 10.0)
DEFENCES: dict[str, Callable[[int], Table]] = {
    "median": _always({"kind": "Median"}),
    "Krum": lambda f: {"kind": "Krum", "f": f},
    "multi-Krum": lambda f: {"kind": "MultiKrum", "f": f},
    "clipping": _always({"kind": "Clip"}),
    "k-norm": lambda f: {"kind": "KNorm", "f": f},
    "k-loss": lambda f: {"kind": "KLoss", "f": f},
}
TILTS = (1.0, 2.0, 5.0)

FAMILIES = {
    its.name: its
    for its in (
        Family(name="FedAvg", ditto=True),
        *(Family(name=f"TERM t={t:g}", aggregate=_always({"kind": "Tilt", "t": t})) for t in TILTS),
        *(Family(name=name, aggregate=make) for name, make in DEFENCES.items()),
        *(Family(name=f"FedMGDA+ eps={e:g}", aggregate=_always({"kind": "MGDA", "eps": e})) for e in EPSILONS),
        *(Family(name=f"Ditto + {name}", aggregate=DEFENCES[name], ditto=True) for name in ("clipping", "multi-Krum")),
        Family(name="finetuning", final=lambda bench: {"finetuning": _tuning("Local")(bench)}),
        Family(name="finetuned", final=_finals),
        Family(name="curves", personal=_joint, final=_stops, traced=True),
        Family(name="APFL", personal=_apfl),
        Family(name="mapper", local=lambda bench: {"kind": "Mapper", **_walk(bench)}),
        Family(name="Per-FedAvg", local=_meta, final=lambda bench: {"finetuned": _tuning("Local")(bench)}),
        *(Family(name=f"L2SGD lam={lam:g}", local=_l2sgd(lam), server={"kind": "Share"}) for lam in PULLS),
        *(Family(name=f"MOCHA lam={lam:g}", mocha={"lam": lam}) for lam in MOCHA),
    )
}


def family(name: str) -> Family:
    """The family of that name."""
    if name not in FAMILIES:
        raise InputError(f"there is no global method {name!r}: choose among {', '.join(FAMILIES)}")
    return FAMILIES[name]
