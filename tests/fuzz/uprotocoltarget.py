"""Attachments and messages of uProtocol: the first byte says what the rest is to be read as."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from elea.model.errors import DecodeError
from elea.spark.payload.attributecolumns import read_attachments, uuid_texts
from elea.uprotocol import UUID, InvalidUri, UAttributes, UMessage, UStatus, new_uuid
from elea.uprotocol.attachment import read_checked, write_checked
from elea.uprotocol.attributes import read_attributes
from elea.uprotocol.core import usubscription, utwin
from elea.uprotocol.payload import unwrap_any
from elea.uprotocol.validation import problem_of
from tests.fuzz.laws import require
from tests.fuzz.target import Target

__all__ = ["uprotocol_target"]

VECTORS: Final = Path(__file__).parents[1] / "vectors" / "uprotocol" / "uattributes.json"
ATTACHMENT: Final = 0

READERS: Final[tuple[Callable[[bytes], Any], ...]] = (
    read_checked,
    UMessage.from_bytes,
    UStatus.from_bytes,
    unwrap_any,
    usubscription.SubscriptionRequest.from_bytes,
    usubscription.FetchSubscriptionsResponse.from_bytes,
    utwin.GetLastMessagesRequest.from_bytes,
    utwin.GetLastMessagesResponse.from_bytes,
)
"""What a peer's bytes are read as, by their first byte."""


def uprotocol_target() -> Target:
    """Everything of uProtocol that a peer's bytes reach."""

    def decode(data: bytes) -> Any:
        return READERS[data[0] % len(READERS)](data[1:]) if data else None

    def law(data: bytes, value: Any) -> None:
        if not data:
            return
        if data[0] % len(READERS) == ATTACHMENT:
            _attachment(data[1:], *value)
        elif hasattr(value, "to_bytes"):
            require(type(value).from_bytes(value.to_bytes()) == value, "what is written is read the same", value)

    return Target("uprotocol", decode, law, (DecodeError, InvalidUri), _seeds, _tokens)


def _attachment(data: bytes, attributes: UAttributes, problem: str) -> None:
    """From memory, plainly, as a column, and written again: it is the same attributes."""
    require(read_attributes(data[1:]) == attributes, "the quick way reads what the plain one reads", attributes)
    require(problem_of(attributes) == problem, "the quick way judges as the plain one does", attributes, problem)
    require(read_checked(data) == (attributes, problem), "the second time it is read the same", attributes)
    written, _ = write_checked(attributes)
    if attributes == UAttributes():
        return  # no attributes at all are no attachment, with or without fields that nobody knows
    require(read_attributes(written[1:]) == attributes, "what is written is read the same", attributes, written)
    columns = read_attachments(pa.array([data, written]))
    for row in range(2):
        found = columns.distinct[columns.places[row]]
        require(found.problem == problem or row == 1, "a column is judged as its rows are", found, problem)
        require(_without_ids(found.attributes) == _without_ids(attributes), "a column reads what rows read", found)
    id = None if attributes.id in (None, UUID()) else str(attributes.id)
    require(uuid_texts(columns.ids).to_pylist() == [id, id], "a column has the identifiers of its rows", id)
    reqid = None if attributes.reqid in (None, UUID()) else str(attributes.reqid)
    require(uuid_texts(columns.reqids).to_pylist() == [reqid, reqid], "a column has the requests of its rows", reqid)


def _without_ids(attributes: UAttributes | None) -> UAttributes | None:
    return None if attributes is None else attributes._replace(id=None, reqid=None)


def _seeds() -> list[bytes]:
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    found = [b"\x00" + bytes.fromhex(one["attachment"]) for one in vectors["vectors"]]
    found += [b"\x00" + bytes.fromhex(one["attachment"]) for one in vectors["bad_attachments"]]
    found += [b"\x01" + bytes.fromhex(one["umessage"]) for one in vectors["vectors"] if one.get("umessage")]
    topic = UAttributes.from_bytes(found[0][2:]).source
    assert topic is not None
    info = usubscription.SubscriberInfo(uri=topic)
    subscription = usubscription.Subscription(topic=topic, subscriber=info)
    response = utwin.MessageResponse(topic=topic, status=UStatus(), message=UMessage(UAttributes(new_uuid())))
    messages: dict[int, Any] = {
        2: UStatus(message="so", details=(b"x",)),
        4: usubscription.SubscriptionRequest(topic=topic),
        5: usubscription.FetchSubscriptionsResponse(subscriptions=(subscription,) * 2),
        6: utwin.GetLastMessagesRequest(topics=utwin.UUriBatch(uris=(topic,) * 3)),
        7: utwin.GetLastMessagesResponse(responses=(response,)),
    }
    return found + [bytes((kind,)) + message.to_bytes() for kind, message in messages.items()]


def _tokens() -> list[bytes]:
    heads = [
        "0a1209",
        "11",
        "1001",
        "1002",
        "1003",
        "1a",
        "22",
        "2805",
        "30e807",
        "4a1209",
        "5202",
        "5a02",
        "6002",
        "0b",
        "0c",
    ]
    return [bytes.fromhex(head) for head in heads] + [b"\x01", b"\x80" * 9 + b"\x01", b"\x0b" * 120]
