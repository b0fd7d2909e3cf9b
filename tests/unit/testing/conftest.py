"""A simulated network has no threads, no sockets and no sleep: whoever tries to use one fails here."""

from __future__ import annotations

import socket
import threading
import time

import pytest


@pytest.fixture(autouse=True)
def nothing_real(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a simulated network uses a thread, a socket or sleep")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(socket.socket, "bind", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(time, "sleep", refuse)
