"""Calls under way: each is answered, times out, or is given up when its client ends. Exactly one of these."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from elea.model.errors import DecodeError
from elea.model.limits import UPROTOCOL_PENDING
from elea.node.querytimeouts import Timeouts
from elea.uprotocol.attributes import UAttributes, UMessageType
from elea.uprotocol.message import UMessage
from elea.uprotocol.payload import UPayload
from elea.uprotocol.status import UCode, UStatus, UStatusError, code_of
from elea.uprotocol.uuid7 import UUID

if TYPE_CHECKING:
    from elea.io.loop import Loop

__all__ = ["Calls", "Outcome", "outcome_of"]

_RESPONSE: Final = UMessageType.RESPONSE

Outcome = "UPayload | UStatusError | None"
Done = Callable[["UPayload | UStatusError | None"], None]


class Calls:
    """The calls of one client that wait for an answer."""

    def __init__(self, loop: Loop) -> None:
        self._waiting: dict[int, tuple[Done, UAttributes]] = {}
        self._timeouts = Timeouts(loop, self._waiting, self._expired)
        self._lock = threading.Lock()
        self._closed = False
        self.unmatched = 0
        """Responses that nobody waits for: late ones, repeated ones, those to another client of the same entity."""
        self.timed_out = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, id: UUID, request: UAttributes, done: Done) -> None:
        """Wait for the answer to a request with this id and these attributes: `done` is called once, in any thread.

        Raises:
            UStatusError: ALREADY_EXISTS (a call with this id waits), RESOURCE_EXHAUSTED, CANCELLED (it has ended).
        """
        number, ttl = id.number, request.ttl
        assert ttl
        with self._lock:
            if self._closed:
                raise UStatusError(UCode.CANCELLED, "this client is closed")
            if len(self._waiting) >= UPROTOCOL_PENDING:
                raise UStatusError(UCode.RESOURCE_EXHAUSTED, f"{UPROTOCOL_PENDING} calls wait for answers already")
            if number in self._waiting:
                raise UStatusError(UCode.ALREADY_EXISTS, f"a call with id {id} waits for its answer already")
            self._waiting[number] = done, request
        self._timeouts.add(ttl / 1000, number)

    def forget(self, id: UUID) -> bool:
        """Nobody waits for the answer any more; whether somebody did."""
        return self._waiting.pop(id.number, None) is not None

    def arrived(self, message: UMessage) -> None:
        """A message for this entity: notifications come here, too."""
        attributes = message.attributes
        if attributes.type != _RESPONSE or attributes.reqid is None:
            return
        found = self._waiting.pop(attributes.reqid.number, None)
        if found is None:
            self.unmatched += 1
        else:
            found[0](outcome_of(message))

    def _expired(self, number: int) -> None:
        found = self._waiting.pop(number, None)
        if found is None:
            return
        done, request = found
        self.timed_out += 1
        done(UStatusError(UCode.DEADLINE_EXCEEDED, f"no answer from {request.sink} within {request.ttl} ms"))

    def close(self) -> None:
        """Give up all that wait."""
        with self._lock:
            self._closed = True
            given_up = list(self._waiting.values())
            self._waiting.clear()
        for done, request in given_up:
            done(UStatusError(UCode.CANCELLED, f"the client was closed before {request.sink} answered"))


def outcome_of(response: UMessage) -> UPayload | UStatusError | None:
    """What came of a call: its payload, or the error it ended with."""
    attributes, data = response
    payload = None if data is None else UPayload(data, attributes.payload_format)
    if not attributes.commstatus:
        return payload
    code = code_of(attributes.commstatus)
    body = None if payload is None else payload.message_bytes("uprotocol.v1.UStatus")
    if body:
        try:
            status = UStatus.from_bytes(body)
        except DecodeError:
            status = UStatus()
        if status.code is not UCode.OK:
            return UStatusError.of(status)
    return UStatusError(code, f"{attributes.source} answered {code.name}")
