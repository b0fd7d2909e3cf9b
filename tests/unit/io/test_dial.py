"""Connecting and listening: addresses, errors that say what to try, and nothing left behind."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from elea.io import addresses
from elea.io.addresses import Interface, announced, interfaces, resolve, written
from elea.io.dial import connect
from elea.io.linkerrors import (
    CannotConnect,
    CannotListen,
    ConnectRefused,
    ConnectTimeout,
    NameUnknown,
    Unreachable,
    UnsupportedLink,
)
from elea.io.listener import listen
from elea.io.locator import Locator
from elea.io.loop import Loop
from tests.interop.inbox import free_port
from tests.unit.io.ends import (
    PATIENCE,
    accepting,
    bare,
    in_thread,
    open_files,
    outbox_for,
    own_threads,
    pair,
    read_batches,
    until,
)

HAS_IPV6 = socket.has_ipv6 and Path("/proc/net/if_inet6").exists()


def test_port_zero_is_a_real_port_in_the_announcement() -> None:
    with accepting("tcp/127.0.0.1:0?rel=1") as side:
        locator = Locator.parse(side.locator)

    assert locator.port > 0
    assert locator.meta("rel") == "1"


@pytest.mark.skipif(not HAS_IPV6, reason="this machine has no IPv6")
def test_any_address_takes_both_families() -> None:
    with accepting("tcp/[::]:0") as side:
        port = Locator.parse(side.locator).port

        for host in ("127.0.0.1", "[::1]"):
            link = connect(f"tcp/{host}:{port}")
            assert until(lambda link=link: any(far.remote == link.local for far in side.links))  # type: ignore[misc]
            link.close()


def test_name_is_tried_at_every_address() -> None:
    with accepting("tcp/127.0.0.1:0") as side:  # localhost may come as ::1 first, where nobody listens
        port = Locator.parse(side.locator).port

        link = connect(f"tcp/localhost:{port}", timeout=5)

        assert link.remote == f"tcp/127.0.0.1:{port}"
        link.close()


def test_connecting_takes_the_settings_of_the_locator() -> None:
    with accepting("tcp/127.0.0.1:0#so_rcvbuf=65536") as side:
        link = connect(f"{side.locator}#bind=127.0.0.1:0;so_sndbuf=32768;dscp=8;iface=lo")

        sock = link._socket  # type: ignore[attr-defined]
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 65_536  # the kernel doubles it
        assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 32
        link.close()


def test_nobody_listening_is_refused() -> None:
    with pytest.raises(ConnectRefused, match="start a node that listens there") as caught:
        connect(f"tcp/127.0.0.1:{free_port()}")

    assert isinstance(caught.value, CannotConnect)


def test_silent_machine_is_a_timeout() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        port = server.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        time.sleep(0.01)

        start = time.monotonic()
        with pytest.raises(ConnectTimeout, match="firewall") as caught:
            connect(f"tcp/127.0.0.1:{port}", timeout=0.05)

        assert time.monotonic() - start < 10  # the system's own patience is two minutes
        assert isinstance(caught.value, TimeoutError)
        for filler in fillers:
            filler.close()


def test_address_that_cannot_be_used_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="bind"):
        connect("tcp/127.0.0.1:9#iface=nosuchdevice0")
    with pytest.raises(Unreachable):
        connect("tcp/127.0.0.1:9#bind=nonsense:x")


def test_unknown_name_is_told(monkeypatch: pytest.MonkeyPatch, loop: Loop) -> None:
    monkeypatch.setattr(addresses, "_lookup", lambda *_: OSError("no such name"))

    with pytest.raises(NameUnknown, match=r"'nowhere\.invalid' is unknown"):
        connect("tcp/nowhere.invalid:7447")
    with pytest.raises(CannotListen, match="unknown"):
        listen("tcp/nowhere.invalid:7447", on_link=lambda _: None, loop=loop)


def test_slow_name_lookup_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def slow(*arguments: object) -> OSError:
        if arguments[3] == 0:
            over.wait(10)
        return OSError("late")

    monkeypatch.setattr(addresses, "_lookup", slow)
    with pytest.raises(ConnectTimeout, match="looking up"):
        resolve("tcp/slow:1", "slow", 1, kind=socket.SOCK_STREAM, timeout=0.02)
    over.set()
    assert until(lambda: not own_threads())


def test_address_in_use_is_told(loop: Loop) -> None:
    with accepting("tcp/127.0.0.1:0") as side, pytest.raises(CannotListen, match="another program listens there"):
        listen(side.locator, on_link=lambda _: None, loop=loop)


def test_foreign_address_cannot_be_listened_on(loop: Loop) -> None:
    with pytest.raises(CannotListen, match="no such address"):
        listen("tcp/203.0.113.1:7447", on_link=lambda _: None, loop=loop)


def test_multicast_links_are_refused(loop: Loop) -> None:
    with pytest.raises(UnsupportedLink, match="multicast"):
        connect("udp/224.0.0.224:7447")
    with pytest.raises(UnsupportedLink, match="multicast"):
        listen("udp/224.0.0.224:7447", on_link=lambda _: None, loop=loop)


def test_any_address_is_announced_as_the_addresses_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    lo = Interface("lo", 1, True, False, "127.0.0.1", ("::1",))
    eth = Interface("eth0", 2, False, True, "192.0.2.2", ("fd00::2", "fe80::1"))
    monkeypatch.setattr(addresses, "interfaces", lambda: [lo, eth])

    assert announced("0.0.0.0") == ["192.0.2.2"]
    assert announced("::") == ["192.0.2.2", "fd00::2"]
    assert announced("::", "lo") == ["127.0.0.1", "::1"]
    assert announced("::", "none") == []
    assert announced("127.0.0.1") == ["127.0.0.1"]

    with accepting("tcp/[::]:0") as side:
        assert [locator.rpartition(":")[0] for locator in side.listener.locators()] == [
            "tcp/192.0.2.2",
            "tcp/[fd00::2]",
        ]


def test_loopback_is_among_the_interfaces() -> None:
    found = {interface.name: interface for interface in interfaces()}

    assert found["lo"].ipv4 == "127.0.0.1"
    assert found["lo"].loopback


def test_addresses_are_written_as_locators_want_them() -> None:
    assert written(("127.0.0.1", 1)) == "127.0.0.1:1"
    assert written(("::1", 1, 0, 0)) == "[::1]:1"
    assert written(("::ffff:127.0.0.1", 1, 0, 0)) == "127.0.0.1:1"


def test_unix_socket_file_appears_and_goes(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    with pair(f"unixsock-stream/{path}"):
        assert path.is_socket()

    assert not path.exists()


def test_unix_socket_left_behind_by_a_killed_program_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    with pair(f"unixsock-stream/{path}") as (near, _):
        assert not near.closed


def test_unix_socket_of_a_living_program_and_other_files_are_left_alone(tmp_path: Path, loop: Loop) -> None:
    path, plain = tmp_path / "a.sock", tmp_path / "file"
    plain.write_text("precious")

    with accepting(f"unixsock-stream/{path}") as side:
        with pytest.raises(CannotListen, match="another program"):
            listen(side.locator, on_link=lambda _: None, loop=loop)
        with pytest.raises(CannotListen):
            listen(f"unixsock-stream/{plain}", on_link=lambda _: None, loop=loop)
    with pytest.raises(CannotListen, match="check the directory"):
        listen(f"unixsock-stream/{tmp_path}/no/a.sock", on_link=lambda _: None, loop=loop)

    assert plain.read_text() == "precious"


def test_unix_socket_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConnectRefused, match="start the listener first"):
        connect(f"unixsock-stream/{tmp_path}/a.sock")
    with pytest.raises(CannotConnect):
        connect(f"unixsock-stream/{tmp_path}")


def test_failing_owner_does_not_stop_the_listener(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.CRITICAL, "elea.io"), accepting("tcp/127.0.0.1:0") as side:
        side.listener._on_link = lambda link: 1 // 0  # type: ignore[attr-defined]
        first = connect(side.locator)
        assert until(lambda: side.listener.failures == 1)  # type: ignore[attr-defined]

        side.listener._on_link = side.links.append  # type: ignore[attr-defined]
        second = connect(side.locator)

        assert side.first().remote == second.local
        first.close()
        second.close()


def test_listener_survives_running_out_of_descriptors(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.CRITICAL, "elea.io"), accepting("tcp/127.0.0.1:0") as side:
        real = side.listener._socket  # type: ignore[attr-defined]

        class Failing:
            failed = 0

            def accept(self) -> object:
                Failing.failed += 1
                if Failing.failed == 1:
                    raise OSError(24, "Too many open files")
                return real.accept()

            def __getattr__(self, name: str) -> object:
                return getattr(real, name)

        side.listener._socket = Failing()  # type: ignore[attr-defined]
        links = [connect(side.locator) for _ in range(2)]

        assert until(lambda: len(side.links) == 2)
        assert side.listener.failures == 1  # type: ignore[attr-defined]
        for link in links:
            link.close()


@pytest.mark.parametrize("kind", ["tcp/127.0.0.1:0", "udp/127.0.0.1:0", "unix"])
def test_closed_listener_accepts_no_more(kind: str, tmp_path: Path, loop: Loop) -> None:
    locator = f"unixsock-stream/{tmp_path}/a.sock" if kind == "unix" else kind
    listener = listen(locator, on_link=lambda link: link.close(), loop=loop)

    start = time.monotonic()
    listener.close()
    listener.close()

    assert time.monotonic() - start < PATIENCE / 2
    loop.close()
    assert until(lambda: not own_threads())


@pytest.mark.parametrize("kind", ["tcp/127.0.0.1:0", "udp/127.0.0.1:0", "unix"])
def test_cycles_of_connecting_and_closing_leave_nothing_behind(kind: str, tmp_path: Path) -> None:
    locator = f"unixsock-stream/{tmp_path}/a.sock" if kind == "unix" else kind
    assert until(lambda: not own_threads())
    files = open_files()

    with accepting(locator) as side:
        for number in range(200):
            link = connect(side.locator)
            outbox = outbox_for(link, bare, side.loop, room=1_000)
            reader = in_thread(lambda link=link: read_batches(link, lambda _: None))  # type: ignore[misc]
            outbox.put(0, (b"hello", b""), 5, False)
            assert until(lambda number=number: len(side.links) == number + 1)  # type: ignore[misc]
            side.links[-1].close()
            outbox.close()
            reader.join(1)
            assert not reader.is_alive()

    assert until(lambda: not own_threads())
    assert until(lambda: open_files() <= files)


def test_process_that_forgets_to_close_still_exits() -> None:
    program = """
import threading
from elea.io.dial import connect
from elea.io.listener import listen
from elea.io.loop import Loop
from elea.io.outbox import Outbox
links = []
arrived = threading.Event()
loop = Loop()
listener = listen("tcp/127.0.0.1:0", on_link=lambda link: (links.append(link), arrived.set()), loop=loop)
listen("udp/127.0.0.1:0", on_link=links.append, loop=loop)
link = connect(listener.locators()[0])
frame = lambda key, queue, queued, most: ([queue[:2]], 2, 100_000)
outbox = Outbox(link, frame, loop, room=10, on_blocked=lambda _: None)
for _ in range(100):
    outbox.put(0, (bytes(100_000), b""), 100_000, True)
loop.every(0.001, lambda: None)
arrived.wait(5)
assert loop.threads
"""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", program], timeout=20, capture_output=True, env=environment, check=False
    )

    assert done.returncode == 0, done.stderr.decode()


def test_program_without_tls_does_not_pay_for_it() -> None:
    program = """
import sys
from elea.io.dial import connect
from elea.io.listener import listen
from elea.io import outbox, scoutsockets, timers
from elea.io.loop import Loop
loop = Loop()
listener = listen("tcp/127.0.0.1:0", on_link=lambda link: link.close(), loop=loop)
connect(listener.locators()[0]).close()
listener.close()
loop.close()
print(sorted({"ssl", "asyncio", "difflib", "subprocess"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=20, capture_output=True, check=False)

    assert done.stdout.strip() == b"[]", done.stderr.decode()
