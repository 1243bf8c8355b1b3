"""Whatever the package exports works from a spec: every solver, aggregator, server and attack is found by itself."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch

from dittofl.experiment.construct import Names
from dittofl.experiment.names import known, sections
from dittofl.experiment.setup import build
from dittofl.experiment.signature import lacking
from dittofl.experiment.spec import resolve
from dittofl.types import NeedsServer, NeedsSolver
from tests.experiment.small import LR, TABLE, small

VALUES: dict[str, Any] = {  # for parameters without a default
    "C": 2, "alpha": 0.5, "columns": [0], "count": 1, "eps": 0.1, "f": 1, "groups": 2, "held_out": "task:RARE",
    "inner": 0.1, "inner_lr": 0.1, "lam": 0.5, "lr": 0.1, "mu": 0.1, "own": ["layers.2.*"], "q": 1.0,
    "rule": "task:middle", "sigma2": 1.0, "size": 2, "t": 1.0, "target": 1, "tau2": 1.0,
    "trigger": {"kind": "Features", "columns": [0], "value": 2.0}, "value": 2.0, "x": "task:RARE",
}  # fmt: skip
ONE_OF = {"A1": {"count": 2}, "A2": {"count": 2}, "A3": {"count": 2}, "Attack": {"count": 2}, "Forge": {"size": 9}}
ONE_OF |= {
    name: {"f": 1}
    for name in ("Bulyan", "KLoss", "KNorm", "Krum", "MultiKrum", "NearestNeighbourMixing", "TrimmedMean")
}
PLAIN = {key: value for key, value in TABLE["method"].items() if key in ("batch", "local")}


def table(name: str) -> dict[str, Any]:
    """The least that a spec says of a piece."""
    return {"kind": name, **ONE_OF.get(name, {}), **{key: VALUES[key] for key in lacking(known()[name], {})}}


def trained(folder: Path, **changes: Any) -> Any:
    """Two rounds; the spec that is written out must train the same."""
    spec = small(folder, **{"attack": {"kind": "A1", "count": 1}} | changes)
    again = resolve(tomllib.loads(spec.toml()), folder)
    assert again.identity == spec.identity
    for run in build(spec).federate(rounds=2):
        assert bool(run.w.isfinite().all())
    run.finish()
    return run


def served(name: str, where: str) -> dict[str, Any]:
    """The server that a solver is for."""
    solver = Names().built(table(name), where)
    return {"server": table(solver.server.__name__)} if isinstance(solver, NeedsServer) else {}


@pytest.mark.parametrize("name", sections()["solvers"])
def test_global_solvers(tmp_path: Path, name: str) -> None:
    method = {"batch": 4, "local": table(name), **served(name, "method.local")}
    assert not torch.equal((run := trained(tmp_path, method=method)).w, run.w0)


@pytest.mark.parametrize("name", sections()["personal"])
def test_personal_solvers_and_final_ones(tmp_path: Path, name: str) -> None:
    run = trained(tmp_path, method=PLAIN | {"personal": {"v": table(name)}, "final": {"tuned": table(name)}})
    for model in ("v", "tuned"):
        assert run.row(model, "site 0").shape == run.w.shape


CHOICES = {
    "Choose": {"choose": {"best": {"kind": "Choose", "among": ["a", "b"], "few": "a"}}},
    "LambdaRule": {"choose": {"best": {"kind": "LambdaRule", "lr": 0.1}}},
    "finetune": {"choose": {"best": {"kind": "finetune", "lr": 0.1, "stops": [1, {"kind": "Epochs", "count": 2}]}}},
    "Optimal": {"personal": {"best": {"kind": "Ditto", "lr": 0.1, "lam": table("Optimal")}}},
}  # fmt: skip


@pytest.mark.parametrize("name", sections()["choices"])
def test_choices(tmp_path: Path, name: str) -> None:
    rows = {"a": {"kind": "Local", **LR}, "b": {"kind": "Ditto", "lam": 1.0, **LR}} if name == "Choose" else {}
    run = trained(tmp_path, method=PLAIN | {"personal": rows} | CHOICES[name])
    assert run.row("best", "site 2").shape == run.w.shape


@pytest.mark.parametrize("name", [*sections()["objectives"], *sections()["defences"], "Stateless"])
def test_aggregators_alone_and_behind_another(tmp_path: Path, name: str) -> None:
    for aggregate in (table(name), {"kind": "Clip", "then": table(name)}):
        trained(tmp_path, method=PLAIN | {"aggregate": aggregate}, cohort=5)


@pytest.mark.parametrize("name", sections()["servers"])
def test_servers(tmp_path: Path, name: str) -> None:
    server = Names().built(table(name), "method.server")
    local = table(server.solver) if isinstance(server, NeedsSolver) else PLAIN["local"]
    trained(tmp_path, method={"batch": 4, "local": local, "server": table(name)})


@pytest.mark.parametrize("name", sections()["attacks"])
def test_attacks(tmp_path: Path, name: str) -> None:
    spec = small(tmp_path, attack=table(name))
    assert sum(build(spec).attack.malicious(6, 0)) == 2  # type: ignore[union-attr]


@pytest.mark.parametrize("name", sections()["updates"])
def test_what_malicious_devices_send(tmp_path: Path, name: str) -> None:
    attack = {"kind": "Attack", "count": 2, "update": table(name)}
    for run in build(small(tmp_path, attack=attack, cohort=6)).federate(rounds=2):
        assert run.history[-1].malicious == 2


@pytest.mark.parametrize("name", sections()["poisons"])
def test_what_malicious_devices_train_on(tmp_path: Path, name: str) -> None:
    piece, attack = table(name), {"kind": "Attack", "count": 2}
    if name in ("Mirror", "Relabel"):
        attack["relabel"] = piece
    elif name == "Patch":  # for images
        assert Names().built(piece, "trigger").size == 3
        return
    else:
        trigger = name == "Features"
        attack["backdoor"] = {"kind": "Backdoor", "trigger": piece, "target": 1} if trigger else piece
    trained(tmp_path, attack=attack)
