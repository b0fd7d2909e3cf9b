"""Finding nodes of Zenoh 1.x: SCOUT to a group, HELLO in answer.

One machine asks, the other answers; both take and give datagrams and know no addresses. A datagram that cannot be
read is counted and passed over: anyone may write to the group. Spec: zenoh-1 §7.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from elea.model.errors import DecodeError
from elea.model.found import ANY_ROLE, Found
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.protocol.zenoh1.terms import VERSION
from elea.wire.zenoh1 import messages
from elea.wire.zenoh1.codec import read_scouting_message, write_scouting_message
from elea.wire.zenoh1.messages import Hello, Scout, ScoutingMessage

__all__ = ["ScoutAnswerer", "Scouter"]

FIRST_PERIOD: Final = 1.0
LONGEST_PERIOD: Final = 8.0


class Scouter:
    """Asks for nodes of the roles `what`, a sum of `Role` values: at once, then after 1, 2, 4, 8, 8, … seconds.

    >>> scouter = Scouter(Role.ROUTER | Role.PEER, now=0.0)
    >>> scouter.to_send(0.0), scouter.next_deadline()
    ([b'\\x01\\t\\x03'], 1.0)
    """

    def __init__(self, what: int, now: float, *, own_id: bytes | None = None) -> None:
        if not 0 < what <= ANY_ROLE:
            raise ValueError(f"{what} is no sum of roles: router 1, peer 2, client 4")
        self.ignored = 0
        # Spec: neither the scout API nor peers tell their id in a SCOUT, so ours serves only to know own answers.
        self._datagram = _encode(Scout(VERSION, what))
        self._own_id = None if own_id is None else NodeId(own_id).data
        self._next = now
        self._period = FIRST_PERIOD

    def to_send(self, now: float) -> list[bytes]:
        """The SCOUT, if it is time for one."""
        if now < self._next:
            return []
        self._next = now + self._period
        self._period = min(2 * self._period, LONGEST_PERIOD)
        return [self._datagram]

    def next_deadline(self) -> float:
        """When `to_send` has a SCOUT again."""
        return self._next

    def receive(self, datagram: bytes) -> Found | None:
        """The node a datagram tells of; None if it is none, or is this one."""
        message = _decode(datagram)
        if not isinstance(message, Hello) or message.version != VERSION or not any(message.zid):
            self.ignored += 1
            return None
        node_id = NodeId(message.zid).data
        if node_id == self._own_id:
            return None
        return Found(node_id, Role.from_code(message.whatami), message.locators or ())


class ScoutAnswerer:
    """Answers whoever asks for nodes of our role; the answer goes to the address the question came from.

    >>> answerer = ScoutAnswerer(b"\\xa1", Role.ROUTER, ["tcp/127.0.0.1:7447"])
    >>> answerer.receive(bytes.fromhex("010902")) is None  # only peers were asked
    True
    """

    def __init__(self, node_id: bytes, role: Role, locators: Iterable[str] = ()) -> None:
        self.ignored = 0
        self.answered = 0
        self._id = NodeId(node_id).data
        self._role = role
        found = tuple(locators)
        self._answer = _encode(Hello(VERSION, messages.Role(role.code), self._id, found or None))

    def receive(self, datagram: bytes) -> bytes | None:
        """The HELLO to send back, or None: not asked for, or asked by ourselves."""
        message = _decode(datagram)
        if not isinstance(message, Scout) or message.version != VERSION:
            self.ignored += 1
            return None
        if not message.what & self._role or _same(message.zid, self._id):
            return None
        self.answered += 1
        return self._answer


def _same(zid: bytes | None, own: bytes) -> bool:
    return zid is not None and zid.rstrip(b"\0") == own


def _encode(message: ScoutingMessage) -> bytes:
    out = bytearray()
    write_scouting_message(out, message)
    return bytes(out)


def _decode(datagram: bytes) -> ScoutingMessage | None:
    """The message a datagram starts with; what follows it is passed over."""
    try:
        return read_scouting_message(datagram, 0)[0]
    except (DecodeError, IndexError):
        return None
