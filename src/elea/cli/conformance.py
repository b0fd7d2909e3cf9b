"""`elea conformance`: whether an endpoint keeps to the early protocol, requirement by requirement."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from elea.cli import connection
from elea.cli.output import Output, safe
from elea.cli.style import CliError

if TYPE_CHECKING:
    from elea.conformance import Outcome

__all__ = ["add_arguments", "run"]

EPILOG: Final = """\
Connects again and again and says what the requirements (Z18-...) are about, right and wrong. A failed check shows the
packets of its conversation. The exit code is 1 if a check failed, 3 if nobody is there.
example: elea conformance tcp/127.0.0.1:7448 --dialect zenoh2018 --module core"""

MARKS: Final = {"passed": ("passed", "green"), "failed": ("FAILED", "red"), "not applicable": ("n/a   ", "dim")}
TOLD: Final = 12
"""Packets of a failed conversation that are shown; `--json` has them all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `elea conformance`."""
    parser.epilog = EPILOG
    parser.add_argument("locator", metavar="LOCATOR", type=connection.locator, help="where sessions are accepted")
    parser.add_argument("--dialect", choices=("zenoh2018", "xrce2017"), required=True)
    parser.add_argument("--module", choices=("core", "discovery", "query", "all"), default="all")
    parser.add_argument(
        "--timeout", type=connection.seconds, default=1.0, metavar="S", help="seconds an answer may take (default: 1)"
    )
    parser.add_argument(
        "--silence",
        type=connection.seconds,
        default=0.2,
        metavar="S",
        help="seconds after which no answer counts as none (default: 0.2)",
    )
    parser.add_argument("--only", metavar="TEXT", help="checks whose requirements or name hold this text")


def run(args: argparse.Namespace) -> int:
    """Prints what each check finds; 1 if one failed."""
    from elea.conformance import Endpoint, Verdict, run_checks
    from elea.conformance.runner import checks_of

    out = Output(args)
    endpoint = Endpoint(args.locator, args.dialect, patience=args.timeout, silence=args.silence)
    try:
        endpoint.talk().end()
    except OSError as error:
        raise CliError(f"cannot reach {args.locator}: {error}", "start the endpoint first", 3) from error
    counts = dict.fromkeys(Verdict, 0)
    wanted = [one for one in checks_of(args.module) if args.only is None or args.only in str(one)]
    for found in run_checks(endpoint, wanted):
        counts[found.verdict] += 1
        _tell(out, found)
    out.form({"counts": {verdict.value: count for verdict, count in counts.items()}})
    out.line(", ".join(f"{count} {verdict.value}" for verdict, count in counts.items()))
    return 1 if counts[Verdict.FAILED] else 0


def _tell(out: Output, found: Outcome) -> None:
    out.form(
        {
            "requirements": found.check.requirements,
            "check": found.check.name,
            "module": found.check.module,
            "verdict": found.verdict.value,
            "detail": found.detail,
            "packets": found.transcript,
        }
    )
    mark, colour = MARKS[found.verdict.value]
    out.line(f"{out.style.paint(mark, colour)}  {found.check.name}  ({', '.join(found.check.requirements)})")
    if found.detail:
        out.line(f"        {safe(found.detail)}")
    if mark == "FAILED":
        for arrow, packet in found.transcript[-TOLD:]:
            out.line(f"        {arrow} {packet}")
