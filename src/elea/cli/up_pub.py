"""`elea up pub`: one message on a topic, or to one entity."""

from __future__ import annotations

import argparse
from typing import Final

from elea.cli import connection, up_entity
from elea.cli.output import Output, safe, size_text
from elea.cli.put import sent
from elea.uprotocol import Notifier, Publisher

__all__ = ["add_arguments", "run"]

EPILOG: Final = """\
examples:
  elea up pub //vcu.my_vin/10AB/3/8001 '{"speed": 50}' --format json -e tcp/127.0.0.1:7447
  elea up pub //vcu.my_vin/20/1/8001 open --to //phone/1/1/0 --ttl 1000 -e tcp/127.0.0.1:7447"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea up pub`."""
    parser.epilog = EPILOG
    parser.add_argument(
        "topic", type=up_entity.uri, metavar="TOPIC", help="who says it and where: //vcu.my_vin/10AB/3/8001"
    )
    up_entity.add_message(parser)
    parser.add_argument("--to", type=up_entity.uri, metavar="ENTITY", help="notify this entity: //phone/1/1/0")
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Sends the message."""
    payload, options, out = up_entity.payload_of(args), up_entity.call_options(args), Output(args)
    with up_entity.entity(args, args.topic) as transport:
        connection.need_neighbours(transport.session)
        if args.to is None:
            Publisher(transport).publish(args.topic.resource_id, payload, options)
        else:
            Notifier(transport).notify(args.topic.resource_id, args.to, payload, options)
        sent(transport.session)
    size = 0 if payload is None else len(payload.data)
    kind, to = ("publish", {}) if args.to is None else ("notification", {"sink": str(args.to)})
    out.form({"type": kind, "source": str(args.topic), **to, "size": size})
    way = " → ".join((str(args.topic), *to.values()))
    out.line(f"{out.style.paint(kind, 'green')}  {safe(way)}  {size_text(size)}")
    return 0
