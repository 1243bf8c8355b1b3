"""Runs that are not one spec from the first round to the last, with the files of those that are.

MOCHA has no rounds of Algorithm 1. Figures 7 to 9 fine-tune from w^t at several rounds of one run.
"""

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from dittofl.evaluate import Evaluation
from dittofl.experiment.files import as_csv, write, write_json
from dittofl.experiment.folder import METRICS, RUN, SUMMARY, Folder
from dittofl.experiment.provenance import provenance
from dittofl.experiment.record import metric_columns, metric_rows, parts_of
from dittofl.experiment.run import flags
from dittofl.experiment.setup import Setup, build
from dittofl.experiment.spec import SPEC, Spec
from dittofl.mocha import Mocha

if TYPE_CHECKING:
    from dittofl.reproduce.board import Follower
    from dittofl.reproduce.trajectory import Machine, Trajectory

MOCHA = "mocha"
LOGGED = ("accuracy", "loss")


def fit(run: "Trajectory", machine: "Machine", folder: Folder, shown: "Follower") -> None:
    """Trains MOCHA on a run's data under its attack; it has no rounds to follow."""
    shown.begin(run.name, 0, run.rounds)
    begun, how, spec = time.monotonic(), Mocha(**run.family.mocha), run.spec(machine)
    setup = build(spec)
    found = how.fit(setup.federation, attack=setup.attack, seed=run.seed)
    scored = found.evaluate(*(part for part in parts_of(setup.federation) if part != "train"))
    facts = {"rounds": found.rounds, "gap": found.gaps[-1], "seconds": time.monotonic() - begun, "mocha": asdict(how)}
    _write(spec, setup, folder, [scored], ["benign"], facts, run.family.name, repr(how))


def trace(run: "Trajectory", machine: "Machine", folder: Folder, shown: "Follower") -> None:
    """A run whose final solvers visit every device at each of its evaluations, from the w^t of then."""
    begun, spec, logged = time.monotonic(), run.spec(machine), list[Evaluation]()
    with flags(spec.experiment):
        setup = build(spec)
        parts = parts_of(setup.federation)
        shown.begin(run.name, 0, run.rounds)
        for state in setup.federate():
            if state.t in run.evaluations:
                state.finish()
                logged.append(state.evaluate(*parts))
            shown.round(state.t)
    facts = {"rounds": run.rounds, "seconds": time.monotonic() - begun}
    _write(spec, setup, folder, logged, ["benign", "all"], facts, run.family.name)


def _write(
    spec: Spec, setup: Setup, folder: Folder, logged: Sequence[Evaluation], whom: Sequence[str],
    facts: Mapping[str, object], family: str, of: str = "",
) -> None:  # fmt: skip
    """The files of a run, which is what its spec says and `of` besides; the summary last."""
    known = provenance(spec, setup)
    identity = hashlib.sha256(f"{spec.identity} {family} {of}".encode()).hexdigest()
    with folder.locked():
        write(folder.path / SPEC, spec.toml().encode())
        write_json(folder.path / RUN, known | {"identity": identity})
        write(folder.path / METRICS, _table(logged, whom).encode())
        last = logged[-1]
        models = {
            model: {metric: last.summary(model, metric).as_dict() for metric in LOGGED}
            for model, part in last.values if part == last.headline
        }  # fmt: skip
        write_json(folder.path / SUMMARY, {"models": models, "identity": identity} | dict(facts))


def _table(logged: Iterable[Evaluation], whom: Sequence[str]) -> str:
    return as_csv([metric_columns(LOGGED), *(row for scored in logged for row in metric_rows(scored, LOGGED, whom))])
