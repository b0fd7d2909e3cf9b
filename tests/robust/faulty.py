"""`elea broker` on a disk with faults, killing itself at a point: `python -m tests.robust.faulty '{…}' broker …`.

It is the broker as it is installed; only the file layer of its store is one that fails as told, and what comes before
and after some calls is known as a point. Nothing of this is in the program itself. Faults that come and go are files in
the directory `switches`: while `slow` is there every sync takes the seconds it says, while `eio` is there every sync of
a segment fails; `clock` says by how many seconds the time of the machine is wrong.
"""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any

from elea.cli import main as elea_main
from elea.io import loop
from elea.node.storage import acknowledger, republisher, service, storage, upkeep
from elea.store import catalogue, commit, open_log
from elea.store.files import Files, Handle

__all__ = ["CALLS", "POINTS", "RECOVERING", "FaultyFiles", "main"]

CALLS: dict[str, tuple[Any, str]] = {
    "commit": (commit.Committer, "_commit"),
    "outcomes": (storage.Storage, "_deliver"),
    "publish": (republisher.Republisher, "publish"),
    "acknowledge": (acknowledger.Acknowledger, "_acknowledge"),
    "batch": (service, "answer_batch"),
    "catalogue-segment": (catalogue.Catalogue, "put_segment"),
    "catalogue-facts": (catalogue.Catalogue, "set_facts"),
    "catalogue-trim": (catalogue.Catalogue, "drop_segments"),
}
"""Calls before and after which there is a point: `<name>-before`, `<name>-after`."""

OPERATIONS = {
    "segment": ("before-write", "half-written", "before-sync"),
    "compacted": ("half-written", "before-sync", "before-rename", "renamed"),
    "index": ("half-written", "before-sync", "before-rename", "renamed"),
    "base": ("half-written", "before-rename", "renamed"),
    "trimmed": ("before-remove", "removed"),
}
"""What is done with the files of a log; a half-written file has half the octets of one write."""

REACHED = (
    "written", "synced", "roll-before-catalogue", "roll-after-catalogue", "segment-written", "segment-synced",
    "replace-written", "replace-renamed", "trim-base-written", "trim-catalogue-written",
)  # fmt: skip
"""Points that the store names itself."""

RECOVERING = ("torn-before-rename", "torn-renamed", "segment-before-truncate", "segment-truncated")
"""Points of a broker that starts behind one that was killed within a write."""

POINTS = (
    *REACHED,
    *(f"{kind}-{what}" for kind, whats in OPERATIONS.items() for what in whats),
    *(f"{name}-{when}" for name in CALLS for when in ("before", "after")),
    *RECOVERING,
)

SEGMENT = re.compile(r"\d{20}\.arrows")


class Fatal:
    """Kills this process when a point is passed for the `count`th time."""

    def __init__(self, point: str | None, count: int) -> None:
        self._point = point
        self._left = count
        self._lock = threading.Lock()

    def passing(self, point: str) -> None:
        if point == self._point and self.is_last():
            os.kill(os.getpid(), signal.SIGKILL)

    def is_half(self, point: str) -> bool:
        """Whether only half of the octets are to be written now."""
        return point == self._point and self.is_last()

    def is_last(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left == 0


class FaultyFiles(Files):
    """See the module."""

    def __init__(self, fatal: Fatal, switches: Path | None) -> None:
        self._fatal = fatal
        self._switches = switches

    def reach(self, point: str) -> None:
        self._fatal.passing(point)

    def write(self, handle: Handle, parts: Sequence[bytes | memoryview], offset: int) -> None:
        kind = kind_of(handle.path)
        self._fatal.passing(f"{kind}-before-write")
        if self._fatal.is_half(f"{kind}-half-written"):
            octets = b"".join(parts)
            super().write(handle, [octets[: len(octets) // 2]], offset)
            os.kill(os.getpid(), signal.SIGKILL)
        super().write(handle, parts, offset)

    def sync(self, handle: Handle) -> None:
        kind = kind_of(handle.path)
        self._fatal.passing(f"{kind}-before-sync")
        slow = self._switch("slow")
        if slow is not None:
            time.sleep(float(slow))
        if kind == "segment" and self._switch("eio") is not None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(handle)

    def truncate(self, handle: Handle, size: int) -> None:
        self._fatal.passing("segment-before-truncate")
        super().truncate(handle, size)
        self._fatal.passing("segment-truncated")

    def rename(self, old: Path, new: Path) -> None:
        kind = kind_of(old)
        self._fatal.passing(f"{kind}-before-rename")
        super().rename(old, new)
        self._fatal.passing(f"{kind}-renamed")

    def remove(self, path: Path) -> None:
        self._fatal.passing("trimmed-before-remove")
        super().remove(path)
        self._fatal.passing("trimmed-removed")

    def _switch(self, name: str) -> str | None:
        try:
            return None if self._switches is None else (self._switches / name).read_text()
        except FileNotFoundError:
            return None


def kind_of(path: Path) -> str:
    """What a file of a log is."""
    name = path.name
    if SEGMENT.fullmatch(name):
        return "segment"
    if SEGMENT.fullmatch(name.removesuffix(".new")):
        return "compacted"
    return "torn" if ".torn" in name else name.split(".")[0]


def watch_calls(fatal: Fatal) -> None:
    """Make the calls known as points."""

    def watched(name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(inner)
        def call(*args: Any, **options: Any) -> Any:
            fatal.passing(f"{name}-before")
            found = inner(*args, **options)
            fatal.passing(f"{name}-after")
            return found

        return call

    for name, (owner, attribute) in CALLS.items():
        setattr(owner, attribute, watched(name, getattr(owner, attribute)))


def set_clock(switches: Path) -> None:
    """Let every node made from now on have the time that the switch says."""

    def wall_ns() -> int:
        try:
            wrong = float((switches / "clock").read_text())
        except (FileNotFoundError, ValueError):  # just being written
            wrong = 0.0
        return time.time_ns() + int(wrong * 1e9)

    loop.wall_ns = wall_ns  # type: ignore[attr-defined]


def main() -> int:
    """Runs `elea` with the faults that the first argument tells."""
    told = json.loads(sys.argv.pop(1))
    fatal = Fatal(told.get("point"), told.get("count", 1))
    switches = told.get("switches")
    files = FaultyFiles(fatal, None if switches is None else Path(switches))
    options = {"segment_bytes": told["segment_bytes"]} if "segment_bytes" in told else {}
    storage.open_log = partial(open_log, files=files, **options)  # type: ignore[attr-defined]
    for name, value in told.get("upkeep", {}).items():
        setattr(upkeep, name, value)
    if switches is not None and (Path(switches) / "clock").exists():
        set_clock(Path(switches))
    watch_calls(fatal)
    sys.argv[0] = "elea"
    return elea_main()


if __name__ == "__main__":
    sys.exit(main())
