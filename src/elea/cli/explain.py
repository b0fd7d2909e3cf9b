"""`elea explain`: what a predicate means, where it runs, what it says of a payload, and what nodes have let through."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING, Final

from elea.cli import connection
from elea.cli.output import Output, safe
from elea.cli.style import CliError
from elea.model.errors import InvalidPredicate

if TYPE_CHECKING:
    from elea.model.predicate import Predicate
    from elea.model.predicate.syntax import Condition

__all__ = ["add_arguments", "run", "where"]

INVALID: Final = 2
VERDICTS: Final = {True: "true", False: "false", None: "unknown"}
COLOURS: Final = {True: "green", False: "red", None: "yellow"}

EPILOG: Final = """\
The exit code is 1 if a payload is given and the predicate does not hold for it. examples:
  elea explain "speed > 2 AND name LIKE 'a%'"
  elea explain "speed > 2 OR kind = 'DELETE'" --payload '{"speed": 1}'
  elea explain "speed > 2" --nodes -e tcp/127.0.0.1:7447      what the nodes there hold back"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea explain`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("predicate", metavar="PREDICATE", help="a condition, such as \"speed > 2 AND key LIKE 'a/%%'\"")
    parser.add_argument(
        "--param", action="append", default=[], metavar="TEXT", help="what %%0 stands for, then %%1, and so on"
    )
    parser.add_argument("--payload", metavar="TEXT", help="what it says of this payload, term by term")
    parser.add_argument("--encoding", metavar="NAME", default="", help="what the payload is (default: zenoh/bytes)")
    parser.add_argument("--key", metavar="KEY", default="", help="the key of that sample")
    parser.add_argument("--nodes", action="store_true", help="ask nodes what they have held back because of it")
    connection.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Explains."""
    from elea.content import SamplePredicate
    from elea.model.predicate import Predicate

    try:
        predicate = Predicate(args.predicate, args.param)
        SamplePredicate(predicate)
    except InvalidPredicate as error:
        raise where_error(error) from error
    out = Output(args)
    places = _places(predicate)
    out.form(
        {
            "predicate": predicate.text,
            "fields": sorted(_path(path) for path in predicate.fields),
            "sample": sorted(predicate.metadata),
            "properties": sorted(map(str, predicate.properties)),
            "runs": places,
        }
    )
    looks = [_path(path) for path in sorted(predicate.fields, key=str)]
    looks += [f"the sample's {name}" for name in sorted(predicate.metadata)]
    looks += [f"property {name}" for name in sorted(map(str, predicate.properties))]
    out.line(f"predicate  {safe(predicate.text)}")
    out.line(f"looks at   {safe(', '.join(looks))}")
    for name, place in places.items():
        out.line(f"{name:<9}  {place}")
    status = 0 if args.payload is None else _judge(predicate, args, out)
    if args.nodes:
        _ask_nodes(predicate, args, out)
    return status


def where(text: str) -> str:
    """For argparse: a predicate over samples."""
    from elea.content import SamplePredicate

    try:
        SamplePredicate(text)
    except InvalidPredicate as error:
        raise argparse.ArgumentTypeError(f"{error.problem} at column {error.column} of {error.text!r}") from error
    return text


def where_error(error: InvalidPredicate) -> CliError:
    """The end of the command because of a predicate, with a mark at the place."""
    shown = f"{error.text}\n{' ' * (error.column - 1)}^" if len(error.text) < 200 and "\n" not in error.text else ""
    return CliError(f"{error.problem}, at column {error.column}\n{shown}", "see docs/predicates.md", INVALID)


def _path(path: tuple[str | int, ...]) -> str:
    from elea.model.predicate.syntax import Field, canonical

    return canonical(Field(path))


def _places(predicate: Predicate) -> dict[str, str]:
    """Where it runs, for each door."""
    from elea.api.filtereddelivery import declared_predicates

    again = "the receiver looks again"
    if declared_predicates(predicate, None):
        live = f"at publishers and brokers that are Elea nodes, before they send; {again}"
    else:
        live = "at the subscriber: a timestamp may be given on the way"
    return {
        "sub": live,
        "get": f"at stores, before they answer; {again}",
        "history": f"at the broker, before it sends; {again}",
        "spark": "at the broker, or in the task that reads its blocks in place; the task looks again",
    }


def _judge(predicate: Predicate, args: argparse.Namespace, out: Output) -> int:
    """What it says of a payload."""
    from elea.content import SampleView
    from elea.content.samplepredicate import sample_test
    from elea.model.encoding import Encoding
    from elea.model.predicate.syntax import And, Not, Or, canonical
    from elea.wire.details import DEFAULT_QOS

    encoding = Encoding(args.encoding)
    parts = (False, None, encoding.id, encoding.schema, None, None)
    view = SampleView(args.key, os.fsencode(args.payload), DEFAULT_QOS, parts)

    def show(condition: Condition, depth: int) -> None:
        verdict = sample_test(predicate, condition)(view)
        out.form({"term": canonical(condition), "depth": depth, "verdict": verdict})
        shown = out.style.paint(f"{VERDICTS[verdict]:<7}", COLOURS[verdict])
        out.line(f"{shown}    {'  ' * depth}{safe(canonical(condition))}")
        below = condition.terms if isinstance(condition, And | Or) else ()
        for each in (condition.term,) if isinstance(condition, Not) else below:
            show(each, depth + 1)

    if not isinstance(view.content(), dict) and predicate.fields:
        out.note(f"the payload is not what {encoding} says, so every field of it is unknown")
    show(predicate.condition, 0)
    return 0 if sample_test(predicate, predicate.condition)(view) is True else connection.NO


def _ask_nodes(predicate: Predicate, args: argparse.Namespace, out: Output) -> None:
    """What the nodes that can be reached hold against samples."""
    with connection.open_session(connection.session_config(args)) as session:
        connection.need_neighbours(session)
        found = 0
        for reply in session.get("@/*/*/predicates", timeout=5.0):
            if reply.ok is None:
                continue
            node = str(reply.ok.key_expr).split("/")[1]
            for entry in json.loads(reply.ok.payload.to_bytes()):
                if str(predicate) not in entry["predicates"]:
                    continue
                found += 1
                out.form({"node": node, **entry})
                beside = len(entry["predicates"]) - 1
                out.line(
                    f"node {node}: sent {entry['passed']}, held back {entry['kept_back']}"
                    f" ({entry['unreadable']} unreadable)" + (f"; with {beside} other predicates" if beside else "")
                )
    if not found:
        out.note("no node that answers holds samples against this predicate")
