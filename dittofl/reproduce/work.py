"""Runs, one after the other in this process, or by several workers."""

import time

from dittofl.errors import InputError
from dittofl.reproduce.board import Board, Follower
from dittofl.reproduce.crew import Crew, Next
from dittofl.reproduce.making import How, Made, one


def work(following: Next, how: How, board: Board) -> Made:
    """All runs that `following` names, in this process or by several workers."""
    if how.jobs > 1 or how.minutes is not None:
        return Crew(how, board).work(following)
    made = Made()

    def tell(kind: str, name: str, t: int, text: str) -> None:
        board.begin(name, t) if kind == "begin" else board.round(name, t, text)

    while (run := following(set(made.failed))) is not None:
        begun = time.monotonic()
        try:
            one(run, how, Follower(run.name, tell))
        except InputError as error:
            made.failed[run.name] = str(error)
        made.seconds.append(time.monotonic() - begun)
        board.end(run.name)
    return made
