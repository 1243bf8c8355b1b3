"""A web server of the tests' own, which behaves well and badly."""

import gzip
import hashlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import numpy as np

from dittofl.datasets.fetch import Content

RAW = np.random.default_rng(0).bytes(300_000)
FILE = gzip.compress(RAW)
CONTENT = Content(len(RAW), hashlib.sha256(RAW).hexdigest())
Answer = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """Answers as it is told to, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.answers: dict[str, Answer] = {"/a.gz": ranged(FILE)}

        def get(handler: BaseHTTPRequestHandler) -> None:
            self.asked.append((handler.path, handler.headers.get("Range")))
            self.answers.get(handler.path, status(404))(handler)

        class Handler(BaseHTTPRequestHandler):
            do_GET = get  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


def status(code: int, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def sent(handler: BaseHTTPRequestHandler, code: int, body: bytes, length: int, **headers: str) -> None:
    handler.send_response(code)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(length))
    handler.end_headers()
    handler.wfile.write(body)


def whole(body: bytes) -> Answer:
    """Knows no ranges."""
    return lambda handler: sent(handler, 200, body, len(body))


def ranged(body: bytes, most: int | None = None) -> Answer:
    """Knows ranges; hangs up after `most` bytes of each answer."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked = handler.headers.get("Range")
        first = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        if first >= len(body):
            return status(416)(handler)
        rest, where = body[first:], f"bytes {first}-{len(body) - 1}/{len(body)}"
        headers = {"Content_Range": where} if asked else {}
        return sent(handler, 206 if asked else 200, rest[:most], len(rest), **headers)

    return answer
