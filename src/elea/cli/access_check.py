"""`elea check-config FILE --as USER put KEY`: what access rules say of somebody, and which of them say it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from elea.cli.style import CliError

if TYPE_CHECKING:
    from elea.api.config import Config
    from elea.cli.output import Output

__all__ = ["EXAMPLE", "add_arguments", "explain"]

EXAMPLE: Final = "elea check-config router.json5 --as ann put home/1/temp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that name somebody, and what he wants to do."""
    group = parser.add_argument_group("access rules", "what somebody may do, and which rules say so")
    group.add_argument(
        "--as",
        dest="attempt",
        nargs=3,
        metavar=("USER", "ACTION", "KEY"),
        help="a user ('' is one without a name), put, query, declare_subscriber or another action, a key expression",
    )
    group.add_argument("--certificate", metavar="NAME", help="the common name of a certificate")
    group.add_argument("--interface", metavar="NAME", action="append", default=[], help="an interface of the link")
    group.add_argument("--protocol", metavar="NAME", default="tcp", help="the protocol of the link (tcp)")


def explain(args: argparse.Namespace, config: Config, out: Output) -> int:
    """Print what the rules say for both directions; 0 if a message from him is let in, 1 if not."""
    from elea.api.accesssettings import guard_rules
    from elea.model.errors import EleaError
    from elea.model.keyexpr import KeyExpr
    from elea.model.qos import Role
    from elea.space.access import ACTIONS, Access, Verdict
    from elea.space.face import Flow, Subject

    user, wanted, text = args.attempt
    action = ACTIONS.get(wanted)
    if action is None:
        raise CliError(f"{wanted!r} is no action of access rules", f"one of {', '.join(ACTIONS)}", 2)
    try:
        key = str(KeyExpr(text))
    except EleaError as error:
        raise CliError(str(error), EXAMPLE, 2) from error
    rules = guard_rules(config).access
    subject = Subject(b"\1", Role.CLIENT, user or None, args.certificate, f"{args.protocol}/0.0.0.0:0")
    allowed = True
    for flow in Flow:
        verdict = Verdict(True)
        if rules is not None:
            access = Access(rules)
            verdict = access.judge(access.combinations(subject, args.interface), flow, action, key)
        why = ", ".join(verdict.rules) or ("the default" if rules is not None else "access control is not enabled")
        allowed = allowed and (verdict.allowed or flow is Flow.EGRESS)
        out.form({"flow": flow.label, "action": action.label, "key": key, "allowed": verdict.allowed, "why": why})
        direction = "from" if flow is Flow.INGRESS else "to"
        word = out.style.paint("allowed", "green") if verdict.allowed else out.style.paint("denied", "red")
        out.line(f"{flow.label:8} {action.label} {key} {direction} {user or 'anybody'}: {word} ({why})")
    return 0 if allowed else 1
