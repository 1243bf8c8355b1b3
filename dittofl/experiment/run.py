"""One run: rounds, evaluations and checkpoints, from the first round or from where it stopped."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from dittofl.errors import InputError, StoppedError, require
from dittofl.evaluate import scores
from dittofl.experiment.files import read_json
from dittofl.experiment.folder import RUN, SUMMARY, Folder
from dittofl.experiment.keys import Experiment
from dittofl.experiment.progress import Shown
from dittofl.experiment.provenance import provenance
from dittofl.experiment.record import Record, finish, parts_of
from dittofl.experiment.setup import Setup, build
from dittofl.experiment.spec import Spec
from dittofl.federation import Part
from dittofl.method import GLOBAL

SHARE = 100  # a checkpoint may cost a hundredth of the time


@dataclass
class Pace:
    """When the next checkpoint is due: after `every` seconds, or SHARE times as long as the last one took."""

    every: float
    last: float = 0.0
    cost: float = 0.0

    def due(self, now: float) -> bool:
        return self.every > 0 and now - self.last >= max(self.every, SHARE * self.cost)

    def paid(self, begun: float, now: float) -> None:
        self.last, self.cost = now, now - begun


def execute(
    spec: Spec, folder: Folder, shown: Shown, *, every: float = 60.0, setup: Setup | None = None
) -> dict[str, Any]:
    """Runs a spec in its folder to the end, or goes on with it, and returns the summary; `setup` if it is made yet."""
    with folder.locked(), flags(spec.experiment):
        if folder.ended:
            return finished(spec, folder)
        with stopping() as asked:
            running = Running(spec, setup or build(spec), folder, shown, Pace(every, time.monotonic()))
            return running.to_the_end(asked)


def finished(spec: Spec, folder: Folder) -> dict[str, Any]:
    """The summary of a run that had ended; it must be of this spec."""
    summary = read_json(folder.path / SUMMARY, "identity", "models", "rounds", "seconds")
    if summary["identity"] != spec.identity:
        raise InputError(f"{folder.path} holds a finished run of another spec: choose another --out")
    return summary


class Running:
    """The rounds of a run, with what is written down between them."""

    def __init__(self, spec: Spec, setup: Setup, folder: Folder, shown: Shown, pace: Pace) -> None:
        """Goes to where it was saved; writes nothing."""
        self.spec, self.folder, self.shown, self.pace = spec, folder, shown, pace
        self.facts = provenance(spec, setup)
        folder.belongs(self.facts)
        self.kept = folder.checkpoints(spec)
        self.rounds = setup.federate(self.kept.load())
        self.run = self.rounds.run
        self.state = self.remembered()
        wanted = spec.experiment.parts
        self.parts = [part for part in parts_of(self.run.federation) if part in wanted]
        require(self.parts, f"no device has samples of parts={list(wanted)}, which are to be evaluated: name others")
        self.headline: Part = "test" if "test" in self.parts else self.parts[0]
        first = self.run.federation.sizes(self.headline).nonzero()[0][:1]
        scores(self.run, GLOBAL, first, self.headline)  # so that a metric that fails does so now

    def to_the_end(self, asked: list[int]) -> dict[str, Any]:
        """All rounds that are left; the summary."""
        self.begin()
        try:
            self.go(asked)
            return self.end(asked)
        finally:
            self.shown.end()

    def begin(self) -> None:
        """What is written before the first round."""
        self.folder.begin(self.spec, self.facts)
        self.record = Record(self.folder, self.run.metrics, self.kept.manifest.lengths)
        self.before, self.start = self.kept.manifest.seconds, time.monotonic()
        self.shown.begin(f"{self.spec.experiment.name}, seed {self.spec.experiment.seed}", self.run.t, self.rounds.last)

    @property
    def seconds(self) -> float:
        return self.before + time.monotonic() - self.start

    def go(self, asked: list[int]) -> None:
        """Rounds until the last, or until a signal has asked to stop."""
        every, at = self.spec.experiment.eval_every, set(self.spec.experiment.eval_at or ())
        for run in self.rounds:
            if self.remembered() != self.state:
                raise InputError(
                    f"the state of aggregator or server has other parts after round {run.t} than before, so no run "
                    "could go on: keep its structure, or take --checkpoint-every 0"
                )
            self.kept.visited(run.history[-1].cohort)
            self.record.round(run)
            if (run.t % every == 0 or run.t in at) and run.t < self.rounds.last:
                scored = run.evaluate(self.headline)
                self.record.evaluated(scored, "benign")
                self.shown.evaluated(scored)
            self.shown.round(run.t)
            if (asked and self.pace.every > 0) or self.pace.due(time.monotonic()):
                self.save()
            if asked:
                saved = (
                    f"saved in {self.folder.path}" if self.pace.every > 0 else "not saved, as no checkpoints are kept"
                )
                raise StoppedError(f"stopped after round {run.t} of {self.rounds.last}, {saved}")

    def remembered(self) -> list[str]:
        """What a checkpoint holds beside rows, where there are any checkpoints."""
        return list(self.run.state()) if self.pace.every > 0 else []

    def save(self) -> None:
        """A checkpoint of this round, where there is none yet."""
        if self.kept.manifest.generation >= 0 and self.kept.manifest.t == self.run.t:
            return
        begun = time.monotonic()
        self.kept.save(self.run, seconds=self.seconds, lengths=self.record.flush(last=True))
        self.pace.paid(begun, time.monotonic())

    def end(self, asked: list[int]) -> dict[str, Any]:
        """The last evaluation and checkpoint, and what is written once."""
        if self.pace.every > 0:
            self.save()
            asked.append(0)  # all is saved: from here a first signal may stop at once
        self.run.finish()
        scored = self.run.evaluate(*self.parts)
        self.record.evaluated(scored, "benign", "all")
        facts = read_json(self.folder.path / RUN)  # of the first start, where there were several
        return finish(self.folder, self.run, scored, facts | {"seconds": self.seconds})


@contextmanager
def stopping() -> Iterator[list[int]]:
    """A list that gets the signal that asks to stop; a second one stops at once."""
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    old = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


@contextmanager
def flags(its: Experiment) -> Iterator[None]:
    """The process-wide settings of torch that a spec names, put back afterwards."""
    threads, matmul = torch.get_num_threads(), torch.get_float32_matmul_precision()
    cudnn, deterministic = torch.backends.cudnn.allow_tf32, torch.are_deterministic_algorithms_enabled()
    torch.set_float32_matmul_precision("high" if its.precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = its.precision == "tf32"
    if its.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    if its.threads is not None:
        torch.set_num_threads(its.threads)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(matmul)
        torch.backends.cudnn.allow_tf32 = cudnn
        torch.use_deterministic_algorithms(deterministic)
