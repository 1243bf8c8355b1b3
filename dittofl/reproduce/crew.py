"""Several runs at a time, each in a process of its own, until all are made, time is up or the user stops them."""

import multiprocessing
import os
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from statistics import median
from typing import Any

import torch

from dittofl.errors import StoppedError, short
from dittofl.experiment.run import stopping
from dittofl.reproduce.board import Board, Follower
from dittofl.reproduce.making import How, Made, one
from dittofl.reproduce.trajectory import Trajectory, of

GRACE = 60.0  # seconds that a worker gets to save what it has
SHARED = 0.97  # of a GPU's memory is shared out among the workers
MOST = 0.8  # of the usual time of a run must be left, or it is not begun


Next = Callable[[set[str]], Trajectory | None]  # (names of the runs in progress and of those that failed) → another


class Crew:
    """Several processes that make runs; each keeps what it has compiled."""

    def __init__(self, how: How, board: Board) -> None:
        self.how, self.board, self.made = how, board, Made()
        self.until = None if how.minutes is None else time.monotonic() + 60 * how.minutes
        self.busy: dict[Connection, tuple[str, float]] = {}
        self.workers: dict[Connection, BaseProcess] = {}

    def work(self, following: Next) -> Made:
        with stopping() as asked:
            try:
                self._start()
                while self._hand_out(following) or self.busy:
                    for connection in wait(list(self.busy), timeout=0.5):
                        self._listen(connection)  # type: ignore[arg-type]
                    if asked or (self.until is not None and time.monotonic() > self.until):
                        self.made.stopped = "stopped" if asked else self._over()
                        break
                if not self.workers:
                    self.made.stopped = "every process has died"
            finally:
                self._dismiss()
        if asked:
            raise StoppedError("stopped; what was saved last is whole: go on with --resume")
        return self.made

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        for _ in range(self.how.jobs):
            mine, its = context.Pipe()
            worker = context.Process(target=serve, args=(its, self.how, os.getpid()))
            worker.start()
            its.close()
            self.workers[mine] = worker

    def _hand_out(self, following: Next) -> bool:
        """Gives every idle worker a run; whether any has one now."""
        for connection in self.workers:
            if connection not in self.busy:
                run = following({name for name, _ in self.busy.values()} | set(self.made.failed))
                if run is not None and not self._enough():
                    self.made.stopped = self._over()
                    break
                if run is None:
                    break
                self.busy[connection] = (run.name, time.monotonic())
                with suppress(OSError):  # a worker that has died is told of when it is listened to
                    connection.send(run.key)
        return bool(self.busy)

    def _over(self) -> str:
        return f"the {self.how.minutes:g} minutes are over"

    def _enough(self) -> bool:
        """Whether a run begun now would come to its end."""
        if self.until is None or not self.made.seconds:
            return True
        return self.until - time.monotonic() > MOST * median(self.made.seconds)

    def _listen(self, connection: Connection) -> None:
        name, begun = self.busy[connection]
        try:
            kind, *what = connection.recv()
        except (EOFError, OSError):
            kind, what = "failed", ["its process died"]
            del self.workers[connection]
        match kind:
            case "begin":
                self.board.begin(name, what[1])
            case "round":
                self.board.round(name, *what[1:])
            case _:
                if kind == "failed":
                    self.made.failed[name] = what[0]
                else:
                    self.made.seconds.append(time.monotonic() - begun)
                del self.busy[connection]
                self.board.end(name)

    def _dismiss(self) -> None:
        """Asks the workers to stop; those that have nothing to save, or do not come to it, are stopped at once."""
        for connection, worker in self.workers.items():
            if connection in self.busy and self.how.every == 0:
                worker.kill()
            elif connection in self.busy:
                worker.terminate()
            else:
                connection.close()
        until = time.monotonic() + GRACE
        for worker in self.workers.values():
            worker.join(max(0.0, until - time.monotonic()))
            worker.kill()


def serve(connection: Connection, how: How, parent: int) -> None:
    """A worker: makes the runs that it is told to, until nobody tells it more."""
    os.setpgid(0, 0)  # Ctrl-C reaches the process that began it alone, which then asks this one to stop

    def tell(*what: Any) -> None:
        connection.send(what)

    while True:
        try:
            run = of(connection.recv())
        except (EOFError, OSError):
            return
        try:
            if (device := torch.device(how.machine.device)).type == "cuda" and torch.cuda.is_available():
                torch.cuda.set_per_process_memory_fraction(SHARED / how.jobs, device.index or 0)
            one(run, how, Follower(run.name, tell, parent))
            tell("made")
        except (StoppedError, BrokenPipeError, KeyboardInterrupt):
            return
        except Exception as error:  # whatever a run fails of, the others go on
            tell("failed", short(error))
