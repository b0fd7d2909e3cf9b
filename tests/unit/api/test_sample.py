"""`Sample` and `Reply`: lazily decoded and made from values, with the same result."""

from __future__ import annotations

import pytest

from elea.api.apitimestamp import NTP64, Timestamp
from elea.api.identity import EntityGlobalId, SourceInfo, ZenohId
from elea.api.reply import Reply, ReplyError
from elea.api.sample import Sample
from elea.api.zbytes import ZBytes
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.model.qos import CongestionControl, Priority, SampleKind
from elea.wire.zenoh1 import messages
from elea.wire.zenoh1.samples import split_body

STAMP = Timestamp(NTP64(1_700_000_000, 0), b"\x34\x12")
SOURCE = SourceInfo(EntityGlobalId(ZenohId(b"\x77"), 6), 7)
PUT = messages.Put(
    b"21.5",
    timestamp=messages.Timestamp(STAMP.value.ntp64, b"\x34\x12"),
    encoding=messages.Encoding(4, b"utf-8"),
    source_info=messages.SourceInfo(b"\x77", 6, 7),
    attachment=b"note",
)
FULL_QOS = 0x10 | 0x08 | 2


def lazy(body: messages.Put | messages.Del, qos: int) -> Sample:
    meta, payload = split_body(body)
    return Sample(KeyExpr("a/b"), (0x1D, 1, b"", qos, meta, payload))


def local(body: messages.Put | messages.Del, qos: int) -> Sample:
    assert isinstance(body, messages.Put)
    return Sample.of(
        KeyExpr("a/b"),
        b"21.5",
        encoding=Encoding("text/plain;utf-8"),
        timestamp=STAMP,
        qos=qos,
        attachment=b"note",
        source_info=SOURCE,
    )


@pytest.mark.parametrize("make", [lazy, local])
def test_every_way_of_making_a_sample_gives_the_same(make: type) -> None:
    sample: Sample = make(PUT, FULL_QOS)

    assert sample.key_expr == KeyExpr("a/b")
    assert sample.payload == b"21.5"
    assert sample.kind is SampleKind.PUT
    assert sample.encoding == "text/plain;utf-8"
    assert sample.timestamp == STAMP
    assert sample.congestion_control is CongestionControl.BLOCK
    assert sample.priority is Priority.INTERACTIVE_HIGH
    assert sample.express is True
    assert sample.attachment == b"note"
    assert sample.source_info == SOURCE
    assert sample.timestamp_stack is None


def test_a_plain_sample_has_the_defaults() -> None:
    sample = Sample("a/b", (0x1D, 1, b"", 5, None, b"x"))

    assert (sample.kind, sample.encoding, sample.timestamp) == (SampleKind.PUT, Encoding.ZENOH_BYTES, None)
    assert (sample.attachment, sample.source_info, sample.timestamp_stack) == (None, None, None)
    assert (sample.priority, sample.congestion_control) == (Priority.DATA, CongestionControl.DROP)
    assert sample.express is False
    assert sample.key_expr is sample.key_expr


def test_a_deletion_has_no_payload() -> None:
    sample = lazy(messages.Del(timestamp=PUT.timestamp, attachment=b"why"), 5)

    assert sample.kind is SampleKind.DELETE
    assert (sample.payload, sample.encoding) == (ZBytes(), Encoding.ZENOH_BYTES)
    assert (sample.timestamp, sample.attachment) == (STAMP, ZBytes(b"why"))


def test_a_sample_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Sample.of("a", b"").kind = SampleKind.DELETE  # type: ignore[misc]


def test_a_sample_shows_what_it_has() -> None:
    text = repr(Sample.of("a", b"1", attachment=b"n"))

    assert text.startswith("Sample(key_expr='a', payload=b'1', kind=SampleKind.PUT, encoding='zenoh/bytes', priority")
    assert "attachment=b'n'" in text
    assert "timestamp" not in text
    assert "<100 bytes>" in repr(Sample.of("a", b"x" * 100))


def test_a_reply_is_a_sample_or_an_error() -> None:
    who = EntityGlobalId(ZenohId(b"\x77"), 6)
    good, bad = Reply(Sample.of("a", b"1"), who), Reply(ReplyError(b"no", Encoding.TEXT_PLAIN))

    assert good.ok is good.result
    assert (good.err, good.replier_id) == (None, who)
    assert bad.err is bad.result
    assert (bad.ok, bad.replier_id) == (None, None)
    assert bad.err is not None
    assert (bad.err.payload, bad.err.encoding, bad.err.timestamp_stack) == (ZBytes(b"no"), Encoding.TEXT_PLAIN, None)
    assert repr(bad) == "Reply(result=ReplyError(payload=b'no', encoding='text/plain'), replier_id=None)"
