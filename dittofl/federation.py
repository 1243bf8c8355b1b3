"""The data of K devices, held once: all samples side by side, each device's train, validation and test part in turn."""

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, Self, final

import numpy as np
import torch
from torch import Tensor

from dittofl.errors import InputError, as_seed, require
from dittofl.inputs import Inputs, each
from dittofl.intake import Features, check_alike, entries, join, members, piece, rows
from dittofl.seeds import Keys, Purpose, keys, tag
from dittofl.types import Ints

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")
ById = Mapping[Any, Any]  # of each device an (x, y) or a torch dataset


def portion(n: Ints, share: float, halves: int = 0) -> Ints:
    """⌊n·share + halves/2⌋ for the fraction that a decimal means: 0.29 of 100 samples are 29, in floating point 28."""
    a, b = Fraction(float(share)).limit_denominator(10**6).as_integer_ratio()
    return (2 * n * a + halves * b) // (2 * b)


@dataclass(frozen=True, kw_only=True)
class Split:
    """Random shares of a device's n samples; by default the paper's 72/8/20 (Li et al. 2021, App. D.4).

    test = ⌊n·test + ½⌋, at least 1 unless its share is 0; validation = ⌊n·validation + ½⌋; train = the rest, at least
    1, which is taken from validation first. Shares are read as fractions: halves are rounded up exactly.

    >>> Split().counts(np.array([2, 10, 50])).tolist()
    [[1, 0, 1], [7, 1, 2], [36, 4, 10]]
    """

    train: float = 0.72
    validation: float = 0.08
    test: float = 0.20

    def __post_init__(self) -> None:
        shares = astuple(self)
        proper = all(isinstance(share, int | float | np.floating) and 0 <= share <= 1 for share in shares)
        proper = proper and self.train > 0 and abs(sum(shares) - 1) < 1e-9
        require(proper, f"got {self}, expected shares in [0, 1] with train > 0 that sum to 1: change them")

    def counts(self, n: Ints) -> Ints:
        """The samples of each part [K, 3] of devices with n >= 2 samples [K]."""
        test = np.clip(portion(n, self.test, 1), int(self.test > 0), n - 1)
        validation = np.minimum(portion(n, self.validation, 1), n - 1 - test)
        return np.stack([n - validation - test, validation, test], axis=1)


PAPER = Split()


def ends(counts: Ints) -> Ints:
    """Bounds [K, 4] of parts that lie side by side, from their counts [K, 3]."""
    stops = counts.cumsum().reshape(counts.shape)
    return np.column_stack([stops[:, 2] - counts.sum(axis=1), stops])


def place(part: str) -> int:
    """Which of a device's bounds starts a part."""
    require(part in PARTS, f"got part {part!r}, expected one of {', '.join(PARTS)}: choose one")
    return PARTS.index(part)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Federation:
    """Ragged data of K devices, built by `of`, `from_parts` or `from_table`.

    Device k holds samples bounds[k, 0] up to bounds[k, 3] of x and y; bounds[k, 1] and bounds[k, 2] end its train and
    its validation part. x may be a tuple or dict of tensors. Integers become int64 (uint8 x, images, stays), bools
    int64 in y and float32 in x, halves float32, lists of Python floats torch's default dtype; other floats stay.

    >>> federation = Federation.of({"a": ([[1.0], [2.0], [3.0]], [0, 1, 0]), "b": ([[4.0], [5.0]], [1, 1])})
    >>> federation.ids, federation.sizes("train").tolist(), federation.sizes("test").tolist()
    (('a', 'b'), [2, 1], [1, 1])
    >>> federation.part("b", "train")[1]
    tensor([1])
    """

    ids: tuple[str, ...]
    x: Inputs
    y: Tensor
    bounds: Ints  # [K, 4]

    @classmethod
    def of(cls, data: ById | Iterable[tuple[Any, Any]], *, split: Split = PAPER, seed: int = 0) -> Self:
        """Split the samples of every device, an (x, y) or a torch dataset by id, at random.

        The order of a device is argsort(keys(seed, SPLIT, tag(id), 0..n-1)): no other device has a say in it.
        """
        seed = as_seed(seed)
        require(isinstance(split, Split), f"got the split {split!r}, expected Split(train=…, test=…): name the shares")
        given = entries(data)
        pieces = [piece(f"device {name!r}", value) for name, value in given.items()]
        for one in pieces:
            require(one.n >= 2, f"{one.name} has {one.n} of the 2 samples expected to train and test: drop or merge it")
        check_alike(pieces)
        n = np.array([one.n for one in pieces], dtype=np.int64)
        owner, first = np.repeat(np.arange(len(n)), n), np.repeat(n.cumsum() - n, n)
        tags = np.array([tag(name) for name in given], dtype=np.uint64)
        drawn = keys(seed, Purpose.SPLIT, tags[owner], np.arange(len(owner)) - first)
        orders = torch.from_numpy(np.lexsort((drawn, owner)) - first).split(n.tolist())
        return cls(tuple(given), *join(pieces, orders), ends(split.counts(n)))

    @classmethod
    def from_parts(cls, *, train: ById, test: ById, validation: ById | None = None) -> Self:
        """The user's own parts, each an (x, y) or a torch dataset by id; a device may lack all but the train part.

        >>> Federation.from_parts(train={1: ([[0.5]], [2.0])}, test={}).sizes("test").tolist()
        [0]
        """
        given = dict(zip(PARTS, map(entries, (train, {} if validation is None else validation, test)), strict=True))
        ids = tuple(given["train"])
        for part, its in given.items():
            strays = [id for id in its if id not in given["train"]]
            require(not strays, f"{part} has devices {strays[:3]} that train lacks, expected none: drop or add them")
        pieces = [piece(f"device {id!r} ({part})", its.get(id, ([], []))) for id in ids for part, its in given.items()]
        for one in pieces[::3]:
            require(one.n, f"{one.name} has no samples, expected at least 1: drop the device or give it some")
        full = [one for one in pieces if one.n]
        check_alike(full)
        counts = np.array([one.n for one in pieces], dtype=np.int64).reshape(-1, 3)
        return cls(ids, *join(full, [slice(None)] * len(full)), ends(counts))

    @classmethod
    def from_table(
        cls, table: Any, *, device: str, label: str, features: Features = None, split: Split = PAPER, seed: int = 0
    ) -> Self:
        """Rows of a pandas or polars frame, a structured array or a dict of columns; x is the other ones by default.

        >>> table = {"who": ["a", "b", "a", "b"], "age": [1.0, 2.0, 3.0, 4.0], "ill": [0, 1, 1, 0]}
        >>> Federation.from_table(table, device="who", label="ill").ids
        ('a', 'b')
        """
        return cls.of(rows(table, device, label, features), split=split, seed=seed)

    def hold_out(self, fraction: float = 0.1) -> "Federation":
        """Devices without a validation part make the last train samples one; ⌊n·(1 − fraction)⌋ stay, at least 1."""
        proper = isinstance(fraction, int | float | np.floating) and 0 < fraction < 1
        require(proper, f"hold_out got the fraction {fraction!r}, expected a number between 0 and 1: try 0.1")
        # So does the authors' code before it chooses λ: int(0.9 n) samples stay, which is not n less int(0.1 n).
        stay = np.maximum(portion(self.sizes("train"), 1 - fraction), 1)
        ends_train = np.where(self.sizes("validation") > 0, self.bounds[:, 1], self.bounds[:, 0] + stay)
        return replace(self, bounds=np.column_stack([self.bounds[:, 0], ends_train, self.bounds[:, 2:]]))

    @property
    def K(self) -> int:
        return len(self.ids)

    @cached_property
    def tags(self) -> Keys:
        """The name of every device in the random streams of its own [K]."""
        return np.array([tag(name) for name in self.ids], dtype=np.uint64)

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.ids)}

    def index(self, id: object) -> int:
        """The place k of a device."""
        if str(id) not in self.places:
            near = difflib.get_close_matches(str(id), self.ids) or list(self.ids[:3])
            raise InputError(f"got device {str(id)!r}, expected one of {self.K} ids: choose one such as {near}")
        return self.places[str(id)]

    def sizes(self, part: Part) -> Ints:
        """The number of samples of a part on every device [K]."""
        return self.bounds[:, (j := place(part)) + 1] - self.bounds[:, j]

    def part(self, id: object, part: Part) -> tuple[Inputs, Tensor]:
        """Views of x and y: one part of one device."""
        start, stop = self.bounds[self.index(id), (j := place(part)) : j + 2].tolist()
        return each(self.x, lambda values: values[start:stop]), self.y[start:stop]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of ids, bounds, and the name, dtype, shape and bytes of every array: the data and its split."""
        arrays = members(self.x, self.y)
        head = json.dumps([self.ids, [(name, str(values.dtype), values.shape) for name, values in arrays.items()]])
        digest = hashlib.sha256(head.encode() + self.bounds.astype("<i8").tobytes())
        for values in arrays.values():
            digest.update(values.reshape(-1).view(torch.uint8).numpy())
        return digest.hexdigest()

    def __repr__(self) -> str:
        n, counts = self.sizes("train"), (f"{self.sizes(part).sum()} {part}" for part in PARTS)
        spread = f"train part min {n.min()}, median {np.median(n):g}, max {n.max()}"
        return f"Federation of {self.K} devices: {', '.join(counts)} samples; {spread}; {self.fingerprint[:12]}"
