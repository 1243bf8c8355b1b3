"""Downloads from a server of the test's own, which behaves well and badly."""

import gzip
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from dittofl import InputError
from dittofl.datasets import fetch as module
from dittofl.datasets.fetch import Content, content, fetch
from dittofl.datasets.places import Source
from tests.datasets.server import CONTENT, FILE, RAW, Server, ranged, sent, status, whole


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1,no-such-host.invalid")


@pytest.fixture
def server() -> Iterator[Server]:
    its = Server()
    yield its
    its.server.shutdown()
    its.server.server_close()


def got(server: Server, folder: Path, wanted: Content = CONTENT, **options: Any) -> bytes:
    fetch("made", [server.address], {"a.gz": wanted}, folder, advice="look elsewhere", **options)
    return (folder / "a.gz").read_bytes()


def refused(server: Server, folder: Path, wanted: Content = CONTENT) -> str:
    with pytest.raises(InputError) as error:
        got(server, folder, wanted)
    assert not (folder / "a.gz").exists()
    said = str(error.value)
    assert said.startswith("made: ")
    assert said.endswith("look elsewhere")
    assert "\n" not in said
    return said


def test_a_download_is_told_as_it_goes_and_not_done_twice(server: Server, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    assert got(server, tmp_path / "new", progress=lambda *its: told.append(its)) == FILE
    assert told[-1] == ("a.gz", len(FILE), len(FILE))
    assert [there for _, there, _ in told] == sorted({there for _, there, _ in told})
    assert got(server, tmp_path / "new") == FILE
    assert server.asked == [("/a.gz", None)]
    assert sorted(its.name for its in (tmp_path / "new").iterdir()) == [".lock", "a.gz"]


@pytest.mark.parametrize("length", ["many", "-1", ""])
def test_a_length_that_is_no_number_is_not_known(server: Server, tmp_path: Path, length: str) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", length)
        handler.end_headers()
        handler.wfile.write(FILE)

    server.answers["/a.gz"] = answer
    assert got(server, tmp_path) == FILE


def test_it_goes_on_from_where_it_broke_off(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.gz.part").write_bytes(FILE[:1000])
    assert got(server, tmp_path) == FILE
    assert server.asked == [("/a.gz", "bytes=1000-")]


def test_a_server_that_hangs_up_is_asked_for_the_rest(server: Server, tmp_path: Path) -> None:
    server.answers["/a.gz"] = ranged(FILE, most=100_000)
    assert got(server, tmp_path) == FILE
    assert [asked for _, asked in server.asked] == [None, "bytes=100000-", "bytes=200000-", "bytes=300000-"]


def test_a_server_that_never_ends_is_left_and_what_came_is_kept(server: Server, tmp_path: Path) -> None:
    server.answers["/a.gz"] = ranged(FILE, most=10)
    assert "broke off 10 times" in refused(server, tmp_path)
    assert (tmp_path / "a.gz.part").read_bytes() == FILE[:100]
    server.answers["/a.gz"] = ranged(FILE)
    assert got(server, tmp_path) == FILE


def test_a_server_that_gives_nothing_is_left_at_once(server: Server, tmp_path: Path) -> None:
    server.answers["/a.gz"] = ranged(FILE, most=0)
    assert "broke off after 0 of" in refused(server, tmp_path)
    assert len(server.asked) == 1


def test_a_server_without_ranges_begins_anew(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.gz.part").write_bytes(FILE[:1000])
    server.answers["/a.gz"] = whole(FILE)
    assert got(server, tmp_path) == FILE


@pytest.mark.parametrize("left", [FILE, b"\x00" * 1000, FILE + b"more", b"\x00" * len(FILE)])
def test_what_was_left_behind_is_proven_too(server: Server, tmp_path: Path, left: bytes) -> None:
    (tmp_path / "a.gz.part").write_bytes(left)
    assert got(server, tmp_path) == FILE
    assert not (tmp_path / "a.gz.part").exists()


def test_another_range_than_the_one_asked_for(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.gz.part").write_bytes(FILE[:1000])
    server.answers["/a.gz"] = lambda handler: sent(handler, 206, FILE, len(FILE), Content_Range="bytes 0-9/10")
    assert "another part" in refused(server, tmp_path)


@pytest.mark.parametrize(
    "body", [gzip.compress(RAW[:-1] + b"\x00"), gzip.compress(RAW + b"\x00"), FILE[:-9], b"no gzip", b""]
)
def test_another_content_is_refused_and_thrown_away(server: Server, tmp_path: Path, body: bytes) -> None:
    server.answers["/a.gz"] = whole(body)
    assert "another content" in refused(server, tmp_path)
    assert not (tmp_path / "a.gz.part").exists()


def test_a_file_that_is_too_long_is_not_taken(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLACK", 0)
    server.answers["/a.gz"] = whole(b"\x00" * 10**6)
    assert "1000000 bytes long" in refused(server, tmp_path, Content(10_000, CONTENT.sha256))
    assert (tmp_path / "a.gz.part").stat().st_size == 0

    def endless(handler: BaseHTTPRequestHandler) -> None:  # says no length
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b"\x00" * 10**6)

    server.answers["/a.gz"] = endless
    assert "longer than" in refused(server, tmp_path, Content(10_000, CONTENT.sha256))


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"\x00" * 10**7))
    assert content(tmp_path / "bomb.gz", most=10**5).size < 2 * 10**5


def test_what_is_not_there(server: Server, tmp_path: Path) -> None:
    server.answers.clear()
    assert "404 Not Found" in refused(server, tmp_path)


@pytest.mark.parametrize("to", ["http://example.org/a.gz", "ftp://127.0.0.1/a.gz", "file:///etc/passwd"])
def test_a_redirect_to_an_unsafe_address_is_not_followed(server: Server, tmp_path: Path, to: str) -> None:
    server.answers["/a.gz"] = status(302, Location=to)
    said = refused(server, tmp_path)
    assert "is not https" in said or "is not allowed" in said  # the latter is Python's


def test_a_safe_redirect_is_followed_and_resumes(server: Server, tmp_path: Path) -> None:
    server.answers |= {"/a.gz": status(302, Location=f"{server.address}/b.gz"), "/b.gz": ranged(FILE)}
    (tmp_path / "a.gz.part").write_bytes(FILE[:1000])
    assert got(server, tmp_path) == FILE
    assert server.asked[-1] == ("/b.gz", "bytes=1000-")


def test_plain_addresses_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not https"):
        fetch("made", ["http://example.org"], {"a.gz": CONTENT}, tmp_path, advice="look elsewhere")


def test_a_server_that_proves_nothing_is_refused(server: Server, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be fetched"):  # it speaks no TLS
        fetch("made", [server.address.replace("http:", "https:")], {"a.gz": CONTENT}, tmp_path, advice="look elsewhere")


def test_without_a_network_every_address_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound and not listening: nobody answers there
        taken.bind(("127.0.0.1", 0))
        addresses = [f"http://127.0.0.1:{taken.getsockname()[1]}", "https://no-such-host.invalid"]
        with pytest.raises(InputError, match=r"127.0.0.1.*no-such-host.*: look elsewhere$"):
            fetch("made", addresses, {"a.gz": CONTENT}, tmp_path, advice="look elsewhere")


def test_the_next_address_is_tried(server: Server, tmp_path: Path) -> None:
    addresses = [f"{server.address}/gone", f"{server.address}/"]
    fetch("made", addresses, {"a.gz": CONTENT}, tmp_path, advice="look elsewhere")
    assert server.asked == [("/gone/a.gz", None), ("/a.gz", None)]


def test_a_file_that_is_there_is_never_replaced(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(b"mine")
    with pytest.raises(InputError, match="is not the file that is published: remove it"):
        got(server, tmp_path)
    assert (tmp_path / "a.gz").read_bytes() == b"mine"
    assert not server.asked


def test_who_comes_second_waits_for_the_first(server: Server, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        assert list(pool.map(lambda _: got(server, tmp_path), range(4))) == [FILE] * 4
    assert len(server.asked) == 1


def test_a_folder_that_cannot_be_written(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        got(server, tmp_path / "file" / "folder")


def test_a_source_fetches_what_no_folder_holds(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("DITTOFL_DATA", raising=False)
    source = Source(
        name="made", advice="make it", forms=(("a.gz",),), addresses=(server.address,), contents={"a.gz": CONTENT}
    )
    assert source.found() is None
    assert source.folder() == tmp_path / "dittofl" / "made" == source.found()
    assert "downloading" in caplog.text
    with pytest.raises(InputError, match="holds no"):  # a folder that was named is not looked past
        source.folder(tmp_path / "elsewhere")
    assert len(server.asked) == 1
