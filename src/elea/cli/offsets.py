"""`elea offsets`: where the logs of a broker begin and end, as the options of Spark take it."""

from __future__ import annotations

import argparse
import json
from typing import Final

from elea.cli.connection import REFUSED, UNREACHABLE, USAGE
from elea.cli.output import Output, safe
from elea.cli.style import CliError

__all__ = ["add_arguments", "run"]

EPILOG: Final = """\
The last line is an offset: what a read gets that ends there, or a stream that starts there goes on from.

examples:
  elea offsets 'fleet/**' -e tcp/broker:7447
  elea offsets 'fleet/**' --at 'now(-1h)' --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea offsets`."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("key_expr", metavar="KEYEXPR", help="what is read")
    parser.add_argument("-e", "--connect", metavar="LOCATOR", action="append", help="the broker, or several")
    parser.add_argument("--at", metavar="TIME", help="the place of the first sample of this time or later")


def run(args: argparse.Namespace) -> int:
    """Prints the logs that keep the keys."""
    from elea.model.errors import ConfigError, EleaError, NoLog
    from elea.spark.logs import Logs
    from elea.spark.offsets import Place, form_of
    from elea.spark.options import ReadOptions
    from elea.spark.sessions import close_all

    out = Output(args)
    given = {"keyexpr": args.key_expr, "connectTimeoutMs": "5000", "requestTimeoutMs": "10000"}
    given |= {} if not args.connect else {"connect": json.dumps(args.connect)}
    given |= {} if args.at is None else {"startingTimestamp": args.at}
    try:
        options = ReadOptions.parse(given)
        logs = Logs(options)
        heads = logs.heads()
        offset = {log: Place(head.epoch, head.end) for log, head in heads.items()}
        if options.starting_timestamp is not None:
            at = options.starting_timestamp
            offset = {log: Place(head.epoch, logs.position_at(log, at)) for log, head in heads.items()}
    except ConfigError as error:
        raise CliError(f"{error.path}: {error.problem}", error.hint or "elea offsets --help", USAGE) from error
    except NoLog as error:
        raise CliError(safe(str(error)), f"elea broker --store DIR --persist '{args.key_expr}'", REFUSED) from error
    except EleaError as error:
        raise CliError(safe(str(error)), "start a broker, or name another with -e", UNREACHABLE) from error
    finally:
        close_all()
    form = form_of(offset)
    logs_form = {log: {"epoch": one.epoch, "first": one.first, "end": one.end} for log, one in heads.items()}
    out.form({"logs": logs_form, "offset": form})
    for log, head in heads.items():
        place = f"  from then on {offset[log].next:,}" if args.at is not None else ""
        out.line(f"{safe(log)}  positions {head.first:,} to {head.end:,}  epoch {head.epoch}{place}")
    out.line(json.dumps(form))
    return 0
