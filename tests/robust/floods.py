"""Too much of what is allowed: declarations, resources, fragments, links that say nothing, and datagrams."""

from __future__ import annotations

import contextlib
import random
import socket
import time

from elea.model.qos import Role
from elea.protocol.zenoh1.opening import Initiator
from elea.protocol.zenoh1.terms import Offer
from elea.wire.primitives import write_z
from tests.robust.hostile import PATIENCE, attack_datagrams, octets
from tests.vectors.rawclient import LinkEnded, RawClient, framed, message_octets

__all__ = ["datagrams", "declarations", "fragments", "idle_links", "resources", "scouts", "udp_session"]

PIECE = 400
"""Declarations in one FRAME."""

CHUNK = 60_000


def declarations(client: RawClient, count: int) -> bool:
    """Declare that many subscribers, each on a key of its own; False if the router ended it before."""
    for start in range(0, count, PIECE):
        messages = [_declared("D_SUBSCRIBER", number, f"flood/{number}") for number in range(start, start + PIECE)]
        try:
            client.send(b"".join(messages), 0)
        except LinkEnded:
            return False
    return True


def resources(client: RawClient, octets_wanted: int) -> bool:
    """Give numbers to very long keys until their text has that many octets; False if the router ended it before."""
    sent = number = 0
    while sent < octets_wanted:
        number += 1
        key = f"{number}/" + "x" * CHUNK
        try:
            client.send(_declared("D_KEYEXPR", number, key), 0)
        except LinkEnded:
            return False
        sent += len(key)
    return True


def _declared(name: str, number: int, key: str) -> bytes:
    expr = {"scope": 0, "suffix": key} | ({} if name == "D_KEYEXPR" else {"mapping": "sender"})
    return message_octets({"_": "DECLARE", "body": {"_": name, "id": number + 1, "wire_expr": expr}})


def fragments(client: RawClient, total: int) -> None:
    """Fragments of messages that never end, one in every reliable conduit, `total` octets in all."""
    sent = 0
    chunk = bytes(CHUNK)
    first = dict.fromkeys(range(8), True)
    while sent < total:
        for priority in range(8):
            out = bytearray([0x06 | 0x20 | 0x40 | 0x80])
            write_z(out, client.next_sn(priority), 32, "sn")
            out += bytes([0xB1, priority, 0x02]) if first[priority] else bytes([0x31, priority])
            first[priority] = False
            client.send_batch(bytes(out) + chunk)
            sent += CHUNK


def idle_links(locator: str, count: int) -> list[socket.socket]:
    """Links that begin a batch and never end it."""
    host, _, port = locator.removeprefix("tcp/").rpartition(":")
    links = [socket.create_connection((host, int(port)), timeout=PATIENCE) for _ in range(count)]
    for link in links:
        with contextlib.suppress(OSError):
            link.sendall(b"\x20")
    return links


def udp_session(locator: str, chance: random.Random) -> bool:
    """Open a session by datagrams and throw rubbish at it; whether the session was opened."""
    host, _, port = locator.removeprefix("udp/").rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.connect((host, int(port)))
        link.settimeout(5.0)  # a datagram may be lost, then there is no session
        machine = Initiator(Offer(random.randbytes(16), Role.CLIENT, batch_size=8_000), time.monotonic())
        machine.start()
        agreement = None
        try:
            while agreement is None:
                for batch in machine.to_send(0.0):
                    link.send(batch)
                agreement = machine.receive(link.recv(65_536), time.monotonic())
            for number in range(20):
                link.send(framed(agreement.own_sn + number, octets(chance)[:1_000] or b"\x00"))
        except OSError:
            return agreement is not None
        link.send(b"\x03\x00")
    return True


def scouts(group: tuple[str, int], chance: random.Random, count: int) -> bytes:
    """Rubbish to a scouting group on the loopback interface, then an honest SCOUT; the answer to that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        asking.bind(("127.0.0.1", 0))
        for _ in range(count):
            asking.sendto(octets(chance)[:1_400] or b"\x00", group)
        asking.settimeout(1.0)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            asking.sendto(b"\x01\x09\x07", group)  # SCOUT, version 9, for routers, peers and clients
            with contextlib.suppress(TimeoutError):
                answer = asking.recv(65_536)
                if answer[:1] and answer[0] & 0x1F == 0x02:
                    return answer
    return b""


def datagrams(locator: str, chance: random.Random, count: int) -> None:
    """Rubbish to a udp listener."""
    host, _, port = locator.removeprefix("udp/").rpartition(":")
    attack_datagrams((host, int(port)), chance, count)
