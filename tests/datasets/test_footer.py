"""Long footers of parquet, read a few groups of rows at a time; many devices of which few are chosen."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from dittofl.datasets import femnist, footer
from tests.datasets import broken, made


@pytest.mark.parametrize("groups", [0, 1, 14, 15, 64, 65, 150])
@pytest.mark.parametrize("stretch", [8, 1 << 20])
def test_parts_hold_every_group_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: int, stretch: int
) -> None:
    monkeypatch.setattr(footer, "STRETCH", stretch)
    rows = {f"a{j}": [f"{i} × {j}" for i in range(groups)] for j in range(20)}
    table = pyarrow.table({**rows, "b": [[i % 3 == 0] for i in range(groups)]}).replace_schema_metadata(
        {"c": "d" * 999}
    )
    path = tmp_path / "a.parquet"
    with parquet.ParquetWriter(path, table.schema, write_page_index=True) as file:
        if groups:
            file.write_table(table, row_group_size=1)
    whole = parquet.read_metadata(path)
    parts = list(footer.parts(path))
    assert [part.num_row_groups for part in parts[:-1]] == [footer.FEW] * (len(parts) - 1)
    found = [part.row_group(i) for part in parts for i in range(part.num_row_groups)]
    assert len(found) == whole.num_row_groups == groups
    assert all(one.equals(whole.row_group(i)) for i, one in enumerate(found))
    assert all(part.schema.equals(whole.schema) and part.metadata == whole.metadata for part in parts)


MANY = 6000
PEAK = """
import sys
from dittofl.datasets import femnist
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
small, large = sys.argv[1:]
femnist(devices=2, data=small)
before = peak()
femnist(devices=2, data=large)
print(peak() - before)
"""


def as_parquet(folder: Path, count: int) -> None:
    users = {f"f{k:04}": [k] * 2 for k in range(count)}
    pixels = made.picture(np.full((28, 28), 255, np.uint8))
    n = 2 * count
    columns = {
        "image": [{"bytes": pixels, "path": None}] * n,
        "writer_id": [user for user, its in users.items() for _ in its],
        "hsf_id": [0] * n,
        "character": [k % 62 for its in users.values() for k in its],
    }
    made.as_parquet(folder / "a.parquet", columns, row_group_size=2)


def as_hdf5(folder: Path, count: int) -> None:
    its = {"pixels": np.ones((2, 28, 28), np.float32), "label": np.zeros(2, np.int32)}
    made.as_hdf5(folder / "fed_emnist_train.h5", {f"f{k:04}": its for k in range(count)})


@pytest.mark.parametrize("form", [as_parquet, as_hdf5])
def test_memory_of_two_among_many_writers(tmp_path: Path, form: Callable[[Path, int], None]) -> None:
    """Their groups of rows and data sets are not held at once: some 2 KB a column, some 10 KB a data set."""
    for name, count in (("small", 4), ("large", MANY)):
        form(tmp_path / name, count)
    call = [sys.executable, "-c", PEAK, str(tmp_path / "small"), str(tmp_path / "large")]
    assert float(subprocess.check_output(call, text=True)) < 25  # MB; all at once took 50 to 100


def test_a_writer_may_be_in_many_groups(tmp_path: Path) -> None:
    columns = made.table(made.writers(70, 80))
    prints = set()
    for size in (1, 7, 150):
        made.as_parquet(tmp_path / str(size) / "a.parquet", columns, row_group_size=size)
        prints.add(femnist(devices=None, data=str(tmp_path / str(size))).fingerprint)
    assert len(prints) == 1


def test_a_footer_without_its_last_groups(tmp_path: Path) -> None:
    columns = made.table(made.writers(70, 10))
    path = made.as_parquet(tmp_path / "a.parquet", columns, row_group_size=1)
    raw = path.read_bytes()
    length = int.from_bytes(raw[-8:-4], "little")
    first, *_ = footer.parts(path)
    first.write_metadata_file(tmp_path / "footer")
    path.write_bytes(raw[: -8 - length] + (tmp_path / "footer").read_bytes()[4:])
    assert parquet.read_metadata(path).num_row_groups == footer.FEW
    broken.refused(lambda: femnist(devices=None, data=str(tmp_path)), path.name)
