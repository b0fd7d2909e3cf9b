"""CPU time of this process and everything it has started: driver, JVM, Python workers, broker.

Rates on a machine that others use say who got the cores; this says what a row costs.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["seconds"]


def seconds(without: int | None = None) -> float:
    """User and system time so far, of ended children too; not a number where the system does not tell.

    Args:
        without: a process that does not count, nor what it has started.
    """
    found: dict[int, tuple[int, float]] = {}
    tick = os.sysconf("SC_CLK_TCK")
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        found[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15])) / tick
    if not found:
        return float("nan")
    return sum(spent for pid, (_, spent) in found.items() if _is_ours(pid, found, without))


def _is_ours(pid: int, found: dict[int, tuple[int, float]], without: int | None) -> bool:
    while pid != os.getpid():
        if pid == without or pid not in found:
            return False
        pid = found[pid][0]
    return True
