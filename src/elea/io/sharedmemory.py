"""Memory that two nodes of one machine share, for large payloads: copied in once and out once, past the kernel.

A link over the loopback interface or a unix socket costs the kernel two copies as well, and much besides: 15 µs for
64 KiB, where this takes 2 at each end. The memory is a file without a name, handed over through an abstract unix
socket that a node has once it has a link to its own machine, its handover: whoever reaches that of the node at the
other end of its link runs on the same machine, has the same program, and is asked for the same user. Nothing is left
behind when a process is killed.

Each direction of a link has a memory of its own, with one writer and one reader: a ring, in which places are given and
freed in the order of the link. Its first page holds what the reader says: that it is there, and up to where it has
read. For Linux; elsewhere everything goes through the link.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from elea.io.link import TcpLink, UnixLink
from elea.io.timers import monotonic
from elea.model.errors import RuleBroken
from elea.model.limits import MEMORY_BYTES, MEMORY_PENDING
from elea.model.logger import logger

if TYPE_CHECKING:
    from mmap import mmap

__all__ = ["WORTH", "MemoryHandover", "Pool", "SharedIn", "SharedOut", "has_memory", "keep_heap", "shares_machine"]

TOKEN_BYTES: Final = 16
"""Bytes by which a memory is known on the link that it belongs to."""

WORTH: Final = 16_384
"""Bytes of a payload from which on this is cheaper than the link, which takes several small ones at once."""

SMALLEST: Final = 1 << 20
"""A memory of less is not worth its page tables: a few payloads fill it."""

PATIENCE_SECONDS: Final = 0.002
"""How long a full memory is waited for; one whose reader frees nothing for so long waits for the link like any."""

_KEPT: Final = 8 << 20
_PAGE: Final = 4096
_READER, _FREED = 0, 1  # the words of the first page
_THERE: Final = 1
_SEALS: Final = getattr(fcntl, "F_SEAL_SHRINK", 0) | getattr(fcntl, "F_SEAL_GROW", 0)
_log = logger("elea.io")


def has_memory() -> bool:
    """Whether this system can share memory so."""
    return hasattr(os, "memfd_create") and hasattr(socket, "SO_PEERCRED")


def shares_machine(link: object) -> bool:
    """Whether both ends of a link may be on one machine: a bare stream between two of its addresses."""
    if type(link) is TcpLink:
        return link.local.rpartition(":")[0] == link.remote.rpartition(":")[0]
    return type(link) is UnixLink


def keep_heap() -> None:
    """Let the allocator keep what large payloads give back, for those who hold several at a time.

    glibc returns the end of its heap to the system as soon as 128 KiB of it are free, and gets it back page by page for
    the next payload: two thirds of what a broker spent on one of 64 KiB. It keeps twice as much as the largest block it
    has seen freed; untouched, that block costs nothing.
    """
    bytes(_KEPT)


class MemoryHandover:
    """Where nodes of this machine hand over memory; looked at when one of them says that it has.

    Raises:
        OSError: there is one for this node already.
    """

    def __init__(self, node_id: bytes) -> None:
        self._lock = threading.Lock()
        self._waiting: list[socket.socket] = []
        self._brought: dict[bytes, int] = {}
        self._socket: socket.socket | None = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            self._socket.bind(_address(node_id))
            self._socket.listen(MEMORY_PENDING)
        except OSError:
            self._socket.close()
            raise

    def take(self, token: bytes) -> SharedIn | None:
        """The memory that was brought with a token; None if there is none, or none to be trusted."""
        with self._lock:
            self._look()
            descriptor = self._brought.pop(token, -1)
        if descriptor < 0:
            return None
        try:
            return SharedIn(descriptor)
        except (OSError, ValueError) as problem:
            _log.warning("shared memory refused: problem=%s", problem)
            return None
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Let nobody in any more."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None
            for waiting in self._waiting:
                waiting.close()
            for descriptor in self._brought.values():
                os.close(descriptor)
            self._waiting, self._brought = [], {}

    def _look(self) -> None:
        """Let in who waits, and take what they have; never waits itself."""
        with contextlib.suppress(BlockingIOError):
            while self._socket is not None:
                came, _ = self._socket.accept()
                came.setblocking(False)
                self._waiting.append(came)
        still: list[socket.socket] = []
        for came in self._waiting:
            try:
                self._receive(came)
            except BlockingIOError:
                still.append(came)
                continue
            except OSError as problem:
                _log.debug("nothing brought: problem=%s", problem)
            came.close()
        for dropped in still[:-MEMORY_PENDING]:
            dropped.close()
        self._waiting = still[-MEMORY_PENDING:]
        while len(self._brought) > MEMORY_PENDING:
            os.close(self._brought.pop(next(iter(self._brought))))

    def _receive(self, came: socket.socket) -> None:
        """Take what somebody brings."""
        token, descriptors, _, _ = socket.recv_fds(came, TOKEN_BYTES, 1)
        if len(token) == TOKEN_BYTES and len(descriptors) == 1 and _same_user(came):
            self._brought[token] = descriptors[0]
        else:
            for descriptor in descriptors:
                os.close(descriptor)


class Pool:
    """How much memory one node shares with others, all its links together."""

    def __init__(self, octets: int) -> None:
        self._left = octets
        self._lock = threading.Lock()

    def take(self) -> int:
        """Bytes for one more link: a quarter of what is left, so that there is some for many; 0 if that is little."""
        with self._lock:
            size = min(self._left // 4, MEMORY_BYTES) & -_PAGE
            if size < SMALLEST:
                return 0
            self._left -= size
            return size

    def give_back(self, octets: int) -> None:
        with self._lock:
            self._left += octets


class SharedOut:
    """The memory in which one link lays payloads for the node at its other end (`OutMemory`).

    It is made when the first large payload is to be sent, and used once the other node has it. `payloads` and `octets`
    count what was laid, `full` the payloads that went through the link because there was no place.
    """

    def __init__(self, node_id: bytes, pool: Pool, announce: Callable[[bytes], object]) -> None:
        self.payloads = 0
        self.octets = 0
        self.full = 0
        self._node_id = node_id
        self._pool = pool
        self._announce = announce
        self._tried = False
        self._closed = False
        self._size = 0
        self._map: mmap | None = None
        self._words: memoryview | None = None
        self._next = 0
        self._floor = 0
        self._place = 0
        self._seen = -1
        self._since = 0.0

    def room(self, size: int) -> int:
        words = self._words
        if words is None or words[_READER] != _THERE:
            if not self._tried:
                self._tried = True
                self._offer()
            return 0
        ring = self._size
        # No more than half of it: else who writes and who reads would take turns.
        size = min(size, ring >> 1)
        freed = max(words[_FREED], self._floor)
        place = self._next
        if freed >= place:
            # Nothing lies there. The beginning of the ring is more likely to be in the cache than what comes next.
            place = self._floor = -(-place // ring) * ring
        else:
            if place % ring + size > ring:
                place = (place // ring + 1) * ring
            if place + size - freed > ring:
                return self._refuse(freed)
        self._place = place
        return size

    def lay(self, payload: bytes | memoryview) -> int:
        place, size = self._place, len(payload)
        memory = self._map
        if memory is not None:  # else the link has ended, and nobody will look
            start = _PAGE + place % self._size
            memory[start : start + size] = payload
        self._next = place + size
        self.payloads += 1
        self.octets += size
        return place

    def close(self) -> None:
        """Give the memory back; the other node keeps what it has not read yet."""
        self._tried = self._closed = True
        if self._map is not None:
            self._pool.give_back(self._size)
        self._map = self._words = None  # a thread that is just using them holds them until it is done

    def _refuse(self, freed: int) -> int:
        """There is no room: wait for it while the reader goes on."""
        now = monotonic()
        if freed != self._seen:
            self._seen, self._since = freed, now
        if now - self._since < PATIENCE_SECONDS:
            return -1
        self.full += 1
        return 0

    def _offer(self) -> None:
        """Hand a memory to the other node, if it is on this machine and one of ours."""
        from mmap import mmap  # not with the module: few links need it

        size = self._pool.take()
        if not size:
            return
        token = os.urandom(TOKEN_BYTES)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as there:
                there.connect(_address(self._node_id))
                if not _same_user(there):
                    raise PermissionError("the other node runs as another user")
                descriptor = os.memfd_create("elea", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
                try:
                    os.ftruncate(descriptor, _PAGE + size)
                    # A file cut off under the reader would kill it.
                    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS | fcntl.F_SEAL_SEAL)
                    memory = mmap(descriptor, _PAGE + size)
                    socket.send_fds(there, [token], [descriptor])
                finally:
                    os.close(descriptor)
        except OSError as problem:
            self._pool.give_back(size)
            _log.debug("no shared memory: problem=%s", problem)
            return
        self._size = size
        self._map = memory
        self._words = memoryview(memory)[:16].cast("Q")
        if self._closed:  # meanwhile, by another thread
            self.close()
        else:
            self._announce(token)


class SharedIn:
    """The memory in which a link finds what the other node has laid (`InMemory`).

    Raises:
        ValueError: the memory could be cut off, or has no size that makes sense.
        OSError: it cannot be mapped.
    """

    def __init__(self, descriptor: int) -> None:
        from mmap import mmap

        if fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & _SEALS != _SEALS:
            raise ValueError("its size is not sealed")
        size = os.fstat(descriptor).st_size - _PAGE
        if not 0 < size <= MEMORY_BYTES:
            raise ValueError(f"{size} bytes are not 1 to {MEMORY_BYTES}")
        self._size = size
        self._map: mmap = mmap(descriptor, _PAGE + size)
        self._words = memoryview(self._map)[:16].cast("Q")
        self._end = 0
        self._words[_READER] = _THERE

    def fetch(self, position: int, size: int) -> bytes:
        start = position % self._size
        if position < self._end or start + size > self._size:
            problem = f"{size} bytes at {position}, where {self._end} is read and a lap has {self._size}"
            raise RuleBroken("elea-memory", "drop-link", problem)
        start += _PAGE
        octets = self._map[start : start + size]
        self._end = position + size
        self._words[_FREED] = self._end
        return octets


def _address(node_id: bytes) -> str:
    """Abstract: it lives as long as its socket, and is seen by whoever has the same loopback interface."""
    return f"\0elea/memory/{node_id.hex()}"


def _same_user(connected: socket.socket) -> bool:
    credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)
    return bool(user == os.geteuid())
