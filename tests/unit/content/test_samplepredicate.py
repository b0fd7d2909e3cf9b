"""Predicates over samples: content by encoding, what the sample says itself, what cannot be read."""

from __future__ import annotations

import cbor2
import pytest

from elea.content import SamplePredicate, compile_sample, decode_content
from elea.content.contents import UNKNOWN
from elea.model.details import Details
from elea.model.encoding import Encoding
from elea.model.errors import InvalidPredicate
from elea.model.limits import CONTENT_BYTES
from elea.model.node_id import NodeId
from elea.model.qos import SampleKind
from elea.model.timestamp import Timestamp
from elea.wire.details import DEFAULT_QOS, pack

STAMP = Timestamp.from_ns(1_767_225_600_000_001_999, NodeId.parse("a1"))  # 2026-01-01T00:00:00.000001999Z


def verdict(
    text: str,
    payload: bytes = b"",
    *,
    encoding: Encoding = Encoding.ZENOH_BYTES,
    kind: SampleKind = SampleKind.PUT,
    stamp: Timestamp | None = None,
    qos: int = DEFAULT_QOS,
) -> bool:
    return SamplePredicate(text).takes("fleet/1/speed", pack(Details(kind, encoding, stamp)), payload, qos)


@pytest.mark.parametrize(
    ("encoding", "payload", "content"),
    [
        (Encoding.APPLICATION_JSON, b'{"a": {"b": [1, null]}}', {"a": {"b": [1, None]}}),
        (Encoding.TEXT_JSON, b"[1, 2]", {"value": [1, 2]}),
        (Encoding.APPLICATION_JSON.with_schema("x"), b"1", {"value": 1}),
        (Encoding.APPLICATION_CBOR, cbor2.dumps({"a": 1.5}), {"a": 1.5}),
        (Encoding.APPLICATION_CBOR, cbor2.dumps("x"), {"value": "x"}),
        (Encoding.ZENOH_BYTES, b"21.5", {"value": 21.5}),
        (Encoding.ZENOH_STRING, b"21.5", {"value": "21.5"}),
        (Encoding.TEXT_PLAIN, "é".encode(), {"value": "é"}),
        (Encoding.ZENOH_BYTES, b"\x00\x01", UNKNOWN),
        (Encoding.ZENOH_BYTES, b"", UNKNOWN),
        (Encoding.APPLICATION_JSON, b"{", UNKNOWN),
        (Encoding.APPLICATION_JSON, b'{"a": 1} x', UNKNOWN),
        (Encoding.APPLICATION_JSON, b"\xff", UNKNOWN),
        (Encoding.APPLICATION_JSON, b"[" * 100_000, UNKNOWN),
        (Encoding.APPLICATION_JSON, b"1" * 5000, UNKNOWN),
        (Encoding.APPLICATION_CBOR, b"\x9f" * 5000, UNKNOWN),
        (Encoding.TEXT_PLAIN, b"\xff", UNKNOWN),
        (Encoding.IMAGE_PNG, b"1", UNKNOWN),
        (Encoding("my/own"), b"1", UNKNOWN),
    ],
    ids=lambda value: str(value)[:30],
)
def test_content_by_encoding(encoding: Encoding, payload: bytes, content: object) -> None:
    assert decode_content(encoding, payload) == content


def test_size_of_what_is_decoded_is_bounded() -> None:
    assert decode_content(Encoding.APPLICATION_JSON, b"1".rjust(CONTENT_BYTES)) == {"value": 1}
    assert decode_content(Encoding.APPLICATION_JSON, b"1".rjust(CONTENT_BYTES + 1)) is UNKNOWN


@pytest.mark.parametrize(
    "text",
    [
        "key = 'fleet/1/speed' AND key LIKE 'fleet/%'",
        "kind = 'PUT' AND kind <> 'DELETE'",
        "timestamp = '2026-01-01T00:00:00.000001Z'",
        "timestamp < '2026-01-01T00:00:00.000002Z'",
        "encoding = 'application/json'",
        "sample.priority = 2 AND sample.express = TRUE AND sample.size = 15",
        "timestamp IS NOT NULL",
        '"timestamp" = 7 AND timestamp IS NOT NULL',
        "property.x IS NULL",
    ],
)
def test_what_the_sample_says(text: str) -> None:
    payload = b'{"timestamp":7}'

    assert verdict(text, payload, encoding=Encoding.APPLICATION_JSON, stamp=STAMP, qos=2 | 16) is True


def test_deletion_has_no_content() -> None:
    assert verdict("kind = 'DELETE'", kind=SampleKind.DELETE)
    assert verdict("kind = 'DELETE' OR a = 1", kind=SampleKind.DELETE)
    assert not verdict("a IS NULL", kind=SampleKind.DELETE)
    assert not verdict("a IS NOT NULL", kind=SampleKind.DELETE)
    assert not verdict("timestamp > '2026-01-01T00:00:00Z'", b"1")


def test_what_cannot_be_read_is_neither_true_nor_false_and_counted() -> None:
    for text in ("a = 1", "NOT a = 1", "a IS NULL", "a IS NOT NULL", "inRange(a, [1], 1)", "a LIKE '%'"):
        where = SamplePredicate(text)
        assert not where.takes("k", None, b"\xff")
        assert (where.passed, where.refused, where.unreadable) == (0, 1, 1)


def test_what_is_let_through_is_counted() -> None:
    where = SamplePredicate("value > 1")
    run = [(0, 0, b"", 5, None, str(number).encode()) for number in range(4)]

    assert where.chosen("k", run) == run[2:]
    assert where.chosen("k", run[2:]) == run[2:]
    assert (where.passed, where.refused, where.unreadable) == (4, 2, 0)


def test_details_that_make_no_sense_are_counted() -> None:
    where = SamplePredicate("key = 'k'")

    assert not where.takes("k", b"\x81\x1f", b"1")  # an extension that has to be understood
    assert where.unreadable == 1


def test_early_selection() -> None:
    location: dict[str | int, object] = {"location": [1, 3], 8: "x"}
    where = compile_sample(
        "inRange(property.location,someLocation,radius) AND level < %0 AND property.8 = 'x'",
        properties={"someLocation": "[1,2]", "radius": "1", "%0": "5"},
        of_resource=location,
    )

    assert where.takes("a", None, b'{"level": 4}')
    assert not where.takes("a", None, b'{"level": 6}')
    location["location"] = [9, 9]
    assert not where.takes("a", None, b'{"level": 4}')
    with pytest.raises(InvalidPredicate, match="function"):
        compile_sample("nosuch(a)")
    with pytest.raises(InvalidPredicate, match="not given"):
        compile_sample("a = %1", properties={"%0": "1"})
    assert compile_sample("a = %1", ["1", "2"]).takes("a", None, b'{"a": 2}')
