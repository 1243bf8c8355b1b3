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
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--window-size=1400,900",
)  # fmt: skip
# A window of a headless browser has a least width of 500 pixels; a frame has none.
MEASURE = """<!doctype html><iframe id="phone" src="/{0}" width="390" height="800"></iframe>
<iframe id="desk" src="/{0}" width="1280" height="800"></iframe><pre id="found"></pre><script>
addEventListener("load", () => {{
  const measured = frame => {{
    const page = frame.contentDocument, width = page.documentElement.clientWidth, ink = page.querySelector("svg text")
    const boxed = one => one.closest(".box, pre, svg")
    const wide = [...page.body.querySelectorAll("*")].filter(one => !boxed(one) && one.getBoundingClientRect().right > width + 1)
    return {{width, page: page.documentElement.scrollWidth, wide: wide.map(one => one.outerHTML.slice(0, 200)),
      boxes: [...page.querySelectorAll(".box, pre")].map(one => one.getBoundingClientRect().right),
      paper: getComputedStyle(page.body).backgroundColor, ink: ink ? getComputedStyle(ink).fill : "",
      title: page.title, charts: page.querySelectorAll("svg[role=img]").length}}
  }}
  const all = [...document.querySelectorAll("iframe")].map(measured)
  document.getElementById("found").textContent = JSON.stringify(all)
}})</script>"""
WIDE = "<!doctype html><body><img src='http://elsewhere.example/x.png'><div style='width:2000px'>wide</div><svg><text>x</text></svg>"


@contextmanager
def served(pages: dict[str, str]) -> Iterator[tuple[int, list[str]]]:
    """A server of these pages, its port, and what is asked of it under whatever host's name."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.headers['Host'].split(':')[0]}{self.path}")
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


def looked_at(text: str, profile: Path, scheme: int = 1) -> tuple[list[dict[str, object]], set[str]]:
    """What a page measures at 390 and at 1280 pixels, and every request. Scheme: 0 is dark, 1 light."""
    with served({"frames": MEASURE.format("page"), "page": text}) as (port, asked):
        # Every name in the world leads to our server, so that no request can escape or go unseen.
        where = f"--host-resolver-rules=MAP * 127.0.0.1:{port}"
        command = [
            str(CHROMIUM), *FLAGS, where, f"--user-data-dir={profile}", f"--blink-settings=preferredColorScheme={scheme}",
            "--dump-dom", f"http://127.0.0.1:{port}/frames",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[:500]
    return json.loads(unescape(found[1])), set(asked) - {"127.0.0.1/favicon.ico"}


def fits(its: dict[str, object]) -> bool:
    boxes = its["boxes"]
    assert isinstance(boxes, list)
    return its["page"] == its["width"] and not its["wide"] and all(right <= its["width"] for right in boxes)


@pytest.mark.parametrize("names", [("clean-2", "clean-10", "A1-2", "A1-10"), ("clean-2", "A1-10", "alone", "diverged")])
def test_the_page_fits_and_asks_for_nothing(results: dict[str, Result], tmp_path: Path, names: tuple[str, ...]) -> None:
    text = page([results[name] for name in names])
    light, asked = looked_at(text.replace("<details", "<details open"), tmp_path / "light")
    assert asked == {"127.0.0.1/frames", "127.0.0.1/page"}
    assert [its["width"] for its in light] == [390, 1280]
    for its in light:
        assert fits(its), its
        assert its["title"] != "1"  # what the evil device's script would have made of it
        assert its["charts"]


def test_dark_is_dark_and_light_is_light(results: dict[str, Result], tmp_path: Path) -> None:
    seen = [looked_at(page([results["A1-2"]]), tmp_path / str(scheme), scheme)[0][0] for scheme in (0, 1)]
    brightness = [
        [sum(map(int, re.findall(r"\d+", str(its[key]))[:3])) / 765 for key in ("paper", "ink")] for its in seen
    ]
    (dark, dark_ink), (light, light_ink) = brightness
    assert dark < 0.2 < dark + 0.3 < dark_ink
    assert light > 0.8 > light - 0.3 > light_ink


def test_a_page_that_is_too_wide_or_asks_for_more_is_seen(tmp_path: Path) -> None:
    found, asked = looked_at(WIDE, tmp_path)
    assert not any(map(fits, found))
    assert "elsewhere.example/x.png" in asked
