"""Links over real sockets of this machine: order, cutting, the end in all its forms."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from elea.io.link import Link, TcpLink, UnixLink, after, stream_mtu
from elea.io.linkerrors import BatchTooLarge, LinkClosed
from tests.unit.io.ends import PATIENCE, in_thread, pair, prefixed, read_batches, receive, repeat, until

HAS_IPV6 = socket.has_ipv6 and Path("/proc/net/if_inet6").exists()
SOON = 0.1


@pytest.fixture(params=["tcp/127.0.0.1:0", "tcp/localhost:0", "tcp/[::1]:0", "unix"])
def ends(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Link, Link]]:
    locator = request.param
    if "::" in locator and not HAS_IPV6:
        pytest.skip("this machine has no IPv6")
    if locator == "unix":
        locator = f"unixsock-stream/{tmp_path}/a.sock"
    with pair(locator) as (near, far):
        yield near, far


def reader(link: Link, *arguments: object, **options: object) -> tuple[list[bytes], list[Exception], threading.Thread]:
    """What a thread that reads gets, and how it ended."""
    got: list[bytes] = []
    ended: list[Exception] = []

    def work() -> None:
        try:
            read_batches(link, got.append, *arguments, **options)  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001 - the test looks at it
            ended.append(error)

    return got, ended, in_thread(work)


def test_batches_arrive_whole_and_in_order(ends: tuple[Link, Link]) -> None:
    near, far = ends
    rng = random.Random(7)
    batches = [rng.randbytes(rng.choice((0, 1, 2, 100, 4_000, 65_535))) for _ in range(300)]
    got, _, thread = reader(far)

    for batch in batches:
        near.send(prefixed(batch))
    near.close()
    thread.join(PATIENCE)

    assert got == batches


def test_batches_arrive_when_sent_in_pieces(ends: tuple[Link, Link]) -> None:
    near, far = ends
    got, _, thread = reader(far)
    pieces = [bytes([number % 256]) * 20 for number in range(3_000)]

    near.send([b"", *[part for piece in pieces for part in (prefixed(piece)[:2], piece)]])
    near.close()
    thread.join(PATIENCE)

    assert got == pieces


def test_batches_arrive_when_sent_octet_by_octet(ends: tuple[Link, Link]) -> None:
    near, far = ends
    got, _, thread = reader(far)

    for octet in prefixed(b"one") + prefixed(b"") + prefixed(b"three"):
        near.send(bytes([octet]))
    near.close()
    thread.join(PATIENCE)

    assert got == [b"one", b"", b"three"]


def test_small_buffer_moves_what_is_left_over(ends: tuple[Link, Link]) -> None:
    near, far = ends
    batches = [bytes([number % 256]) * (number % 50) for number in range(2_000)]
    got, _, thread = reader(far, limit=50, buffer_size=64)

    near.send(b"".join(map(prefixed, batches)))
    near.close()
    thread.join(PATIENCE)

    assert got == batches


def test_prefix_widens_between_two_batches(ends: tuple[Link, Link]) -> None:
    near, far = ends
    got: list[bytes] = []
    thread = in_thread(lambda: read_batches(far, got.append, lambda: 4 if got else 2))

    near.send(prefixed(b"handshake") + prefixed(b"later", 4) + prefixed(b"more", 4))
    near.close()
    thread.join(PATIENCE)

    assert got == [b"handshake", b"later", b"more"]


@pytest.mark.parametrize("width", [2, 4])
def test_reader_refuses_a_batch_above_its_limit(width: int) -> None:
    with pair("tcp/127.0.0.1:0") as (near, far):
        got, ended, thread = reader(far, lambda: width, limit=1_000)

        near.send(prefixed(bytes(1_000), width) + prefixed(bytes(1_001), width))
        thread.join(PATIENCE)

    assert got == [bytes(1_000)]
    assert isinstance(ended[0], BatchTooLarge)
    assert (ended[0].size, ended[0].limit, ended[0].reason) == (1_001, 1_000, 2)


def test_end_inside_a_batch_is_an_error(ends: tuple[Link, Link]) -> None:
    near, far = ends
    got, ended, thread = reader(far)

    near.send(prefixed(b"whole") + prefixed(b"cut off")[:4])
    near.close()
    thread.join(PATIENCE)

    assert got == [b"whole"]
    assert isinstance(ended[0], LinkClosed)
    assert "inside a batch, 4 bytes" in str(ended[0])


def test_half_closed_link_still_carries_the_other_way(ends: tuple[Link, Link]) -> None:
    near, far = ends
    got, ended, thread = reader(far)

    near._socket.shutdown(socket.SHUT_WR)  # type: ignore[attr-defined]
    thread.join(PATIENCE)
    far.send(b"answer")

    assert (got, ended) == ([], [])
    assert receive(near, memoryview(bytearray(10))) == 6


def test_close_wakes_a_blocked_reader(ends: tuple[Link, Link]) -> None:
    near, _ = ends
    got, ended, thread = reader(near)
    time.sleep(0.02)  # it waits

    start = time.monotonic()
    near.close()
    thread.join(PATIENCE)

    assert time.monotonic() - start < SOON
    assert (got, ended) == ([], [])
    assert near._socket.fileno() == -1  # type: ignore[attr-defined]


def test_close_wakes_a_blocked_writer(ends: tuple[Link, Link]) -> None:
    near, _ = ends
    ended: list[Exception] = []

    def write() -> None:
        try:
            near.send(bytes(64 << 20))
        except LinkClosed as error:
            ended.append(error)

    thread = in_thread(write)
    assert until(lambda: near._inside)  # type: ignore[attr-defined]
    time.sleep(0.05)

    start = time.monotonic()
    near.close()
    thread.join(PATIENCE)

    assert time.monotonic() - start < SOON
    assert "closed" in str(ended[0])
    assert near._socket.fileno() == -1  # type: ignore[attr-defined]


def test_closed_link_says_so_and_closing_again_is_nothing(ends: tuple[Link, Link]) -> None:
    near, _ = ends

    near.close()
    near.close()

    assert near.closed
    assert near.receive_ready(memoryview(bytearray(1))) == 0
    with pytest.raises(LinkClosed):
        near.send(b"x")
    with pytest.raises(LinkClosed):
        near.try_send(b"x")
    assert "closed" in repr(near)


def test_the_file_of_a_closed_link_stays_open_until_the_last_has_left() -> None:
    with pair("tcp/127.0.0.1:0") as (near, _):
        assert isinstance(near, TcpLink)
        near._enter()
        near._enter()
        near.close()
        near._leave()
        assert near._socket.fileno() >= 0
        with pytest.raises(LinkClosed):
            near._enter()
        assert near._socket.fileno() >= 0

        near._leave()
        assert near._socket.fileno() == -1


def test_a_link_closed_under_many_threads_gives_its_file_back_once() -> None:
    for _ in range(100):
        with pair("tcp/127.0.0.1:0") as (near, far):
            go = threading.Event()

            def use(near: object = near, go: threading.Event = go) -> None:
                go.wait()
                while not near.closed:  # type: ignore[attr-defined]
                    try:
                        near.try_send(b"x")  # type: ignore[attr-defined]
                    except Exception:  # noqa: BLE001 - closed
                        return

            threads = [in_thread(use) for _ in range(4)]
            threads.append(in_thread(lambda near=near: receive(near, memoryview(bytearray(9)))))  # type: ignore[misc]
            go.set()
            near.close()
            for thread in threads:
                thread.join(60)
                assert not thread.is_alive()

            assert until(lambda near=near: near._socket.fileno() == -1)  # type: ignore[misc]
            assert not near._inside  # type: ignore[attr-defined]
            far.close()


def test_try_send_stops_where_the_kernel_is_full(ends: tuple[Link, Link]) -> None:
    near, far = ends
    chunk = bytes(1 << 20)
    taken = 0

    while count := near.try_send(chunk):
        taken += count
    assert near.try_send([b"a", b"b"]) == 0

    got = 0
    view = memoryview(bytearray(1 << 20))
    while got < taken:
        got += receive(far, view)
    assert until(lambda: near.try_send([b"ab", b"c"]) == 3)


def test_last_words_arrive_although_unread_octets_are_left() -> None:
    with pair("tcp/127.0.0.1:0") as (near, far):
        far.send(bytes(100_000))
        assert until(lambda: len(near._socket.recv(100_000, socket.MSG_PEEK)) > 50_000)  # type: ignore[attr-defined]
        got, ended, thread = reader(far)

        near.send(prefixed(b"bye"))
        near.close()
        thread.join(PATIENCE)

    assert (got, ended) == ([b"bye"], [])


def test_reset_by_the_other_side_is_a_closed_link() -> None:
    with pair("tcp/127.0.0.1:0") as (near, far):
        _, ended, thread = reader(near)
        raw = far._socket  # type: ignore[attr-defined]
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.close()
        thread.join(PATIENCE)

        assert isinstance(ended[0], LinkClosed)
        assert "reset" in str(ended[0])
        with pytest.raises(LinkClosed):
            repeat(lambda: near.send(bytes(1_000)))


def test_links_name_their_ends(tmp_path: Path) -> None:
    with pair("tcp/127.0.0.1:0") as (near, far):
        assert isinstance(near, TcpLink)
        assert (near.local, near.remote) == (far.remote, far.local)
        assert near.remote.startswith("tcp/127.0.0.1:")
        assert repr(near) == f"<TcpLink {near.local} to {near.remote}>"
    with pair(f"unixsock-stream/{tmp_path}/b.sock") as (near, far):
        assert isinstance(far, UnixLink)
        assert near.remote == far.local == f"unixsock-stream/{tmp_path}/b.sock"
        assert near.mtu == 65_535


@pytest.mark.parametrize(
    ("family", "segment", "offered"),
    [
        (socket.AF_INET, 32_741, 65_480),  # seen on loopback, both
        (socket.AF_INET, 32_768, 49_152),
        (socket.AF_INET, 1_448, 65_160),
        (socket.AF_INET6, 1_428, 64_974),
        (socket.AF_INET, 65_483, 65_482),
        (socket.AF_INET, 1, 65_495),
        (socket.AF_INET, 200_000, 65_495),
        (socket.AF_INET6, None, 65_475),
    ],
)
def test_mtu_is_a_multiple_of_half_the_segment(family: int, segment: int | None, offered: int) -> None:
    class Fake:
        def __init__(self) -> None:
            self.family = family

        def getsockopt(self, level: int, option: int) -> int:
            if segment is None:
                raise OSError("no such option")
            return segment

    assert stream_mtu(Fake()) == offered  # type: ignore[arg-type]


def test_tcp_sends_at_once_and_keeps_alive() -> None:
    with pair("tcp/127.0.0.1:0") as ends:
        for link in ends:
            sock = link._socket  # type: ignore[attr-defined]
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert 40_000 < link.mtu < 65_496


@pytest.mark.parametrize(
    ("sent", "left"),
    [(0, [b"abc", b"", b"de"]), (1, [b"bc", b"", b"de"]), (3, [b"de"]), (4, [b"e"]), (5, [])],
)
def test_what_is_left_after_a_partial_write(sent: int, left: list[bytes]) -> None:
    rest = [bytes(piece) for piece in after([b"abc", b"", b"de"], sent)]

    assert [piece for piece in rest if piece] == [piece for piece in left if piece]
