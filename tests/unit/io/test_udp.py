"""Links over UDP: one batch per datagram, one link per source."""

from __future__ import annotations

import logging
import time

import pytest

from elea.io import udp
from elea.io.dial import connect
from elea.io.linkerrors import BatchTooLarge, LinkClosed
from elea.io.udp import UDP_MTU, UdpSourceLink, path_mtu
from tests.unit.io.ends import PATIENCE, accepting, in_thread, pair, read_batches, receive_batch, repeat, until

HERE = "udp/127.0.0.1:0"


def test_each_datagram_is_one_batch_both_ways() -> None:
    with pair(HERE) as (near, far):
        got: list[bytes] = []
        back: list[bytes] = []
        threads = [in_thread(lambda: read_batches(far, got.append)), in_thread(lambda: read_batches(near, back.append))]

        near.send(b"one")
        near.send([b"t", b"wo"])
        assert near.try_send(bytes(UDP_MTU)) == UDP_MTU
        assert until(lambda: len(got) == 3)
        far.send(b"back")
        far.try_send([b"and ", b"again"])
        assert until(lambda: len(back) == 2)
        near.close()
        far.close()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()

    assert got == [b"one", b"two", bytes(UDP_MTU)]
    assert back == [b"back", b"and again"]
    assert (near.streamed, near.reliable, near.mtu, far.mtu) == (False, False, 65_487, 65_487)


def test_sources_are_kept_apart() -> None:
    with accepting(HERE) as side:
        senders = [connect(side.locator) for _ in range(5)]
        for number, sender in enumerate(senders):
            sender.send(bytes([number]))
            sender.send(bytes([number]) * 2)
        assert until(lambda: len(side.links) == 5)

        for link in side.links:
            first, second = receive_batch(link), receive_batch(link)
            assert first is not None
            assert second == first * 2
            link.send(first)
        for number, sender in enumerate(senders):
            assert receive_batch(sender) == bytes([number])
            assert sender.local == side.links[number].remote
            sender.close()


def test_closed_source_starts_a_new_link_when_it_speaks_again() -> None:
    with accepting(HERE) as side:
        sender = connect(side.locator)
        sender.send(b"first")
        first = side.first()

        first.close()
        first.close()
        assert receive_batch(first) is None
        with pytest.raises(LinkClosed):
            first.send(b"x")
        sender.send(b"second")

        assert until(lambda: len(side.links) == 2)
        assert receive_batch(side.links[1]) == b"second"
        assert "closed" in repr(first)
        sender.close()


def test_sources_are_bounded(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(udp, "UDP_SOURCES", 2)
    with caplog.at_level(logging.CRITICAL, "elea.io"), accepting(HERE) as side:
        senders = [connect(side.locator) for _ in range(4)]

        for sender in senders:
            sender.send(b"x")

        assert until(lambda: side.listener.refused == 2)  # type: ignore[attr-defined]
        assert len(side.links) == 2
        for sender in senders:
            sender.close()


def test_slow_reader_of_a_source_loses_datagrams_and_they_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udp, "UDP_QUEUE", 3)
    with pair(HERE) as (near, far):
        assert isinstance(far, UdpSourceLink)

        for number in range(5):
            near.send(bytes([number]))

        assert until(lambda: far.dropped == 2)
        assert [receive_batch(far) for _ in range(3)] == [b"\0", b"\1", b"\2"]


def test_batch_above_a_datagram_is_refused() -> None:
    with pair(HERE) as (near, far):
        for link in (near, far):
            with pytest.raises(BatchTooLarge):
                link.send(bytes(UDP_MTU + 1))


def test_reader_limits_datagrams_too() -> None:
    with pair(HERE) as (near, far):
        near.send(bytes(11))
        with pytest.raises(BatchTooLarge):
            read_batches(far, lambda _: None, limit=10)


def test_close_wakes_readers_of_both_ends() -> None:
    with pair(HERE) as (near, far):
        threads = [in_thread(lambda link=link: read_batches(link, lambda _: None)) for link in (near, far)]  # type: ignore[misc]
        time.sleep(0.02)

        start = time.monotonic()
        near.close()
        far.close()
        for thread in threads:
            thread.join(PATIENCE)

        assert time.monotonic() - start < PATIENCE / 2


def test_nobody_there_is_a_closed_link() -> None:
    with accepting(HERE) as side:
        link = connect(side.locator)
    with pytest.raises(LinkClosed, match="refused"):
        repeat(lambda: link.send(b"anybody?"))
    link.close()


def test_failing_owner_does_not_stop_the_listener(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.CRITICAL, "elea.io"), accepting(HERE) as side:
        side.listener._on_link = lambda link: 1 // 0  # type: ignore[attr-defined]
        sender = connect(side.locator)
        sender.send(b"x")
        assert until(lambda: side.listener.failures == 1)  # type: ignore[attr-defined]

        side.listener._on_link = side.links.append  # type: ignore[attr-defined]
        sender.send(b"y")

        assert receive_batch(side.first()) == b"y"
        sender.close()


def test_source_link_tells_a_full_kernel_from_a_broken_one() -> None:
    with pair(HERE) as (_, far):
        assert isinstance(far, UdpSourceLink)
        real = far._listener._socket

        class Full:
            def sendto(self, data: bytes, address: object) -> int:
                if data == b"full":
                    raise BlockingIOError
                if data == b"large":
                    raise OSError(90, "Message too long")
                raise OSError(1, "Operation not permitted")

            def __getattr__(self, name: str) -> object:
                return getattr(real, name)

        far._listener._socket = Full()  # type: ignore[assignment]
        assert far.try_send(b"full") == 0
        with pytest.raises(BatchTooLarge):
            far.send(b"large")
        with pytest.raises(LinkClosed, match="not permitted"):
            far.send(b"forbidden")
        far._listener._socket = real


def test_listener_that_closes_ends_its_links() -> None:
    with pair(HERE) as (_, far):
        assert isinstance(far, UdpSourceLink)

        far._listener.close()

        assert receive_batch(far) is None
        with pytest.raises(LinkClosed):
            far.send(b"x")


def test_a_path_tells_what_it_carries_in_one_piece() -> None:
    assert path_mtu("udp/127.0.0.1:7447") > 1_472
    assert [path_mtu(other) for other in ("sim/b", "tcp/127.0.0.1:7447", "udp/nowhere:x", "udp/[zz::]:1")] == [0] * 4
