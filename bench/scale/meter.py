"""What a process costs, seen from outside."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

__all__ = ["Meter"]

WHOLE_PROCESS: Final = 2  # CPUCLOCK_SCHED: all threads, in nanoseconds


class Meter:
    """CPU, memory and threads of a running process of this machine."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        # What clock_getcpuclockid(3) answers, which Python lacks. /proc/PID/stat counts in steps of 10 ms: too coarse
        # for a router at rest.
        self._clock = ~pid << 3 | WHOLE_PROCESS

    def cpu(self) -> float:
        """Seconds so far; those of a process that is gone cannot be known.

        Raises:
            OSError: it is gone.
        """
        return time.clock_gettime(self._clock)

    def memory(self) -> float:
        """Resident, in kB (1,000 bytes)."""
        return self._number("VmRSS") * 1.024

    def threads(self) -> int:
        return self._number("Threads")

    def _number(self, name: str) -> int:
        for line in self._status.read_text(encoding="ascii").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
        raise ProcessLookupError(f"no {name} in {self._status}")
