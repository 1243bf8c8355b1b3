"""FEMNIST, one device a writer, as Li et al. 2021 sample it from LEAF."""

from collections.abc import Mapping, Sequence

from dittofl.datasets import gather
from dittofl.datasets.handwriting import IMAGE, SOURCE, stores
from dittofl.errors import whole
from dittofl.federation import Federation, Split

__all__ = ["SOURCE", "femnist"]


def femnist(
    *, devices: int | None = 205, least: int = 2, validation: float = 0.0, split: Split | None = None, seed: int = 0,
    data: str | None = None,
) -> Federation:  # fmt: skip
    """Handwritten characters of 62 classes: `devices` writers with `least` samples or more.

    Images are [1, 28, 28] in [0, 1]. LEAF's JSON (all_data, or train and test), flwrlabs/femnist's parquet and TFF's
    HDF5 are told apart by their files and give the same. Given train and test parts stand; else ⌊0.8 n⌋ of a writer's
    samples train, or as `split` says. `validation` holds out that share of each train part, its last samples, as the
    authors do (.1) before they choose λ. The authors' list of writers is unknown: these are drawn by the seed.

    >>> femnist(least=1)
    Traceback (most recent call last):
    dittofl.errors.InputError: femnist needs least ≥ 2, a whole number, got least=1
    """
    whole("femnist", "least", least, 2)
    if devices is not None:
        whole("femnist", "devices", devices, 1)

    def choose(found: Mapping[str, int]) -> Sequence[str]:
        return gather.chosen("femnist", {id: n for id, n in found.items() if n >= least}, devices, seed)

    return gather.federation("femnist", stores(data), choose, IMAGE, split=split, validation=validation, seed=seed)
