"""What a run will need: memory, disk and time."""

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from dittofl.engine.rows import BLOCK
from dittofl.errors import InputError
from dittofl.experiment.folder import CHECKPOINT
from dittofl.experiment.progress import clock
from dittofl.experiment.run import flags
from dittofl.experiment.setup import Setup, build
from dittofl.experiment.spec import Spec
from dittofl.federate import usable
from dittofl.federation import PARTS
from dittofl.inputs import parts

UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
PROCESS = 2**29  # bytes of Python and torch themselves
COPIES = 4  # of the cohort's rows that a round holds: gathered, stepped, sent, aggregated


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Bytes and seconds; `seconds` is None where nothing was tried."""

    memory: int  # on the computing device
    host: int
    kept: int  # on the disk at the end, at least
    disk: int  # and while checkpoints are written, at most
    seconds: float | None
    device: str

    def comment(self) -> str:
        """As comments of a spec."""
        lines = [f"# memory {size(self.memory)} on {self.device}, {size(_free(self.device))} free"]
        if not self.device.startswith("cpu"):
            lines.append(f"# memory {size(self.host)} on the host")
        lines.append(f"# disk   {size(self.kept)} of models, up to {size(self.disk)} while they are saved")
        if self.seconds is not None:
            lines.append(f"# time   about {clock(self.seconds)}, by its first rounds")
        return "\n".join(lines)

    def fit(self) -> None:
        """Refuses what cannot fit into memory."""
        for wanted, device in ((self.memory, self.device), (self.host, "cpu")):
            if wanted > _free(device):
                raise InputError(
                    f"this run needs {size(wanted)} of memory on {device} and {size(_free(device))} are free: "
                    "lower cohort, personal models or devices, or use another machine"
                )


def store(planned: Sequence[tuple[Needs, Path]]) -> None:
    """Refuses runs, one after the other, whose checkpoints cannot fit on the disk."""
    before = 0
    for its, place in planned:
        existing = next(folder for folder in (place, *place.resolve().parents) if folder.exists())
        free = shutil.disk_usage(existing).free
        mine = sum(file.stat().st_size for file in place.glob(f"{CHECKPOINT}/*"))  # of a run that goes on
        if before + its.disk > free + mine:
            runs = "these runs need" if len(planned) > 1 else "this run needs"
            raise InputError(
                f"{runs} {size(before + its.disk)} of disk in {place} and {size(free + mine)} are free: choose another "
                "--out, or --checkpoint-every 0"
            )
        before += its.kept


def size(count: float) -> str:
    """Bytes as people write them.

    >>> size(12), size(3 * 2**20), size(26.2e9)
    ('12 bytes', '3.0 MiB', '24.4 GiB')
    """
    power = 0
    while count >= 1024 and power + 1 < len(UNITS):
        count, power = count / 1024, power + 1
    return f"{count:.{int(power > 0)}f} {UNITS[power]}"


def _free(device: str) -> int:
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)


def needs(spec: Spec, setup: Setup | None = None, *, probe: bool = False) -> Needs:
    """What a spec needs; with `probe` the time too, by a few rounds that are thrown away."""
    device = usable(spec.experiment.device)
    with flags(spec.experiment):
        setup = build(spec) if setup is None else setup
        data = sum(part.numel() * part.element_size() for part in (*parts(setup.federation.x), setup.federation.y))
        touched = min(setup.federation.K, spec.experiment.rounds * setup.cohort)
        P, item = setup.width
        kept = sum(_grown(touched, elements * item) for elements in setup.rows.values())
        round_ = COPIES * setup.cohort * P * item * (1 + len(setup.method.personal))
        gpu = device.type != "cpu"
        return Needs(
            memory=data * 2 + kept + round_ + (0 if gpu else PROCESS),
            host=PROCESS + data * (2 if gpu else 0),
            kept=(rows := touched * sum(setup.rows.values()) * item) + 4 * P * item,
            disk=3 * rows + 8 * P * item,  # twice the rows at most, before all of them are written anew
            seconds=_seconds(spec, setup) if probe else None,
            device=str(device),
        )


def _grown(rows: int, size: int) -> int:
    """Bytes of a store that grows by blocks."""
    block = max(size, BLOCK)
    return -(-rows * size // block) * block if rows * size > BLOCK else rows * size


def _seconds(spec: Spec, setup: Setup, tries: int = 3) -> float:
    """The time of a whole run without final visits, by the rounds after a first one and one evaluation."""
    times, rounds = [time.perf_counter()], setup.federate(rounds=min(tries, spec.experiment.rounds))
    for _ in rounds:
        times.append(time.perf_counter())
    rounds.run.evaluate()
    evaluation = time.perf_counter() - times[-1]
    each = (times[-1] - times[1]) / (len(times) - 2) if len(times) > 2 else times[1] - times[0]
    total = spec.experiment.rounds
    sizes = [int(setup.federation.sizes(part).sum()) for part in PARTS if part in spec.experiment.parts]
    last = sum(sizes) / max(1, int(setup.federation.sizes("test").sum()))  # more parts than the evaluation tried here
    return times[1] - times[0] + total * each + (total // spec.experiment.eval_every + last) * evaluation
