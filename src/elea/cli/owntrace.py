"""`elea trace VERB …`: the messages that a verb of ours sends and gets, on the error stream beside what it prints."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from elea.cli.output import Output, say
from elea.cli.style import CliError
from elea.cli.tracedisplay import Showing

if TYPE_CHECKING:
    from elea.cli.conversation import Conversation
    from elea.io.link import Link

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Runs the verb with all its links under trace; its exit code is ours."""
    from elea.cli import VERBS, main
    from elea.io.tap import set_tap

    verb, *words = args.own
    if verb not in VERBS or verb == "trace":
        raise CliError(f"{verb!r} is no verb that can be traced", "elea trace put home/1/temp 21.5", 2)
    trace = _OwnTrace(args)
    set_tap(trace.opened)
    try:
        return main([verb, *words])
    finally:
        set_tap(None)


class _OnErrors(Output):
    """Prints everything on the error stream: the other one belongs to the verb."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__(args)
        self.style = self.errors

    def form(self, form: Mapping[str, object]) -> None:
        if self.json:
            say(json.dumps(form), sys.stderr)

    def line(self, text: str) -> None:
        if not self.json:
            say(text, sys.stderr)


class _OwnTrace(Showing):
    """All links of this process."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__(args, _OnErrors(args))
        self._numbers = itertools.count(1)

    def opened(self, link: Link, accepted: bool, dialect: str) -> _Heard:
        """A link was made; its locator has said in which dialect."""
        from elea.cli.conversation import Conversation
        from elea.wire import dialect_named

        number = next(self._numbers)
        self.tell(number, "accepted" if accepted else "connected", link.remote)
        try:
            spoken = dialect_named(dialect)
        except KeyError:  # one that this process has added, and nobody can decode
            spoken = self.dialect
        return _Heard(self, number, link, accepted, Conversation(spoken))


class _Heard:
    """One link: an `Ear`. Side 0 is the one that has connected."""

    def __init__(self, trace: _OwnTrace, number: int, link: Link, accepted: bool, talk: Conversation) -> None:
        self._trace = trace
        self._number = number
        self._streamed = link.streamed
        self._remote = link.remote
        self._accepted = accepted
        self._talk = talk

    def heard(self, data: bytes, outward: bool) -> None:
        whole = data if self._streamed else self._talk.prefix(len(data)) + data
        with contextlib.suppress(OSError):  # nobody reads the trace any more; that must not end the link
            self._trace.show(self._number, int(outward is self._accepted), self._talk, whole)

    def ended(self) -> None:
        with contextlib.suppress(OSError):
            self._trace.tell(self._number, "ended", self._remote)
