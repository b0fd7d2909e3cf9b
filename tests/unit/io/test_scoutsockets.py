"""Scouting sockets over loopback: asking, hearing, answering; nothing fails where there is no multicast."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import pytest

from elea.io import scoutsockets
from elea.io.addresses import Interface
from elea.io.loop import Loop
from elea.io.scoutsockets import ScoutListener, ScoutSender, chosen_interfaces
from elea.model.errors import ConfigError
from tests.unit.io.ends import open_files, own_threads, until

LO = Interface("lo", 1, True, False, "127.0.0.1", ())
ETH = Interface("eth0", 2, False, True, "192.0.2.2", ())
GONE = Interface("gone0", 9_999, False, True, "198.51.100.1", ())


@pytest.fixture
def group() -> str:
    """A port of its own, so that nodes on this machine do not answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"224.0.0.224:{probe.getsockname()[1]}"


@pytest.fixture(autouse=True)
def nothing_left(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.WARNING, "elea.io")
    files = open_files()
    yield
    assert until(lambda: not own_threads())
    assert until(lambda: open_files() <= files)


def test_question_is_heard_by_all_and_answered_to_the_asker(group: str, loop: Loop) -> None:
    heard: list[tuple[bytes, tuple[str, int]]] = []
    answers: list[bytes] = []
    listeners = [
        ScoutListener(lambda data, source: heard.append((data, source)), loop, group=group, names="lo") for _ in "ab"
    ]
    sender = ScoutSender(lambda data, _: answers.append(data), loop, group=group, names=["127.0.0.1"])

    assert sender.ask(b"scout") == 1
    assert until(lambda: len(heard) == 2)
    for listener, (data, source) in zip(listeners, heard, strict=True):
        assert data == b"scout"
        assert source[0] == "127.0.0.1"
        assert listener.send_to(b"hello", source)

    assert until(lambda: answers == [b"hello", b"hello"])
    assert [listener.joined for listener in listeners] == [1, 1]
    for side in (*listeners, sender):
        side.close()
        side.close()
    assert sender.ask(b"x") == 0
    assert not listeners[0].send_to(b"x", ("127.0.0.1", 9))


def test_question_goes_one_hop_only(group: str, loop: Loop) -> None:
    sender = ScoutSender(lambda *_: None, loop, group=group, names="lo", ttl=1)

    assert sender._sockets[0].getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL) == 1
    assert sender._sockets[0].getsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP) == 1
    sender.close()


def test_failing_handler_does_not_end_scouting(group: str, loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[bytes] = []

    def handle(data: bytes, _: tuple[str, int]) -> None:
        if data == b"bad":
            raise ValueError(data)
        heard.append(data)

    listener = ScoutListener(handle, loop, group=group, names="lo")
    sender = ScoutSender(lambda *_: None, loop, group=group, names="lo")

    sender.ask(b"bad")
    sender.ask(b"good")

    assert until(lambda: heard == [b"good"])
    assert (listener.received, listener.failures) == (2, 1)
    listener.close()
    sender.close()


def test_machine_without_multicast_is_warned_about_and_goes_on(
    group: str, loop: Loop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scoutsockets, "interfaces", lambda: [GONE])

    sender = ScoutSender(lambda *_: None, loop, group=group)
    listener = ScoutListener(lambda *_: None, loop, group=group)

    assert sender.ask(b"scout") == 0
    assert (sender.failures, listener.failures, listener.joined) == (1, 1, 0)
    assert "cannot scout" in caplog.text
    assert "cannot join the scouting group" in caplog.text
    sender.close()
    listener.close()


def test_port_that_is_taken_is_warned_about(loop: Loop, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("224.0.0.224", 0))
        listener = ScoutListener(lambda *_: None, loop, group=f"224.0.0.224:{taken.getsockname()[1]}", names="lo")

        assert listener.joined == 0
        assert "cannot listen for scouts" in caplog.text
        assert not listener.send_to(b"x", ("127.0.0.1", 9))
        listener.close()


def test_datagram_that_cannot_be_sent_is_counted(group: str, loop: Loop) -> None:
    listener = ScoutListener(lambda *_: None, loop, group=group, names="lo")

    assert not listener.send_to(bytes(70_000), ("127.0.0.1", 9))
    assert listener.failures == 1
    listener.close()


def test_interfaces_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoutsockets, "interfaces", lambda: [LO, ETH])

    assert chosen_interfaces() == [ETH]
    assert chosen_interfaces("lo,eth0") == [LO, ETH]
    assert chosen_interfaces(["192.0.2.2"]) == [ETH]
    with pytest.raises(ConfigError, match="use auto or some of lo, eth0"):
        chosen_interfaces("eth1")

    monkeypatch.setattr(scoutsockets, "interfaces", lambda: [LO])
    assert chosen_interfaces() == [LO]
    monkeypatch.setattr(scoutsockets, "interfaces", list)
    assert chosen_interfaces() == []


@pytest.mark.parametrize("text", ["224.0.0.224", "127.0.0.1:7446", "[ff02::1]:7446", "name:1", ":1"])
def test_group_must_be_ipv4_multicast(text: str, loop: Loop) -> None:
    with pytest.raises(ConfigError, match="multicast"):
        ScoutListener(lambda *_: None, loop, group=text)
