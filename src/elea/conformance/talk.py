"""A conversation with an endpoint: a socket, the codec, and two counters. No machine.

What is said is what the check wants, right or wrong. Only acknowledgements are sent by themselves, unless a check wants
otherwise, since an endpoint that hears none says everything again.
"""

from __future__ import annotations

import itertools
import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final, Self

from elea.conformance.registry import Failed, NotApplicable
from elea.io.locator import Locator
from elea.model.errors import DecodeError
from elea.protocol.early.generation import GENERATIONS
from elea.wire.early import Decorated
from elea.wire.primitives import read_nat, write_nat

__all__ = ["Endpoint", "Talk", "nat"]

RELIABLE: Final = frozenset({"Declare", "Pull"})
NUMBERED: Final = frozenset({"Declare", "Pull", "WriteData", "StreamData", "BatchedData"})
CONNECT_SECONDS: Final = 5.0
_numbers = itertools.count()


def nat(value: int) -> bytes:
    """A natural as bytes."""
    out = bytearray()
    write_nat(out, value, "value")
    return bytes(out)


class Endpoint:
    """Where to connect to, and how patiently.

    Args:
        patience: seconds that an answer may take.
        silence: seconds after which no answer counts as none.
    """

    def __init__(self, locator: str, dialect: str, *, patience: float = 1.0, silence: float = 0.2) -> None:
        self.where = Locator.parse(locator)
        self.dialect = dialect
        self.generation = GENERATIONS[dialect]
        self.patience = patience
        self.silence = silence
        self.transcript: list[tuple[str, bytes]] = []
        """The packets of the last conversations, since it was cleared."""
        self._talks: list[Talk] = []

    @property
    def is_stream(self) -> bool:
        return self.where.streamed

    def talk(self) -> Talk:
        """A new connection, or a new address."""
        talk = Talk(self)
        self._talks.append(talk)
        return talk

    def end(self) -> None:
        """End the conversations that are left over."""
        for talk in self._talks:
            talk.end()
        self._talks.clear()

    def opened(self, **fields: Any) -> Talk:
        """A conversation in which a session is open."""
        talk = self.talk()
        talk.open(**fields)
        return talk

    def name(self, text: str) -> bytes:
        """The full name of a resource; each process has its own."""
        return f"{self.generation.scheme}conformance/{os.getpid()}/{next(_numbers)}/{text}".encode()


class Talk:
    """One connection with an endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.m: Any = endpoint.generation.messages
        self.pid = b"conf%06x" % (os.getpid() << 8 & 0xFFFF00 | next(_numbers) & 0xFF)
        self.acknowledges = True
        self.sn = {True: 0, False: 0}
        """The next numbers of our channels."""
        self.expected = 0
        """The next number of the endpoint's reliable channel."""
        self.is_over = False
        """Whether the endpoint has ended the connection."""
        self.accept: Any = None
        self._heard: list[Decorated] = []
        self._rest = b""
        self._link = _connected(endpoint.where)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Say Close if there is a session, and leave."""
        if self.accept is not None:
            self.say(self.m.Close(self.pid, 0))
            self.accept = None
        self._link.close()

    # -- saying -------------------------------------------------------------------------------------------------------

    def say(self, *messages: Any, before: bytes = b"") -> None:
        """One packet of messages; `before` are the bytes of a marker."""
        self.send(before + b"".join(self.endpoint.generation.encode(one) for one in messages))

    def send(self, packet: bytes) -> None:
        """A packet as it is."""
        self.send_raw(nat(len(packet)) + packet if self.endpoint.is_stream else packet, packet)

    def send_raw(self, octets: bytes, told: bytes | None = None) -> None:
        """Bytes on the link, on a stream without a size."""
        self.endpoint.transcript.append((">", octets if told is None else told))
        try:
            self._link.send(octets)
        except OSError:
            self.is_over = True

    def number(self, reliable: bool = True) -> int:
        """The next number of a channel."""
        sn = self.sn[reliable]
        self.sn[reliable] = sn + 1
        return sn

    # -- hearing ------------------------------------------------------------------------------------------------------

    def hear(self, kind: str, wanted: Callable[[Any], bool] = lambda message: True, *, patience: float = 0.0) -> Any:
        """The first message of a kind that nobody has heard; others stay to be heard.

        Raises:
            Failed: it did not come.
        """
        return self.hear_decorated(kind, wanted, patience=patience).message

    def hear_decorated(
        self, kind: str, wanted: Callable[[Any], bool] = lambda message: True, *, patience: float = 0.0
    ) -> Decorated:
        """The same with its markers."""
        end = time.monotonic() + (patience or self.endpoint.patience)
        while True:
            for index, one in enumerate(self._heard):
                if type(one.message).__name__ == kind and wanted(one.message):
                    return self._heard.pop(index)
            if self.is_over or time.monotonic() >= end:
                raise Failed(f"no {kind} came{self._instead(kind)}")
            self._read(end - time.monotonic())

    def _instead(self, kind: str) -> str:
        """What came, for a text that says what did not."""
        found = [type(one.message).__name__ for one in self._heard]
        text = " as it should be" if kind in found else ""
        text += f", but {', '.join(sorted(set(found)))}" if found else ""
        return text + (", and the connection was ended" if self.is_over else "")

    def hears(self, kind: str, wanted: Callable[[Any], bool] = lambda message: True) -> bool:
        """Whether a message comes before it is silent for long enough."""
        try:
            self.hear(kind, wanted, patience=self.endpoint.silence)
        except Failed:
            return False
        return True

    def silent(self, *kinds: str, wanted: Callable[[Any], bool] = lambda message: True) -> None:
        """None of these comes, or nothing at all if none is named.

        Raises:
            Failed: one came.
        """
        for message in self.heard(*kinds):
            if wanted(message):
                raise Failed(f"{message} came, and should not")

    def heard(self, *kinds: str) -> list[Any]:
        """What has come when it is silent for long enough, of some kinds or of all; it stays to be heard."""
        end = time.monotonic() + self.endpoint.silence
        while time.monotonic() < end and not self.is_over:
            self._read(end - time.monotonic())
        return [one.message for one in self._heard if not kinds or type(one.message).__name__ in kinds]

    def closed(self, *reasons: int) -> None:
        """The endpoint says Close with one of these reasons.

        Raises:
            Failed: it does not, or gives another reason.
        """
        reason = self.hear("Close").reason
        if reason not in reasons:
            raise Failed(f"closed with reason {reason}, not {' or '.join(str(one) for one in reasons)}")

    def alive(self) -> None:
        """The session goes on: a reliable message is acknowledged.

        Raises:
            Failed: it does not.
        """
        self.say(self.m.Synch(self.sn[True], True, True))
        try:
            self.hear("AckNack", lambda one: one.sn == self.sn[True])
        except Failed as error:
            raise Failed(f"the session does not go on: {error}") from None

    def _read(self, seconds: float) -> None:
        for packet in self._packets(self._link.receive(max(0.0, seconds))):
            self.endpoint.transcript.append(("<", packet))
            try:
                found = list(self.endpoint.generation.codec.messages(packet))
            except DecodeError as error:
                raise Failed(f"cannot be decoded: {packet.hex()}: {error}") from error
            self._heard += found
            for one in found:
                self._count(one)

    def _packets(self, octets: bytes | None) -> list[bytes]:
        if octets is None:
            return []
        if not self.endpoint.is_stream:
            return [octets] if octets else []
        if not octets:
            self.is_over = True
        self._rest += octets
        found: list[bytes] = []
        while self._rest:
            try:
                size, at = read_nat(self._rest[:10], 0, self.endpoint.dialect)
            except IndexError:
                break
            except DecodeError as error:
                raise Failed(f"no size of a packet: {self._rest[:10].hex()}: {error}") from error
            if len(self._rest) < at + size:
                break
            found.append(self._rest[at : at + size])
            self._rest = self._rest[at + size :]
        return found

    def _count(self, one: Decorated) -> None:
        """A reliable message of conduit 0 is acknowledged if it is the next."""
        message = one.message
        kind = type(message).__name__
        if kind not in NUMBERED or any(type(marker).__name__ == "Conduit" for marker in one.markers):
            return
        if kind in RELIABLE or message.reliable:
            if self.acknowledges:
                if message.sn == self.expected:
                    self.expected += 1
                self.say(self.m.AckNack(self.expected))

    # -- whole sentences ----------------------------------------------------------------------------------------------

    def open(self, *, bits: int | None = None, lease: int = 0, properties: Sequence[tuple[int, bytes]] = ()) -> Any:
        """Open a session and return the Accept."""
        listed = [*([(4, nat(bits))] if bits is not None else []), *properties]
        told = tuple(self.m.Property(*one) for one in listed) or None
        self.say(self.m.Open(1, self.pid, lease, (), told))
        self.accept = self.hear("Accept", lambda one: one.openPid == self.pid)
        return self.accept

    def conduits(self) -> int:
        """How many the endpoint takes messages on."""
        for one in self.accept.properties or ():
            if one.id == 2:
                return int(read_nat(one.value, 0, self.endpoint.dialect)[0])
        return 1

    def needs_conduits(self, count: int) -> None:
        if self.conduits() < count:
            raise NotApplicable(f"it takes messages on {self.conduits()} conduits")

    def declare(self, *declarations: Any, commit: int = 1, before: bytes = b"") -> Any:
        """A transaction in one Declare; its ResultDecl."""
        listed = (*declarations, self.m.CommitDecl(commit))
        self.say(self.m.Declare(self.number(), listed, sync=True), before=before)
        return self.result(commit)

    def result(self, commit: int = 1) -> Any:
        """The next ResultDecl, which must be for this commit."""

        def has_result(message: Any) -> bool:
            return any(type(one).__name__ == "ResultDecl" for one in message.declarations)

        declarations = self.hear("Declare", has_result).declarations
        (found, *_) = [one for one in declarations if type(one).__name__ == "ResultDecl"]
        if found.commitId != commit:
            raise Failed(f"the result is of commit {found.commitId}, not {commit}")
        return found

    def declared(self, *declarations: Any) -> None:
        """The same, which must succeed."""
        self.status(0, *declarations)

    def status(self, status: int, *declarations: Any, before: bytes = b"") -> Any:
        """The same, which must have this status."""
        found = self.declare(*declarations, before=before)
        if found.status != status:
            raise Failed(f"the status is {found.status}, not {status}")
        return found

    def ping(self, hash: int) -> None:
        """A ping, which must be answered."""
        self.say(self.endpoint.generation.ping(hash))
        self.pong(hash)

    def pong(self, hash: int) -> None:
        """The answer to a ping comes."""
        kind = "Pong" if self.endpoint.generation.has_pull_ids else "PingPong"
        self.hear(kind, lambda one: one.hash == hash and getattr(one, "ispong", True))

    def subscribed(self, id: int, name: bytes, mode: int = 1) -> None:
        """A resource and a subscriber of it."""
        self.declared(self.m.ResourceDecl(id, name), self.m.SubscriberDecl(id, self.m.SubscriptionModeId(mode)))

    def write(self, name: bytes, payload: bytes, *, reliable: bool = True, sync: bool = True) -> None:
        """A WriteData."""
        self.say(self.m.WriteData(self.number(reliable), name, payload, reliable, sync and reliable))

    def sample(self) -> tuple[str, Any]:
        """The next data message that came: its kind and itself."""
        end = time.monotonic() + self.endpoint.patience
        while True:
            for index, one in enumerate(self._heard):
                kind = type(one.message).__name__
                if kind in ("WriteData", "StreamData", "BatchedData"):
                    return kind, self._heard.pop(index).message
            if self.is_over or time.monotonic() >= end:
                raise Failed(f"no sample came{self._instead('')}")
            self._read(end - time.monotonic())

    def payloads(self, count: int) -> list[bytes]:
        """The payloads of the next samples."""
        found: list[bytes] = []
        while len(found) < count:
            payload = self.sample()[1].payload
            found += [payload] if isinstance(payload, bytes) else [getattr(one, "payload", one) for one in payload]
        return found

    def gets(self, *payloads: bytes) -> None:
        """Exactly these samples come, in this order."""
        found = self.payloads(len(payloads))
        if found != list(payloads):
            raise Failed(f"{found} came, not {list(payloads)}")


class _SocketLink:
    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def send(self, octets: bytes) -> None:
        self._socket.sendall(octets)

    def receive(self, seconds: float) -> bytes | None:
        if not select.select([self._socket], [], [], seconds)[0]:
            return None
        try:
            return self._socket.recv(1 << 17)
        except OSError:  # reset, or nobody is there any more
            return b""

    def close(self) -> None:
        self._socket.close()


class _SerialLink:
    def __init__(self, line: int) -> None:
        self._line = line

    def send(self, octets: bytes) -> None:
        while octets:
            select.select([], [self._line], [], 1.0)
            octets = octets[os.write(self._line, octets) :]

    def receive(self, seconds: float) -> bytes | None:
        return os.read(self._line, 1 << 16) if select.select([self._line], [], [], seconds)[0] else None

    def close(self) -> None:
        if self._line >= 0:
            os.close(self._line)
        self._line = -1


def _connected(where: Locator) -> _SocketLink | _SerialLink:
    if where.protocol == "serial":
        from elea.io.serial import open_line

        return _SerialLink(open_line(where))
    if where.protocol == "unixsock-stream":
        return _reached(socket.AF_UNIX, socket.SOCK_STREAM, where.path)
    kind = socket.SOCK_STREAM if where.streamed else socket.SOCK_DGRAM
    family, _, _, _, address = socket.getaddrinfo(where.host, where.port, type=kind)[0]
    return _reached(family, kind, address)


def _reached(family: int, kind: int, address: Any) -> _SocketLink:
    sock = socket.socket(family, kind)
    try:
        sock.settimeout(CONNECT_SECONDS)
        sock.connect(address)
    except OSError:
        sock.close()
        raise
    return _SocketLink(sock)
