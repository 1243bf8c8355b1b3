"""What a reproduction shows while it runs: over all runs, rounds per second and the time left."""

import os
import signal
import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from dittofl.evaluate import Evaluation
from dittofl.experiment.progress import EVERY, clock, latest


class Board:
    """How far all runs are together."""

    def __init__(self, console: Console, say: Callable[[str], None]) -> None:
        self.say, self.next, self.start = say, time.monotonic() + 2.0, time.monotonic()
        self.at: dict[str, tuple[int, int]] = {}  # of each run begun: its round, and the one it began at
        self.total, self.runs, self.ended, self.text = 0, 0, 0, ""
        self.bar: Progress | None = None
        if console.is_terminal:
            columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
            self.bar = Progress(*columns, console=console)
            self.bar.start()
            self.task = self.bar.add_task("", total=None)

    def plan(self, runs: int, rounds: int) -> None:
        """How many runs there are in all, and rounds in those not begun."""
        self.runs, self.total = runs, rounds

    def begin(self, name: str, t: int) -> None:
        if not self.at:  # what came before, reading data and starting workers, says nothing of the time left
            self.start = time.monotonic()
            self.next = self.start + 2.0
        self.at[name], self.text = (t, t), name

    def round(self, name: str, t: int, text: str) -> None:
        """A run is at round t."""
        self.at[name], self.text = (t, self.at[name][1]), f"{name} {text}"
        self.draw(last=False)

    def end(self, name: str) -> None:
        self.ended += 1
        self.draw(last=False)

    def draw(self, *, last: bool) -> None:
        """The bar, or a plain line every ten seconds."""
        made = sum(t - first for t, first in self.at.values())
        rate = made / max(time.monotonic() - self.start, 1e-9)
        left = clock(max(0, self.total - made) / rate) if rate else "unknown"
        told = f"{self.ended} of {self.runs} runs, {rate:.1f} rounds/s, {left} left  {self.text}"
        if self.bar is not None:
            self.bar.update(self.task, total=self.total, completed=made, description=told)
        elif time.monotonic() >= self.next or last:
            self.next = time.monotonic() + EVERY
            self.say(told)

    def stop(self) -> None:
        if self.bar is not None:
            self.bar.stop()


class Follower:
    """Tells a board of one run; one in a process of its own asks to stop when the process that began it is gone."""

    def __init__(self, name: str, tell: Callable[[str, str, int, str], None], parent: int | None = None) -> None:
        self.name, self.tell, self.parent, self.text, self.next = name, tell, parent, "", 0.0

    def begin(self, name: str, t: int, rounds: int) -> None:
        self.tell("begin", self.name, t, "")

    def round(self, t: int) -> None:
        if time.monotonic() >= self.next:
            self.next = time.monotonic() + 0.5
            self.tell("round", self.name, t, self.text)
            if self.parent is not None and os.getppid() != self.parent:
                os.kill(os.getpid(), signal.SIGTERM)

    def evaluated(self, scored: Evaluation) -> None:
        self.text = latest(scored)

    def end(self) -> None: ...
