"""`elea trace`: stands between two nodes, passes everything on, and shows every message; or traces its own node."""

from __future__ import annotations

import argparse
import itertools
import threading
from typing import TYPE_CHECKING, Final, cast

from elea.cli import connection, owntrace
from elea.cli.decode import DIALECTS
from elea.cli.output import Output
from elea.cli.style import CliError
from elea.cli.tracedisplay import Showing

if TYPE_CHECKING:
    from elea.cli.conversation import Conversation
    from elea.io.link import Link

__all__ = ["add_arguments", "run"]

BUFFER: Final = 1 << 16

EPILOG: Final = """\
→ is what the connecting side says, ← what the other one answers. Compression, low latency and fragments are followed;
keys are shown whole, also where only a number travels. example:
  elea broker                                                    one terminal
  elea trace                                                     another
  elea put home/1/temp 21.5 -e tcp/127.0.0.1:7448                a third
Connect as a client: peers may learn each other's address and go around the trace.
With a verb behind its options, elea trace runs it and shows, on the error stream, what its own node says and hears:
  elea trace --no-keep-alive get 'home/**' -e tcp/127.0.0.1:7447"""


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
    parser.add_argument("own", nargs=argparse.REMAINDER, metavar="VERB …", help="a verb of elea to run under trace")


def run(args: argparse.Namespace) -> int:
    """Traces until it is told to end, or its verb has."""
    from elea.io.linkerrors import LinkError
    from elea.io.listener import listen
    from elea.io.loop import Loop

    if args.own:
        return owntrace.run(args)
    out = Output(args)
    proxy = _Proxy(args, out)
    with connection.stoppable():
        loop = Loop("trace")
        try:
            listener = listen(args.listen, on_link=proxy.accept, loop=loop)
        except LinkError as error:
            loop.close()
            raise CliError(str(error), "--listen tcp/127.0.0.1:0   takes any free port", connection.REFUSED) from error
        try:
            where = listener.locators()
            out.form({"event": "listening", "locators": where, "to": args.to})
            out.note(f"connect to {', '.join(where)}; everything goes on to {args.to}; Ctrl-C ends")
            proxy.enough.wait()
        finally:
            listener.close()
            proxy.close()
            loop.close()
    if proxy.broken is not None:
        raise proxy.broken
    return 0


class _Proxy(Showing):
    """All connections under trace."""

    def __init__(self, args: argparse.Namespace, out: Output) -> None:
        super().__init__(args, out)
        self.broken: OSError | None = None
        self._to: str = args.to
        self._numbers = itertools.count(1)
        self._open: set[Link] = set()

    def accept(self, link: Link) -> None:
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

    def _connect(self, near: Link) -> None:
        from elea.cli.conversation import Conversation
        from elea.io.dial import connect
        from elea.io.linkerrors import LinkError

        number = next(self._numbers)
        try:
            far = connect(self._to)
        except LinkError as error:
            near.close()
            self.tell(number, "unreachable", str(error))
            return
        with self._lock:
            self._open |= {near, far}
        self.tell(number, "connected", near.remote)
        talk = Conversation(self.dialect)
        links = near, far
        back = threading.Thread(target=self._pass_on, args=(number, links, 1, talk), name="elea-trace", daemon=True)
        back.start()
        self._pass_on(number, links, 0, talk)
        back.join()
        with self._lock:
            self._open -= {near, far}
        self.tell(number, "ended", near.remote)

    def _pass_on(self, number: int, links: tuple[Link, Link], side: int, talk: Conversation) -> None:
        from elea.io.link import SocketLink
        from elea.io.linkerrors import LinkError

        source, target = cast(SocketLink, links[side]), links[1 - side]  # a stream in the clear, see `_streamed`
        buffer = memoryview(bytearray(BUFFER))
        try:
            while count := source.receive_into(buffer):
                data = bytes(buffer[:count])
                # Shown first: an answer can then not be shown before what it answers, and the handshake, which
                # decides how what follows is read, is known in time.
                self.show(number, side, talk, data)
                target.send(data)
            self.show(number, side, talk, None)
        except LinkError:
            pass  # One of the two is gone, which ends the other as well.
        except OSError as error:  # whoever reads our output has left
            self.broken = error
            self.enough.set()
        finally:
            for link in links:
                link.close()


def _streamed(text: str) -> str:
    """For argparse: a locator whose link is one stream of octets in the clear."""
    from elea.io.locator import Locator

    if Locator.parse(connection.locator(text)).protocol not in ("tcp", "unixsock-stream"):
        raise argparse.ArgumentTypeError(f"{text!r}: only tcp and unixsock-stream can be traced")
    return text
