"""What the actions of `elea up` share that speak with a data space: addresses, payloads, the entity that we are."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Final

from elea.cli import connection
from elea.cli.output import safe
from elea.cli.style import CliError
from elea.uprotocol import CallOptions, UPayload, UPayloadFormat, UPriority, UStatusError, UTransportZenoh, UUri
from elea.uprotocol.status import InvalidUri, UCode

__all__ = ["OURSELVES", "add_entity", "add_message", "call_options", "entity", "payload_of", "uri"]

FORMATS: Final = {form.name.lower().replace("_", "-"): form for form in UPayloadFormat if form}
PRIORITIES: Final = tuple(priority.name.lower() for priority in UPriority if priority)

OURSELVES: Final = f"//elea-cli-{os.getpid():x}/FFFE/1/0"
"""The entity that we are unless told. Two commands at a time must not get each other's answers."""

STATUS: Final = {
    UCode.INVALID_ARGUMENT: connection.USAGE,
    UCode.UNAVAILABLE: connection.UNREACHABLE,
    UCode.PERMISSION_DENIED: connection.REFUSED,
    UCode.UNAUTHENTICATED: connection.REFUSED,
}


def uri(text: str) -> UUri:
    """An address given as argument."""
    try:
        return UUri.parse(text)
    except InvalidUri as error:
        raise argparse.ArgumentTypeError(f"{safe(text)}: {error.problem}") from error


def add_entity(parser: argparse.ArgumentParser) -> None:
    """Who we are."""
    parser.add_argument(
        "--as", dest="entity", type=uri, metavar="ENTITY", help="who we are (default: a name of our own)"
    )


def add_message(parser: argparse.ArgumentParser) -> None:
    """The payload, and how it is to be sent."""
    parser.add_argument("payload", nargs="?", metavar="PAYLOAD", help="none if left out; - reads standard input")
    parser.add_argument("--format", choices=FORMATS, default="text", help="what the payload is (default: text)")
    parser.add_argument("--hex", action="store_true", help="PAYLOAD is written in hex")
    parser.add_argument("--ttl", type=connection.positive, metavar="MS", help="milliseconds that it may take")
    parser.add_argument("--priority", choices=PRIORITIES, help="cs0 (least) to cs6 (most urgent)")


def payload_of(args: argparse.Namespace) -> UPayload | None:
    """The payload that was given."""
    if args.payload is None:
        return None
    data = sys.stdin.buffer.read() if args.payload == "-" else os.fsencode(args.payload)
    if args.hex:
        try:
            data = bytes.fromhex(data.decode("ascii"))
        except ValueError as error:
            raise CliError("the payload is not hex", "leave out --hex to send it as it is", connection.USAGE) from error
    return UPayload(data, FORMATS[args.format])


def call_options(args: argparse.Namespace) -> CallOptions:
    """How the message is to be sent."""
    return CallOptions(ttl=args.ttl, priority=None if args.priority is None else UPriority[args.priority.upper()])


@contextlib.contextmanager
def entity(
    args: argparse.Namespace, own: UUri | str | None = None, stop: connection.Stop | None = None
) -> Iterator[UTransportZenoh]:
    """A transport for the entity that we are; what goes wrong ends the command with the right exit code."""
    with connection.open_session(connection.session_config(args), stop) as session:
        try:
            with UTransportZenoh(session, own or OURSELVES) as transport:
                yield transport
        except UStatusError as error:
            status = STATUS.get(error.code, connection.NO)
            raise CliError(safe(str(error)), f"elea up {args.action} --help", status) from error
