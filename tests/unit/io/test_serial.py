"""Serial lines, tested over pseudo-terminals: bytes both ways, chunks, one session after another, lines that go."""

from __future__ import annotations

import os
import select
import termios
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from elea.io.dial import connect
from elea.io.link import undelivered
from elea.io.linkerrors import CannotListen, ConnectRefused, LinkClosed, LocatorError, Unreachable, UnsupportedLink
from elea.io.locator import Locator
from elea.io.serial import QUIET_SECONDS, SerialLink
from elea.node.dialect import dialect_of
from tests.unit.io.ends import PATIENCE, Accepting, accepting, in_thread, receive, until


class Line:
    """A pseudo-terminal: the end that a program would have, and the device that a locator names."""

    def __init__(self) -> None:
        self.far, self._device = os.openpty()
        self.device = os.ttyname(self._device)
        tty.setraw(self.far)
        self.locator = f"serial/{self.device}"

    def unplug(self) -> None:
        for descriptor in (self.far, self._device):
            if descriptor >= 0:
                os.close(descriptor)
        self.far = self._device = -1

    def read(self, size: int) -> bytes:
        found = b""
        while len(found) < size and select.select([self.far], [], [], PATIENCE)[0]:
            found += os.read(self.far, size - len(found))
        return found


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.unplug()


@pytest.fixture
def listening(line: Line) -> Iterator[Accepting]:
    with accepting(line.locator) as side:
        yield side


def take(link: object) -> bytes:
    view = memoryview(bytearray(4096))
    return view[: receive(link, view)].tobytes()  # type: ignore[arg-type]


def test_a_locator_names_the_device_and_its_settings() -> None:
    where = Locator.parse("serial//dev/ttyUSB0?dialect=zenoh2018#baudrate=9600;mtu=20;chunk=20;exclusive=false")

    assert (where.path, where.host, where.port, where.streamed) == ("/dev/ttyUSB0", "", 0, True)
    assert (where.number("baudrate"), where.mtu, where.number("chunk")) == (9600, 20, 20)
    assert Locator.parse("udp/127.0.0.1:1?mtu=512").mtu == 512
    assert Locator.parse("udp/127.0.0.1:1?mtu=other").mtu is None  # other nodes may mean something else by it
    assert where.wire == "serial//dev/ttyUSB0?dialect=zenoh2018"


@pytest.mark.parametrize("entry", ["mtu=19", "mtu=65536", "chunk=0", "mtu=x", "baudrate=fast"])
def test_sizes_that_cannot_work_are_refused(entry: str) -> None:
    with pytest.raises(LocatorError, match=entry):
        Locator.parse(f"serial//dev/ttyUSB0#{entry}")


def test_zenoh1_does_not_go_over_serial_lines() -> None:
    with pytest.raises(UnsupportedLink, match="dialect=zenoh2018"):
        dialect_of("serial//dev/ttyUSB0")


def test_bytes_go_both_ways_as_they_are(line: Line) -> None:
    link = connect(line.locator)
    every = bytes(range(256))  # also those that a terminal would translate, echo or obey
    try:
        link.send([every[:100], every[100:]])
        assert line.read(256) == every
        assert link.receive_ready(memoryview(bytearray(10))) == -1
        os.write(line.far, every)
        assert take(link) == every
        assert undelivered(link) == 0
    finally:
        link.close()
    assert link.receive_ready(memoryview(bytearray(10))) == 0
    with pytest.raises(LinkClosed):
        link.send(b"x")
    with pytest.raises(LinkClosed):
        link.try_send(b"x")


def test_the_speed_is_that_of_the_locator(line: Line) -> None:
    link = connect(f"{line.locator}#baudrate=9600")
    try:
        assert termios.tcgetattr(link.fileno())[4:6] == [termios.B9600, termios.B9600]
    finally:
        link.close()
    with pytest.raises(LocatorError, match="12345"):
        connect(f"{line.locator}#baudrate=12345")


def test_no_write_is_larger_than_a_chunk(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    link = connect(f"{line.locator}#mtu=64;chunk=20")
    sizes: list[int] = []
    write = os.write

    def counted(line: int, data: bytes) -> int:
        sizes.append(len(data))
        return write(line, data)

    monkeypatch.setattr(os, "write", counted)
    try:
        assert (link.mtu, link.try_send(b"x" * 50)) == (64, 50)
    finally:
        link.close()

    assert sizes == [20, 20, 10]
    assert line.read(50) == b"x" * 50


def test_a_full_line_takes_no_more_and_a_waiting_sender_goes_on(line: Line) -> None:
    link = connect(line.locator)
    sent = 0
    while count := link.try_send(b"y" * 1000):
        sent += count
    thread = in_thread(lambda: link.send(b"z" * 1000))

    assert line.read(sent) == b"y" * sent
    assert line.read(1000) == b"z" * 1000
    thread.join(PATIENCE)
    link.close()


def test_closing_ends_a_sender_that_waits(line: Line) -> None:
    link = connect(line.locator)
    while link.try_send(b"y" * 1000):
        pass
    ended: list[Exception] = []

    def work() -> None:
        try:
            link.send(b"z" * 1_000_000)  # the kernel may find room for a few bytes by itself
        except LinkClosed as error:
            ended.append(error)

    thread = in_thread(work)
    link.close()
    thread.join(PATIENCE)

    assert ended
    assert link.fileno() == -1


def test_a_listener_offers_a_link_when_the_first_byte_comes(line: Line, listening: Accepting) -> None:
    assert not until(lambda: listening.links, QUIET_SECONDS)
    os.write(line.far, b"hello")
    link = listening.first()

    assert take(link) == b"hello"
    link.send(b"and you")
    assert line.read(7) == b"and you"
    assert listening.locator == line.locator


def test_the_next_session_begins_after_a_silence(line: Line, listening: Accepting) -> None:
    os.write(line.far, b"one")
    first = listening.first()
    assert take(first) == b"one"
    os.write(line.far, b"left over")
    first.close()
    assert until(lambda: listening.listener._line >= 0)  # type: ignore[attr-defined]
    os.write(line.far, b"of the last")
    assert not until(lambda: len(listening.links) > 1, 2 * QUIET_SECONDS)

    os.write(line.far, b"two")

    assert until(lambda: len(listening.links) == 2)
    assert take(listening.links[1]) == b"two"
    assert listening.links[1].remote != first.remote


def test_a_line_has_one_user(line: Line, listening: Accepting) -> None:
    with pytest.raises(Unreachable, match="another program"):
        connect(line.locator)
    with pytest.raises(CannotListen, match="another program"):
        Accepting(line.locator)
    link = connect(f"{line.locator}#exclusive=false")
    link.close()


def test_a_line_that_is_unplugged_ends_the_link_and_is_looked_for(
    line: Line, listening: Accepting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elea.io.serial.REOPEN_SECONDS", 0.01)
    os.write(line.far, b"x")
    link = listening.first()
    assert isinstance(link, SerialLink)
    assert take(link) == b"x"

    line.unplug()

    assert take(link) == b""  # the other side will send no more
    with pytest.raises(LinkClosed, match="unplugged"):
        link.send(b"x")
    link.close()
    listener = listening.listener
    assert until(lambda: listener.failures >= 2)  # type: ignore[attr-defined]


def test_an_idle_listener_notices_that_the_line_is_gone(
    line: Line, listening: Accepting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elea.io.serial.REOPEN_SECONDS", 0.01)
    line.unplug()

    assert until(lambda: listening.listener.failures >= 2)  # type: ignore[attr-defined]


def test_what_is_no_line_is_told(tmp_path: Path) -> None:
    plain = tmp_path / "file"
    plain.touch()
    with pytest.raises(ConnectRefused, match="plug the device in"):
        connect(f"serial/{tmp_path}/none")
    with pytest.raises(Unreachable, match="no serial line"):
        connect(f"serial/{plain}")
    with pytest.raises(CannotListen, match="plug the device in"):
        Accepting(f"serial/{tmp_path}/none")


def test_an_owner_that_fails_does_not_end_listening(line: Line) -> None:
    from elea.io.listener import listen
    from elea.io.loop import Loop

    seen: list[str] = []

    def refuse(link: object) -> None:
        seen.append("x")
        raise ValueError("no")

    loop = Loop("serial")
    listener = listen(line.locator, on_link=refuse, loop=loop)
    try:
        os.write(line.far, b"1")
        assert until(lambda: len(seen) == 1)
        assert until(lambda: listener._line >= 0)  # type: ignore[attr-defined]
        assert not until(lambda: False, 2 * QUIET_SECONDS)
        os.write(line.far, b"2")
        assert until(lambda: len(seen) == 2)
    finally:
        listener.close()
        loop.close()


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_the_mtu_of_a_locator_bounds_other_links_too(protocol: str) -> None:
    with accepting(f"{protocol}/127.0.0.1:0#mtu=64") as side:
        near = connect(f"{side.locator}#mtu=32")
        near.send(b"hello")
        try:
            assert (near.mtu, side.first().mtu) == (32, 64)
        finally:
            near.close()
