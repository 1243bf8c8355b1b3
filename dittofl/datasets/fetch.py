"""Downloads: over TLS, resumed where they broke off, of a bounded size, and there whole and proven or not at all."""

import contextlib
import errno
import gzip
import hashlib
import http.client
import os
import ssl
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit

from filelock import FileLock

from dittofl.errors import InputError, require, short

CHUNK, SECONDS, TRIES = 2**16, 30, 10
SLACK = 2**20  # bytes by which a compressed file may be longer than its content
LOOPBACK = ("127.0.0.1", "::1", "localhost")  # where nobody can listen in between
Progress = Callable[[str, int, int], object]  # file, bytes there, bytes in all (0: unknown)


class Content(NamedTuple):
    """What a file holds, decompressed."""

    size: int
    sha256: str


class _BrokenError(Exception):
    """A download that can go on from where it is."""


FAILURES = (_BrokenError, http.client.HTTPException, urllib.error.URLError, TimeoutError, ConnectionError, ssl.SSLError)


def content(path: Path, most: int | None = None) -> Content:
    """Size and SHA-256 of what a file holds, decompressed where it is gzipped; not read beyond `most` bytes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.gz"
    ...     _ = path.write_bytes(gzip.compress(b"abc"))
    ...     content(path).size
    3
    """
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file: IO[bytes] | gzip.GzipFile = gzip.GzipFile(fileobj=raw) if zipped else raw
            while (most is None or size <= most) and (chunk := file.read(CHUNK)):
                digest.update(chunk)
                size += len(chunk)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({short(error)}): get it again") from error
    return Content(size, digest.hexdigest())


def fetch(
    name: str, addresses: Sequence[str], contents: Mapping[str, Content], folder: Path, *, advice: str,
    progress: Progress = lambda file, there, total: None,
) -> Path:  # fmt: skip
    """Downloads a data set's files into a folder, from the first address that gives them; those there are kept."""
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):
            for file, wanted in contents.items():
                place = folder / file
                if not place.exists():
                    _from_any(name, [f"{one.rstrip('/')}/{file}" for one in addresses], place, wanted, advice, progress)
                elif content(place, wanted.size) != wanted:
                    raise InputError(f"{name}: {place} is not the file that is published: remove it, and fetch again")
    return folder


def _from_any(
    name: str, urls: Sequence[str], place: Path, wanted: Content, advice: str, progress: Progress
) -> None:  # fmt: skip
    reasons = []
    for url in urls:
        try:
            return _proven(url, place, wanted, progress)
        except InputError as error:
            reasons.append(str(error))
    raise InputError(f"{name}: {'; '.join(reasons)}: {advice}")


def _proven(url: str, place: Path, wanted: Content, progress: Progress) -> None:
    """Downloads beside the place, and renames what proves to be the wanted content."""
    part = place.with_name(place.name + ".part")
    resumed = part.exists()
    _whole(url, part, wanted.size + SLACK, lambda there, total: progress(place.name, there, total))
    try:
        got = content(part, wanted.size)
    except InputError:
        got = Content(0, "")
    if got == wanted:
        part.replace(place)
        return
    part.unlink()
    if resumed:  # what was there before may have been another file's beginning
        return _proven(url, place, wanted, progress)
    raise InputError(f"{url} gave another content than the published one (SHA-256 {wanted.sha256[:12]}…)")


def _whole(url: str, part: Path, most: int, progress: Callable[[int, int], object]) -> None:
    """Requests until the file is whole, each from where the last one broke off."""
    for _ in range(TRIES):
        before = _length(part)
        try:
            return _once(url, part, most, progress)
        except urllib.error.HTTPError as error:
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                return None  # nothing is missing, or what is there is something else
            raise InputError(f"{url} answers {error.code} {error.reason}") from error
        except FAILURES as error:
            if _length(part) <= before:
                reason = getattr(error, "reason", error)
                raise InputError(f"{url} cannot be fetched ({reason or short(error)})") from error
    raise InputError(f"{url} broke off {TRIES} times; fetching again goes on from there")


def _once(url: str, part: Path, most: int, progress: Callable[[int, int], object]) -> None:
    """One request for what is missing."""
    there = _length(part)
    asked = {"User-Agent": "dittofl"} | ({"Range": f"bytes={there}-"} if there else {})
    with _opened(urllib.request.Request(_safe(url), headers=asked)) as answer, part.open("ab") as file:
        if answer.status != http.client.PARTIAL_CONTENT:
            there = 0
            file.truncate(0)
        elif not str(answer.headers.get("Content-Range", "")).startswith(f"bytes {there}-"):
            raise InputError(f"{url} gives another part than the one asked for")
        total = there + answer.length if answer.length else 0  # nothing where the server tells no number
        require(total <= most, f"{url} is {total} bytes long, more than the {most} expected")
        while chunk := answer.read(CHUNK):
            there += len(chunk)
            require(there <= most, f"{url} is longer than the {most} bytes expected")
            file.write(chunk)
            progress(there, total)
        file.flush()
        os.fsync(file.fileno())
    if there < total:
        raise _BrokenError(f"broke off after {there} of {total} bytes")


def _length(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _safe(url: str) -> str:
    """The address, if nobody on the way can change what it gives."""
    its = urlsplit(url)
    safe = its.scheme == "https" or (its.scheme == "http" and its.hostname in LOOPBACK)
    require(safe, f"{url} is not https, so that anybody on the way could change what it gives")
    return url


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows to safe addresses only."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        handler = urllib.request.HTTPRedirectHandler
        return handler.redirect_request(self, req, fp, code, msg, headers, _safe(newurl))


def _opened(request: urllib.request.Request) -> Any:
    return urllib.request.build_opener(_Redirects).open(request, timeout=SECONDS)


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """A folder that cannot be written is told in one sentence; a full disk is not the user's mistake."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(f"{folder} cannot be written ({short(error)}): name another folder with --data") from error
