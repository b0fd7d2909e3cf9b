"""Which attributes a message of each type must have: all that is wrong with some, as one text.

What comes is judged as the public specification has it. What is sent is judged more strictly, so that older
implementations understand it: no sink on a publish message, a well-formed traceparent, no format without a payload.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from elea.uprotocol.attributes import RPC_PRIORITY, UAttributes, UMessageType, UPayloadFormat, UPriority
from elea.uprotocol.status import UCode, UStatusError
from elea.uprotocol.uuid7 import UUID
from elea.uprotocol.uuri import UUri

__all__ = ["check", "id_problem", "problem_of", "problem_without_ids"]

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
_STREAMED: Final = ("type", "instance", "version", "resource")

_PUBLISH: Final = UMessageType.PUBLISH
_REQUEST: Final = UMessageType.REQUEST
_RESPONSE: Final = UMessageType.RESPONSE
_NOTIFICATION: Final = UMessageType.NOTIFICATION

_TOPIC, _METHOD, _ENTITY = "in 8000..FFFE", "in 1..7FFF", "0"
_RESOURCES: Final = {
    # type -> resource of the source, resource of the sink
    _PUBLISH: (_TOPIC, ""),
    _NOTIFICATION: (_TOPIC, _ENTITY),
    _REQUEST: (_ENTITY, _METHOD),
    _RESPONSE: (_METHOD, _ENTITY),
}


def check(attributes: UAttributes, *, sending: bool = False) -> None:
    """Raises UStatusError(INVALID_ARGUMENT) with everything that is wrong.

    Args:
        sending: also refuse what others need not understand.
    """
    if problem := problem_of(attributes, sending=sending):
        raise UStatusError(UCode.INVALID_ARGUMENT, problem)


def problem_of(attributes: UAttributes, *, sending: bool = False) -> str:
    """Everything that is wrong, joined by `; `; empty if nothing is.

    >>> problem_of(UAttributes(type=UMessageType.REQUEST))
    'id missing; source missing; sink missing; priority 0 of a request is below CS4; ttl of a request missing'
    """
    found = (id_problem("id", attributes.id), problem_without_ids(attributes, sending=sending), _reqid(attributes))
    return "; ".join(part for part in found if part)


def id_problem(what: str, id: UUID | None) -> str:
    """What is wrong with an identifier."""
    if id is None:
        return f"{what} missing"
    return "" if id.is_valid else f"{what} {id} is no UUID of version 7: {id.problem}"


def _reqid(attributes: UAttributes) -> str:
    # That it is missing is told with the rest.
    return "" if attributes.reqid is None else id_problem("reqid", attributes.reqid)


def problem_without_ids(attributes: UAttributes, *, sending: bool = False) -> str:
    """The same but for `id`, and for what `reqid` is: these differ with each message, the rest mostly does not."""
    return "; ".join(_problems(attributes, sending))


def _problems(given: UAttributes, sending: bool) -> Iterator[str]:
    name = {_PUBLISH: "publish", _NOTIFICATION: "notification", _REQUEST: "request", _RESPONSE: "response"}
    if given.type not in name:
        yield f"type {int(given.type)} is not defined" if given.type else "type missing"
        return
    kind = name[UMessageType(given.type)]
    source, sink = _RESOURCES[UMessageType(given.type)]
    yield from _address(kind, "source", given.source, source)
    if given.type == _PUBLISH:
        yield from _publish_sink(given.sink, sending)
    else:
        yield from _address(kind, "sink", given.sink, sink)
    yield from _numbers(given, kind)
    if given.type == _REQUEST and not given.ttl:
        yield "ttl of a request missing" if given.ttl is None else "ttl of a request is 0"
    if given.type == _RESPONSE and given.reqid is None:
        yield "reqid of a response missing"
    if sending and given.traceparent and not _TRACEPARENT.fullmatch(given.traceparent):
        yield f"traceparent {given.traceparent!r} is not that of a W3C trace context"


def _numbers(given: UAttributes, kind: str) -> Iterator[str]:
    if given.priority > UPriority.CS6:
        yield f"priority {given.priority} is not defined"
    elif given.type in (_REQUEST, _RESPONSE) and given.priority < RPC_PRIORITY:
        yield f"priority {int(given.priority)} of a {kind} is below CS4"
    if given.commstatus is not None and given.commstatus > UCode.UNAUTHENTICATED:
        yield f"commstatus {given.commstatus} is not defined"
    if given.payload_format > UPayloadFormat.SHM:
        yield f"payload_format {given.payload_format} is not defined"


def _address(kind: str, what: str, uri: UUri | None, wanted: str) -> Iterator[str]:
    if uri is None:
        yield f"{what} missing"
        return
    if uri.problem:
        yield f"{what} {uri}: {uri.problem}"
        return
    if uri.wildcards:
        yield f"{what} {uri} of a {kind} has a wildcard {' and '.join(uri.wildcards)}"
    fits = uri.is_topic if wanted is _TOPIC else uri.is_method if wanted is _METHOD else uri.is_entity
    if not fits and uri.resource_id != 0xFFFF:
        yield f"{what} {uri} of a {kind} has resource {uri.resource_id:X}, which must be {wanted}"


def _publish_sink(sink: UUri | None, sending: bool) -> Iterator[str]:
    if sink is None:
        return
    # Spec: newer texts let a streamer say in the sink for which authority a message is; the seed knows no such thing.
    streamed = sink.authority_name and "authority" not in sink.wildcards and sink.wildcards == _STREAMED
    if sending or not streamed or sink.problem:
        yield f"publish message has a sink, {sink}"
