"""A TCP relay that writes what passes into a capture, for machines on which nobody may listen on the network card."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.unit.wire.frames import CLIENT, SERVER, ethernet, ipv4, pcap, tcp

__all__ = ["Recording"]

PIECE = 1400


class Recording:
    """Listens on `port`, passes everything on to `to`; `write` makes a pcap file of it."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._frames: list[bytes] = []
        self._lock = threading.Lock()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self.port: int = self._server.getsockname()[1]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for end in self._sockets:
            end.close()
        for thread in self._threads:
            thread.join(30)

    def write(self, path: Path) -> None:
        """Everything so far."""
        with self._lock:
            path.write_bytes(pcap(self._frames, time=int(time.time())))

    def _accept(self) -> None:
        while True:
            try:
                near, address = self._server.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._to))
            self._sockets += [near, far]
            for source, target, back in ((near, far, False), (far, near, True)):
                thread = threading.Thread(target=self._pass_on, args=(source, target, address[1], back), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pass_on(self, source: socket.socket, target: socket.socket, port: int, back: bool) -> None:
        sequence = 1
        self._frame(b"", 0, "S", port, back)
        try:
            while data := source.recv(65_536):
                for at in range(0, len(data), PIECE):
                    self._frame(data[at : at + PIECE], sequence + at, "A", port, back)
                sequence += len(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # closed by one side or by us: what had passed is recorded
        self._frame(b"", sequence, "FA", port, back)

    def _frame(self, data: bytes, sequence: int, flags: str, port: int, back: bool) -> None:
        source, target = (7447, port) if back else (port, 7447)
        near, far = (SERVER, CLIENT) if back else (CLIENT, SERVER)
        segment = tcp(data, seq=sequence, flags=flags, source=source, target=target)
        made = ethernet(ipv4(segment, 6, source=near, target=far))
        with self._lock:
            self._frames.append(made)
