"""Parquet, a batch of rows at a time: columns are checked by type, and no value may be missing."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dittofl.datasets import footer
from dittofl.datasets.reading import damaged, intact, package, whole

BATCH = 256  # rows; of 1,024 pyarrow takes 8 MB more
BUFFER = 1 << 20  # bytes; without one a column of a row group is read at once


def batches(path: Path, columns: Mapping[str, str]) -> Iterator[tuple[int, list[Any]]]:
    """(number of the first row, the columns' arrays) of the next rows.

    `columns` are names, or a.b for the field b of the structure a, each with the kind it must be of: the name of a
    test in pyarrow.types, such as is_integer.
    """
    package("pyarrow", extra="parquet", what=f"{path}, parquet,")
    names = [name.split(".")[0] for name in columns]
    start = 0
    for part in footer.parts(path):
        with _opened(path, part) as file:
            for name, kind in columns.items():
                _check(path, file.schema_arrow, name, kind)
            for batch in _batches(path, file, names):
                yield start, [_column(path, batch, name, start) for name in columns]
                start += len(batch)
    intact(start == part.num_rows, f"{path} holds {start} rows, expected the {part.num_rows} that its footer tells")


def _opened(path: Path, part: Any) -> Any:
    from pyarrow import parquet

    with whole(path):
        return parquet.ParquetFile(
            path, metadata=part, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True
        )


def _batches(path: Path, file: Any, names: list[str]) -> Iterator[Any]:
    # Group by group, as pyarrow would prepare to read all of them at once.
    with whole(path):
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(batch_size=BATCH, row_groups=[group], columns=names, use_threads=False):
                batch.validate(full=True)  # places within texts, and UTF-8
                yield batch


def _check(path: Path, schema: Any, name: str, kind: str) -> None:
    from pyarrow import types

    found: Any = schema
    for part in name.split("."):
        at = found.get_field_index(part) if hasattr(found, "get_field_index") else -1
        intact(at >= 0, f"{path} has no column {name}, but {', '.join(schema.names)}")
        found = found.field(at).type
    value = found.value_type if types.is_dictionary(found) else found
    kinds = (kind, kind.replace("is_", "is_large_"), f"{kind}_view")
    intact(
        any(getattr(types, one, lambda _: False)(value) for one in kinds),
        f"{path} has {found} in column {name}, expected {kind.removeprefix('is_')}",
    )


def _column(path: Path, batch: Any, name: str, start: int) -> Any:
    """A column without missing values; dictionaries are written out."""
    from pyarrow import types

    found, *inner = name.split(".")
    column = batch.column(batch.schema.get_field_index(found))
    for field in inner:
        column = column.flatten()[column.type.get_field_index(field)]  # missing where the structure is
    if column.null_count:
        row = start + int(column.is_null().to_numpy(zero_copy_only=False).argmax())
        raise damaged(f"{path} has no value at row {row} of column {name}")
    return column.dictionary_decode() if types.is_dictionary(column.type) else column
