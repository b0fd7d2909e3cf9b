"""A broker and a client of ours among hostile neighbours: they serve the honest ones, and say whom they refused.

The long run is `python -m tests.robust.hostile --seconds N`.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.robust import floods
from tests.robust.hostile import PATIENCE, STATES, Victim, attack, client_meets, eventually, octets
from tests.vectors.rawclient import RawClient, message_octets


@pytest.fixture(scope="module")
def victim() -> Iterator[Victim]:
    broker = Victim("transport/unicast/accept_timeout:1500", "transport/link/rx/max_message_size:1048576")
    yield broker
    broker.close()


@pytest.mark.parametrize("state", STATES)
def test_broker_outlives_rubbish_in_every_state(victim: Victim, state: str) -> None:
    chance = random.Random(state)
    before = len(victim.refusals())

    for _ in range(60):
        attack(victim.tcp, state, octets(chance), chance)

    victim.check()
    assert len(victim.refusals()) > before


def test_refused_link_is_told_with_reason_and_count(victim: Victim) -> None:
    for _ in range(600):  # told the 1st, 2nd, 4th … time, so one of so many is, whatever came before
        with socket.create_connection(("127.0.0.1", int(victim.tcp.rpartition(":")[2])), timeout=PATIENCE) as link:
            link.sendall(b"\x05\x00\x01\x02\x03\x04\x05")
            assert link.recv(100)  # a CLOSE

    eventually(lambda: any(event["event"] == "link refused" for event in victim.events), "the refusal is told")
    told = [event for event in victim.events if event["event"] == "link refused"][-1]
    assert told["level"] == "warning"
    assert int(told["unopened"]) >= 1
    assert told["problem"]


@pytest.mark.parametrize("state", STATES)
def test_client_outlives_a_hostile_router(state: str) -> None:
    before = threading.active_count()
    chance = random.Random(state)

    for _ in range(4):
        client_meets(state, chance)

    eventually(lambda: threading.active_count() <= before, "threads go", show=threading.enumerate)


def test_broker_outlives_datagrams(victim: Victim) -> None:
    chance = random.Random(1)

    floods.datagrams(victim.udp, chance, 200)
    opened = [floods.udp_session(victim.udp, chance) for _ in range(5)]

    assert any(opened)
    victim.check()


def test_scouting_outlives_rubbish() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        group = ("224.0.0.224", probe.getsockname()[1])
    broker = Victim(
        "scouting/multicast/enabled:true",
        f'scouting/multicast/address:"{group[0]}:{group[1]}"',
        'scouting/multicast/interface:"lo"',
    )

    try:
        answer = floods.scouts(group, random.Random(2), 300)

        assert answer, "the broker answers an honest SCOUT after the rubbish"
        broker.check()
    finally:
        broker.close()


def test_silent_links_are_closed_and_cannot_be_too_many() -> None:
    broker = Victim("transport/unicast/accept_timeout:1500", "transport/unicast/accept_pending:20")
    links = floods.idle_links(broker.tcp, 150)

    try:
        for link in links:
            with link, contextlib.suppress(ConnectionResetError):
                while link.recv(100):  # until the broker hangs up
                    pass

        broker.check()
        problems = {str(event.get("problem")) for event in broker.events if event["event"] == "link refused"}
        assert any("accept_pending" in problem for problem in problems), problems
    finally:
        broker.close()


def test_declarations_without_end_cost_what_they_should(victim: Victim) -> None:
    client = RawClient(victim.tcp)

    assert floods.declarations(client, 20_000)
    victim.serves()

    client.close()
    victim.check(room=100)


def test_resources_without_end_are_refused(victim: Victim) -> None:
    client = RawClient(victim.tcp)

    floods.resources(client, 100_000_000)
    client.close()

    eventually(
        lambda: any("MAX_RESOURCE_OCTETS" in str(event) for event in victim.events),
        "the reason is told",
        show=lambda: victim.events[-3:],
    )
    victim.check(room=160)


def test_fragments_without_end_cost_no_more_than_a_message(victim: Victim) -> None:
    client = RawClient(victim.tcp)

    floods.fragments(client, 256 << 20)  # 256 times the largest message
    arrived: list[bytes] = []
    with victim.subscriber.declare_subscriber("after/**", lambda sample: arrived.append(sample.payload.to_bytes())):
        expr = {"scope": 0, "suffix": "after/1", "mapping": "sender"}
        whole = message_octets({"_": "PUSH", "wire_expr": expr, "body": {"_": "PUT", "payload": "61"}})

        def reached() -> bool:
            client.send(whole)
            time.sleep(0.01)
            return bool(arrived)

        eventually(reached, "the same link still works")

    client.close()
    victim.check(room=160)
