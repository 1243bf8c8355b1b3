"""What a run needs is told before, and what cannot fit is refused."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from dittofl.errors import InputError
from dittofl.experiment import cost
from dittofl.experiment.cost import needs, store
from tests.experiment.small import run, small

P = 2 * 4 + 4 + 4 * 2 + 2  # parameters of the small model
ROW = 4 * P  # bytes


def test_models_on_the_disk_are_those_of_the_devices_that_will_be_drawn(tmp_path: Path) -> None:
    """Local and three λ keep a row of every device; w and w⁰ are kept once."""
    for rounds, cohort, drawn in ((6, 3, 6), (1, 2, 2)):
        its = needs(small(tmp_path, rounds=rounds, cohort=cohort))
        assert its.kept == 4 * drawn * ROW + 4 * ROW
        assert its.disk == 3 * 4 * drawn * ROW + 8 * ROW
        assert its.seconds is None
    assert needs(small(tmp_path, precision="float64")).kept == 2 * needs(small(tmp_path)).kept


def test_what_is_estimated_is_not_less_than_what_is_kept(tmp_path: Path) -> None:
    spec = small(tmp_path / "code")
    run(spec, tmp_path / "run")
    rows = sum(file.stat().st_size for file in (tmp_path / "run" / "checkpoint").glob("rows-*"))
    headers = 4 * 300  # each file tells its tensors' names and shapes
    assert 4 * 6 * ROW <= rows <= needs(spec).kept + headers


def test_a_few_rounds_tell_the_time(tmp_path: Path) -> None:
    short, long = (needs(small(tmp_path, rounds=rounds), probe=True).seconds for rounds in (10, 10**6))
    assert short is not None
    assert long is not None
    assert 0 < short < 60
    assert long > 1000 * short


def test_the_needs_are_comments_of_a_spec(tmp_path: Path) -> None:
    lines = needs(small(tmp_path), probe=True).comment().splitlines()
    assert [line.split()[1] for line in lines] == ["memory", "disk", "time"]
    assert all(line.startswith("# ") for line in lines)


def test_what_does_not_fit_into_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    its = needs(small(tmp_path))
    its.fit()
    monkeypatch.setattr(cost.psutil, "virtual_memory", lambda: SimpleNamespace(available=its.memory - 1))
    with pytest.raises(InputError, match="MiB of memory on cpu and"):
        its.fit()


def test_what_does_not_fit_on_the_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    its = needs(small(tmp_path / "code"))
    place, free = tmp_path / "not" / "there" / "yet", SimpleNamespace(free=its.disk)
    monkeypatch.setattr(shutil, "disk_usage", lambda where: free)
    store([(its, place)])
    store([(its, place), (replace(its, disk=0), place)])
    with pytest.raises(InputError, match="these runs need"):
        store([(its, place), (its, place)])  # when the second runs, what the first kept is there
    free.free -= 1
    with pytest.raises(InputError, match="this run needs"):
        store([(its, place)])
    (place / "checkpoint").mkdir(parents=True)
    (place / "checkpoint" / "rows").write_bytes(b"x")
    store([(its, place)])  # a run that goes on has some of it already
