"""The page in a real browser: no overflow at 390 and 1280 pixels, and not one request beyond the page itself."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from dittofl.report import Result
from dittofl.report.page import page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update",
    "--disable-background-networking", "--disable-sync", "--hide-scrollbars", "--window-size=1400,900",
)  # fmt: skip
DARK, LIGHT = 0, 1
# A window of a headless browser has a least width of 500 pixels; a frame has none.
MEASURE = """<!doctype html><iframe id="phone" src="/{0}" width="390" height="800"></iframe>
<iframe id="desk" src="/{0}" width="1280" height="800"></iframe><pre id="found"></pre><script>
addEventListener("load", () => {{
  const measured = frame => {{
    const page = frame.contentDocument, width = page.documentElement.clientWidth, ink = page.querySelector("svg text")
    const free = [...page.body.querySelectorAll("*")].filter(one => !one.closest(".box, pre, svg"))
    const wide = free.filter(one => one.getBoundingClientRect().right > width + 1)
    return {{width, page: page.documentElement.scrollWidth, wide: wide.map(one => one.outerHTML.slice(0, 200)),
      boxes: [...page.querySelectorAll(".box, pre")].map(one => one.getBoundingClientRect().right),
      paper: getComputedStyle(page.body).backgroundColor, ink: ink ? getComputedStyle(ink).fill : "",
      title: page.title, charts: page.querySelectorAll("svg[role=img]").length}}
  }}
  const all = [...document.querySelectorAll("iframe")].map(measured)
  document.getElementById("found").textContent = JSON.stringify(all)
}})</script>"""
WIDE = """<!doctype html><body><img src="http://elsewhere.example/x.png"><div style="width: 2000px">wide</div></body>"""


@contextmanager
def served(pages: dict[str, str]) -> Iterator[tuple[int, list[str]]]:
    """A server of these pages, its port, and what is asked of it under whatever host's name."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host = self.headers["Host"].split(":")[0]
            if host == "127.0.0.1" or "Referer" in self.headers:  # the browser asks for the time of its own accord
                asked.append(f"{host}{self.path}")
            body = pages.get(self.path.strip("/"), "").encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        server.server_close()


def looked_at(text: str, profile: Path, scheme: int = LIGHT) -> tuple[list[dict[str, object]], set[str]]:
    """What a page measures at 390 and at 1280 pixels, and every request."""
    with served({"frames": MEASURE.format("page"), "page": text}) as (port, asked):
        # Every name in the world leads to our server, so that no request can escape or go unseen.
        where = f"--host-resolver-rules=MAP * 127.0.0.1:{port}"
        command = [
            str(CHROMIUM), *FLAGS, where, f"--user-data-dir={profile}", "--dump-dom",
            f"--blink-settings=preferredColorScheme={scheme}", f"http://127.0.0.1:{port}/frames",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[:500]
    return json.loads(unescape(found[1])), set(asked) - {"127.0.0.1/favicon.ico"}


def fits(its: dict[str, object]) -> bool:
    boxes = its["boxes"]
    assert isinstance(boxes, list)
    return its["page"] == its["width"] and not its["wide"] and all(right <= its["width"] for right in boxes)


def brightness(colour: object) -> float:
    return sum(map(int, re.findall(r"\d+", str(colour))[:3])) / 765


@pytest.mark.parametrize(
    ("names", "scheme"), [(("clean-2", "clean-10", "A1-2", "A1-10"), LIGHT), (("A1-10", "alone", "diverged"), DARK)]
)
def test_the_page_fits_and_asks_for_nothing(
    results: dict[str, Result], tmp_path: Path, names: tuple[str, ...], scheme: int
) -> None:
    text = page([results[name] for name in names])
    found, asked = looked_at(text.replace("<details", "<details open"), tmp_path, scheme)
    assert asked == {"127.0.0.1/frames", "127.0.0.1/page"}
    assert [its["width"] for its in found] == [390, 1280]
    for its in found:
        assert fits(its), its
        assert its["title"] != "1"  # what the script in a device's name would have made of it
        assert its["charts"]
        paper, ink = brightness(its["paper"]), brightness(its["ink"])
        assert (paper > 0.9 and ink < 0.5) if scheme == LIGHT else (paper < 0.1 and ink > 0.5)


def test_a_page_that_is_too_wide_or_asks_for_more_is_seen(tmp_path: Path) -> None:
    found, asked = looked_at(WIDE, tmp_path)
    assert not any(map(fits, found))
    assert "elsewhere.example/x.png" in asked
