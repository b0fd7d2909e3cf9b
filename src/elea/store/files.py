"""The file calls of the store, in one place, so that tests can refuse, tear and forget what is written.

A write that is cut short is continued, and its error comes with the rest: a nearly full disk takes a part of
the octets without a word. Named points (`reach`) are where tests kill the process.
"""

from __future__ import annotations

import fcntl
import os
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Final

from elea.model.errors import StoreError

__all__ = ["Files", "Handle", "Lock", "ReadingAhead"]

FILES_OPEN: Final = 128
"""Files kept open for reading, over all logs of the process."""

AHEAD_BYTES: Final = 1 << 18
"""Octets read at once where a file is walked through."""

PARTS_AT_ONCE: Final = 512
"""Below IOV_MAX, which is 1024 everywhere."""

BYTES_AT_ONCE: Final = 4 << 20
"""What is collected of a file that is made as it is written."""


class _Descriptor:
    """An open file; it closes when the last reader has let go of it."""

    __slots__ = ("fd",)

    def __init__(self, path: Path, flags: int) -> None:
        self.fd = -1
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o640)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


class Handle:
    """A file of the store. The one that grows stays open; of the others only those used last, for a log may have
    more segments than a process may have files open."""

    __slots__ = ("__weakref__", "_flags", "_open", "path")

    _recent: ClassVar[deque[weakref.ref[Handle]]] = deque()
    _turn: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: Path, flags: int = os.O_RDONLY, *, pinned: bool = False) -> None:
        self.path = path
        self._flags = flags & ~(os.O_CREAT | os.O_EXCL)
        self._open: _Descriptor | None = _Descriptor(path, flags)
        if not pinned:
            self.unpin()

    @property
    def fd(self) -> int:
        """The descriptor, of a file that is pinned."""
        return self._descriptor().fd

    def unpin(self) -> None:
        """Let the file be closed when others are used more."""
        with self._turn:
            self._recent.append(weakref.ref(self))
            while len(self._recent) > FILES_OPEN:
                oldest = self._recent.popleft()()
                if oldest is not None:
                    oldest._open = None

    def size(self) -> int:
        """Octets in the file now."""
        return os.fstat(self._descriptor().fd).st_size

    def read(self, size: int, offset: int) -> bytes:
        """Up to `size` octets at `offset`; fewer only at the end of the file."""
        file = self._descriptor()
        data = os.pread(file.fd, size, offset)
        if len(data) == size or not data:
            return data
        parts = [data]
        missing = size - len(data)
        while missing and (more := os.pread(file.fd, missing, offset + size - missing)):
            parts.append(more)
            missing -= len(more)
        return b"".join(parts)

    def read_into(self, place: memoryview, offset: int) -> int:
        """Fill `place` with what is at `offset`; the octets that were there, fewer only at the end of the file."""
        file = self._descriptor()
        done = 0
        while done < len(place) and (more := os.preadv(file.fd, [place[done:]], offset + done)):
            done += more
        return done

    def _descriptor(self) -> _Descriptor:
        file = self._open
        if file is None:
            file = self._open = _Descriptor(self.path, self._flags)
            self.unpin()
        return file


FILE_MODE: Final = 0o640
DIRECTORY_MODE: Final = 0o750
"""What is kept is for the broker and its group."""


class ReadingAhead:
    """Reads a file from beginning to end, a good deal at a time: a call to the system for each block costs more."""

    __slots__ = ("_data", "_handle", "_size", "_start")

    def __init__(self, handle: Handle, size: int) -> None:
        self._handle = handle
        self._size = size
        self._start = 0
        self._data = memoryview(b"")

    def read(self, size: int, offset: int) -> memoryview:
        """As that of the handle, up to the size that was given."""
        at = offset - self._start
        if at < 0 or at + size > len(self._data):
            wanted = min(max(size, AHEAD_BYTES), self._size - offset)
            self._data, self._start, at = memoryview(self._handle.read(wanted, offset)), offset, 0
        return self._data[at : at + size]


class Files:
    """The file system as the store uses it for writing."""

    def open(self, path: Path, *, create: bool = False) -> Handle:
        """A file for reading and writing; `create` requires that it is not there yet."""
        return Handle(path, os.O_RDWR | (os.O_CREAT | os.O_EXCL if create else 0), pinned=True)

    def write(self, handle: Handle, parts: Sequence[bytes | memoryview], offset: int) -> None:
        """Write all parts, one after the other.

        Raises:
            OSError: the disk took none or only some of them.
        """
        left = [memoryview(part).cast("B") for part in parts if len(part)]
        while left:
            done = self.write_some(handle, left[:PARTS_AT_ONCE], offset)
            offset += done
            while left and done >= len(left[0]):
                done -= len(left.pop(0))
            if done:
                left[0] = left[0][done:]

    def write_some(self, handle: Handle, parts: Sequence[memoryview], offset: int) -> int:
        """One call to the system; the number of octets it took."""
        return os.pwritev(handle.fd, parts, offset)

    def sync(self, handle: Handle) -> None:
        """Return when what was written is on the disk."""
        os.fdatasync(handle.fd)

    def truncate(self, handle: Handle, size: int) -> None:
        """Cut the file."""
        os.ftruncate(handle.fd, size)

    def sync_directory(self, path: Path) -> None:
        """Return when the names in the directory are on the disk."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, in place of a file that has it."""
        os.replace(old, new)

    def remove(self, path: Path) -> None:
        """Take a file away."""
        path.unlink()

    def reach(self, point: str) -> None:
        """A named point has been reached; only tests do something here."""

    def replace(self, path: Path, parts: Iterable[bytes | memoryview]) -> None:
        """Make `path` hold exactly these parts, or leave it as it was: never something between.

        Parts that are made as they are asked for are written as they come, some megabytes at a time.
        """
        new = path.with_name(path.name + ".new")
        new.unlink(missing_ok=True)
        try:
            handle = self.open(new, create=True)
            self._write_all(handle, parts)
            self.sync(handle)
        except (OSError, StoreError):  # of the disk, or of what is being read meanwhile
            new.unlink(missing_ok=True)
            raise
        self.reach("replace-written")
        self.rename(new, path)
        self.reach("replace-renamed")
        self.sync_directory(path.parent)

    def _write_all(self, handle: Handle, parts: Iterable[bytes | memoryview]) -> None:
        some: list[bytes | memoryview] = []
        waiting = offset = 0
        for part in parts:
            some.append(part)
            waiting += len(part)
            if waiting >= BYTES_AT_ONCE:
                self.write(handle, some, offset)
                offset += waiting
                some, waiting = [], 0
        self.write(handle, some, offset)


def make_directory(path: Path) -> None:
    """Make a directory, and those above it, that nobody but its owner and his group looks into."""
    missing = [one for one in path.parents if not one.exists()]
    for one in (*reversed(missing), path):
        one.mkdir(DIRECTORY_MODE, exist_ok=True)


class Lock:
    """The lock on a directory; it names its holder."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)

    def take(self) -> str | None:
        """None if the lock is ours now, else who has it."""
        holder = self.holder()
        if holder is not None:
            return holder
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        return None

    def holder(self) -> str | None:
        """Who has it; None if nobody had: then it is held until `release`, without a name."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            name = os.pread(self._fd, 100, 0).decode(errors="replace").strip()
            return f"process {name}" if name else "another process"
        return None

    def release(self) -> None:
        """Give it back; also done by the system when the process dies."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
