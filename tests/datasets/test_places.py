"""Where files are looked for."""

from pathlib import Path
from typing import Any

import pytest

from dittofl import InputError
from dittofl.datasets.places import Source, cache


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """One folder of each kind, none of them there yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DITTOFL_DATA", str(tmp_path / "variable"))
    return {
        "named": tmp_path / "named",
        "variable": tmp_path / "variable",
        "cache": tmp_path / "home" / "dittofl",
        "packaged": tmp_path / "packaged",
    }


def source(folders: dict[str, Path]) -> Source:
    return Source(
        name="made", advice="make it", forms=(("a.txt", "b-*.txt"), ("c.txt",)), packaged=str(folders["packaged"])
    )


def held(folder: Path, *files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        (folder / file).write_text("")


def test_the_order_of_the_places(folders: dict[str, Path]) -> None:
    made = source(folders)
    for place in ("packaged", "cache", "variable"):
        held(folders[place], "c.txt")
        assert made.folder() == folders[place]
    with pytest.raises(InputError, match="holds no"):
        made.folder(str(folders["named"]))
    held(folders["named"], "c.txt")
    assert made.folder(str(folders["named"])) == folders["named"]


def test_a_folder_of_the_data_sets_name_below(folders: dict[str, Path]) -> None:
    held(folders["variable"] / "made", "c.txt")
    assert source(folders).folder() == folders["variable"] / "made"


def test_all_files_of_one_form_and_patterns(folders: dict[str, Path]) -> None:
    made = source(folders)
    held(folders["variable"], "a.txt")
    assert made.found() is None
    held(folders["variable"], "b-17.txt")
    assert made.found() == folders["variable"]


def test_nothing_anywhere_is_one_sentence_with_advice(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"^made: found no a.txt, b-\*.txt, or c.txt \(.*variable.*\): make it$"):
        source(folders).folder()
    monkeypatch.delenv("DITTOFL_DATA")
    with pytest.raises(InputError, match=r"\$DITTOFL_DATA is not set, the cache is .*dittofl"):
        source(folders).folder()


@pytest.mark.parametrize("data", [3, b"folder", True, ["a"]])
def test_a_folder_is_a_text(folders: dict[str, Path], data: Any) -> None:
    with pytest.raises(InputError, match=r"made needs data=, the folder of its files, got .*: give a path"):
        source(folders).folder(data)


@pytest.mark.parametrize("data", ["", "~nobody-of-this-name/data", "a" * 5000, "a\0b", "[a-"])
def test_folders_that_cannot_be(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch, data: str) -> None:
    with pytest.raises(InputError, match="holds no"):
        source(folders).folder(data)
    if "\0" not in data:
        monkeypatch.setenv("DITTOFL_DATA", data)
        with pytest.raises(InputError, match="found no"):
            source(folders).folder()


def test_the_cache_is_the_platform_s(folders: dict[str, Path]) -> None:
    assert cache() == folders["cache"]
