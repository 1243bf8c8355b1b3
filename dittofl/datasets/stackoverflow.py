"""StackOverflow, one device a user: the tag of a question from a sentence on it, as Li et al. 2021 set it up."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dittofl.datasets import gather, hdf5
from dittofl.datasets.places import Source
from dittofl.datasets.sentences import TAGS, TRAIN, WORDS, Bags, Users, last_chunk, ranked, read
from dittofl.errors import require, short, whole
from dittofl.federation import Federation, Split

SOURCE = Source(
    name="stackoverflow",
    advice=f"give the folder of TensorFlow Federated's {TRAIN}, {WORDS} and {TAGS}",
    forms=((TRAIN,),),
    origin="TensorFlow Federated, from the data dump of stackoverflow.com",
    licence="CC-BY-SA-3.0",
)


def stackoverflow(
    *, devices: int = 400, words: int = 10_000, tags: int = 500, most: int = 10_000, multilabel: bool = False,
    validation: float = 0.0, split: Split | None = None, seed: int = 0, data: str | None = None,
) -> Federation:  # fmt: skip
    """The most common tag of a question, from a sentence on it and its title; inputs are sparse.

    x = (ids, weights), both [n, L], is the mean of one-hot words. The first 400 users of TFF's train file by name. A
    word beyond the 10,000 most common counts in the mean and is then dropped; ids are filled up with `words`, weights
    with 0. A question with none of the tags is of class 0, as in the authors' program; `multilabel` gives y in {0,
    1}^tags instead. Of a user's sentences in random order only the last chunk of `most` is kept; ⌊0.8 n⌋ train, or as
    `split` says. `validation` holds out that share of each train part. Without TFF's vocabularies words and tags are
    ranked by how many of these users have them.

    >>> stackoverflow(words=0)
    Traceback (most recent call last):
    dittofl.errors.InputError: stackoverflow needs words ≥ 1, a whole number, got words=0
    """
    for name, value, least in (("devices", devices, 1), ("words", words, 1), ("tags", tags, 2), ("most", most, 2)):
        whole("stackoverflow", name, value, least)
    require(isinstance(multilabel, bool), f"stackoverflow needs multilabel=True or False, got {short(multilabel)}")
    gather.checked("stackoverflow", validation, split, seed)
    folder = SOURCE.folder(data)
    with hdf5.examples(folder / TRAIN) as clients:
        ids = clients.names(devices)
        got = f"stackoverflow: {folder / TRAIN} holds {len(ids)} users, expected {devices} or more"
        require(len(ids) == devices, f"{got}: ask for fewer, or get the whole data")
        users: Users = {id: last_chunk(clients, id, most, seed) for id in ids}
        found = read(clients, users, *ranked(folder, clients, users, (words, tags)))
    bounds = gather.bounds_of(np.array([len(its) for its in users.values()], dtype=np.int64), split)
    y = several(found, tags) if multilabel else first(found)
    return gather.held_out(Federation(tuple(ids), padded(found, words), y, bounds), validation)


def padded(found: Sequence[Bags], words: int) -> tuple[Tensor, Tensor]:
    """ids and weights [n, L] of all devices, L being the most different words that a sentence has."""
    n, L = sum(len(bags.lengths) for bags in found), max(1, *(int(bags.lengths.max()) for bags in found))
    ids, weights = np.full((n, L), words, dtype=np.int64), np.zeros((n, L), dtype=np.float32)
    at = 0
    for bags in found:
        here = slice(at, at := at + len(bags.lengths))
        held = np.arange(L) < bags.lengths[:, None]
        ids[here][held], weights[here][held] = bags.words, bags.shares
    return torch.from_numpy(ids), torch.from_numpy(weights)


def first(found: Sequence[Bags]) -> Tensor:
    """The most common tag of every sentence, 0 where there is none [n]."""
    return torch.tensor([tags[0] if tags else 0 for bags in found for tags in bags.tags])


def several(found: Sequence[Bags], count: int) -> Tensor:
    """1 for every tag of a sentence [n, tags]."""
    n = np.array([len(tags) for bags in found for tags in bags.tags])
    y = np.zeros((len(n), count), dtype=np.float32)
    y[np.repeat(np.arange(len(n)), n), [tag for bags in found for tags in bags.tags for tag in tags]] = 1
    return torch.from_numpy(y)
