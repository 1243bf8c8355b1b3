"""The picture of a partition shows what the federation holds."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from dittofl import Federation, InputError
from dittofl.report.figures import styled
from dittofl.report.holdings import classes, holdings
from dittofl.report.partition import picture, save
from tests.problems import integers, normal

Y = {"a": ([3, 3, 5], [7], [3]), "b": ([5], [], [5, 7]), "c": ([7, 7, 3, 3, 3], [5, 5], [])}
PARTS = ("train", "validation", "test")


def federation() -> Federation:
    parts = {
        part: {id: (torch.zeros(len(its[j]), 2), torch.tensor(its[j])) for id, its in Y.items() if its[j]}
        for j, part in enumerate(PARTS)
    }
    return Federation.from_parts(**parts)


def test_holdings_are_counts() -> None:
    found = classes(federation())
    assert found.tolist() == [3, 5, 7]
    counted = [[[Counter(part)[c] for c in found.tolist()] for part in its] for its in Y.values()]
    assert holdings(federation(), found).tolist() == counted


def test_no_classes_where_y_is_real_several_or_a_count() -> None:
    for y in (normal(5000, seed=0), integers(2, 5000, 3, seed=0), torch.arange(5000)):
        assert not len(classes(Federation.of({"a": (torch.zeros(5000, 1), y)})))


def test_the_panels_of_a_classification() -> None:
    with styled():
        figure = picture(federation(), "made: 3 devices")
    sizes, by_class, shares, _ = figure.axes
    # Bars of the devices, largest first, part by part; then of the classes.
    assert [bar.get_height() for bar in sizes.patches] == [5, 3, 1, 2, 1, 0, 0, 1, 2]
    assert [bar.get_y() for bar in sizes.patches] == [0, 0, 0, 5, 3, 1, 7, 4, 1]
    assert [bar.get_height() for bar in by_class.patches] == [5, 2, 2, 0, 2, 1, 1, 1, 1]
    n = holdings(federation(), classes(federation())).sum(1)
    assert np.allclose(shares.images[0].get_array(), (n / n.sum(1)[:, None]).T)
    assert [tick.get_text() for tick in shares.get_yticklabels()] == ["3", "5", "7"]
    assert [one.get_text() for one in figure.legends[0].get_texts()] == list(PARTS)


def test_many_devices_are_one_area_and_many_classes_are_named_at_times() -> None:
    data = {k: (torch.zeros(50, 1), integers(45, 50, seed=k)) for k in range(61)}
    with styled():
        sizes, by_class, _, _ = picture(Federation.of(data), "many").axes
    assert (len(sizes.patches), len(sizes.collections)) == (0, 3)
    top = sizes.collections[2].get_paths()[0].vertices[:, 1].max()
    assert top == 50
    assert [tick.get_text() for tick in by_class.get_xticklabels()] == [str(c) for c in range(0, 45, 3)]


def test_real_labels_are_a_histogram() -> None:
    data = Federation.of({"a": (torch.zeros(200, 1), normal(200, seed=1))})
    with styled():
        sizes, values = picture(data, "real").axes
    assert sum(bar.get_height() for bar in sizes.patches) == sum(bar.get_height() for bar in values.patches) == 200


def test_the_same_data_give_the_same_file(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        save(federation(), tmp_path / name, "made")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    with pytest.raises(InputError, match=r"ends in \.svg or \.png"):
        save(federation(), tmp_path / "three", "made")
