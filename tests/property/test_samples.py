"""The hot path of zenoh1 against the generated codec: the same samples, the same leftover, the same errors.

The hot path leaves three things until somebody looks: that a suffix is UTF-8, that the body of a source info is one,
and that a chain has no more unknown extensions than the limit. `test_late_…` holds it to exactly these.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from elea.model.errors import BadText, DecodeError, EncodeError, Oversize, TrailingBytes, Truncated
from elea.model.limits import MAX_EXTENSIONS
from elea.wire.primitives import Unknown
from elea.wire.zenoh1.codec import read_network_message, write_network_message
from elea.wire.zenoh1.messages import (
    Del,
    Encoding,
    NetworkMessage,
    Push,
    Put,
    SourceInfo,
    Timestamp,
    WireExpr,
)
from elea.wire.zenoh1.samples import (
    DEFAULT_QOS,
    Pushed,
    PutTemplate,
    details,
    read_large_push,
    read_pushes,
    wire_expr_of,
)
from tests.pushes import push_of
from tests.strategies import corrupted, messages, numbers, octets

puts = messages("zenoh1", "Put")
wire_exprs = messages("zenoh1", "WireExpr")


@st.composite
def ordinary(draw: DrawFn) -> Push:
    """A PUSH the hot path must take: a PUT, with no extension but a one-octet QoS."""
    qos = draw(st.none() | st.integers(0, 127))
    return Push(draw(wire_exprs), draw(puts), qos=qos)  # type: ignore[arg-type]


def encoded(*found: object) -> bytes:
    out = bytearray()
    for item in found:
        write_network_message(out, item)  # type: ignore[arg-type]
    return bytes(out)


def read_one(buf: bytes, at: int) -> tuple[NetworkMessage, int]:
    try:
        return read_network_message(buf, at)
    except IndexError:
        raise Truncated("zenoh1", len(buf)) from None


def read_all(buf: bytes, at: int) -> list[NetworkMessage]:
    found = []
    while at < len(buf):
        item, at = read_one(buf, at)
        found.append(item)
    return found


runs = st.lists(ordinary() | messages("zenoh1", "Push"), max_size=5)


@given(st.lists(ordinary(), max_size=6))
def test_run_takes_every_ordinary_push(pushes: list[Push]) -> None:
    buf = encoded(*pushes)
    entries: list[Pushed] = []

    end = read_pushes(buf, 0, entries)

    assert end == len(buf)
    assert [push_of(entry) for entry in entries] == pushes


@given(st.lists(ordinary(), max_size=3), messages("zenoh1", "NetworkMessage"), st.lists(ordinary(), max_size=2))
@settings(max_examples=200)
def test_run_and_codec_together_read_any_run(before: list[Push], odd: object, after: list[Push]) -> None:
    buf = encoded(*before, odd, *after)
    entries: list[Pushed] = []

    end = read_pushes(buf, 0, entries)

    assert [push_of(entry) for entry in entries] + read_all(buf, end) == [*before, odd, *after]


@given(st.binary(min_size=1, max_size=9), st.lists(ordinary(), max_size=2))
def test_run_starts_where_it_is_told(front: bytes, pushes: list[Push]) -> None:
    entries: list[Pushed] = []

    end = read_pushes(front + encoded(*pushes), len(front), entries)

    assert end == len(front) + len(encoded(*pushes))
    assert [push_of(entry) for entry in entries] == pushes


def refusal(act: Callable[[], object]) -> DecodeError | None:
    try:
        act()
    except DecodeError as error:
        return error
    return None


def check_against_codec(buf: bytes) -> None:
    """Follow a run entry by entry with the codec until the two part, which they may do only where it is known."""
    entries: list[Pushed] = []
    ends: list[int] = []
    error = refusal(lambda: ends.append(read_pushes(buf, 0, entries)))
    at = 0
    for entry in entries:
        strict = refusal(lambda at=at: read_one(buf, at))  # type: ignore[misc]
        late = refusal(lambda entry=entry: push_of(entry))  # type: ignore[misc]
        if strict is not None:
            assert is_late(buf, at, strict)
            assert late is not None
            assert late.code == strict.code
            return
        item, at = read_one(buf, at)
        assert push_of(entry) == item
    if error is None:
        assert ends == [at]
        return
    strict = refusal(lambda: read_one(buf, at))
    assert strict is not None
    # With two faults in one message the codec may tell the late one, which stands in front.
    assert (error.code, error.at) == (strict.code, strict.at) or is_late(buf, at, strict)


def is_late(buf: bytes, start: int, error: DecodeError) -> bool:
    """Whether the hot path leaves such a fault until somebody looks: see the head of this file."""
    return error.code in ("BAD_TEXT", "OVERSIZE") or any(o & 0x7F == 0x41 for o in buf[start : error.at])


@given(corrupted(runs.map(lambda pushes: encoded(*pushes))))
@settings(max_examples=600)
def test_run_and_codec_agree_on_corrupted_octets(buf: bytes) -> None:
    check_against_codec(buf)


@given(st.binary(max_size=30).map(lambda tail: b"\x1d" + tail) | st.binary(max_size=20))
@settings(max_examples=300)
def test_run_and_codec_agree_on_any_octets(buf: bytes) -> None:
    check_against_codec(buf)


@pytest.mark.parametrize(
    "buf",
    [
        pytest.param("1d01 21 05 8100 aa 00", id="timestamp-id-length-padded"),
        pytest.param("1d01 21 8000 01aa 00", id="timestamp-padded"),
        pytest.param("1d01 41 8600 00", id="encoding-padded"),
        pytest.param("1d01 41 07 8100 61 00", id="schema-length-padded"),
        pytest.param("1d8100 01 00", id="scope-padded"),
        pytest.param("3d01 8100 61 01 00", id="suffix-length-padded"),
        pytest.param("9d01 21 8500 01 00", id="qos-padded"),
        pytest.param("9d01 10", id="unknown-mandatory-in-place-of-qos"),
        pytest.param("9d01 21", id="qos-cut-short"),
        pytest.param("9d01 a1 05 21 06 01 00", id="qos-twice"),
        pytest.param("1d01 01 8000", id="payload-length-padded"),
        pytest.param("1d01 81 12 00", id="shared-memory"),
        pytest.param("1d01 81 22 05 00", id="number-in-place-of-shared-memory"),
        pytest.param("1d01 81 52 00 00", id="unknown-mandatory"),
        pytest.param("1d01 81 62 00", id="reserved-form"),
        pytest.param("1d01 21 05 00 00", id="timestamp-without-id"),
        pytest.param("1d01 21 05 11" + "aa" * 17 + "00", id="timestamp-id-too-long"),
        pytest.param("1d01 21 05 9100" + "aa" * 17 + "00", id="timestamp-id-too-long-and-padded"),
        pytest.param("1d01 02", id="del"),
        pytest.param("1d01 03", id="query"),
    ],
)
def test_run_and_codec_agree_on(buf: str) -> None:
    check_against_codec(bytes.fromhex(buf))


# -- what is only found by looking ------------------------------------------------------------------------------------


def test_late_suffix_that_is_no_text() -> None:
    buf = bytes.fromhex("3d01 02 c328 01 01 78")
    entries: list[Pushed] = []

    assert read_pushes(buf, 0, entries) == len(buf)

    [(header, scope, suffix, _, meta, payload)] = entries
    assert details(meta, payload) == Put(b"x")
    with pytest.raises(BadText):
        wire_expr_of(header, scope, suffix)
    with pytest.raises(BadText):
        read_one(buf, 0)


@pytest.mark.parametrize(
    ("body", "error"),
    [("03 00 aa 01", Truncated), ("04 00 aa 01 02", None), ("05 00 aa 01 02 03", TrailingBytes), ("00", Truncated)],
)
def test_late_source_info_that_is_none(body: str, error: type[DecodeError] | None) -> None:
    buf = bytes.fromhex(f"1d01 81 41 {body} 01 78")
    entries: list[Pushed] = []

    assert read_pushes(buf, 0, entries) == len(buf)

    if error is None:
        assert push_of(entries[0]) == read_one(buf, 0)[0]
        return
    with pytest.raises(error):
        push_of(entries[0])
    with pytest.raises(error):
        read_one(buf, 0)


@pytest.mark.parametrize("over", [0, 1])
def test_late_chain_above_the_limit(over: int) -> None:
    buf = b"\x1d\x01\x81" + b"\x8f" * (MAX_EXTENSIONS + over - 1) + b"\x0f\x00"
    entries: list[Pushed] = []

    assert read_pushes(buf, 0, entries) == len(buf)

    if not over:
        assert push_of(entries[0]) == read_one(buf, 0)[0]
        return
    with pytest.raises(Oversize):
        push_of(entries[0])
    with pytest.raises(Oversize):
        read_one(buf, 0)


# -- a run in parts ---------------------------------------------------------------------------------------------------


def test_run_keeps_entries_before_an_error() -> None:
    buf = encoded(Push(WireExpr(1), Put(b"a"))) + bytes.fromhex("1d01 01 7f")
    entries: list[Pushed] = []

    with pytest.raises(Truncated) as error:
        read_pushes(buf, 0, entries)

    assert [push_of(entry) for entry in entries] == [Push(WireExpr(1), Put(b"a"))]
    assert error.value.at == len(buf)


@pytest.mark.parametrize(
    "odd",
    [
        Push(WireExpr(1), Del()),
        Push(WireExpr(1), Put(b""), timestamp=Timestamp(1, b"\1")),
        Push(WireExpr(1), Put(b""), qos=200),
        Push(WireExpr(1), Put(b""), qos=5, unknown=(Unknown(0x0F, None),)),
    ],
)
def test_run_leaves_what_is_out_of_the_ordinary(odd: Push) -> None:
    first = encoded(Push(WireExpr(1), Put(b"a")))
    entries: list[Pushed] = []

    assert read_pushes(first + encoded(odd), 0, entries) == len(first)


def test_entry_of_a_plain_put_has_no_details() -> None:
    entries: list[Pushed] = []

    read_pushes(encoded(Push(WireExpr(7, True, "a/b"), Put(b"x"))), 0, entries)

    assert entries == [(0x7D, 7, b"a/b", DEFAULT_QOS, None, b"x")]


def test_details_hold_everything_the_run_left() -> None:
    put = Put(b"x", Timestamp(1 << 63, b"\1"), Encoding(3, b"s"), SourceInfo(b"\2", 1, 2), attachment=b"at")
    entries: list[Pushed] = []

    read_pushes(encoded(Push(WireExpr(1), put)), 0, entries)

    assert details(entries[0][4], entries[0][5]) == put


# -- templates --------------------------------------------------------------------------------------------------------


@given(
    wire_exprs,
    st.integers(0, 255),
    st.none() | messages("zenoh1", "Encoding"),
    st.lists(octets(), min_size=1, max_size=3),
)
def test_template_writes_what_the_codec_reads(
    wire_expr: WireExpr, qos: int, encoding: Encoding | None, payloads: list[bytes]
) -> None:
    template = PutTemplate(wire_expr, qos=qos, encoding=encoding)

    for payload in payloads:
        octets = template.header(len(payload)) + payload
        push, end = read_network_message(octets, 0)
        expected = Push(wire_expr, Put(payload, encoding=encoding), qos=None if qos == DEFAULT_QOS else qos)
        assert (push, end) == (expected, len(octets))
        assert template.header(len(payload)) is template.header(len(payload))


@given(numbers(1, (1 << 32) - 1))
def test_template_takes_any_size_a_payload_can_have(size: int) -> None:
    header = PutTemplate(WireExpr(1)).header(size)

    with pytest.raises(Truncated) as error:
        read_one(header, 0)

    assert error.value.need == size


def test_template_refuses_a_size_no_payload_can_have() -> None:
    with pytest.raises(EncodeError):
        PutTemplate(WireExpr(1)).header(1 << 32)


def test_template_remembers_a_bounded_number_of_sizes() -> None:
    template = PutTemplate(WireExpr(1))

    headers = {size: template.header(size) for size in range(3000)}

    assert all(template.header(size) == header for size, header in headers.items())
    assert len(template._by_size) == 1024


def test_run_ends_at_what_is_no_push() -> None:
    first = encoded(Push(WireExpr(1), Put(b"a")))

    assert read_pushes(first + b"\x04", 0, []) == len(first)


# -- messages in chunks -----------------------------------------------------------------------------------------------


def cut(buf: bytes, places: list[int]) -> list[bytes | bytearray | memoryview]:
    ends = sorted({0, len(buf), *(place % (len(buf) + 1) for place in places)})
    return [memoryview(buf)[at:end] for at, end in pairwise(ends)]


@given(ordinary(), st.integers(0, 100) | st.integers(600, 5_000), st.lists(st.integers(0), max_size=4))
def test_large_push_in_chunks_is_the_one_that_was_cut(push: Push, size: int, places: list[int]) -> None:
    body = push.body
    assert isinstance(body, Put)
    push = push._replace(body=body._replace(payload=bytes(size)))
    buf = encoded(push)

    found = read_large_push(cut(buf, places))
    whole = read_large_push([buf])

    assert found is None or push_of(found) == push
    if len(buf) - size <= 512:
        assert whole is not None
        assert push_of(whole) == push


@given(st.lists(ordinary(), min_size=2, max_size=3), messages("zenoh1", "NetworkMessage"), st.lists(st.integers(0)))
def test_anything_else_in_chunks_is_left_alone(pushes: list[Push], other: object, places: list[int]) -> None:
    assert read_large_push(cut(encoded(*pushes), places)) is None
    if not isinstance(other, Push):
        assert read_large_push(cut(encoded(other), places)) is None


def test_padded_length_of_a_payload_in_chunks_is_read_as_the_codec_does() -> None:
    buf = b"\x1d\x07\x01\xe8\x87\x00" + bytes(1000)

    found = read_large_push([buf])

    assert found is not None
    assert push_of(found) == read_network_message(buf, 0)[0]
