"""Disks that can be cut off from power or are small: file systems of their own, which only root may make."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["Disk", "ext4_disk", "missing_for_disks", "small_disk"]

SHUTDOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN."""

WITHOUT_JOURNAL = struct.pack("I", 2)
"""Nothing more is written, not even the journal: what the power leaves behind when it goes."""


def missing_for_disks() -> str | None:
    """Why disks cannot be made here; None if they can."""
    if os.geteuid() != 0:
        return "mounting a disk needs root"
    if shutil.which("mkfs.ext4") is None:
        return "there is no mkfs.ext4"
    with tempfile.TemporaryDirectory() as path:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", path], capture_output=True)
        if mounted.returncode:
            return f"nothing can be mounted: {mounted.stderr.decode().strip()}"
        subprocess.run(["umount", path], check=True)
    return None


class Disk:
    """An ext4 file system in a file."""

    def __init__(self, directory: Path, octets: int) -> None:
        self._image = directory / "image"
        self.path = directory / "disk"
        self.path.mkdir()
        with self._image.open("wb") as file:
            file.truncate(octets)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(self._image)], check=True)
        self.mount()

    def mount(self) -> None:
        """Let it be used; the journal is played back first."""
        subprocess.run(["mount", "-o", "loop", str(self._image), str(self.path)], check=True)

    def unmount(self) -> None:
        """Nobody may use it any more."""
        subprocess.run(["umount", str(self.path)], check=True)

    def cut_power(self) -> None:
        """From now on every write and sync fails with EIO, and what was not synced is gone at the next mount."""
        fd = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, SHUTDOWN, WITHOUT_JOURNAL)
        finally:
            os.close(fd)


@contextlib.contextmanager
def ext4_disk(directory: Path, octets: int = 256 << 20) -> Iterator[Disk]:
    """A disk of its own, of sparse octets."""
    disk = Disk(directory, octets)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk.path)], capture_output=True)


@contextlib.contextmanager
def small_disk(directory: Path, size: str) -> Iterator[Path]:
    """A disk in memory that is soon full."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(directory)], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", "-l", str(directory)], capture_output=True)
