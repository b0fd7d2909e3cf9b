"""Vectors of uProtocol: addresses, identifiers, attributes, keys, filters, expiry and answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from elea.model.errors import DecodeError
from elea.uprotocol.attachment import read_attachment, read_checked, write_checked
from elea.uprotocol.attributes import UAttributes, is_expired
from elea.uprotocol.filters import filter_problem
from elea.uprotocol.message import UMessage
from elea.uprotocol.status import InvalidUri, InvalidUuid
from elea.uprotocol.uuid7 import UUID, write_uuid
from elea.uprotocol.uuri import UUri
from elea.uprotocol.validation import problem_of
from elea.uprotocol.zenohkey import key_of, uris_of
from elea.uprotocol.zenohpriority import zenoh_priority
from tests.vectors.cases import Case, Json, Mismatch, Record, check_equal

__all__ = ["uprotocol_case", "uprotocol_cases"]

Check = Callable[[Record], None]

NUMBERS = ("type", "priority", "ttl", "permission_level", "commstatus", "token", "traceparent", "payload_format")


def _uri(text: str) -> UUri:
    """An address; vectors write numbers that are out of range, too."""
    try:
        return UUri.parse(text)
    except InvalidUri:
        authority, entity, version, resource = text.removeprefix("//").rsplit("/", 3)
        return UUri(authority, int(entity, 16), int(version, 16), int(resource, 16))


def _id(text: str) -> UUID:
    digits = text.replace("-", "")
    return UUID(int(digits[:16], 16), int(digits[16:], 16))


def _attributes(form: Record) -> UAttributes:
    given: dict[str, Any] = {name: form[name] for name in NUMBERS if name in form}
    given |= {name: _uri(form[name]) for name in ("source", "sink") if form.get(name) is not None}
    given |= {name: _id(form[name]) for name in ("id", "reqid") if form.get(name) is not None}
    return UAttributes(**given)


def _optional_uri(text: str | None) -> UUri | None:
    return None if text is None else UUri.parse(text)


def _refused(what: str, read: Callable[[], object], *errors: type[Exception]) -> None:
    try:
        value = read()
    except errors:
        return
    raise Mismatch(f"{what} is accepted, as {value!r}")


def _decided(what: str, actual: bool, expected: bool | None) -> None:
    """Compares where the specification decides; null says that it leaves the case open."""
    if expected is not None:
        check_equal(what, actual, expected)


# -- addresses


def _uuri(record: Record) -> None:
    uri = UUri(*(record[name] for name in UUri._fields))
    check_equal("parsed", UUri.parse(record["uri"])._asdict(), uri._asdict())
    check_equal("text", str(uri), record["uri"])
    check_equal("protobuf", uri.to_bytes().hex(), record["protobuf"])
    check_equal("decoded", UUri.from_bytes(bytes.fromhex(record["protobuf"]))._asdict(), uri._asdict())
    seen = {"ue_type": uri.ue_type, "ue_instance": uri.ue_instance, "kind": uri.kind, "wildcards": list(uri.wildcards)}
    for member, value in seen.items():
        if member in record:
            check_equal(member, value, record[member])
    if "uri_with_scheme" in record:
        check_equal("text", uri.with_scheme(), record["uri_with_scheme"])
        check_equal("parsed", UUri.parse(record["uri_with_scheme"])._asdict(), uri._asdict())


def _invalid_uuri(record: Record) -> None:
    _refused("the address", lambda: UUri.parse(record["uri"]), InvalidUri)


def _normalised(record: Record) -> None:
    check_equal("text", str(UUri.parse(record["uri"])), record["canonical"])


def _match(record: Record) -> None:
    matched = UUri.parse(record["pattern"]).matches(UUri.parse(record["candidate"]))
    _decided("matches", matched, record["matches"])


# -- identifiers


def _uuid(record: Record) -> None:
    id = UUID(int(record["msb"], 16), int(record["lsb"], 16))
    check_equal("text", str(id), record["string"])
    check_equal("parsed", UUID.parse(record["string"])._asdict(), id._asdict())
    check_equal("protobuf", write_uuid(id).hex(), record["protobuf"])
    check_equal("decoded", UUID.from_bytes(bytes.fromhex(record["protobuf"]))._asdict(), id._asdict())
    check_equal("time", id.time_ms, record["time_ms"])


def _invalid_uuid(record: Record) -> None:
    _refused("the identifier", lambda: UUID.parse(record["string"]), InvalidUuid)


# -- attributes


def _valid_attributes(record: Record) -> None:
    attributes = _attributes(record["attributes"])
    attachment = bytes.fromhex(record["attachment"])
    check_equal("problem", problem_of(attributes, sending=True), "")
    check_equal("protobuf", attributes.to_bytes().hex(), record["protobuf"])
    check_equal("decoded", _plain(UAttributes.from_bytes(bytes.fromhex(record["protobuf"]))), _plain(attributes))
    for _ in range(2):  # the second time from memory
        check_equal("attachment", [write_checked(attributes)[0].hex(), ""], [record["attachment"], ""])
        decoded, problem = read_checked(attachment)
        check_equal("attachment decoded", [_plain(decoded), problem], [_plain(attributes), ""])
    if "zenoh_key" in record and attributes.source is not None:
        key = key_of(attributes.source, attributes.sink, record["local_authority"])
        check_equal("key", key, record["zenoh_key"])
    priority = zenoh_priority(attributes.priority)
    for member, value in (("zenoh_priority", priority.name), ("zenoh_priority_value", int(priority))):
        if member in record:
            check_equal(member, value, record[member])
    if "umessage_protobuf" in record:
        _whole_message(record, attributes)


def _whole_message(record: Record, attributes: UAttributes) -> None:
    message = UMessage(attributes, bytes.fromhex(record["payload"]))
    check_equal("message", message.to_bytes().hex(), record["umessage_protobuf"])
    decoded = UMessage.from_bytes(bytes.fromhex(record["umessage_protobuf"]))
    check_equal("message decoded", [_plain(decoded.attributes), decoded.payload], [_plain(attributes), message.payload])


def _plain(attributes: UAttributes) -> Json:
    return {name: None if value is None else str(value) for name, value in attributes._asdict().items()}


def _bad_attachment(record: Record) -> None:
    _refused("the attachment", lambda: read_attachment(bytes.fromhex(record["attachment"])), DecodeError)


def _invalid_attributes(record: Record) -> None:
    attributes = _attributes(record["attributes"])
    decoded = UAttributes.from_bytes(bytes.fromhex(record["protobuf"]))
    check_equal("decoded", _plain(decoded), _plain(attributes))
    problems = [problem_of(decoded, sending=sending) for sending in (False, True)]
    if record.get("rejected_by_spec") is not True:
        return
    for sending in (False, True):
        if not problems[sending]:
            raise Mismatch(f"accepted for {'sending' if sending else 'receipt'}, but {record['reason']}")
    attachment = b"\x01" + bytes.fromhex(record["protobuf"])
    for _ in range(2):
        check_equal("refused on receipt", bool(read_checked(attachment)[1]), True)


# -- keys, filters, expiry, answers


def _key(record: Record) -> None:
    source, sink = UUri.parse(record["source"]), _optional_uri(record.get("sink"))
    authority = record["local_authority"]
    check_equal("key", key_of(source, sink, authority), record["key"])
    expected = [str(source.with_authority(authority)), str(sink and sink.with_authority(authority))]
    check_equal("addresses", [str(uri) for uri in uris_of(record["key"])], expected)


def _filter(record: Record) -> None:
    problem = filter_problem(UUri.parse(record["source"]), _optional_uri(record.get("sink")))
    _decided(f"valid ({problem or 'no problem'})", not problem, record["valid"])


def _ttl(record: Record) -> None:
    id = UUID.parse(record["id"])
    if "created_ms" in record:
        check_equal("created", id.time_ms, record["created_ms"])
    _decided("expired", is_expired(UAttributes(id, ttl=record["ttl"]), record["now_ms"]), record["expired"])


def _rpc(record: Record) -> None:
    request = UAttributes.from_bytes(bytes.fromhex(record["request"]["protobuf"]))
    expected = UAttributes.from_bytes(bytes.fromhex(record["response"]))
    response = UMessage.response(request, id=UUID.parse(record["response_id"])).attributes
    check_equal("response", _plain(response), _plain(expected))
    check_equal("problem", problem_of(response, sending=True), "")
    if "response_key" in record and response.source is not None:
        check_equal("key", key_of(response.source, response.sink, ""), record["response_key"])


# A member that only this kind of record has -> how it is checked. The first that fits counts.
KINDS: tuple[tuple[frozenset[str], Check], ...] = (
    (frozenset({"attributes", "attachment"}), _valid_attributes),
    (frozenset({"attributes", "protobuf", "reason"}), _invalid_attributes),
    (frozenset({"attachment", "reason"}), _bad_attachment),
    (frozenset({"request", "response"}), _rpc),
    (frozenset({"ttl", "expired"}), _ttl),
    (frozenset({"msb", "lsb"}), _uuid),
    (frozenset({"string", "reason"}), _invalid_uuid),
    (frozenset({"uri", "ue_id"}), _uuri),
    (frozenset({"uri", "canonical"}), _normalised),
    (frozenset({"uri", "reason"}), _invalid_uuri),
    (frozenset({"pattern", "candidate"}), _match),
    (frozenset({"op", "key", "source"}), _key),
    (frozenset({"source", "sink", "valid"}), _filter),
)


def uprotocol_case(record: Record, name: str) -> Case | None:
    """A record as a case; None if it is of no kind of uProtocol."""
    check = next((check for members, check in KINDS if members <= record.keys()), None)
    return None if check is None else Case(name, partial(check, record))


def uprotocol_cases(content: Record) -> list[Case]:
    """All records of a file; none if one of them is of another kind."""
    cases: list[Case | None] = []
    for member, records in content.items():
        for index, record in enumerate(records if isinstance(records, list) else ()):
            if not isinstance(record, dict):
                return []
            own = str(record.get("name", index))
            cases.append(uprotocol_case(record, own if member == "vectors" else f"{member} {own}"))
    return [case for case in cases if case is not None] if None not in cases else []
