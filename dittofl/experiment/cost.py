"""What a run will need: memory, disk and time."""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from dittofl.engine.rows import BLOCK
from dittofl.errors import InputError
from dittofl.experiment.progress import clock
from dittofl.experiment.run import flags
from dittofl.experiment.setup import Setup, build
from dittofl.experiment.spec import Spec
from dittofl.inputs import parts

GIB = 2**30
PROCESS = 2**29  # bytes of Python and torch themselves
COPIES = 4  # of the cohort's rows that a round holds: gathered, stepped, sent, aggregated


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Bytes and seconds; `seconds` is None where nothing was tried."""

    memory: int  # on the computing device
    host: int
    disk: int
    seconds: float | None
    device: str

    def comment(self) -> str:
        """As comments of a spec."""
        lines = [f"# memory {self.memory / GIB:.2f} GiB on {self.device}, {_free(self.device) / GIB:.1f} GiB free"]
        if self.device != "cpu":
            lines.append(f"# memory {self.host / GIB:.2f} GiB on the host")
        lines.append(f"# disk   {self.disk / GIB:.3f} GiB for checkpoints")
        if self.seconds is not None:
            lines.append(f"# time   about {clock(self.seconds)}, by its first rounds")
        return "\n".join(lines)

    def fit(self, place: Path) -> None:
        """Refuses what cannot fit."""
        for wanted, device in ((self.memory, self.device), (self.host, "cpu")):
            if wanted > _free(device):
                free = _free(device) / GIB
                raise InputError(
                    f"this run needs {wanted / GIB:.1f} GiB of memory on {device} and {free:.1f} GiB are free: "
                    "lower cohort, personal models or devices, or use another machine"
                )
        existing = next(folder for folder in (place, *place.resolve().parents) if folder.exists())
        free = shutil.disk_usage(existing).free
        if self.disk > free:
            raise InputError(
                f"this run needs {self.disk / GIB:.1f} GiB of disk in {place} and {free / GIB:.1f} GiB are free: "
                "choose another --out, or --checkpoint-every 0"
            )


def _free(device: str) -> int:
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)


def needs(spec: Spec, *, probe: bool = False) -> Needs:
    """What a spec needs; with `probe` the time too, by a few rounds that are thrown away."""
    with flags(spec.experiment):
        setup = build(spec)
        data = sum(part.numel() * part.element_size() for part in (*parts(setup.federation.x), setup.federation.y))
        touched = min(setup.federation.K, spec.experiment.rounds * setup.cohort)
        P, item = setup.width
        kept = sum(_grown(touched, elements * item) for elements in setup.rows.values())
        round_ = COPIES * setup.cohort * P * item * (1 + len(setup.method.personal))
        gpu = spec.experiment.device != "cpu"
        return Needs(
            memory=data * 2 + kept + round_ + (0 if gpu else PROCESS),
            host=PROCESS + data * (2 if gpu else 0),
            disk=2 * touched * sum(setup.rows.values()) * item + 4 * P * item,
            seconds=_seconds(spec, setup) if probe else None,
            device=spec.experiment.device,
        )


def _grown(rows: int, size: int) -> int:
    """Bytes of a store that grows by blocks."""
    block = max(size, BLOCK)
    return -(-rows * size // block) * block if rows * size > BLOCK else rows * size


def _seconds(spec: Spec, setup: Setup, tries: int = 3) -> float:
    """The time of a whole run, by the rounds after a first one and one evaluation."""
    times, rounds = [time.perf_counter()], setup.federate(rounds=min(tries, spec.experiment.rounds))
    for _ in rounds:
        times.append(time.perf_counter())
    rounds.run.evaluate()
    evaluation = time.perf_counter() - times[-1]
    each = (times[-1] - times[1]) / (len(times) - 2) if len(times) > 2 else times[1] - times[0]
    total = spec.experiment.rounds
    return times[1] - times[0] + total * each + (total // spec.experiment.eval_every + 1) * evaluation
