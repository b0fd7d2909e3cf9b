"""A headless Chromium, if the machine has one: pictures of pages, and what they ask the network for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

__all__ = ["find", "look_at"]

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chromium-headless-shell",
    "headless_shell",
)
PATIENCE = 120.0
ITSELF = "not an origin"
"""Who is behind a request that the browser makes of its own accord: it looks for the time, accounts, updates."""


def find() -> str | None:
    """The program, from `CHROMIUM` or the path."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def look_at(page: Path, picture: Path, *, width: int = 1000, height: int = 1300) -> list[str]:
    """Make a picture of a page; the addresses that the page has made the browser ask for."""
    program = find()
    assert program is not None
    log = picture.with_suffix(".netlog.json")
    subprocess.run(
        [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
            f"--user-data-dir={picture.with_suffix('.profile')}", f"--window-size={width},{height}",
            f"--log-net-log={log}", f"--screenshot={picture}", page.absolute().as_uri(),
        ],
        check=True, capture_output=True, timeout=PATIENCE,
    )  # fmt: skip
    asked = (event.get("params") or {} for event in json.loads(log.read_text(encoding="utf-8"))["events"])
    return sorted({one["url"] for one in asked if "url" in one and one.get("initiator", ITSELF) != ITSELF})
