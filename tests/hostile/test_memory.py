"""Messages that never end, and requests nobody can hold: a broker spends its budget, shares it, and gives it back."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

import elea
from elea.wire.primitives import write_z
from tests.hostile.slow import Stopped, subscribing
from tests.robust.hostile import Victim, configuration, eventually
from tests.vectors.rawclient import RawClient

MIB = 1 << 20
BUDGET = 64 * MIB
CHUNK = bytes(60_000)
LARGE = bytes(5 * MIB)
PIECE = bytes(8_000)
LINKS = 40
SPARE = 48
"""MiB a broker may grow by besides: what an allocator has not returned yet, buffers, the payload of an honest one."""


@pytest.fixture
def victim() -> Iterator[Victim]:
    broker = Victim(f"transport/link/rx/memory:{BUDGET}")
    yield broker
    broker.close()


def fragments(client: RawClient, octets: int, priority: int = 5) -> None:
    """The beginning of a message that has no end."""
    for number in range(octets // len(CHUNK)):
        head = bytearray([0xE6])  # a reliable FRAGMENT, more to come, with an extension
        write_z(head, client.next_sn(priority), 32, "sn")
        head += bytes([0x31, priority]) if number else bytes([0x82, 0x31, priority])  # the first says so
        client.send_batch(bytes(head) + CHUNK)


def test_endless_messages_cost_the_budget_and_no_more(victim: Victim) -> None:
    attackers = [RawClient(victim.tcp) for _ in range(4)]
    for priority in (5, 6):
        for attacker in attackers:
            fragments(attacker, 40 * MIB, priority)

    victim.serves()
    grown = victim.resident() - victim.memory
    for attacker in attackers:
        attacker.close()

    assert grown <= BUDGET // MIB + SPARE, f"{grown} MiB for 320 MiB of fragments, with a budget of {BUDGET // MIB}"


def test_honest_large_message_gets_its_part_of_a_full_budget(victim: Victim) -> None:
    got: list[int] = []
    attacker = RawClient(victim.tcp)
    with (
        elea.open(configuration("client", connect=[victim.tcp])) as here,
        elea.open(configuration("client", connect=[victim.tcp])) as there,
        there.declare_subscriber("large", lambda sample: got.append(len(sample.payload))),
        here.declare_publisher("large", congestion_control=elea.CongestionControl.BLOCK) as publisher,
    ):
        eventually(lambda: publisher.matching_status.matching, "the subscriber is known")
        fragments(attacker, 63 * MIB)
        victim.serves()

        for _ in range(3):
            publisher.put(LARGE)

        eventually(lambda: got == [len(LARGE)] * 3, "large messages of an honest client arrive", show=lambda: got)
    attacker.close()


def test_memory_goes_back_to_the_system_when_sessions_leave(victim: Victim) -> None:
    attackers = [RawClient(victim.tcp) for _ in range(3)]
    for attacker in attackers:
        fragments(attacker, 20 * MIB)
    victim.serves()
    assert victim.resident() - victim.memory > 40

    for attacker in attackers:
        attacker.close()

    eventually(lambda: victim.resident() - victim.memory < 16, "it is given back", show=victim.resident)
    victim.check(room=24)


def test_many_links_that_take_nothing_share_what_may_wait(victim: Victim) -> None:
    stopped = [Stopped(victim, subscribing(f"flood/{number}")) for number in range(LINKS)]
    for one in stopped:
        one.client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)  # else the kernel takes megabytes
    with elea.open(configuration("client", connect=[victim.tcp])) as here:
        for priority in (elea.Priority.DATA, elea.Priority.DATA_LOW, elea.Priority.BACKGROUND):
            for step in range(10):  # they stop one after the other, and what they may have shrinks
                for number in range(LINKS):
                    for _ in range(200 if step == 0 and priority is elea.Priority.DATA else 40):
                        here.put(f"flood/{number}", PIECE + bytes([step]), priority=priority)
        victim.serves()
    grown = victim.resident() - victim.memory
    for one in stopped:
        one.close()

    # Without sharing, 40 links with three conduits of 1 MiB each hold 120 MiB.
    assert grown <= BUDGET // MIB, f"{grown} MiB"
