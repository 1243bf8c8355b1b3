"""CelebA, one device a celebrity: is the face smiling? In LEAF's layout, with the authors' mixture of devices."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from dittofl.datasets import gather, leaf, pictures
from dittofl.datasets.gather import Array
from dittofl.datasets.places import Source, files
from dittofl.datasets.reading import intact
from dittofl.errors import require, whole
from dittofl.federation import Federation, Split
from dittofl.types import Ints

SIDE = 84
IMAGE = np.zeros((3, SIDE, SIDE), dtype=np.uint8)
MANY, FEW = 26, range(5, 15)  # images of a celebrity: LEAF's "more than 25", and what the authors mixed in
IMAGES = "raw/img_align_celeba"
FORMS = (("train/*.json*", "test/*.json*"), ("all_data/*.json*",), ("all_data*.json*",))
SOURCE = Source(
    name="celeba",
    advice=f"give LEAF's folder celeba/data, with its JSON and with the aligned images in {IMAGES}",
    forms=tuple((*form, IMAGES) for form in FORMS),
    origin="Liu, Luo, Wang, Tang 2015; Caldas et al. 2018, https://leaf.cmu.edu",
    licence="non-commercial research",
)


def celeba(
    *, many: int = 328, few: int = 187, validation: float = 0.0, split: Split | None = None, seed: int = 0,
    data: str | None = None,
) -> Federation:  # fmt: skip
    """Does a portrait smile? `many` celebrities of 26 images or more, and `few` of 5 … 14.

    Images are [3, 84, 84], 0 … 255. This is the mixture found in the authors' files, whose train and test parts stand;
    in LEAF's all_data celebrities are drawn by the seed, and ⌊0.8 n⌋ of one's images train, or as `split` says.
    `validation` holds out that share of each train part, its last samples, as the authors do (.1) before they choose λ.

    >>> celeba(many=0, few=0)
    Traceback (most recent call last):
    dittofl.errors.InputError: celeba got many=0 and few=0, expected a celebrity at least: raise one
    """
    whole("celeba", "many", many, 0)
    whole("celeba", "few", few, 0)
    require(many or few, "celeba got many=0 and few=0, expected a celebrity at least: raise one")

    def choose(found: Mapping[str, int]) -> Sequence[str]:
        large = {id: n for id, n in found.items() if n >= MANY}
        small = {id: n for id, n in found.items() if n in FEW}
        return [id for its, count in ((large, many), (small, few)) for id in gather.chosen("celeba", its, count, seed)]

    return gather.federation("celeba", _stores(data), choose, IMAGE, split=split, validation=validation, seed=seed)


def _stores(data: str | None) -> list[gather.Store]:
    folder = SOURCE.folder(data)
    found = [[files(folder, pattern) for pattern in form] for form in FORMS]
    return [Portraits(paths, folder / IMAGES) for paths in next(its for its in found if all(its))]


@dataclass(frozen=True)
class Portraits:
    """LEAF's JSON: x holds the name of an image a sample."""

    paths: tuple[Path, ...]
    folder: Path

    def labels(self) -> Mapping[str, Ints]:
        return leaf.labels(self.paths, partial(gather.classes, C=2))

    def samples(self, devices: Container[str]) -> Iterator[tuple[str, int, Array]]:
        return leaf.samples(self.paths, devices, self.images)

    def images(self, where: str, start: int, names: Array) -> Array:
        """The images of those names."""
        intact(names.dtype.kind == "U" and names.ndim == 1, f"{where} is no list of images' names")
        for name in names.tolist():
            proper = name and name.isprintable() and Path(name).name == name
            intact(proper, f"{where} names the image {name!r}, expected one within {self.folder}")
        return np.stack([pictures.colours(self.folder / name, SIDE) for name in names.tolist()])
