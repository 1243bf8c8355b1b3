"""What a long run shows: rounds per second, time left, the latest accuracies."""

import time
from collections.abc import Callable
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from dittofl.evaluate import Evaluation
from dittofl.metrics import Summary

EVERY = 10.0  # seconds between plain lines


class Shown(Protocol):
    """Where a run tells how far it is."""

    def begin(self, name: str, t: int, rounds: int) -> None: ...
    def round(self, t: int) -> None: ...
    def evaluated(self, scored: Evaluation) -> None: ...
    def end(self) -> None: ...


class Quiet:
    """Nothing."""

    def begin(self, name: str, t: int, rounds: int) -> None: ...
    def round(self, t: int) -> None: ...
    def evaluated(self, scored: Evaluation) -> None: ...
    def end(self) -> None: ...


class Bar:
    """A bar on a terminal, and below it the latest accuracies."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def begin(self, name: str, t: int, rounds: int) -> None:
        self.rate, self.latest = Rate(t), Text("", style="dim", no_wrap=True, overflow="ellipsis")
        self.bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
            TextColumn("{task.fields[rate]}"), console=self.console,
        )  # fmt: skip
        self.task = self.bar.add_task(name, total=rounds, completed=t, rate="")
        self.live = Live(Group(self.bar, self.latest), console=self.console)
        self.live.start()

    def round(self, t: int) -> None:
        self.bar.update(self.task, completed=t, rate=f"{self.rate.at(t):.1f} rounds/s")

    def evaluated(self, scored: Evaluation) -> None:
        self.latest.plain = latest(scored)

    def end(self) -> None:
        self.live.stop()


class Lines:
    """Plain lines where output is no terminal: the first evaluation, then one every ten seconds."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say

    def begin(self, name: str, t: int, rounds: int) -> None:
        self.name, self.rounds, self.rate, self.latest = name, rounds, Rate(t), ""
        self.next = time.monotonic() + 2.0

    def round(self, t: int) -> None:
        if time.monotonic() < self.next and t < self.rounds:
            return
        self.next = time.monotonic() + EVERY
        rate = self.rate.at(t)
        left = (self.rounds - t) / max(rate, 1e-9)
        self.say(f"{self.name}: round {t} of {self.rounds}, {rate:.1f} rounds/s, {clock(left)} left  {self.latest}")

    def evaluated(self, scored: Evaluation) -> None:
        self.latest = latest(scored)

    def end(self) -> None: ...


class Rate:
    """Rounds per second since it began."""

    def __init__(self, t: int) -> None:
        self.t, self.start = t, time.monotonic()

    def at(self, t: int) -> float:
        return (t - self.t) / max(time.monotonic() - self.start, 1e-9)


def clock(seconds: float) -> str:
    """Seconds as people write them.

    >>> clock(59), clock(3599), clock(7265)
    ('59 s', '60 min', '2.0 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def latest(scored: Evaluation) -> str:
    """The headline of every model."""
    found = {model: leading(scored, model) for model, its in scored.values if its == scored.headline}
    return "  ".join(f"{model} {summary.mean:.3f}" for model, summary in found.items())


def leading(scored: Evaluation, model: str) -> Summary:
    """Accuracy over benign devices, or loss where there is no accuracy."""
    metric = "accuracy" if "accuracy" in scored.values[model, scored.headline] else "loss"
    return scored.summary(model, metric, scored.headline)
