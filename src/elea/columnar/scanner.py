"""Runs of PUSH messages off the wire to blocks: the names a neighbour uses, and the kernel that reads its messages."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from elea.columnar import rows as k
from elea.columnar.blocks import Block
from elea.columnar.compiled import Kernels
from elea.model.limits import CACHED_KEY_CHARS, CACHED_ROUTES
from elea.wire.zenoh1.frames import Frames

__all__ = ["Find", "Scanner"]

Find = Callable[[int, int, bytes], "tuple[str, Any] | None"]
"""The key that header, scope and suffix of a message stand for, and who takes blocks of its samples.

None if they stand for no key, or anybody else is to get a sample of it: then it is left to the reader of tuples.
"""

ROWS: Final = 16_384
"""Messages read in one go: as many as a batch can hold."""

ARENA: Final = 1 << 20
"""Bytes of all suffixes; a neighbour with more names than fit has them looked up anew."""


class Scanner:
    """The names of one neighbour and what became of them; for one thread at a time."""

    def __init__(self, compiled: Kernels) -> None:
        self._scan = compiled.scan
        self._seed = secrets.randbits(64)
        self._rows = np.empty((ROWS, k.WIDTH), np.int64)
        self._answer = np.zeros(k.ANSWERS, np.int64)
        self._slots = np.empty(2 * CACHED_ROUTES, np.int32)
        self._heads = np.empty(CACHED_ROUTES, np.int64)
        self._hashes = np.empty(CACHED_ROUTES, np.uint64)
        self._regions = np.empty((CACHED_ROUTES, 2), np.int64)
        self._arena = np.empty(ARENA, np.uint8)
        self._groups = np.empty(CACHED_ROUTES, np.int32)
        self._generation = -1
        self.stopped = Frames(0)
        """Where `scan` stopped, if it was told to go on with the frames behind."""
        self.forget()

    def forget(self) -> None:
        """Names may mean something else from now on."""
        self._slots.fill(-1)
        self._used = 0
        self._keys: list[str] = []  # a new list: blocks made before still have the old one
        self._takers: list[Any] = [None]

    def scan(
        self, buf: bytes, at: int, generation: int, find: Find, frames: Frames | None = None
    ) -> tuple[int, Block | None, Any, int]:
        """Read messages from `at` on: where it stopped, their block, who takes it, and all bits of their QoS.

        Without a block the message there is for the reader of tuples. `frames` says where the frame ends that they are
        in, if those behind it are to be read too; `stopped` then says the same of the one where it stopped.
        """
        stop, header, sn, mask, _ = frames or Frames(len(buf))
        if generation != self._generation:
            self.forget()
            self._generation = generation
        octets = np.frombuffer(buf, np.uint8)
        while True:
            end = self._scan(
                octets,
                at,
                self._rows,
                self._answer,
                self._slots,
                self._heads,
                self._hashes,
                self._regions,
                self._arena,
                self._groups,
                CACHED_KEY_CHARS,
                self._seed,
                stop,
                header,
                sn,
                mask,
            )
            answer: list[int] = self._answer.tolist()
            self.stopped = Frames(answer[k.STOP], header, answer[k.SN], mask, answer[k.FRAMES])
            count = answer[k.ROWS]
            if count:
                return (
                    end,
                    self._block(octets, count, answer, end - at),
                    self._takers[answer[k.GROUP]],
                    answer[k.ANY_QOS],
                )
            if answer[k.STOPPED] != k.NEW_NAME:
                return end, None, None, 0
            self._add(octets, answer, find)

    def _block(self, octets: Any, count: int, answer: list[int], size: int) -> Block:
        if not answer[k.ANY_MORE]:
            return Block(self._keys, self._rows[:count, : k.PLAIN_WIDTH].copy(), octets, 0, size)
        rows = self._rows[:count].copy()
        plain = rows[:, k.FLAGS] & k.MORE == 0
        if plain.any():  # what these rows say of details is left from another run
            rows[plain, k.PLAIN_WIDTH :] = -1
            rows[plain, k.ENCODING] = 0
        return Block(self._keys, rows, octets, 0, size)

    def _add(self, octets: Any, answer: list[int], find: Find) -> None:
        """Give a name a code."""
        header, scope, at, length = answer[k.HEADER], answer[k.SCOPE], answer[k.SUFFIX], answer[k.LENGTH]
        code = len(self._keys)
        if code >= CACHED_ROUTES or self._used + length > ARENA:
            self.forget()
            return  # the place it was to have is another's now: read once more
        suffix = octets[at : at + length]
        found = find(header, scope, suffix.tobytes())
        group = 0
        if found is not None:
            if found[1] not in self._takers:
                self._takers.append(found[1])
            group = self._takers.index(found[1])
        self._arena[self._used : self._used + length] = suffix
        self._slots[answer[k.SLOT]] = code
        self._hashes[code] = answer[k.HASH] & (1 << 64) - 1
        self._heads[code] = scope << 8 | header & 0x60
        self._regions[code] = self._used, length
        self._groups[code] = group
        self._used += length
        self._keys.append("" if found is None else found[0])
