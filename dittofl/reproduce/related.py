"""MOCHA's cells: no rounds of Algorithm 1, but the same data, attacks, metrics and files."""

import csv
import hashlib
import io
import time
from typing import TYPE_CHECKING

from dittofl.evaluate import Evaluation
from dittofl.experiment.files import write, write_json
from dittofl.experiment.folder import METRICS, RUN, SUMMARY, Folder
from dittofl.experiment.provenance import provenance
from dittofl.experiment.record import metric_columns, metric_rows, parts_of
from dittofl.experiment.setup import build
from dittofl.mocha import Mocha

if TYPE_CHECKING:
    from dittofl.reproduce.trajectory import Machine, Trajectory

MODEL, METRICS_OF = "mocha", ("accuracy", "loss")


def fit(run: "Trajectory", machine: "Machine", folder: Folder) -> None:
    """Trains MOCHA on a run's data under its attack, and writes what the run of a spec would."""
    begun, spec, its = time.monotonic(), run.spec(machine), dict(run.family.mocha)
    setup = build(spec)
    facts = provenance(spec, setup) | {"mocha": its}
    facts["identity"] = hashlib.sha256(f"{spec.identity} {sorted(its.items())}".encode()).hexdigest()
    with folder.locked():
        found = Mocha(**its).fit(setup.federation, attack=setup.attack, seed=run.seed)
        scored = found.evaluate(*(part for part in parts_of(setup.federation) if part != "train"))
        write_json(folder.path / RUN, facts)
        write(folder.path / METRICS, _logged(scored).encode())
        models = {MODEL: {metric: scored.summary(MODEL, metric).as_dict() for metric in METRICS_OF}}
        summary = {"models": models, "rounds": found.rounds, "identity": facts["identity"], "gaps": found.gaps[-1:]}
        write_json(folder.path / SUMMARY, summary | {"seconds": time.monotonic() - begun})


def _logged(scored: Evaluation) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(metric_columns(METRICS_OF))
    writer.writerows(metric_rows(scored, METRICS_OF, ["benign"]))
    return text.getvalue()
