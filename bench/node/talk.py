"""What every end of a benchmark has: a way to talk with the process that measures, and a look at its own costs.

Few imports: whatever this module loads counts as memory and starting time of the end.
"""

from __future__ import annotations

import json
import os
import resource
import select
from typing import Any

__all__ = ["Parent", "cpu", "rss"]


def cpu() -> float:
    """Seconds of CPU this process has used, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def rss() -> float:
    """Resident memory in MB."""
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


class Parent:
    """The measuring process, seen from an end: lines of JSON on the standard streams."""

    def __init__(self) -> None:
        self._rest = b""

    def say(self, **facts: object) -> None:
        os.write(1, json.dumps(facts).encode() + b"\n")

    def hear(self, timeout: float | None = None) -> dict[str, Any] | None:
        """The next order, or None after `timeout` seconds. Without a parent there is no reason to go on."""
        while b"\n" not in self._rest:
            if not select.select([0], [], [], timeout)[0]:
                return None
            data = os.read(0, 65_536)
            if not data:
                os._exit(0)
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        order: dict[str, Any] = json.loads(line)
        return order
