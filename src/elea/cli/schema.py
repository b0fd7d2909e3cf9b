"""`elea schema`: the types that a data space declares for its payloads, below `@schema`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from elea.cli import connection
from elea.cli.output import Output, safe, size_text
from elea.cli.put import stored
from elea.cli.style import CliError
from elea.content.registry import EVERYTHING, KEYS, PLACE, SchemaRegistry, rule_key, type_key
from elea.model.encoding import Encoding
from elea.model.errors import EleaError

if TYPE_CHECKING:
    from elea.api.sample import Sample
    from elea.api.session import Session

__all__ = ["add_arguments", "run"]

EPILOG: Final = """\
put     declares TYPE by a file with IDL, a ROS message or a protobuf descriptor set; - reads standard input
keys    says that samples of a key expression that do not name their type are of TYPE
get     prints the schema of TYPE
list    prints all that is declared
delete  takes back what put or keys have declared, for TYPE or for the key expression

TYPE is an encoding with the name of the type: 'application/cdr;demo::Light'. A broker with a store keeps what is
declared; whoever looks into payloads asks for it. examples:
  elea schema put 'application/cdr;std_msgs/msg/String' String.msg -e tcp/127.0.0.1:7447
  elea schema put 'application/protobuf;my.package.Speed' speed.desc
  elea schema keys 'fleet/*/pose' 'application/cdr;demo::Pose'
  elea sub 'fleet/**' --where "position[0] > 2" """

KEPT: Final[dict[str, Any]] = {"durability": "transient", "ack": True}
"""Where there is a store directory it is kept there; else a storage in memory will do."""

_LANGUAGES: Final = {".idl": "omgidl", ".msg": "ros2msg"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea schema`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("action", choices=("put", "keys", "get", "list", "delete"), help="what to do; see below")
    parser.add_argument("first", nargs="?", metavar="TYPE|KEYEXPR", help="put, get: the type; keys: the keys")
    parser.add_argument("second", nargs="?", metavar="FILE|TYPE", help="put: the file; keys: the type")
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Does what `action` says."""
    wanted = {"put": 2, "keys": 2, "get": 1, "delete": 1, "list": 0}[args.action]
    if wanted != (args.first is not None) + (args.second is not None):
        raise CliError(f"{args.action} takes {wanted} arguments", "elea schema --help", connection.USAGE)
    out = Output(args)
    if args.action in ("put", "keys"):
        return _declare(args, out)
    with connection.open_session(connection.session_config(args)) as session:
        connection.need_neighbours(session)
        if args.action == "delete":
            return _delete(session, _place(args.first), out)
        key = EVERYTHING if args.action == "list" else _key_of(args.first)
        samples = [reply.ok for reply in session.get(key, timeout=10.0) if reply.ok is not None]
        if args.action == "list":
            return _list(samples, out)
        return _show(samples, args, out)


def _declare(args: argparse.Namespace, out: Output) -> int:
    if args.action == "put":
        key, name = _key_of(args.first), args.second
        data = sys.stdin.buffer.read() if name == "-" else _read(name)
        language = _LANGUAGES.get(Path(name).suffix)
        encoding = "text/plain" if language is None else f"text/plain;{language}"
        if key.startswith(f"{PLACE}/protobuf/"):
            encoding = "application/octet-stream"
        _check(key, args.first, language, data)
    else:
        key, data, encoding = _rule(args.first), args.second.encode(), "text/plain"
        _key_of(args.second)
    with connection.open_session(connection.session_config(args)) as session:
        connection.need_neighbours(session)
        stored(lambda **options: session.put(key, data, encoding=encoding, **options), argparse.Namespace(**KEPT))
    out.form({"key": key, "kind": "put", "size": len(data)})
    out.line(f"{out.style.paint('declared', 'green')}  {safe(args.first)}  {size_text(len(data))}")
    return 0


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise CliError(str(error), "name a file with the schema", connection.USAGE) from error


def _check(key: str, told: str, language: str | None, data: bytes) -> None:
    """Say what is wrong with a schema before it is put."""
    registry = SchemaRegistry()
    registry.take(key, None if language is None else language.encode(), data)
    made = Encoding(told)
    if registry.decoder(made.id, made.schema) is None:
        raise CliError(registry.problems.get(key, "no schema"), "elea schema --help", connection.NO)


def _key_of(told: str) -> str:
    try:
        return type_key(told)
    except EleaError as error:
        hint = "'application/cdr;demo::Light' or 'application/protobuf;my.package.Speed'"
        raise CliError(str(error), hint, connection.USAGE) from error


def _rule(told: str) -> str:
    try:
        return rule_key(told)
    except EleaError as error:
        raise CliError(str(error), "elea key KEYEXPR", connection.USAGE) from error


def _place(told: str) -> str:
    """Where a type or the rule for a key expression is declared."""
    return _key_of(told) if ";" in told else _rule(told)


def _delete(session: Session, key: str, out: Output) -> int:
    if not any(reply.ok is not None for reply in session.get(key, timeout=10.0)):
        raise CliError(f"nothing is declared at {key}", "elea schema list", connection.NO)
    stored(lambda **options: session.delete(key, **options), argparse.Namespace(**KEPT))
    out.form({"key": key, "kind": "delete"})
    out.line(f"{out.style.paint('deleted', 'green')}  {safe(key)}")
    return 0


def _list(samples: list[Sample], out: Output) -> int:
    for sample in sorted(samples, key=lambda sample: str(sample.key_expr)):
        kind, _, name = str(sample.key_expr).removeprefix(f"{PLACE}/").partition("/")
        is_rule = kind == KEYS
        told = unquote(name) if is_rule else name
        what = sample.payload.to_bytes().decode(errors="replace") if is_rule else size_text(len(sample.payload))
        out.form({"key": str(sample.key_expr), kind if is_rule else "type": told, **({"encoding": what} if is_rule else
                 {"format": kind, "size": len(sample.payload)})})  # fmt: skip
        out.line(f"{kind:9} {safe(told)}  {safe(what)}")
    if not samples:
        raise CliError("no types are declared", "elea schema put TYPE FILE", connection.NO)
    return 0


def _show(samples: list[Sample], args: argparse.Namespace, out: Output) -> int:
    if not samples:
        raise CliError(f"{args.first} is not declared", "elea schema list", connection.NO)
    data = samples[0].payload.to_bytes()
    if args.json:
        from elea.cli.output import payload_form

        out.form({"key": str(samples[0].key_expr), **payload_form(data)})
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    return 0
