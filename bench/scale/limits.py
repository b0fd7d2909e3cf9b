"""How many clients this machine can hold at all."""

from __future__ import annotations

import resource
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["obstacle", "open_files", "raise_open_files", "source_address"]

SPARE: Final = 256  # files and ports besides those of the clients: libraries, pipes, the probe, other programs
PORTS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
MOST_FILES: Final = Path("/proc/sys/fs/nr_open")


def open_files() -> int:
    """The most files that a process of ours may have open."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = int(MOST_FILES.read_text(encoding="ascii"))
    return most if hard == resource.RLIM_INFINITY else min(hard, most)


def raise_open_files(clients: int) -> None:
    """Let this process, and every one it starts from now on, hold so many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < clients + SPARE:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(clients + SPARE, open_files()), hard))


@cache
def local_ports() -> int:
    """How many connections there can be from here to one port."""
    first, last = PORTS.read_text(encoding="ascii").split()
    return int(last) - int(first) + 1


def source_address(number: int) -> str | None:
    """Where the connection of a client comes from; None while the usual address has ports left.

    Every address of the loopback network has ports of its own.
    """
    host = number // max(1, local_ports() - SPARE)
    return f"127.0.0.{1 + host}" if host else None


def obstacle(clients: int) -> str | None:
    """Why this machine cannot hold so many clients; None if it can."""
    need = clients + SPARE
    if need > open_files():
        return (
            f"{clients} clients: {need} open files are needed in one process, and the hard limit is {open_files()} "
            "(ulimit -Hn; fs.nr_open)"
        )
    return None
