"""What exactly was run, on what."""

import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from dittofl.experiment.setup import Setup
from dittofl.experiment.spec import Spec

HERE = Path(__file__)
CPUS = Path("/proc/cpuinfo")  # Linux's; `platform` often has no name


def provenance(spec: Spec, setup: Setup) -> dict[str, Any]:
    """Identity and data, versions, hardware and flags of a run."""
    its = spec.experiment
    who = [] if setup.attack is None else setup.attack.malicious(setup.federation.K, its.seed).nonzero()[0].tolist()
    return {
        "name": its.name,
        "identity": spec.identity,
        "fingerprint": setup.federation.fingerprint,
        "devices": setup.federation.K,
        "malicious": [setup.federation.ids[k] for k in who],
        "strong_attack": setup.strong,
        "seed": its.seed,
        "deterministic": its.deterministic,
        "precision": its.precision,
        "device": torch.cuda.get_device_name(its.device) if its.device.startswith("cuda") else processor(),
        "threads": torch.get_num_threads(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "dittofl": version(),
        "dittofl_git": git_commit(HERE.parent) if _git(HERE.parent, "ls-files", HERE.name) else None,  # of a checkout
        "torch": torch.__version__,
        "git": git_commit(spec.folder),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "packages": dict(sorted((one.metadata["Name"], one.version) for one in metadata.distributions())),
    }


def version() -> str:
    """The package's version; its source can be run without being installed."""
    try:
        return metadata.version("dittofl")
    except metadata.PackageNotFoundError:
        return "not installed"


def git_commit(folder: Path) -> str | None:
    """The commit that a folder is at, with + where it has changes; None outside a repository or without git."""
    return _git(folder, "describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*")


def _git(folder: Path, *words: str) -> str | None:
    """What git answers there, if anything."""
    env = {**os.environ, "LC_ALL": "C"}
    try:
        answer = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False, env=env)
    except OSError:
        return None
    return answer.stdout.strip() or None


def processor() -> str:
    """The model of the CPU."""
    lines = CPUS.read_text(encoding="utf-8").splitlines() if CPUS.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
