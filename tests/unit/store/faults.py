"""File layers that fail: they refuse, cut writes short, forget what was not synced, or kill the process at a point."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from random import Random

from elea.store.files import Files, Handle


class FailingFiles(Files):
    """Fails as told: `room` octets can be written, a sync gives `sync_error`, a write `write_error`."""

    def __init__(self) -> None:
        self.room: int | None = None
        self.sync_error: int | None = None
        self.write_error: int | None = None
        self.truncate_error: int | None = None
        self.syncs = 0

    def write_some(self, handle: Handle, parts: Sequence[memoryview], offset: int) -> int:
        if self.write_error is not None:
            raise OSError(self.write_error, os.strerror(self.write_error))
        if self.room is None:
            return super().write_some(handle, parts, offset)
        # As a real disk does: some octets without a word, and the error at the next call.
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        data = b"".join(parts)[: self.room]
        self.room -= len(data)
        return os.pwrite(handle.fd, data, offset)

    def sync(self, handle: Handle) -> None:
        self.syncs += 1
        if self.sync_error is not None:
            raise OSError(self.sync_error, os.strerror(self.sync_error))
        super().sync(handle)

    def truncate(self, handle: Handle, size: int) -> None:
        if self.truncate_error is not None:
            raise OSError(self.truncate_error, os.strerror(self.truncate_error))
        super().truncate(handle, size)


class DeadlyFiles(Files):
    """Kills the process when a point is reached for the `count`th time."""

    def __init__(self, point: str, count: int) -> None:
        self.point = point
        self.left = count

    def reach(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class ForgetfulFiles(Files):
    """Knows which octets and names are on the disk for sure, and shows what a power cut would leave of the rest."""

    def __init__(self) -> None:
        self.safe: dict[Path, bytearray] = {}
        self.pending: dict[Path, list[tuple[int, bytes]]] = {}
        self.unnamed: dict[Path, bytearray | None] = {}
        """Names that are not on the disk for sure, and what they stood for before."""

    def open(self, path: Path, *, create: bool = False) -> Handle:
        if create and not path.exists():
            self.unnamed.setdefault(path, None)
        return super().open(path, create=create)

    def sync_directory(self, path: Path) -> None:
        super().sync_directory(path)
        self.unnamed = {one: before for one, before in self.unnamed.items() if one.parent != path}

    def write(self, handle: Handle, parts: Sequence[bytes | memoryview], offset: int) -> None:
        self.pending.setdefault(handle.path, []).append((offset, b"".join(parts)))
        super().write(handle, parts, offset)

    def sync(self, handle: Handle) -> None:
        super().sync(handle)
        for offset, data in self.pending.pop(handle.path, []):
            _overlay(self.safe.setdefault(handle.path, bytearray()), offset, data)

    def truncate(self, handle: Handle, size: int) -> None:
        super().truncate(handle, size)
        del self.safe.setdefault(handle.path, bytearray())[size:]

    def rename(self, old: Path, new: Path) -> None:
        before = self.safe.get(new) if new.exists() else None
        super().rename(old, new)
        self.unnamed.pop(old, None)
        self.unnamed.setdefault(new, before)
        self.safe[new] = self.safe.pop(old, bytearray())
        self.pending.pop(new, None)

    def remove(self, path: Path) -> None:
        super().remove(path)
        self.safe.pop(path, None)

    def power_cut(self, target: Path, random: Random) -> None:
        """A directory as after a power cut: of what was not synced any octets may be there, in any order, or zeros."""
        target.mkdir()
        for path in {*self.safe, *self.pending}:
            data = bytearray(self.safe.get(path, b""))
            for offset, octets in self.pending.get(path, []):
                for start in range(0, len(octets), 512):
                    if random.random() < 0.5:
                        _overlay(data, offset + start, octets[start : start + 512])
            if path in self.unnamed and random.random() < 0.5:
                before = self.unnamed[path]
                if before is not None:
                    (target / path.name).write_bytes(before)
            elif path.exists():
                (target / path.name).write_bytes(data)


def _overlay(data: bytearray, offset: int, octets: bytes) -> None:
    if len(data) < offset:
        data.extend(bytes(offset - len(data)))
    data[offset : offset + len(octets)] = octets
