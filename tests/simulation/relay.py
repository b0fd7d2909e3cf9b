"""A relay for UDP that loses, delays, repeats and reorders what passes, in both directions."""

from __future__ import annotations

import heapq
import select
import socket
import threading
import time
from random import Random
from types import TracebackType
from typing import Self

__all__ = ["LossyRelay"]

LATE_SECONDS = (0.001, 0.006)
"""How much later a datagram arrives that others overtake."""


class LossyRelay:
    """Listens on `port` of loopback for one node, and passes on to another. Counts what both have sent."""

    def __init__(
        self,
        target: tuple[str, int],
        *,
        loss: float,
        duplicates: float = 0.0,
        reordering: float = 0.0,
        delay: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.octets = [0, 0]
        self.datagrams = [0, 0]
        self.lost = self.repeated = self.reordered = 0
        self._loss, self._duplicates, self._reordering = loss, duplicates, reordering
        self._delay = delay
        self._chance = Random(seed)
        self._target = target
        self._near = self._socket()
        self._far = self._socket()
        self._source: tuple[str, int] | None = None
        self._late: list[tuple[float, int, bool, bytes]] = []
        self._order = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)

    def _socket(self) -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        made.bind(("127.0.0.1", 0))
        made.setblocking(False)
        return made

    @property
    def port(self) -> int:
        port: int = self._near.getsockname()[1]
        return port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._near.close()
        self._far.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            wait = max(0.0, self._late[0][0] - time.monotonic()) if self._late else 0.05
            for ready in select.select([self._near, self._far], [], [], wait)[0]:
                self._take(ready)
            now = time.monotonic()
            while self._late and self._late[0][0] <= now:
                _, _, forth, datagram = heapq.heappop(self._late)
                self._pass_on(forth, datagram)

    def _take(self, ready: socket.socket) -> None:
        forth = ready is self._near
        for _ in range(64):
            try:
                datagram, source = ready.recvfrom(65_536)
            except (BlockingIOError, ConnectionRefusedError):
                return
            if forth:
                self._source = source
            self.octets[not forth] += len(datagram)
            self.datagrams[not forth] += 1
            self._fly(forth, datagram)
            if self._happens(self._duplicates):
                self.repeated += 1
                self._fly(forth, datagram)

    def _fly(self, forth: bool, datagram: bytes) -> None:
        if self._happens(self._loss):
            self.lost += 1
            return
        later = self._delay
        if self._happens(self._reordering):
            self.reordered += 1
            later += self._chance.uniform(*LATE_SECONDS)
        if later:
            self._order += 1
            heapq.heappush(self._late, (time.monotonic() + later, self._order, forth, datagram))
        else:
            self._pass_on(forth, datagram)

    def _happens(self, chance: float) -> bool:
        return self._chance.random() < chance

    def _pass_on(self, forth: bool, datagram: bytes) -> None:
        try:
            if forth:
                self._far.sendto(datagram, self._target)
            elif self._source is not None:
                self._near.sendto(datagram, self._source)
        except (BlockingIOError, ConnectionRefusedError):
            self.lost += 1
