"""What verbs that open a session share: options, configuration, errors as exit codes, ending in good order.

Exit codes: 2 the options or the configuration are wrong, 3 nobody could be reached, 4 the session or the address was
refused, 5 samples were lost.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeVar

from elea.cli.style import CliError

if TYPE_CHECKING:
    from enum import Enum

    from elea.api.config import Config
    from elea.api.session import Session

__all__ = [
    "AT_RISK",
    "NO",
    "REFUSED",
    "UNREACHABLE",
    "USAGE",
    "Stop",
    "add_arguments",
    "add_file_arguments",
    "add_qos_arguments",
    "base_config",
    "check_key",
    "config_errors",
    "entry",
    "locator",
    "lost",
    "member",
    "need_neighbours",
    "neighbours",
    "open_session",
    "positive",
    "seconds",
    "session_config",
    "set_options",
    "stoppable",
]

NO: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
REFUSED: Final = 4
AT_RISK: Final = 5

AGAIN: Final = 0.05
"""Seconds after which a signal that nobody has handled is sent again."""

NEIGHBOURS: Final = "elea broker   in another terminal, then again with  -e tcp/127.0.0.1:7447"

PRIORITIES: Final = (
    "real-time",
    "interactive-high",
    "interactive-low",
    "data-high",
    "data",
    "data-low",
    "background",
)
CONGESTION: Final = ("drop", "block", "block-first")

E = TypeVar("E", bound="Enum")


# -- options -----------------------------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of every verb that opens a session."""
    group = parser.add_argument_group(
        "connection",
        "Without options this node is a peer that looks for others by multicast; "
        "with -e alone it is a client of the node named.",
    )
    group.add_argument("-m", "--mode", choices=("client", "peer"), help="what this node is (default: see above)")
    add_file_arguments(group)
    group.add_argument("--no-multicast-scouting", action="store_true", help="do not look for nodes by multicast")


def add_file_arguments(group: argparse._ArgumentGroup) -> None:
    """The options that a broker has too."""
    example = "such as tcp/192.168.0.1:7447; may be repeated"
    group.add_argument(
        "-e",
        "--connect",
        action="append",
        type=locator,
        default=[],
        metavar="LOCATOR",
        help=f"connect to this node, {example}",
    )
    group.add_argument(
        "-l",
        "--listen",
        action="append",
        type=locator,
        default=[],
        metavar="LOCATOR",
        help=f"accept connections here, {example}",
    )
    group.add_argument("-c", "--config", metavar="FILE", help="configuration: JSON5, JSON, TOML or YAML")
    group.add_argument(
        "--cfg",
        action="append",
        type=entry,
        default=[],
        metavar="KEY:VALUE",
        help="set one entry, value in JSON5, such as transport/unicast/qos/enabled:false; may be repeated",
    )


def add_qos_arguments(parser: argparse.ArgumentParser) -> None:
    """How samples travel."""
    parser.add_argument("--priority", choices=PRIORITIES, default="data", help="the lane to take (default: data)")
    parser.add_argument(
        "--congestion", choices=CONGESTION, default="drop", help="what to do when a queue is full (default: drop)"
    )
    parser.add_argument("--express", action="store_true", help="send at once, do not wait to fill a batch")


def locator(text: str) -> str:
    """For argparse: a locator that can be used."""
    from elea.io.linkerrors import LocatorError
    from elea.io.locator import Locator

    try:
        Locator.parse(text)
    except LocatorError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def entry(text: str) -> tuple[str, str]:
    """For argparse: `KEY:VALUE`."""
    key, colon, value = text.partition(":")
    if not colon or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY:VALUE, such as mode:'\"peer\"'")
    return key, value


def positive(text: str) -> int:
    """For argparse: a whole number above 0."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def seconds(text: str) -> float:
    """For argparse: a time above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def member(kind: type[E], option: str) -> E:
    """The member of an enumeration that an option names."""
    return kind[option.upper().replace("-", "_")]


def check_key(text: str) -> str:
    """For argparse: a key expression."""
    from elea.model.errors import InvalidKeyExpr
    from elea.model.keyexpr import check

    try:
        check(text)
    except InvalidKeyExpr as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


# -- configuration -----------------------------------------------------------------------------------------------------


def base_config(args: argparse.Namespace) -> Config:
    """The configuration of `-c`, or the default one."""
    from elea.api.config import Config

    with config_errors():
        return Config() if args.config is None else Config.from_file(args.config)


def set_options(config: Config, args: argparse.Namespace) -> None:
    """What the options say, on top of the file; `--cfg` has the last word."""
    with config_errors():
        if args.connect:
            config.insert_json5("connect/endpoints", json.dumps(args.connect))
        if args.listen:
            config.insert_json5("listen/endpoints", json.dumps(args.listen))
        if args.no_multicast_scouting:
            config.insert_json5("scouting/multicast/enabled", "false")
        for key, value in args.cfg:
            config.insert_json5(key, value)


@contextlib.contextmanager
def config_errors() -> Iterator[None]:
    """A wrong configuration is wrong usage."""
    from elea.model.errors import ConfigError

    try:
        yield
    except ConfigError as error:
        raise CliError(f"{error.path}: {error.problem}", error.hint or "elea check-config FILE", USAGE) from error


def session_config(args: argparse.Namespace) -> Config:
    """The configuration of a client or peer."""
    config = base_config(args)
    mode = args.mode
    if mode is None and config.get_json("mode") == "null" and args.connect and not args.listen:
        # A client says at once when nobody is there; a peer goes on trying for ever.
        mode = "client"
    if mode is not None:
        config.insert_json5("mode", json.dumps(mode))
    set_options(config, args)
    return config


# -- sessions ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_session(config: Config, stop: Stop | None = None) -> Iterator[Session]:
    """A session for the block; what goes wrong ends the command with the right exit code.

    Inside, `stop` interrupts only where the block says that it waits: what is being declared is declared whole.
    """
    from elea.api.session import open as open_
    from elea.model.errors import EleaError

    with config_errors():
        try:
            session = open_(config)
        except EleaError as error:
            raise _failure(error) from error
    try:
        with session:
            if stop is not None:
                stop.free = False
            yield session
    except EleaError as error:
        raise _failure(error) from error


def _failure(error: Exception) -> Exception:
    from elea.io.linkerrors import CannotListen, LocatorError
    from elea.model.errors import AccessError, ConfigError, SessionError, SessionRefused, StoreInUse

    if isinstance(error, ConfigError):
        return error
    causes = [error, *_causes(error)]
    problem, _, hint = str(error).rpartition("; ")
    if not problem:
        problem, hint = str(error), ""
    # The session that could not be opened tells its reason in its text, not in its type.
    if (
        any(isinstance(cause, SessionRefused | AccessError) for cause in causes)
        or "refused the session" in problem + hint
    ):
        return CliError(str(error), "user and password in transport/auth/usrpwd, or what the other node logs", REFUSED)
    if isinstance(error, CannotListen | StoreInUse):
        return CliError(problem, hint or "another port", REFUSED)
    if isinstance(error, LocatorError | ValueError):
        return CliError(problem, hint or "elea --help", USAGE)
    if isinstance(error, SessionError | OSError) or "connect" in problem:
        return CliError(problem, hint or NEIGHBOURS, UNREACHABLE)
    return CliError(problem, hint or "elea --help", NO)


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause = error.__cause__
    while cause is not None:
        yield cause
        cause = cause.__cause__


def neighbours(session: Session) -> int:
    """How many nodes the session is connected to."""
    return len(session.info.routers_zid()) + len(session.info.peers_zid())


def need_neighbours(session: Session) -> None:
    """Ends the command if what it sends would reach nobody."""
    if not neighbours(session):
        raise CliError("no other node was found, so nobody could be reached", NEIGHBOURS, UNREACHABLE)


def lost(session: Session) -> int:
    """Messages that this session dropped."""
    return sum(session.info.dropped().values())


class Stop:
    """Ctrl-C and SIGTERM: they interrupt while `free`, and are only noted where nothing must be left half done."""

    def __init__(self) -> None:
        self.free = True
        self.requested = False

    def handle(self, *_: object) -> None:
        """For `signal.signal`."""
        self.requested = True
        if self.free:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """A block that waits, and may be interrupted."""
        self.free = True
        try:
            if self.requested:
                raise KeyboardInterrupt
            yield
        finally:
            self.free = False


@contextlib.contextmanager
def stoppable() -> Iterator[Stop]:
    """A block that Ctrl-C and SIGTERM end as if it had come to its end."""
    stop = Stop()
    # Also where a shell has made us ignore Ctrl-C, as it does with what runs in the background of a script.
    caught = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = [signal.signal(one, stop.handle) for one in caught]
    try:
        with contextlib.suppress(KeyboardInterrupt), _repeated(stop) if caught else contextlib.nullcontext():
            yield stop
    finally:
        for one, handler in zip(caught, before, strict=True):
            signal.signal(one, handler)


@contextlib.contextmanager
def _repeated(stop: Stop) -> Iterator[None]:
    """A block in which a signal is sent again until it is handled.

    CPython handles a signal between two steps of the main thread, or when it ends a system call. One that comes after
    the last step and before the call ends nothing: on a busy machine, where giving up the interpreter takes
    milliseconds, one of ten. But it is written to a descriptor at once.
    """
    main, lock, over = threading.get_ident(), threading.Lock(), False
    read, written = socket.socketpair()
    written.setblocking(False)
    before = signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)

    def listen() -> None:
        with read:
            while number := read.recv(1):
                time.sleep(AGAIN)
                with lock:
                    if number[0] in (signal.SIGINT, signal.SIGTERM) and not stop.requested and not over:
                        signal.pthread_kill(main, number[0])  # which is written there, too

    threading.Thread(target=listen, name="elea-signals", daemon=True).start()
    try:
        yield
    finally:
        with lock:
            over = True
        signal.set_wakeup_fd(before)
        written.close()
