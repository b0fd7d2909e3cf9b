"""The reports of the demo and of pipelines: nothing is fetched, and a real browser shows them."""

from __future__ import annotations

import os
import re
import struct
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest

from elea.demo import page
from elea.spark.pipeline import report
from tests.browser import chromium
from tests.unit.demo.evidences import outcome
from tests.unit.spark.test_pipeline_report import REPORT


class _Looker(HTMLParser):
    """Everything of a page that could make a browser fetch something."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.plots = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.plots += tag == "svg"
        if tag in ("link", "script", "img", "iframe", "object", "embed", "base"):
            self.fetched.append(tag)
        self.fetched += [name for name, _ in attrs if name in ("src", "href", "xlink:href", "srcset", "data")]


def test_page_fetches_nothing_and_takes_no_text_for_markup() -> None:
    text = page.html(outcome())
    looker = _Looker()
    looker.feed(text)

    assert looker.fetched == []
    assert looker.plots == 11
    assert not re.search(r"url\(|@import|https?:", text)
    assert "driver &lt;&amp;&gt;" in text
    assert "nan" not in text.lower().replace("nano", "")


@pytest.mark.skipif(chromium.find() is None, reason="no Chromium on this machine; CHROMIUM names one")
@pytest.mark.parametrize("name", ["demo", "pipeline"])
def test_browser_shows_the_plots_and_asks_nobody(tmp_path: Path, name: str) -> None:
    place = Path(os.environ.get("ELEA_ARTEFACTS", tmp_path))
    place.mkdir(parents=True, exist_ok=True)
    file, picture = tmp_path / f"{name}.html", place / f"{name}.png"
    file.write_text(page.html(outcome()) if name == "demo" else report.html(REPORT), encoding="utf-8")

    asked = chromium.look_at(file, picture)

    assert foreign(asked) == []
    assert colours(picture) >= 4  # paper, ink, and lines of at least two colours


@pytest.mark.skipif(chromium.find() is None, reason="no Chromium on this machine; CHROMIUM names one")
def test_request_of_a_page_would_be_seen(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("<img src='http://127.0.0.1:9/picture.png'>", encoding="utf-8")

    asked = chromium.look_at(file, tmp_path / "page.png")

    assert foreign(asked) == ["http://127.0.0.1:9/picture.png"]


def foreign(urls: list[str]) -> list[str]:
    """Those of the network."""
    return [url for url in urls if not url.startswith(("file:", "data:", "about:", "chrome"))]


def colours(picture: Path) -> int:
    """How many different colours a picture has that cover more than a hundred points each."""
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    (width, height, _, kind) = struct.unpack(">IIBB", data[16:26])
    size = {2: 3, 6: 4}[kind]
    packed, at = b"", 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        packed += data[at + 8 : at + 8 + length] if data[at + 4 : at + 8] == b"IDAT" else b""
        at += length + 12
    lines = unfiltered(zlib.decompress(packed), width * size, height, size)
    counts: dict[bytes, int] = {}
    for line in lines:
        for point in range(0, len(line), size):
            colour = bytes(line[point : point + 3])
            counts[colour] = counts.get(colour, 0) + 1
    return sum(count > 100 for count in counts.values())


def unfiltered(raw: bytes, stride: int, height: int, size: int) -> list[bytearray]:
    """The lines of a picture, from what PNG makes of them."""
    before, lines = bytearray(stride), []
    for row in range(height):
        start = row * (stride + 1)
        kind, line = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
        for at in range(stride):
            left = line[at - size] if at >= size else 0
            up = before[at]
            corner = before[at - size] if at >= size else 0
            line[at] = (line[at] + _predicted(kind, left, up, corner)) & 255
        lines.append(line)
        before = line
    return lines


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind == 4:  # Paeth: whichever is nearest to left + up - corner
        guess = left + up - corner
        return min((left, up, corner), key=lambda one: abs(guess - one))
    return (0, left, up, (left + up) // 2)[kind]
