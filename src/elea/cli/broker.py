"""`elea broker`: a router, as zenohd is one; clients and peers meet at it.

With `--json` each event is one object: `listening` first, then one per session that comes or goes and per warning,
`stopped` last.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from elea.cli import connection
from elea.cli.output import Output, clock_text, safe
from elea.cli.style import CliError

if TYPE_CHECKING:
    from elea.api.config import Config
    from elea.api.session import Session

__all__ = ["add_arguments", "event_of", "run"]

PERMISSIONS: Final = {"r": (True, False), "w": (False, True), "rw": (True, True), "none": (False, False)}

PAIR: Final = re.compile(r"(\w+)=(.*?)(?=\s\w+=|$)", re.DOTALL)


LEVELS: Final = ("debug", "info", "warning", "error")

NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]+)?")

TEXTS: Final = frozenset({"node", "id", "key", "link", "locator", "neighbour", "remote", "storage"})
"""What is text even if it has digits only."""

COLOURS: Final = {logging.INFO: "green", logging.WARNING: "yellow", logging.ERROR: "red"}

STACK_BYTES: Final = 1 << 20
"""For each thread, of which a session has two. The usual 8 MiB are never touched, but count where memory is limited."""

SWITCH_SECONDS: Final = 0.0005
"""How long a thread that works on a costly request may keep the interpreter from the one that serves all links."""

EPILOG: Final = """\
Runs until Ctrl-C or SIGTERM. The options are those of zenohd. examples:
  elea broker
  elea broker -l tcp/127.0.0.1:0 --no-multicast-scouting
  elea broker --store /var/lib/elea --persist 'home/**' --transient 'now/**'
  elea broker --store /var/lib/elea --persist 'home/**' --align tcp/10.0.0.2:7447
  elea broker -c router.json5 --cfg 'transport/unicast/max_sessions:10'"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea broker`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    connection.add_file_arguments(parser.add_argument_group("broker", "It listens on tcp/[::]:7447 unless told else."))
    parser.add_argument("-i", "--id", metavar="HEX", help="its identifier, up to 32 hex digits (default: random)")
    parser.add_argument("--no-multicast-scouting", action="store_true", help="do not look for nodes by multicast")
    parser.add_argument(
        "--adminspace-permissions",
        choices=tuple(PERMISSIONS),
        help="what others may do with the admin space @/ID/router (default: r)",
    )
    _add_storage_arguments(parser)
    parser.add_argument("--quiet", action="store_true", help="print where it listens, and then only warnings")
    parser.add_argument(
        "--log-level", choices=LEVELS, help="print what is at least as important as this (default: info)"
    )


def _add_storage_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("storages", "What outlives its writer; needs elea[broker].")
    group.add_argument("--store", metavar="DIR", help="keep in this directory what is put with a durability")
    for name, help in (
        ("persist", "keep everything put to these keys in the store directory"),
        ("transient", "keep everything put to these keys in memory"),
    ):
        group.add_argument(f"--{name}", metavar="KEYEXPR", action="append", default=[], help=f"{help} (repeatable)")
    group.add_argument(
        "--align",
        metavar="LOCATOR",
        action="append",
        default=[],
        help="bring what the broker there has stored of the same keys and this one lacks (repeatable)",
    )
    group.add_argument("--align-interval", metavar="SECONDS", type=float, help="how often (default: 10)")
    group.add_argument("--retain-age", metavar="SECONDS", type=float, help="let go of samples older than this")
    group.add_argument(
        "--retain-bytes", metavar="N", type=int, help="let go of the oldest above this size, per storage"
    )
    group.add_argument(
        "--retain-samples", metavar="N", type=int, help="let go of the oldest above this number, per storage"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the broker until it is told to end."""
    threading.stack_size(STACK_BYTES)
    sys.setswitchinterval(SWITCH_SECONDS)
    out = Output(args)
    config = _config(args)
    if config.get_json("plugins") not in ("null", "{}"):
        from elea.io.allocator import few_arenas

        _spare_numpy()
        few_arenas()
    log = _Log(out, (args.log_level or ("warning" if args.quiet else "info")).upper())
    with connection.stoppable() as stop, log, connection.open_session(config, stop) as session:
        _announce(session, out)
        log.begin(session)
        with stop.waiting():
            threading.Event().wait()
    out.form({"event": "stopped"})
    out.line("stopped")
    return 0


def _spare_numpy() -> None:
    """Do without numpy in this process, which is a broker and nothing else; its store does not use it.

    Where they are installed, pyarrow imports numpy at once, and pandas with the first value that it converts: half a
    second of every start, and 50 MB. It works without them.
    """
    if "numpy" not in sys.modules:
        sys.modules["numpy"] = None  # type: ignore[assignment]


def _config(args: argparse.Namespace) -> Config:
    config = connection.base_config(args)
    given = config.get_json("mode")
    if given not in ("null", '"router"'):
        raise CliError(f"{args.config}: mode is {given}, but a broker is a router", 'mode: "router", or no mode', 2)
    with connection.config_errors():
        config.insert_json5("mode", '"router"')
        config.insert_json5("adminspace/enabled", "true")  # as zenohd does
        if args.id is not None:
            config.insert_json5("id", json.dumps(args.id.lower()))
        if args.adminspace_permissions is not None:
            read, write = PERMISSIONS[args.adminspace_permissions]
            permissions = {"read": read, "write": write}
            config.insert_json5("adminspace/permissions", json.dumps(permissions))
        _set_storages(config, args)
    connection.set_options(config, args)
    return config


def _set_storages(config: Config, args: argparse.Namespace) -> None:
    from elea.node.storage.settings import name_of

    if args.persist and args.store is None:
        raise CliError("--persist needs a directory", "add --store DIR, or use --transient", 2)
    if args.align and not (args.persist or args.transient or args.store):
        raise CliError("--align needs something to align", "add --store DIR, --persist or --transient", 2)
    aligned = {"replication": {"peers": args.align, "interval": args.align_interval or 10.0}} if args.align else {}
    if args.store is not None:
        config.insert_json5("plugins/storage_manager/volumes/log", json.dumps({"dir": args.store, **aligned}))
    retain = {"age": args.retain_age, "bytes": args.retain_bytes, "samples": args.retain_samples}
    for volume, keys in (("log", args.persist), ("memory", args.transient)):
        for key in keys:
            storage = {"key_expr": key, "volume": volume, "complete": True, "retain": retain, **aligned}
            config.insert_json5(f"plugins/storage_manager/storages/{name_of(key)}", json.dumps(storage))
    if args.persist or args.transient or args.store is not None:
        from elea.api.settings import Settings

        Settings.of(config)  # says what is wrong with them


def _announce(session: Session, out: Output) -> None:
    locators = session._runtime.links.locators()
    out.form({"event": "listening", "id": str(session.zid()), "locators": locators})
    paint = out.style.paint
    out.line(f"{paint('id', 'bold')}         {session.zid()}")
    for number, locator in enumerate(locators):
        out.line(f"{paint('listening' if not number else '', 'bold').ljust(9)}  {paint(locator, 'cyan')}")
    if not locators:
        out.line("listening  nowhere")


# -- what happens ------------------------------------------------------------------------------------------------------


def event_of(text: str) -> dict[str, object]:
    """A log line as an event: what happened, and its `name=value` pairs.

    >>> event_of("session ended: node=a1 reason=closed by this node")
    {'event': 'session ended', 'node': 'a1', 'reason': 'closed by this node'}
    >>> event_of("storage closed: storage=home samples=12 seconds=0.5")
    {'event': 'storage closed', 'storage': 'home', 'samples': 12, 'seconds': 0.5}
    """
    first = PAIR.search(text)
    head = text if first is None else text[: first.start()]
    return {"event": head.strip().rstrip(":"), **{name: _value(name, value) for name, value in PAIR.findall(text)}}


def _value(name: str, text: str) -> str | int | float:
    found = NUMBER.fullmatch(text)
    if found is None or name in TEXTS:
        return text
    return float(text) if found[2] else int(text)


class _Log(logging.Handler):
    """Prints what the node logs: sessions that come and go, and everything it refuses or loses."""

    def __init__(self, out: Output, level: str) -> None:
        super().__init__(level)
        self._session: Session | None = None
        self._early: list[logging.LogRecord] = []
        self._out = out
        self._logger = logging.getLogger("elea")
        self._before = self._logger.level, self._logger.propagate

    def __enter__(self) -> None:
        self._logger.setLevel(self.level)
        self._logger.propagate = False
        self._logger.addHandler(self)

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(self._before[0])
        self._logger.propagate = self._before[1]

    def begin(self, session: Session) -> None:
        """Print from now on, and first what came before the broker could say where it listens."""
        self.acquire()
        try:
            self._session = session
            for record in self._early:
                self.emit(record)
            self._early.clear()
        finally:
            self.release()

    def emit(self, record: logging.LogRecord) -> None:
        if self._session is None:
            self._early.append(record)
            return
        try:
            self._show(record)
        except (OSError, ValueError):  # nobody reads us any more; the broker goes on
            self._logger.removeHandler(self)

    def _show(self, record: logging.LogRecord) -> None:
        event = event_of(record.getMessage())
        when = datetime.fromtimestamp(record.created, UTC)
        level = record.levelname.lower()
        if self._out.json:
            self._out.form({"time": when.isoformat(timespec="milliseconds"), "level": level, **event})
            return
        paint = self._out.style.paint
        head = paint(str(event.pop("event")), COLOURS.get(record.levelno, "red"))
        pairs = "  ".join(f"{paint(name, 'dim')} {safe(str(value))}" for name, value in event.items())
        local = when.astimezone().replace(tzinfo=None)
        self._out.line(f"{paint(f'{local:%Y-%m-%d} {clock_text(local)}', 'dim')}  {level:7}  {head}  {pairs}".rstrip())
