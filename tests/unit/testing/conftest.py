"""A simulated network has no threads, no sockets and no sleep: whoever tries to use one fails here."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def nothing_real(monkeypatch: pytest.MonkeyPatch) -> None:
    test = threading.current_thread()

    def refuse(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def called(*arguments: Any, **options: Any) -> Any:
            # Threads that another test has left behind do what they like; there are none of the simulation.
            if threading.current_thread() is test:
                raise AssertionError("a simulated network uses a thread, a socket or sleep")
            return real(*arguments, **options)

        monkeypatch.setattr(owner, name, called)

    refuse(threading.Thread, "start")
    refuse(socket.socket, "bind")
    refuse(socket.socket, "connect")
    refuse(time, "sleep")
