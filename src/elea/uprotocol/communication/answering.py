"""What a server makes of a request, whether threads or tasks do the work: who may ask, the answer, and its deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from elea.model.logger import logger
from elea.node.querytimeouts import Timeouts
from elea.uprotocol.attributes import UAttributes, UMessageType, UPayloadFormat
from elea.uprotocol.message import ReceivedMessage, UMessage
from elea.uprotocol.payload import IntoPayload, UPayload, into_payload
from elea.uprotocol.status import UCode, UStatus, UStatusError
from elea.uprotocol.uuri import UUri

if TYPE_CHECKING:
    from elea.io.loop import Loop

__all__ = ["Answerer", "Authorize", "Request", "Send", "any_client", "failure", "success"]

_log = logger("elea.uprotocol")
_REQUEST: Final = UMessageType.REQUEST

Authorize = Callable[[UAttributes], UCode]
"""Whether a request may be answered: OK, or the code to answer with."""


class Send(Protocol):
    """How answers are sent."""

    def __call__(self, message: UMessage, *, wait: bool) -> None: ...


ANY_CLIENT: Final = UUri.parse("//*/FFFFFFFF/FF/0")


def any_client(origin: UUri | None) -> UUri:
    """The filter for clients.

    Raises:
        UStatusError: INVALID_ARGUMENT: requests come from resource 0.
    """
    if origin is None:
        return ANY_CLIENT
    if not origin.is_entity:
        raise UStatusError(UCode.INVALID_ARGUMENT, f"origin {origin} must have resource 0, where clients call from")
    return origin


class Request:
    """A request being worked on: answered once, by the handler or by its deadline."""

    __slots__ = ("_answerer", "attributes", "number", "payload")

    def __init__(self, answerer: Answerer, message: UMessage) -> None:
        self._answerer = answerer
        self.attributes = _with_authority(message)
        data = message.payload
        self.payload = None if data is None else UPayload(data, message.attributes.payload_format)
        id = self.attributes.id
        assert id is not None
        self.number = id.number
        """Its identifier."""

    def answer(self, value: IntoPayload) -> None:
        """The handler has returned this."""
        try:
            response = success(self.attributes, value)
        except UStatusError as error:
            self._answerer.note_failure(self.attributes.sink, error)
            response = failure(self.attributes, UStatus(UCode.INTERNAL, "the method gave no payload"))
        self._answerer.send(self, response)

    def fail(self, error: BaseException) -> None:
        """The handler has raised this."""
        if isinstance(error, UStatusError) and error.code is not UCode.OK:
            status = error.status
        else:
            # What went wrong inside is nothing a caller should read.
            status = UStatus(UCode.INTERNAL, "the method has failed")
            self._answerer.note_failure(self.attributes.sink, error)
        self._answerer.send(self, failure(self.attributes, status))


class Answerer:
    """Sends the answers of a server, in time or not at all."""

    def __init__(self, loop: Loop, send: Send, authorize: Authorize | None) -> None:
        self._send = send
        self._authorize = authorize
        self._open: dict[int, Request] = {}
        self._timeouts = Timeouts(loop, self._open, self._expired)
        self._lock = threading.Lock()
        self.unsent = 0
        """Answers that could not be sent."""
        self.timed_out = 0
        """Requests whose handler took longer than their time to live."""

        self.failed = 0
        """Requests whose handler raised something else than a UStatusError, or returned what cannot be sent."""

    def __len__(self) -> int:
        return len(self._open)

    def accept(self, message: UMessage) -> Request | None:
        """A request to work on; None if it is none, is not allowed, or is worked on already."""
        attributes = message.attributes
        if attributes.type != _REQUEST or attributes.id is None or not attributes.ttl:
            return None
        request = Request(self, message)
        if self._authorize is not None and (code := self._allowed(attributes)) is not UCode.OK:
            self._sent(failure(request.attributes, UStatus(code, "not allowed")))
            return None
        with self._lock:
            if request.number in self._open:
                return None
            self._open[request.number] = request
        self._timeouts.add(_rounded(attributes.ttl) / 1000, request.number)
        return request

    def refuse(self, request: Request, status: UStatus) -> None:
        """Answer without having worked on it."""
        self.send(request, failure(request.attributes, status))

    def note_failure(self, method: UUri | None, error: BaseException) -> None:
        """Count a handler that failed, and say so now and then: a caller can make it fail as often as it likes."""
        self.failed += 1
        if self.failed & (self.failed - 1) == 0:
            _log.error("handler failed: method=%s failed=%d", method, self.failed, exc_info=error)

    def send(self, request: Request, response: UMessage) -> None:
        """Answer, unless the time is over."""
        if self._open.pop(request.number, None) is not None:
            self._sent(response)

    def _allowed(self, attributes: UAttributes) -> UCode:
        assert self._authorize is not None
        try:
            return UCode(self._authorize(attributes))
        except Exception:  # noqa: BLE001 - who cannot tell must not let anybody in
            _log.exception("authorize failed")
            return UCode.PERMISSION_DENIED

    def _sent(self, response: UMessage, *, wait: bool = True) -> None:
        try:
            self._send(response, wait=wait)
        except UStatusError as error:
            self.unsent += 1
            if self.unsent & (self.unsent - 1) == 0:
                _log.warning("answer not sent: to=%s problem=%s unsent=%d", response.sink, error, self.unsent)

    def _expired(self, number: int) -> None:
        request = self._open.pop(number, None)
        if request is None:
            return
        self.timed_out += 1
        status = UStatus(UCode.DEADLINE_EXCEEDED, f"the method took longer than {request.attributes.ttl} ms")
        # This is a timer, which must not wait; and its client does not wait any more either.
        self._sent(failure(request.attributes, status), wait=False)


def _rounded(ttl: int) -> int:
    """A little more than a time to live, and one of 256 numbers: there is a timer for each length of time, and callers
    that choose another length with every call must not make us keep one for each of them, for up to seven weeks.
    """
    unit = 1 << max(ttl.bit_length() - 4, 0)
    return -(-ttl // unit) * unit


def success(request: UAttributes, value: IntoPayload) -> UMessage:
    """The answer to a call that gave `value`."""
    data, form = into_payload(value)
    return UMessage.response(request, data, form)


def failure(request: UAttributes, status: UStatus) -> UMessage:
    """The answer to a call that failed."""
    return UMessage.response(request, status.to_bytes(), UPayloadFormat.PROTOBUF, code=status.code)


def _with_authority(message: UMessage) -> UAttributes:
    """A request that can be answered. A client that leaves out its authority would get its answer from nobody, since an
    address without one is ours; the key knows better.
    """
    attributes = message.attributes
    if attributes.source is not None and not attributes.source.authority_name and isinstance(message, ReceivedMessage):
        return attributes._replace(source=message.origin)
    return attributes
