"""Endpoints that break rules on purpose: a relay before a real broker that changes what the broker says."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

from elea.io.locator import Locator
from elea.protocol.early.generation import GENERATIONS, Generation
from elea.protocol.early.numbered import vle
from elea.wire.early import Decorated, Packet
from elea.wire.primitives import read_nat

__all__ = ["FAULTS", "BrokenEndpoint", "Fault"]

Fault = Callable[[Generation, Decorated], Iterable[Decorated]]
"""What is said instead of a message."""


def mute(generation: Generation, said: Decorated) -> Iterable[Decorated]:
    """It accepts sessions and says nothing more."""
    return [said] if type(said.message).__name__ == "Accept" else []


def unfriendly(generation: Generation, said: Decorated) -> Iterable[Decorated]:
    """It accepts no session."""
    return [] if type(said.message).__name__ == "Accept" else [said]


def forgiving(generation: Generation, said: Decorated) -> Iterable[Decorated]:
    """It never says Close."""
    return [] if type(said.message).__name__ == "Close" else [said]


def careless(generation: Generation, said: Decorated) -> Iterable[Decorated]:
    """It says everything twice, and what it is asked not to say."""
    return [said, said]


def mistaken(generation: Generation, said: Decorated) -> Iterable[Decorated]:
    """Reasons, results, numbers, hashes and payloads are others than they should be."""
    message = said.message
    kind = type(message).__name__
    changed: dict[str, Any] = {}
    if kind == "Close":
        changed = {"reason": 77, "pid": b"somebody"}
    elif kind == "Accept":
        changed = {"acceptPid": message.openPid}
    elif kind in ("AckNack", "Synch"):
        changed = {"sn": message.sn ^ 1}
    elif kind in ("Ping", "Pong", "PingPong"):
        changed = {"hash": message.hash + 1}
    elif kind == "Hello":
        changed = {"mask": 0, "locators": (b"nowhere",)}
    elif kind == "KeepAlive":
        changed = {"pid": b"somebody"}
    elif kind == "Declare":
        listed = tuple(_wrong(generation, one) for one in message.declarations)
        changed = {"declarations": listed}
    elif kind in ("StreamData", "WriteData"):
        changed = {"payload": b"wrong" + message.payload}
    elif kind == "BatchedData":
        changed = {"payload": message.payload[::-1]}
    return [Decorated(message._replace(**changed), said.markers)]


def _wrong(generation: Generation, declaration: Any) -> Any:
    kind = type(declaration).__name__
    if kind == "ResultDecl":
        return declaration._replace(
            status=7 if declaration.status == 0 else 0, id=9 if declaration.status == 0 else None
        )
    return declaration._replace(id=declaration.id + 2) if hasattr(declaration, "id") else declaration


FAULTS: dict[str, Fault] = {
    "mistaken": mistaken,
    "careless": careless,
    "forgiving": forgiving,
    "mute": mute,
    "unfriendly": unfriendly,
}


class BrokenEndpoint:
    """Relays to a broker. Before a session it also answers what should not be answered."""

    def __init__(self, locator: str, dialect: str, fault: Fault) -> None:
        self._target = Locator.parse(locator)
        self._generation = GENERATIONS[dialect]
        self._fault = fault
        self._streamed = self._target.streamed
        self._socket = self._bound()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._accept if self._streamed else self._relay, daemon=True)]

    @property
    def locator(self) -> str:
        host, port = self._socket.getsockname()
        return f"{self._target.protocol}/{host}:{port}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._socket.close()

    def _bound(self) -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM if self._streamed else socket.SOCK_DGRAM)
        made.bind(("127.0.0.1", 0))
        if self._streamed:
            made.listen(64)
        return made

    def _connected(self) -> socket.socket:
        made = socket.socket(socket.AF_INET, self._socket.type)
        made.connect((self._target.host, self._target.port))
        return made

    def _answers(self, packet: bytes) -> bytes:
        """What the broker would have said, changed."""
        return b"".join(
            self._generation.codec.encode_packet(Packet((other,)))
            for said in self._generation.codec.messages(packet)
            for other in self._fault(self._generation, said)
        )

    def _chatter(self) -> bytes:
        """What nobody wants to hear."""
        m = self._generation.messages
        listed = [m.AckNack(3), m.Close(b"x", 0), m.Declare(0, (m.ResultDecl(9, 0),)), m.Hello(15, ())]
        return b"".join(self._generation.encode(one) for one in listed)

    # -- datagrams ----------------------------------------------------------------------------------------------------

    def _relay(self) -> None:
        links: dict[Any, socket.socket] = {}
        while not self._ended.is_set():
            for ready in select.select([self._socket, *links.values()], [], [], 0.02)[0]:
                if ready is self._socket:
                    packet, source = self._socket.recvfrom(65_536)
                    if source not in links:
                        links[source] = self._connected()
                    links[source].send(packet)
                    if self._fault is careless:
                        self._socket.sendto(self._chatter(), source)
                else:
                    (source,) = [address for address, link in links.items() if link is ready]
                    changed = self._answers(ready.recv(65_536))
                    if changed:
                        self._socket.sendto(changed, source)
        for link in links.values():
            link.close()

    # -- streams ------------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        while not self._ended.is_set():
            if select.select([self._socket], [], [], 0.02)[0]:
                near, _ = self._socket.accept()
                thread = threading.Thread(target=self._serve, args=(near,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, near: socket.socket) -> None:
        far = self._connected()
        rest = b""
        with near, far:
            while not self._ended.is_set():
                for ready in select.select([near, far], [], [], 0.02)[0]:
                    try:
                        octets = ready.recv(65_536)
                        if ready is near:
                            far.sendall(octets)
                            if octets and self._fault is careless:
                                near.sendall(_sized(self._chatter()))
                        else:
                            rest = self._back(near, rest + octets)
                    except OSError:
                        return
                    if not octets and (ready is near or self._fault not in (forgiving, mute)):
                        return

    def _back(self, near: socket.socket, octets: bytes) -> bytes:
        while octets:
            try:
                size, at = read_nat(octets[:10], 0, "broken")
            except IndexError:
                break
            if len(octets) < at + size:
                break
            changed = self._answers(octets[at : at + size])
            if changed:
                near.sendall(_sized(changed))
            octets = octets[at + size :]
        return octets


def _sized(packet: bytes) -> bytes:
    return vle(len(packet)) + packet
