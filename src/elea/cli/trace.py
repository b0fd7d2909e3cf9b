"""`elea trace`: stands between two nodes, passes everything on, and shows every message."""

from __future__ import annotations

import argparse
import itertools
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from elea.cli import connection
from elea.cli.decode import DIALECTS
from elea.cli.output import Output, clock_text, safe, size_text, value_text
from elea.cli.style import CliError

if TYPE_CHECKING:
    from elea.cli.conversation import Conversation, Seen
    from elea.io.dial import AnyLink
    from elea.wire.dialect import Dialect

__all__ = ["add_arguments", "run"]

ARROWS: Final = ("→", "←")
COLOURS: Final = ("green", "blue")
NAME_WIDTH: Final = 20
KEY_WIDTH: Final = 28
DETAILS_WIDTH: Final = 100
BUFFER: Final = 1 << 16

EPILOG: Final = """\
→ is what the connecting side says, ← what the other one answers. Compression, low latency and fragments are followed;
keys are shown whole, also where only a number travels. example:
  elea broker                                                    one terminal
  elea trace                                                     another
  elea put home/1/temp 21.5 -e tcp/127.0.0.1:7448                a third
Connect as a client: peers may learn each other's address and go around the trace."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea trace`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "-l",
        "--listen",
        type=_streamed,
        default="tcp/127.0.0.1:7448",
        metavar="LOCATOR",
        help="where nodes connect to (default: tcp/127.0.0.1:7448)",
    )
    parser.add_argument(
        "--to",
        type=_streamed,
        default="tcp/127.0.0.1:7447",
        metavar="LOCATOR",
        help="the node to pass everything on to (default: tcp/127.0.0.1:7447)",
    )
    parser.add_argument("--dialect", choices=DIALECTS, default=DIALECTS[0], help="wire language (default: zenoh1)")
    parser.add_argument("--long", action="store_true", help="show every field of every message")
    parser.add_argument("--no-keep-alive", action="store_true", help="leave out KEEP_ALIVE")
    parser.add_argument("-n", "--count", type=connection.positive, metavar="N", help="end after N messages")


def run(args: argparse.Namespace) -> int:
    """Traces until it is told to end."""
    from elea.io.dial import listen
    from elea.io.errors import LinkError
    from elea.wire import dialect_named

    out = Output(args)
    proxy = _Proxy(args, dialect_named(args.dialect), out)
    with connection.stoppable():
        try:
            listener = listen(args.listen, on_link=proxy.accept)
        except LinkError as error:
            raise CliError(str(error), "--listen tcp/127.0.0.1:0   takes any free port", connection.REFUSED) from error
        try:
            where = listener.locators()
            out.form({"event": "listening", "locators": where, "to": args.to})
            out.note(f"connect to {', '.join(where)}; everything goes on to {args.to}; Ctrl-C ends")
            proxy.enough.wait()
        finally:
            listener.close()
            proxy.close()
    if proxy.broken is not None:
        raise proxy.broken
    return 0


class _Proxy:
    """All connections under trace."""

    def __init__(self, args: argparse.Namespace, dialect: Dialect, out: Output) -> None:
        self.enough = threading.Event()
        self.broken: OSError | None = None
        self._to: str = args.to
        self._dialect = dialect
        self._out = out
        self._long: bool = args.long
        self._quiet: bool = args.no_keep_alive
        self._left: int | None = args.count
        self._numbers = itertools.count(1)
        self._open: set[AnyLink] = set()
        self._lock = threading.Lock()

    def accept(self, link: AnyLink) -> None:
        """Somebody has connected; called by the listener."""
        threading.Thread(target=self._connect, args=(link,), name="elea-trace", daemon=True).start()

    def close(self) -> None:
        """End all connections."""
        self.enough.set()
        with self._lock:
            links = list(self._open)
        for link in links:
            link.close()

    # -- passing on ----------------------------------------------------------------------------------------------------

    def _connect(self, near: AnyLink) -> None:
        from elea.cli.conversation import Conversation
        from elea.io.dial import connect
        from elea.io.errors import LinkError

        number = next(self._numbers)
        try:
            far = connect(self._to)
        except LinkError as error:
            near.close()
            self._tell(number, "unreachable", str(error))
            return
        with self._lock:
            self._open |= {near, far}
        self._tell(number, "connected", near.remote)
        talk = Conversation(self._dialect)
        links = near, far
        back = threading.Thread(target=self._pass_on, args=(number, links, 1, talk), name="elea-trace", daemon=True)
        back.start()
        self._pass_on(number, links, 0, talk)
        back.join()
        with self._lock:
            self._open -= {near, far}
        self._tell(number, "ended", near.remote)

    def _pass_on(self, number: int, links: tuple[AnyLink, AnyLink], side: int, talk: Conversation) -> None:
        from elea.io.errors import LinkError

        source, target = links[side], links[1 - side]
        buffer = memoryview(bytearray(BUFFER))
        try:
            while count := source.receive_into(buffer):  # type: ignore[union-attr]
                data = bytes(buffer[:count])
                # Shown first: an answer can then not be shown before what it answers, and the handshake, which
                # decides how what follows is read, is known in time.
                self._show(number, side, talk, data)
                target.send(data)
            self._show(number, side, talk, None)
        except LinkError:
            pass  # One of the two is gone, which ends the other as well.
        except OSError as error:  # whoever reads our output has left
            self.broken = error
            self.enough.set()
        finally:
            for link in links:
                link.close()

    # -- showing -------------------------------------------------------------------------------------------------------

    def _tell(self, number: int, event: str, text: str) -> None:
        with self._lock:
            self._out.form({"event": event, "connection": number, "detail": text})
            self._out.note(f"{clock_text()}  #{number}  {event}  {text}")

    def _show(self, number: int, side: int, talk: Conversation, data: bytes | None) -> None:
        with self._lock:
            for seen in talk.end(side) if data is None else talk.feed(side, data):
                if self.enough.is_set():
                    return
                if self._quiet and seen.name == "KEEP_ALIVE":
                    continue
                self._show_one(number, side, seen)
                if self._left is not None:
                    self._left -= 1
                    if not self._left:
                        self.enough.set()

    def _show_one(self, number: int, side: int, seen: Seen) -> None:
        if self._out.json:
            self._out.form(
                {
                    "time": datetime.now(UTC).isoformat(),
                    "connection": number,
                    "direction": "to" if side == 0 else "back",
                    "message": seen.name,
                    "key": seen.key,
                    "size": seen.size,
                    **({"fragments": seen.pieces} if seen.pieces else {}),
                    **(seen.form if seen.error is not None and isinstance(seen.form, dict) else {"decoded": seen.form}),
                }
            )
        elif not self._long:
            self._out.line(self._line(number, side, seen))
        elif seen.first:
            self._dissect(number, side, seen)

    def _line(self, number: int, side: int, seen: Seen) -> str:
        paint = self._out.style.paint
        payload = seen.payload
        more = seen.details if payload is None else f"{seen.details}  {value_text(payload, width=60)}".strip()
        if seen.pieces:
            more = f"of {seen.pieces} fragments  {more}"
        if seen.error is not None:
            more = seen.error.problem
        parts = [
            paint(clock_text(), "dim"),
            paint(f"#{number} {ARROWS[side]}", COLOURS[side], "bold"),
            paint(seen.name.ljust(NAME_WIDTH), "red" if seen.error is not None else COLOURS[side]),
            paint(safe(seen.key or "").ljust(KEY_WIDTH), "cyan"),
            size_text(seen.size).rjust(7),
            paint(_cut(safe(more)), "dim"),
        ]
        return "  ".join(parts).rstrip()

    def _dissect(self, number: int, side: int, seen: Seen) -> None:
        from elea.cli.dissection import error_line, field_lines, heading

        style = self._out.style
        title = f"#{number} {ARROWS[side]} {self._dialect.name} {seen.unit}"
        self._out.line(heading(style, title, f"{clock_text()}  {len(seen.data)} octets"))
        if not seen.data and seen.error is not None:
            self._out.line(error_line(style, seen.error))
            return
        for line in field_lines(style, seen.data, self._dialect.dissect(seen.unit, seen.data)):
            self._out.line(line)


def _cut(text: str) -> str:
    return text if len(text) <= DETAILS_WIDTH else f"{text[: DETAILS_WIDTH - 1]}…"


def _streamed(text: str) -> str:
    """For argparse: a locator whose link is one stream of octets in the clear."""
    from elea.io.locator import Locator

    if Locator.parse(connection.locator(text)).protocol not in ("tcp", "unixsock-stream"):
        raise argparse.ArgumentTypeError(f"{text!r}: only tcp and unixsock-stream can be traced")
    return text
