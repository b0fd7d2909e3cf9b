"""Links over a serial line: a stream of bytes, written in chunks of at most so many, read when the poller says so.

A line has no connections: it is there, or it is not. So a listener offers a link when the first byte comes, and the
next one when that has ended and the line has been silent for a moment, since what is left over of one session is no
beginning of another. Framing is the dialect's: for the early ones a size before each packet, whatever the chunks
(`chunked`, Z18-FRM-08).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import select
import termios
from collections.abc import Callable, Sequence
from typing import Any, Final

from elea.io.link import DescriptorLink, Octets
from elea.io.linkerrors import CannotListen, ConnectRefused, LinkClosed, LocatorError, Unreachable
from elea.io.locator import Locator
from elea.io.loop import IN, Loop, Pollable
from elea.io.timers import monotonic

__all__ = ["SerialLink", "SerialListener", "connect_serial", "open_line"]

BAUDRATE: Final = 115_200
"""What most boards start with, and eclipse-zenoh takes too if the locator says nothing."""

QUIET_SECONDS: Final = 0.05
"""How long a line must be silent before what comes next counts as a beginning."""

REOPEN_SECONDS: Final = 1.0
"""How often a device that has gone is looked for: somebody may plug it in again."""

_POLL_MS: Final = 200
_DISCARD: Final = 4096

_log = logging.getLogger("elea.io")


class SerialLink(DescriptorLink):
    """One end of a line. Closing it makes threads that wait in `send` return within a moment."""

    def __init__(
        self, descriptor: int, where: Locator, *, remote: str = "", on_closed: Callable[[], None] | None = None
    ) -> None:
        super().__init__(where.wire, remote or where.wire)
        self.limit(where.mtu)
        self.chunk = where.number("chunk") or self.mtu
        """Bytes written at once, at most: what is behind the line may take no more."""
        self._descriptor = descriptor
        self._on_closed = on_closed

    def send(self, data: Octets | Sequence[Octets]) -> None:
        rest = memoryview(_joined(data))
        self._enter()
        try:
            while rest:
                sent = self._write(rest)
                rest = rest[sent:]
                if not sent:
                    self._await_room()
        except OSError as error:
            raise self._broken(error) from error
        finally:
            self._leave()

    def _await_room(self) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        poll.poll(_POLL_MS)  # nothing wakes it when the link is closed, so it looks now and then
        if self.closed:
            raise LinkClosed(self.remote)

    def try_send(self, data: Octets | Sequence[Octets]) -> int:
        self._enter()
        try:
            return self._write(memoryview(_joined(data)))
        except OSError as error:
            raise self._broken(error) from error
        finally:
            self._leave()

    def _write(self, data: memoryview) -> int:
        """What the kernel takes at once, chunk by chunk."""
        done = 0
        with contextlib.suppress(BlockingIOError):
            while done < len(data):
                done += os.write(self._descriptor, data[done : done + self.chunk])
        return done

    def _take(self, view: memoryview, flags: int) -> int:
        return os.readv(self._descriptor, [view])

    def fileno(self) -> int:
        return self._descriptor

    def _finish(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)
        if self._on_closed is not None:
            self._on_closed()

    def _broken(self, error: OSError) -> LinkClosed:
        if error.errno == errno.EIO and not self.closed:
            return LinkClosed(self.remote, "the line was unplugged or closed at the other end")
        return super()._broken(error)


class SerialListener(Pollable):
    """Waits for the first byte on a line and hands out a link for it, one at a time."""

    def __init__(self, where: Locator, on_link: Callable[[SerialLink], None], loop: Loop) -> None:
        super().__init__()
        self.failures = 0
        self._where = where
        self._on_link = on_link
        self._loop = loop
        self._closed = False
        self._links = 0
        self._quiet_from = 0.0
        try:
            self._line = open_line(where)
        except OSError as error:
            raise _cannot_listen(where, error) from error
        loop.add(self, self._line)

    def locators(self) -> list[str]:
        return [self._where.wire]

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._give_back()

    def on_ready(self, mask: int) -> None:
        if mask != IN:
            self._retry()  # it was unplugged, whatever came before that
        elif monotonic() < self._quiet_from:
            self._discard()
        else:
            self._hand_over()

    def _discard(self) -> None:
        """What is left over of the last session; the silence has to begin again."""
        self._quiet_from = monotonic() + QUIET_SECONDS
        try:
            if not os.read(self._line, _DISCARD):
                self._retry()
        except BlockingIOError:
            pass
        except OSError:
            self._retry()

    def _hand_over(self) -> None:
        line, self._line = self._line, -1
        self._loop.remove(self)
        self._links += 1
        link = SerialLink(line, self._where, remote=f"{self._where.wire}-{self._links}", on_closed=self._link_closed)
        try:
            self._on_link(link)
        except Exception:  # noqa: BLE001 - whatever the owner does, the line must be listened to again
            self.failures += 1
            _log.exception("link owner failed remote=%s", link.remote)
            link.close()

    def _link_closed(self) -> None:
        self._loop.soon(self._reopen)  # whoever has closed it may hold any lock

    def _retry(self) -> None:
        self._give_back()
        self.failures += 1
        if self.failures & (self.failures - 1) == 0:
            _log.warning("serial line is gone locator=%s failures=%d", self._where.wire, self.failures)
        self._loop.after(REOPEN_SECONDS, self._reopen)

    def _reopen(self) -> None:
        if self._closed:
            return
        try:
            self._line = open_line(self._where)
        except OSError:
            self._retry()
            return
        self._quiet_from = monotonic() + QUIET_SECONDS
        self._loop.add(self, self._line)

    def _give_back(self) -> None:
        line, self._line = self._line, -1
        if line >= 0:
            self._loop.remove(self)
            os.close(line)


def connect_serial(where: Locator) -> SerialLink:
    """A link over a line that is there."""
    try:
        return SerialLink(open_line(where), where)
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        if isinstance(error, FileNotFoundError):
            raise ConnectRefused(where.wire, problem, "plug the device in, or check the path") from error
        raise Unreachable(where.wire, problem, _hint(error)) from error


def open_line(where: Locator) -> int:
    """The descriptor of a line: raw bytes, 8 bits without parity, nothing of an earlier conversation in it."""
    speed = _speed(where)
    line = os.open(where.path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if where.setting("exclusive") != "false":
            fcntl.flock(line, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _make_raw(line, speed)
        termios.tcflush(line, termios.TCIFLUSH)
    except termios.error as error:
        os.close(line)
        raise OSError(*error.args) from error
    except BaseException:
        os.close(line)
        raise
    return line


def _make_raw(line: int, speed: int) -> None:
    settings: list[Any] = termios.tcgetattr(line)
    settings[0] = 0  # no translation, no flow control on input
    settings[1] = 0  # none on output
    settings[2] = termios.CS8 | termios.CREAD | termios.CLOCAL
    settings[3] = 0  # no echo, no lines, no signals
    settings[4] = settings[5] = speed
    settings[6][termios.VMIN], settings[6][termios.VTIME] = 1, 0
    termios.tcsetattr(line, termios.TCSANOW, settings)


def _speed(where: Locator) -> int:
    asked = where.number("baudrate") or BAUDRATE
    speed = getattr(termios, f"B{asked}", None)
    if not isinstance(speed, int) or not asked:
        known = sorted(int(name[1:]) for name in dir(termios) if name[0] == "B" and name[1:].isdigit())[1:]
        raise LocatorError(str(where), f"baudrate {asked} is not one of this system", f"use one of {known}")
    return speed


def _cannot_listen(where: Locator, error: OSError) -> CannotListen:
    return CannotListen(where.wire, (error.strerror or str(error)).lower(), _hint(error))


def _hint(error: OSError) -> str:
    hints = {
        errno.ENOENT: "plug the device in, or check the path",
        errno.EAGAIN: "another program uses the line; exclusive=false shares it",
        errno.EACCES: "it needs permission: the group is often dialout",
        errno.ENOTTY: "that is no serial line",
    }
    return hints.get(error.errno or 0, "check the device")


def _joined(data: Octets | Sequence[Octets]) -> Octets:
    return data if isinstance(data, bytes | bytearray | memoryview) else b"".join(data)
