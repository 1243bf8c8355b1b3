"""One run: a data set, a global method, a column and a seed; with every personal model that belongs beside w."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dittofl.errors import InputError, require, short
from dittofl.experiment.folder import RUN, SUMMARY
from dittofl.experiment.signature import Table
from dittofl.experiment.spec import SPEC, Spec, resolve
from dittofl.reproduce.bench import BENCHES, Bench
from dittofl.reproduce.column import CLEAN, Column
from dittofl.reproduce.draws import malicious
from dittofl.reproduce.family import Family, family

LAST = 10  # evaluations that a cell's range is over
APART = 10  # rounds between those
CURVE = 10  # evaluations over the whole run
TRACED = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
# What makes no difference to what a cell means: results differ by rounding.
REPLAYED = {"kind": "dittofl.reproduce.draws:Replayed"}
Key = tuple[str, str, Column, bool, int, float]
MACHINE = ("name", "device", "precision", "engine", "threads", "deterministic")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """How a run is computed."""

    device: str = "cpu"
    precision: str = "float32"
    engine: str | None = None

    def table(self) -> Table:
        """Its keys of a spec."""
        engine = {} if self.engine is None else {"engine": {"kind": self.engine}}
        return {"device": self.device, "precision": self.precision, **engine}


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """A run of the reproduction; `held` runs keep the last tenth of each train part for validation."""

    bench: Bench
    family: Family
    where: Column
    held: bool = False
    seed: int = 0
    scale: float = 1.0

    @property
    def name(self) -> str:
        """As progress and folders tell it."""
        held = "-held" if self.held else ""
        return f"{self.bench.word}/{self.family.word}/{self.where.word}{held}/seed-{self.seed}"

    def __hash__(self) -> int:
        return hash((self.name, self.scale))

    @property
    def rounds(self) -> int:
        """The data set's, times the scale."""
        return max(1, round(self.bench.rounds * self.scale))

    @property
    def evaluations(self) -> tuple[int, ...]:
        """The rounds of the last ten evaluations, the last round among them; where every one is followed by
        fine-tuning, ten from early on."""
        if self.family.traced:
            return tuple(sorted({max(1, round(share * self.rounds)) for share in TRACED}))
        apart = max(1, min(APART, self.rounds // (2 * LAST)))
        return tuple(sorted({max(1, self.rounds - apart * i) for i in range(LAST)}))

    def path(self, out: Path) -> Path:
        """Its folder."""
        return out / "runs" / self.name

    @cached_property
    def attack(self) -> Table | None:
        """The attack's table of a spec."""
        if self.where.attack == CLEAN:
            return None
        who = malicious(self.bench.K, self.bench.malicious(self.where))
        return {"kind": self.where.attack, "devices": list(who)}

    def spec(self, machine: Machine) -> Spec:
        """What is run."""
        table: Table = {
            **self.bench.spec, "name": self.name.replace("/", "."), "data": self.bench.source(held=self.held),
            "method": self.family.method(self.bench, self.where, held=self.held), "rounds": self.rounds,
            "seed": self.seed,
            **({"sampling": REPLAYED} if self.bench.by_size else {}),
            "eval_every": max(1, self.rounds // CURVE), "eval_at": list(self.evaluations),
            "parts": ["validation", "test"] if self.held else ["test"], **machine.table(),
        }  # fmt: skip
        # Names are looked up from the package's folder, lest a checkout's own files be taken for the user's.
        return resolve(table | ({} if self.attack is None else {"attack": self.attack}), Path(__file__).parent)

    def ended(self, out: Path) -> bool:
        """Whether it was run to its end in this folder; refuses a folder that holds a run of something else."""
        path = self.path(out)
        if not (path / RUN).is_file():
            return False
        try:
            there = tomllib.loads((path / SPEC).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path / SPEC} cannot be read ({short(error)}): remove that folder") from error
        mine, its = _meant(self.spec(Machine()).table), _meant(there)
        wrong = sorted(key for key in mine.keys() | its.keys() if mine.get(key) != its.get(key))
        require(
            not wrong,
            f"{path} holds a run that differs in {', '.join(wrong)}: choose another --out, or remove that folder",
        )
        return (path / SUMMARY).is_file()

    @property
    def key(self) -> Key:
        """What another process makes it from."""
        return self.bench.word, self.family.name, self.where, self.held, self.seed, self.scale


def of(key: Key) -> Trajectory:
    """The run of that key."""
    word, name, where, held, seed, scale = key
    bench = next(its for its in BENCHES if its.word == word)
    return Trajectory(bench=bench, family=family(name), where=where, held=held, seed=seed, scale=scale)


def _meant(table: Mapping[str, Any]) -> Table:
    """A spec without what the machine decides."""
    return {key: its for key, its in table.items() if key not in MACHINE}
