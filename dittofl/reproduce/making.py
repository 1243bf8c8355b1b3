"""One run of the reproduction, made or gone on with."""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from dittofl.experiment.cost import needs, store
from dittofl.experiment.folder import CHECKPOINT, RUN, opened
from dittofl.experiment.run import execute
from dittofl.reproduce.apart import fit, trace
from dittofl.reproduce.board import Follower
from dittofl.reproduce.trajectory import Machine, Trajectory


@dataclass(frozen=True, kw_only=True)
class How:
    """How runs are made."""

    out: Path
    machine: Machine
    every: float = 60.0  # seconds between checkpoints
    resume: bool = False
    jobs: int = 1
    minutes: float | None = None


@dataclass
class Made:
    """What became of the runs."""

    seconds: list[float] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    stopped: str | None = None  # why it ended before all were made


MPS = "/tmp/nvidia-mps"  # where NVIDIA's server for several processes listens, unless told otherwise


def advice(how: How) -> str | None:
    """What would make several runs on one GPU faster: without MPS kernels of different processes take turns."""
    listening = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", MPS)).exists()
    if how.jobs == 1 or listening or not how.machine.device.startswith("cuda"):
        return None
    start = "nvidia-cuda-mps-control -d"
    return f"{how.jobs} runs share a GPU best under NVIDIA's MPS, which is not running: {start} starts it"


def one(run: Trajectory, how: How, shown: Follower) -> None:
    """One run to its end, if it fits into memory; its checkpoints go when they are of no use any more."""
    path = run.path(how.out)
    if run.bench.large:
        _fits(run, how)
    unsaved = (path / RUN).is_file() and not (path / CHECKPOINT).exists()  # so that there is nothing to lose
    folder = opened(path, resume=how.resume or unsaved)
    if run.family.mocha:
        fit(run, how.machine, folder, shown)
    elif run.family.traced:
        trace(run, how.machine, folder, shown)
    else:
        execute(run.spec(how.machine), folder, shown, every=how.every)
    shutil.rmtree(path / CHECKPOINT, ignore_errors=True)


_FIT: set[tuple[str, str, bool]] = set()  # of which kind of run this process has asked


def _fits(run: Trajectory, how: How) -> None:
    """Refuses runs that memory or disk cannot hold, the first of each kind."""
    kind = (run.bench.word, run.family.name, run.held)
    if kind not in _FIT:
        its = needs(run.spec(how.machine))
        its.fit()
        store([(its, run.path(how.out))] if how.every else [])
        _FIT.add(kind)
