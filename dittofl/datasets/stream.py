"""JSON pulled piece by piece out of a file: memory holds the value at hand, not the file.

The caller walks the outer objects and arrays by `names` and `items` and reads or skips what they hold. Values are read
by Python's own decoder; skipping one costs a search for its brackets. (A row of numbers is read as fast as by ijson, a
package more; a user that is not wanted goes by five times faster.)
"""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from dittofl.datasets.reading import damaged, opened, whole
from dittofl.errors import cut, is_text, short

CHUNK = 1 << 20  # bytes
TOKEN = 64  # characters: a mistake further than this from the end of what is there is no token cut in two
DECODER = json.JSONDecoder()
SOLID = re.compile(r"[^ \t\n\r]")
MARK = re.compile(r'["\[\]{}]')
CLOSES = {"[": "]", "{": "}"}


class Pull:
    """A place in a JSON text, which only moves on.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.json"
    ...     _ = path.write_text('{"long": [[1, 2], [3]], "short": 4}')
    ...     text = Pull(path)
    ...     [(name, text.value() if name == "short" else text.skip()) for name in text.names()]
    [('long', None), ('short', 4)]
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._chunks = _chunks(path)
        self._text, self._at, self._gone = "", 0, 0

    def names(self) -> Iterator[str]:
        """The names in the object that begins here; behind each, its value is to be read or skipped."""
        self._take("{")
        seen: set[str] = set()
        while self.peek() != "}":
            if seen:
                self._take(",")
            name = self.value()
            if not isinstance(name, str) or name in seen:
                self.fail(f"{short(name)}, expected another name than those before it")
            if not is_text(name):
                self.fail(f"{short(name)}, half of a character")
            seen.add(name)
            self._take(":")
            yield name
        self._take("}")

    def items(self) -> Iterator[int]:
        """The places 0, 1, … in the array that begins here; at each, its value is to be read or skipped."""
        self._take("[")
        i = 0
        while self.peek() != "]":
            if i:
                self._take(",")
            yield i
            i += 1
        self._take("]")

    def value(self) -> Any:
        """The value that begins here, whole."""
        self.peek()
        while True:
            try:
                found, end = DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                broken = "Unterminated" not in error.msg and error.pos < len(self._text) - TOKEN
                if broken or not self._more():
                    self._at = max(self._at, min(error.pos, len(self._text)))
                    self.fail(f"{cut(self._text[self._at :], 20)!r} ({error.msg})")
            except (ValueError, RecursionError) as error:
                self.fail(short(error))
            else:
                # A number at the end of what is there may go on.
                if isinstance(found, str | list | dict) or end < len(self._text) - TOKEN or not self._more():
                    self._at = end
                    return found

    def skip(self) -> None:
        """Past the value that begins here; of an array or object nothing but brackets and strings is looked at."""
        if self.peek() not in CLOSES:
            self.value()
            return
        closing: list[str] = []
        while True:
            found = MARK.search(self._text, self._at)
            if found is None:
                self._at = len(self._text)
                if not self._more():
                    self.fail("its end within a value")
            elif found[0] == '"':
                self._at = found.start()
                self.value()
            else:
                self._at = found.end()
                if found[0] in CLOSES:
                    closing.append(CLOSES[found[0]])
                elif closing.pop() != found[0]:
                    self.fail(f"{found[0]!r} that closes nothing")
                if not closing:
                    return

    def end(self) -> None:
        """Nothing follows."""
        if self.peek():
            self.fail(f"{cut(self._text[self._at :], 20)!r}, expected its end")

    def fail(self, found: str) -> NoReturn:
        """Refuses the file at this place."""
        raise damaged(f"{self.path} is damaged at character {self._gone + self._at:,}: there is {found}")

    def peek(self) -> str:
        """The next character that is no space; nothing at the end."""
        while (found := SOLID.search(self._text, self._at)) is None:
            self._at = len(self._text)
            if not self._more():
                return ""
        self._at = found.start()
        return found[0]

    def _take(self, mark: str) -> None:
        if (found := self.peek()) != mark:
            self.fail(f"{found!r}, expected {mark!r}" if found else f"its end, expected {mark!r}")
        self._at += 1

    def _more(self) -> bool:
        """Whether there was more to read. What is kept doubles at least, lest a long value be begun too often."""
        size = read = len(self._text) - self._at
        chunks = []
        while read <= 2 * size and (chunk := next(self._chunks, None)) is not None:
            chunks.append(chunk)
            read += len(chunk)
        if read == size:
            return False
        self._gone += self._at
        self._text, self._at = "".join([self._text[self._at :], *chunks]), 0
        return True


def _chunks(path: Path) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with whole(path), opened(path) as file:
        while raw := file.read(CHUNK):
            yield decoder.decode(raw)
        yield decoder.decode(b"", final=True)
