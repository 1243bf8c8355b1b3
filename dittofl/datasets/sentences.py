"""TFF's StackOverflow: examples/<user>/tokens, title and tags, read as bags of words and sets of tags."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dittofl.datasets import vocabulary
from dittofl.datasets.gather import shuffled
from dittofl.datasets.hdf5 import Clients, Column
from dittofl.datasets.reading import intact, whole
from dittofl.datasets.vocabulary import Index
from dittofl.types import Ints

TRAIN, WORDS, TAGS = "stackoverflow_train.h5", "stackoverflow.word_count", "stackoverflow.tag_count"
COLUMNS = ("tokens", "title", "tags")
BLOCK = 4096  # sentences
Users = Mapping[str, Ints]  # the sentences that are kept of each, by number and in their order


class Bags(NamedTuple):
    """The sentences of one user as sparse rows, side by side."""

    words: NDArray[np.int32]  # places in the vocabulary, each once a sentence
    shares: NDArray[np.float32]  # of the sentence
    lengths: Ints  # how many words of each sentence there are
    tags: list[list[int]]  # places of the tags of each sentence, the most common first


class Sentence(NamedTuple):
    """One sample: its place among those that are kept, and its words as they stand in the file."""

    place: int
    tokens: list[bytes]
    title: list[bytes]
    tags: list[bytes]


def last_chunk(clients: Clients, user: str, most: int, seed: int) -> Ints:
    """All sentences of a user in random order; of more than `most` the last of the chunks of so many."""
    columns = [clients.column(user, what) for what in COLUMNS]
    n = columns[0].shape[0]
    for its in columns:
        proper = its.texts and its.shape == (n,) and n
        intact(proper, f"{its.where} is of shape {its.shape}, expected a text for each of {n} sentences")
    return shuffled(user, n, seed)[(n - 1) // most * most :]


def ranked(folder: Path, clients: Clients, users: Users, sizes: tuple[int, int]) -> list[Index]:
    """The vocabularies of words and of tags: from their files, or counted over the users' sentences."""
    found = []
    for what, name, size in zip(("tokens", "tags"), (WORDS, TAGS), sizes, strict=True):
        path = folder / name
        if path.is_file():
            counts = vocabulary.word_counts(path, size) if what == "tokens" else vocabulary.tag_counts(path)
        else:
            counts = vocabulary.counted(
                chain.from_iterable(getattr(one, what) for one in sentences(clients, user, kept))
                for user, kept in users.items()
            )
        found.append(vocabulary.index(counts, size, path if path.is_file() else f"{folder / TRAIN}, {what},"))
    return found


def read(clients: Clients, users: Users, words: Index, tags: Index) -> list[Bags]:
    """Every user's sentences."""
    return [_bags(sentences(clients, user, kept), len(kept), words, tags) for user, kept in users.items()]


def _bags(found: Iterator[Sentence], n: int, words: Index, tags: Index) -> Bags:
    rows: list[tuple[list[int], list[float]]] = [([], [])] * n
    tagged: list[list[int]] = [[]] * n
    for one in found:
        text = one.tokens + one.title
        counts = Counter(words[word] for word in text if word in words)
        rows[one.place] = (list(counts), [count / len(text) for count in counts.values()])
        tagged[one.place] = sorted({tags[tag] for tag in one.tags if tag in tags})
    ids, shares = (np.array(list(chain.from_iterable(row[j] for row in rows))) for j in (0, 1))
    lengths = np.array([len(row[0]) for row in rows], dtype=np.int64)
    return Bags(ids.astype(np.int32), shares.astype(np.float32), lengths, tagged)


def sentences(clients: Clients, user: str, kept: Ints) -> Iterator[Sentence]:
    """The sentences that are kept of a user, in the order of the file."""
    columns = [clients.column(user, what) for what in COLUMNS]
    places = np.full(columns[0].shape[0], -1)
    places[kept] = np.arange(len(kept))
    for start in range(0, len(places), BLOCK):
        texts = [_texts(column, start) for column in columns]
        for place, *text in zip(places[start : start + BLOCK].tolist(), *texts, strict=True):
            if place >= 0:
                tokens, title, tags = text
                yield Sentence(place, tokens.split(), title.split(), [tag for tag in tags.split(b"|") if tag])


def _texts(column: Column, start: int) -> list[bytes]:
    found: list[bytes] = column.rows(start, start + BLOCK).tolist()
    with whole(f"{column.where}, from row {start},"):
        b"\n".join(found).decode("utf-8")
    return found
