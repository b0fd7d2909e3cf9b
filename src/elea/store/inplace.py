"""Blocks read where they lie, by a process on the machine of the broker: the broker tells where, and sends no octets.

Whoever cannot do it, because the file is not theirs to read, has been removed since, or is not what was said, asks the
broker for the octets instead; damage is then found, noted and told by the broker as ever.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from elea.model.errors import StoreError
from elea.store.entrance import read_block
from elea.store.files import Handle
from elea.store.frames import BLOCK, BadFrame, Block, check_body, read_head
from elea.store.segment import Segment, read_header
from elea.store.shelf import Run

__all__ = ["Place", "Places", "machine", "place_of"]

_log: Final = logging.getLogger("elea.store")

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


class NotInPlace(Exception):
    """A block cannot be read here; never leaves this module."""


class Place(NamedTuple):
    """Where a block lies."""

    path: str
    device: int
    inode: int
    offset: int
    size: int
    first: int
    """The position of its first sample."""


@cache
def machine() -> str | None:
    """What processes that see the same files have in common: the start of their kernel; None if it does not tell."""
    try:
        return hashlib.sha256(_BOOT.read_bytes()).hexdigest()[:16]
    except OSError:
        return None


def place_of(part: object, block: Run) -> Place | None:
    """Where a block of a log lies; None if it is in no file that is there."""
    if not isinstance(part, Segment) or not isinstance(block, Block):
        return None
    try:
        found = part.path.stat()
    except FileNotFoundError:
        return None
    return Place(str(part.path.absolute()), found.st_dev, found.st_ino, block.offset, block.size, block.facts.first)


class Places:
    """Reads blocks in the order in which they are named; one file is open at a time."""

    def __init__(self) -> None:
        self._file: tuple[str, int, int] | None = None
        self._handle: Handle | None = None
        self._salt = 0
        self._ours = False

    @staticmethod
    def among(sent: Sequence[pa.RecordBatch], told: Sequence[Sequence[Any]]) -> list[pa.RecordBatch | Place] | None:
        """What an answer consists of, in its order; None if what is told makes no sense.

        Args:
            sent: batches that came as octets.
            told: for each of the others, how many of those come before it, and where it lies.
        """
        found: list[pa.RecordBatch | Place] = []
        at = 0
        for one in told:
            try:
                before, place = one[0], Place(*one[1:])
                if not at <= before <= len(sent) or place.first < 0:
                    raise ValueError(f"position {place.first} behind {before} of {len(sent)} others")
            except (ValueError, TypeError, IndexError) as problem:
                _log.warning("blocks are asked for, the answer names no places: answer=%r problem=%s", one, problem)
                return None
            found += sent[at:before]
            found.append(place)
            at = before
        return [*found, *sent[at:]]

    def load(self, place: Place) -> pa.RecordBatch | None:
        """The samples of a block, checked as the store checks them; None if they cannot be had here."""
        try:
            return self._load(place)
        except NotInPlace as problem:
            _log.info("blocks are asked for, they cannot be read in place: problem=%s", problem)
            return None

    def _load(self, place: Place) -> pa.RecordBatch:
        try:
            handle = self._opened(place)
            if not 0 < place.size <= handle.size() - place.offset:
                raise NotInPlace(f"{place.path} does not have {place.size} octets at {place.offset}")
            # Arrow uses its memory again. Fresh pages, which Python may get each time, cost twice as much as reading.
            buffer = pa.allocate_buffer(place.size)
            data = memoryview(buffer)
            data = data[: handle.read_into(data, place.offset)]
            block = read_head(data, offset=place.offset, magic=BLOCK, salt=self._salt)
            check_body(data[block.head :], block, self._salt)
            if block.facts.first != place.first:
                raise NotInPlace(f"{place.path} has position {block.facts.first} at {place.offset}, not {place.first}")
            return read_block(buffer, is_ours=self._ours)
        except (OSError, ValueError, TypeError, OverflowError, StoreError, BadFrame, pa.ArrowException) as error:
            raise NotInPlace(f"{place.path}: {error}") from error

    def _opened(self, place: Place) -> Handle:
        if self._handle is None or self._file != place[:3]:
            self._file = None
            # A name that leads to a pipe must not keep us waiting.
            handle = Handle(Path(place.path), os.O_RDONLY | os.O_NONBLOCK, pinned=True)
            found = os.fstat(handle.fd)
            if (found.st_dev, found.st_ino) != (place.device, place.inode):
                raise NotInPlace(f"{place.path} is another file")
            self._ours = found.st_uid in (0, os.geteuid()) and not found.st_mode & 0o022
            self._handle, self._salt, self._file = handle, read_header(handle).salt, place[:3]
        return self._handle
