"""A link that can be cut: a port that passes everything on to another, until told to drop who is connected."""

from __future__ import annotations

import contextlib
import socket
import threading

__all__ = ["Cuttable"]


class Cuttable:
    """Listens, and connects to `port` for everybody who comes."""

    def __init__(self, port: int) -> None:
        self.cuts = 0
        self._port = port
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.locator = f"tcp/127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut(self) -> None:
        """Drop all connections; whoever comes again is welcome."""
        self.cuts += 1
        with self._lock:
            sockets, self._open = self._open, []
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Listen no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                near.close()  # the broker is away
                continue
            with self._lock:
                self._open += [near, far]
            self._threads.append(threading.Thread(target=self._serve, args=(near, far), daemon=True))
            self._threads[-1].start()

    def _serve(self, near: socket.socket, far: socket.socket) -> None:
        back = threading.Thread(target=_pass_on, args=(far, near), daemon=True)
        back.start()
        _pass_on(near, far)
        back.join()
        near.close()
        far.close()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
