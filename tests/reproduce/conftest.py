"""A Vehicle of twenty-three small devices, so that a table takes seconds."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from dittofl.reproduce import bench, ended, plan
from dittofl.reproduce.board import Board
from dittofl.reproduce.making import How
from dittofl.reproduce.reproduction import Asked
from dittofl.reproduce.reproduction import asked as meant
from dittofl.reproduce.trajectory import Machine

USERS = [f"f_{i:05}" for i in range(23)]


def samples(seed: int) -> dict[str, list[list[float]] | list[int]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(12 + seed % 5, 100))
    return {"x": x.tolist(), "y": np.where(x @ np.arange(100) + rng.normal(size=len(x)) > 0, 1, -1).tolist()}


@pytest.fixture(autouse=True)
def _vehicle(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path_factory.getbasetemp() / "data" / "vehicle"
    if not folder.is_dir():
        folder.mkdir(parents=True)
        data = {user: samples(i) for i, user in enumerate(USERS)}
        sizes = [len(data[user]["y"]) for user in USERS]
        (folder / "train.json").write_text(json.dumps({"users": USERS, "num_samples": sizes, "user_data": data}))
    monkeypatch.setenv("DITTOFL_DATA", str(folder.parent))
    forget()
    yield
    forget()


def forget() -> None:
    """What a process remembers of data and runs."""
    bench.with_test_file.cache_clear()
    bench._missing.cache_clear()
    ended.ended.cache_clear()
    plan._DONE.clear()


def asked(*names: str, only: tuple[str, ...] = (), scale: float = 0.01, seeds: tuple[int, ...] = (0,)) -> Asked:
    return meant(names, seeds=seeds, only=only, scale=scale)


@pytest.fixture
def how(tmp_path: Path) -> How:
    return How(out=tmp_path / "out", machine=Machine(), every=0.0)


@pytest.fixture
def board() -> Board:
    said: list[str] = []
    return Board(Console(force_terminal=False), said.append)


Make = Callable[..., None]
