"""A query to a storage: what it asks, whether anybody still waits for the answer, and how fast they take it.

Answers are made only as fast as they leave: the outbox of the link they leave by is the back pressure. A query ends
when its time is over or the session it came from has gone; then `Gone` stops whoever makes its answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from elea.model.details import Details
from elea.model.encoding import Encoding
from elea.model.errors import AccessDenied, Congested, EleaError, InvalidSelector, StoreClosing, StoreReadOnly
from elea.model.selector import Parameters
from elea.space.access import Action
from elea.space.face import Flow, Response
from elea.space.questions import AnswerBody, ErrorBody, ReplyBody
from elea.wire.details import pack

if TYPE_CHECKING:
    from elea.content import Contents
    from elea.node.localface import Asked
    from elea.node.node import Node
    from elea.space.face import Face

__all__ = ["Gone", "Judge", "StoreQuery", "error_form"]

JSON: Final = Encoding.APPLICATION_JSON
IS_JSON: Final = pack(Details(encoding=JSON))

LOOK_SECONDS: Final = 0.25
"""How often who waits for a slow reader looks whether it is still there."""

SLOW_LOOKS: Final = 2
"""Looks without room after which a reader makes place for others, if there are any."""

LOOK_OCTETS: Final = 64 * 1024
"""Bytes of answers after which the room is looked at."""


Judge = Callable[[Flow, Action, str], bool]
"""Whether whoever asks may do something with a key; a denial is counted."""


class Gone(EleaError):
    """Nobody waits for the answer any more."""


class StoreQuery:
    """One query, as the party of a storage in it."""

    __slots__ = ("_asked", "_ended", "_is_closing", "_node", "_since", "body", "is_crowded", "key", "parameters", "qos")

    def __init__(self, node: Node, asked: Asked, is_closing: Callable[[], bool]) -> None:
        self._node = node
        self._asked = asked
        self._is_closing = is_closing
        self._since = 0
        self._ended = False
        self.is_crowded: Callable[[], bool] = lambda: False
        """Whether others wait for the thread that answers this one."""
        self.key = asked.request.key
        self.qos = asked.request.qos
        self.body = asked.request.body
        self.parameters = Parameters(self.body.parameters)

    @property
    def contents(self) -> Contents:
        """How payloads are read, for predicates."""
        return self._node.schemas.contents

    def number(self, name: str) -> int | None:
        """A parameter that is a whole number from 0."""
        text = self.parameters.get(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 19):
            raise InvalidSelector(str(self.parameters), f"{name} is {text!r}, not a whole number")
        return int(text)

    def reply(self, key: str, body: AnswerBody, octets: int) -> None:
        """Send an answer; waits for room now and then, never with a lock held."""
        self._since += octets + 64
        if self._since > LOOK_OCTETS:
            self.await_room()
            self._since = 0
        self._respond(key, body)

    def fields(self) -> dict[str, str]:
        """All parameters at once, for those who look at several; of a name given twice the last one counts."""
        pairs = [piece.partition("=") for piece in self.body.parameters.split(";")]
        return {name: value for name, _, value in pairs}

    def reply_json(self, form: object, key: str | None = None) -> None:
        """Send an answer that is a small object, on the key of the query or another."""
        self.reply_text(json.dumps(form, separators=(",", ":")), key)

    def reply_text(self, form: str, key: str | None = None) -> None:
        """The same, written already."""
        self._respond(key or self.key, ReplyBody(IS_JSON, form.encode()))

    def fail(self, error: EleaError) -> None:
        """Send what went wrong, and the end. That a store takes nothing because the broker ends is no answer."""
        if isinstance(error, StoreReadOnly) and self._is_closing():
            error = StoreClosing()
        self._respond(self.key, ErrorBody(json.dumps(error_form(error), separators=(",", ":")).encode(), JSON))
        self.done()

    def done(self) -> None:
        """Say that there is no more; once."""
        if not self._ended:
            self._ended = True
            self._asked.done()

    def asker(self) -> Face | None:
        """The neighbour it came from; None if that is this process, or it has ended."""
        if self._asked.here:
            return None
        with self._node.lock:
            return self._node.space.asker(self._node.local, self._asked.request.id)

    def judge(self) -> Judge | None:
        """What says which keys the asker may use; None if there are no rules for it.

        Raises:
            Gone: the query has ended.
        """
        guard = self._node.space.guard
        if guard is None or self._asked.here:
            return None
        face = self.asker()
        if face is None:
            raise Gone("the query has ended")
        return partial(guard.check, face)

    def require(self, action: Action) -> None:
        """Refuse the query unless its asker may do that with its key.

        Raises:
            AccessDenied: it may not.
        """
        judge = self.judge()
        if judge is not None and not judge(Flow.INGRESS, action, self.key):
            raise AccessDenied(action.label, self.key)

    def await_room(self) -> None:
        """Wait until the asker can take more.

        Raises:
            Gone: nobody waits for the answer any more.
            Congested: it takes nothing, and others wait.
        """
        looks = 0
        while not self._has_room():
            looks += 1
            if looks >= SLOW_LOOKS and self.is_crowded():
                raise Congested("the answer was not read, and others wait; ask for less, or read faster")

    def _has_room(self) -> bool:
        if self._is_closing():
            raise Gone("the broker is being closed")
        if self._asked.here:
            if not self._node.local.is_asking(self._asked.request.id):
                raise Gone("the query has ended")
            return True  # whoever answers waits for room in its mailbox
        face = self.asker()
        if face is None:
            raise Gone("the query has ended")
        return face.await_room(self.qos, LOOK_SECONDS)

    def _respond(self, key: str, body: AnswerBody) -> None:
        responder = (self._node.node_id, 0)
        self._asked.respond(Response(self._asked.request.id, key, body, self.qos, responder))


def error_form(error: EleaError) -> dict[str, object]:
    """An error as the client makes it again: its class, its text, and its fields."""
    fields = {name: value for name, value in vars(error).items() if isinstance(value, str | int | None)}
    return {**fields, "error": type(error).__name__, "text": str(error)}
