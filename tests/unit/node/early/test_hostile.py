"""Early nodes that break rules or want too much: closed with the right reason, and nobody else notices."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import elea
from elea.model import limits
from elea.protocol.early.generation import ZENOH2018
from elea.protocol.early.numbered import plain_entry, vle
from elea.protocol.early.reassembly import Reassembly
from elea.protocol.pacing import Pacer
from tests.unit.node.early.client import EarlyClient
from tests.unit.node.early.conftest import counters_of, locator_of
from tests.unit.node.storage.serving import eventually
from tests.unit.node.test_dialect import await_subscriber

BLOCK = elea.CongestionControl.BLOCK
m = ZENOH2018.messages


def encoded(*messages: Any) -> bytes:
    return b"".join(map(ZENOH2018.encode, messages))


PACKETS: dict[str, tuple[Callable[[], bytes], int]] = {
    "garbage": (lambda: b"\xff\xff\xff", 255),
    "reserved message": (lambda: b"\x0a", 255),
    "number out of range": (lambda: encoded(m.StreamData(1 << 14, 2, b"x", True)), 255),
    "number out of range, acknowledged": (lambda: encoded(m.AckNack(1 << 14)), 255),
    "unsupported conduit": (lambda: b"\x13\x09" + encoded(m.StreamData(0, 2, b"x", True)), 255),
    "broker's space": (lambda: b"\x98" + encoded(m.StreamData(0, 2, b"x", True)), 255),
    "commit not last": (
        lambda: encoded(m.Declare(0, (m.CommitDecl(1), m.ResourceDecl(2, b"zenoh://a")))),
        255,
    ),
    "bad declaration that is committed": (
        lambda: encoded(m.Declare(0, (m.ResourceDecl(3, b"zenoh://a"),), committed=True)),
        6,
    ),
    "pull of nothing": (lambda: encoded(m.Pull(0, 3, maxSamples=0)), 5),
    "fragments that begin with the second": (
        lambda: b"\x52\x3f\x03" + encoded(m.StreamData(0, 2, b"x", True)),
        255,
    ),
}


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("what", list(PACKETS))
def test_a_broken_rule_ends_the_session_with_its_reason(
    router: elea.Session, robot: elea.Session, what: str, protocol: str
) -> None:
    make, reason = PACKETS[what]
    with EarlyClient(locator_of(router, protocol=protocol)) as bad, EarlyClient(locator_of(router), b"good") as good:
        good.subscribe(2, "zenoh://a")
        await_subscriber(router, "a")

        bad.write(make())
        bad.until(lambda: bad.ended)
        assert bad.ended is not None
        assert bad.ended.reason == reason

        robot.put("a", "x", congestion_control=BLOCK)
        assert good.await_samples(1) == [b"x"]


def test_acknowledgements_of_what_was_never_sent_are_ignored(router: elea.Session, robot: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as device:
        device.subscribe(2, "zenoh://a")
        await_subscriber(router, "a")
        for sn in (500, 8_000, 16_383):
            device.write(encoded(m.AckNack(sn, (1 << 64) - 1)))
        robot.put("a", "x", congestion_control=BLOCK)
        assert device.await_samples(1) == [b"x"]
        assert counters_of(router)["resent_messages"] <= 1


def test_numbers_of_the_future_are_kept_within_a_bound(router: elea.Session) -> None:
    with EarlyClient(locator_of(router), sn_bits=28) as device:
        payload = bytes(60_000)
        for number in range(1, 400):
            device.write(encoded(m.StreamData(number, 2, payload, True)))
        device.talk(0.2)
        (connection,) = [one for one in router._runtime.links.connections if one.dialect.name == "zenoh2018"]
        receiver = connection.machine.session.conduit().receiver  # type: ignore[attr-defined]
        assert len(receiver) * len(payload) <= limits.EARLY_AHEAD_BYTES
        assert receiver.refused > 0
        assert not device.ended


@pytest.mark.parametrize("reliable", [True, False])
def test_fragments_without_end_are_given_up(
    router: elea.Session, reliable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reassembly.__init__, "__kwdefaults__", {"limit": 1 << 20})
    with EarlyClient(locator_of(router)) as device:
        piece = bytes(60_000)
        for number in range(40):
            # Without a count: the series ends with the first message that has no marker, which never comes.
            device.write(b"\x12\x00" + encoded(m.StreamData(number, 2, piece, reliable)))
        device.talk(0.3)
        if reliable:
            device.until(lambda: device.ended)
            assert device.ended is not None
            assert device.ended.reason == 3
        else:
            (connection,) = [one for one in router._runtime.links.connections if one.dialect.name == "zenoh2018"]
            pieces = connection.machine.session.conduit()._loose_pieces  # type: ignore[attr-defined]
            assert pieces.octets <= 1 << 20
            assert pieces.discarded > 0


def test_a_flood_of_commits_ends_the_session(router: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as device:
        entry = plain_entry(ZENOH2018, m.Declare(0, (m.CommitDecl(1),)))
        for _ in range(20):
            device.session.send(entry)
        device.until(lambda: device.ended)
        assert device.ended is not None
        assert device.ended.reason == 255


def test_pending_declarations_are_bounded(router: elea.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.protocol.early.declarations.EARLY_PENDING", 100)
    with EarlyClient(locator_of(router)) as device:
        many = [m.ResourceDecl(2 * number, b"zenoh://a/%d" % number) for number in range(1, 200)]
        assert device.declare(*many) == 3
        assert device.declare(*many[:50]) == 0


def test_octets_of_declarations_are_bounded(router: elea.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.protocol.early.declarations.EARLY_DECLARED_OCTETS", 10_000)
    with EarlyClient(locator_of(router)) as device:
        statuses = [
            device.declare(m.ResourceDecl(2 * number, b"zenoh://a/%d" % number, (m.Property(1, bytes(1_000)),)))
            for number in range(1, 15)
        ]
        assert statuses[0] == 0
        assert statuses[-1] == 1
        assert device.declare(m.ForgetResourceDecl(2)) == 0
        assert device.declare(m.ResourceDecl(2, b"zenoh://a", (m.Property(1, bytes(1_000)),))) == 0


def test_pulls_are_bounded(router: elea.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.protocol.early.pulls.EARLY_PULLS", 3)
    monkeypatch.setattr("elea.node.early.pulling.Pulling._fill", lambda self, name, samples: None)
    with EarlyClient(locator_of(router)) as device:
        device.declare(*(m.SelectionDecl(2 * number + 1, b"zenoh://kept/%d" % number) for number in range(1, 5)))
        for number in range(1, 5):
            device.pull(2 * number + 1)
        device.until(lambda: device.ended)
        assert device.ended is not None
        assert device.ended.reason == 3


def test_what_nobody_pulls_is_bounded_in_octets(
    router: elea.Session, robot: elea.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pacer.__init__, "__kwdefaults__", {"size": None, "limit_octets": 100_000})
    with EarlyClient(locator_of(router)) as device:
        device.subscribe(2, "zenoh://a", 2)
        await_subscriber(router, "a")
        for _ in range(50):
            robot.put("a", bytes(10_000), congestion_control=BLOCK)
        eventually(lambda: counters_of(router)["unpulled_samples_dropped"] == 41, "what gave way")
        device.pull(2)
        device.until(lambda: any(getattr(one, "prid", None) == 0 for one in device.seen))
        assert len(device.payloads()) == 10


def test_a_frame_that_is_too_large_ends_the_link(router: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as device:
        device.socket.sendall(vle(100_000) + bytes(100))
        device.until(lambda: device.ended)
        device.until(lambda: device.is_over)
        assert device.ended is not None
        assert device.ended.reason == 255


def test_a_node_that_acknowledges_nothing_is_given_up(
    router: elea.Session, robot: elea.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elea.protocol.early.session.PATIENT_SYNCHS", 3)
    with EarlyClient(locator_of(router, protocol="udp")) as deaf, EarlyClient(locator_of(router), b"good") as good:
        deaf.subscribe(2, "zenoh://a")
        good.subscribe(2, "zenoh://a")
        await_subscriber(router, "a")
        (connection,) = [one for one in router._runtime.links.connections if one.peer_id == b"device"]
        session = connection.machine.session  # type: ignore[attr-defined]
        session.offer = replace(session.offer, patience=0.1)
        robot.put("a", "x", congestion_control=BLOCK)
        assert good.await_samples(1) == [b"x"]
        eventually(lambda: connection.ended.is_set(), "its end")
        assert "acknowledges nothing" in str(connection.error)


def test_datagrams_of_nobody_leave_nothing_behind(router: elea.Session) -> None:
    where = locator_of(router, protocol="udp").partition("/")[2].partition("?")[0]
    host, _, port = where.rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for packet in (b"\xff", encoded(m.StreamData(0, 2, b"x", True)), encoded(m.Close(b"x", 0)), b""):
            stranger.sendto(packet, (host, int(port)))
        stranger.settimeout(0.2)
        with pytest.raises(TimeoutError):
            stranger.recv(100)  # none of them is answered
        stranger.sendto(encoded(m.PingPong(7)), (host, int(port)))
        assert stranger.recv(100) == encoded(m.PingPong(7, True)), "a ping is, always"
    assert not router._runtime.links.connections


def test_a_restarted_device_takes_the_place_of_the_old_one(router: elea.Session, robot: elea.Session) -> None:
    """Z18-SES-03: it may come from another port, long before the lease of the old session is over."""
    with EarlyClient(locator_of(router, protocol="udp")) as old:
        old.subscribe(2, "zenoh://old")
        with EarlyClient(locator_of(router, protocol="udp")) as new:
            assert new.session.is_open
            new.subscribe(2, "zenoh://a")
            await_subscriber(router, "a")
            robot.put("a", "x", congestion_control=BLOCK)
            assert new.await_samples(1) == [b"x"]
            eventually(lambda: not router._node.route(router._node.local, "old").ways, "the end of the old one")


def test_a_version_that_is_not_spoken_is_refused(router: elea.Session) -> None:
    with EarlyClient(locator_of(router), opens=False) as device:
        device.write(encoded(m.Open(9, b"x", 0, ())))
        device.session.open(device.now())
        device.session._control.clear()
        device.until(lambda: device.ended)
        assert device.ended is not None
        assert device.ended.reason == 2
