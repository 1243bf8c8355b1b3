"""The most common words and tags of StackOverflow, from TensorFlow Federated's files or counted anew."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from dittofl.datasets.reading import intact, opened, whole
from dittofl.datasets.stream import Pull
from dittofl.errors import is_whole, require, short

SLACK = 1000  # words more than are wanted that are held before the rare ones go
Index = dict[bytes, int]  # the place of every word, the most common first


def word_counts(path: Path, size: int) -> dict[bytes, int]:
    """stackoverflow.word_count: a word and its count a line; at least the `size` most common, as there are millions."""
    found: dict[bytes, int] = {}
    with whole(path), opened(path) as file:
        for i, line in enumerate(file, 1):
            fields = line.split()
            proper = len(fields) == 2 and fields[1].isdigit() and fields[0] not in found
            intact(proper, f"{path}, line {i}, is {short(line)}, expected a new word and its count")
            fields[0].decode("utf-8")
            found[fields[0]] = int(fields[1])
            if len(found) > 4 * size + SLACK:
                found = {word: found[word] for word in commonest(found, size)}
    return found


def tag_counts(path: Path) -> dict[bytes, int]:
    """stackoverflow.tag_count: a JSON object of tags and their counts."""
    text, found = Pull(path), {}
    for tag in text.names():
        count = text.value()
        intact(is_whole(count, 0), f"{path}, tag {tag!r}, has the count {short(count)}, expected a whole number")
        found[tag.encode()] = count
    text.end()
    return found


def counted(of_devices: Iterable[Iterable[bytes]]) -> dict[bytes, int]:
    """How many devices use a word at least once, which is what those files tell, in the order of the alphabet."""
    return dict(sorted(Counter(word for words in of_devices for word in set(words)).items()))


def index(counts: Mapping[bytes, int], size: int, where: object) -> Index:
    """The places of the `size` most common words; of equally common ones the first comes first.

    >>> index({b"a": 2, b"b": 3, b"c": 2}, 2, "here")
    {b'b': 0, b'a': 1}
    """
    many = f"{where} holds {len(counts)} different ones, expected {size}"
    require(size <= len(counts), f"{many}: ask for fewer, or get it again")
    return {word: i for i, word in enumerate(commonest(counts, size))}


def commonest(counts: Mapping[bytes, int], size: int) -> list[bytes]:
    """The `size` most common, the most common first, equally common ones in their order."""
    return sorted(counts, key=lambda word: -counts[word])[:size]
