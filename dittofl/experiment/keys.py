"""The keys of a spec."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dittofl.errors import is_whole, require, short
from dittofl.experiment.signature import Table
from dittofl.federation import PARTS

PRECISIONS = ("float32", "tf32", "float64")


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The keys of a spec. Tables stay tables here; `setup.build` makes objects of them."""

    name: str
    data: Table
    model: Table
    loss: Table
    method: Table
    attack: Table | None = None
    sampling: Table | None = None
    engine: Table | None = None
    penalty: Table | str | None = None
    transform: Table | str | None = None
    target: Table | None = None
    metrics: Table | None = None
    rounds: int
    cohort: int | None = None
    seed: int = 0
    eval_every: int = 10
    eval_at: tuple[int, ...] | None = None  # rounds to evaluate after besides
    parts: tuple[str, ...] = PARTS
    device: str = "cpu"
    precision: str = "float32"
    deterministic: bool = False
    threads: int | None = None

    def __post_init__(self) -> None:
        require(
            isinstance(self.name, str) and self.name not in ("", "..") and Path(self.name).name == self.name,
            f"name must be a word that can name a folder, got name={short(self.name)}",
        )
        for key, least in (("rounds", 1), ("eval_every", 1), ("cohort", 1), ("threads", 1), ("seed", 0)):
            value = getattr(self, key)
            optional = key in ("cohort", "threads") and value is None
            require(optional or is_whole(value, least), f"{key} must be a whole number ≥ {least}, got {short(value)}")
        require(self.seed < 2**63, f"seed must be below 2⁶³, got {short(self.seed)}: choose a smaller one")
        require(
            self.precision in PRECISIONS,
            f"precision must be one of {', '.join(PRECISIONS)}, got {self.precision!r}: choose one",
        )
        require(
            isinstance(self.deterministic, bool), f"deterministic must be true or false, got {self.deterministic!r}"
        )
        require(isinstance(self.device, str), f"device must be a name such as 'cpu' or 'cuda', got {self.device!r}")
        require(
            isinstance(self.parts, list | tuple) and self.parts and set(self.parts) <= set(PARTS),
            f"parts must be a list of {', '.join(PARTS)}, what the last evaluation covers, got {short(self.parts)}",
        )
        require(
            self.eval_at is None
            or (isinstance(self.eval_at, list | tuple) and all(is_whole(t, 1) for t in self.eval_at)),
            f"eval_at must be a list of rounds, whole numbers ≥ 1, got {short(self.eval_at)}",
        )
        for key in ("data", "model", "method"):
            value = getattr(self, key)
            require(isinstance(value, Mapping), f"{key} must be a table, got {short(value)}: write [{key}]")
