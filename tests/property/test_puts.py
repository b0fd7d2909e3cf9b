"""The form of `@store/puts`: what is written is read again, and other octets are refused with a typed error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elea.model.errors import DecodeError, EncodeError, Malformed, Oversize, TrailingBytes, Truncated
from elea.model.limits import PUTS_SAMPLES
from elea.wire.puts import Given, read_puts, write_puts

NODES = st.binary(min_size=1, max_size=16).map(lambda id: id[:-1] + bytes([id[-1] or 1]))
OCTETS = st.binary(max_size=40)
U32, U64 = st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 64) - 1)
TIMES = st.one_of(st.just((0, None)), st.tuples(U64, NODES))

PLAIN: Given = (b"home/1", b"21.5", 0, None, None, 0, None, b"\x0a", 1, 7)


@st.composite
def samples(draw: st.DrawFn) -> Given:
    ntp64, stamp_id = draw(TIMES)
    payload, schema, attachment = draw(st.none() | OCTETS), draw(st.none() | OCTETS), draw(st.none() | OCTETS)
    return draw(OCTETS), payload, draw(U32), schema, attachment, ntp64, stamp_id, draw(NODES), draw(U32), draw(U64)


@given(st.lists(samples(), min_size=1, max_size=20))
def test_what_is_written_is_read(many: list[Given]) -> None:
    assert read_puts(write_puts(many)) == many


@given(st.binary(max_size=400))
def test_octets_of_anybody_are_refused_or_are_samples(data: bytes) -> None:
    try:
        found = read_puts(data)
    except DecodeError:
        return
    assert read_puts(write_puts(found)) == found


@given(st.lists(samples(), min_size=1, max_size=5), st.data())
def test_changed_octets_are_refused_or_are_other_samples(many: list[Given], data: st.DataObject) -> None:
    octets = bytearray(write_puts(many))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(octets) - 1))
        octets[at] = data.draw(st.integers(0, 255))
    try:
        found = read_puts(bytes(octets))
    except DecodeError:
        return
    # Nothing is made up: the samples together are no larger than what came.
    assert sum(len(key) + len(payload or b"") for key, payload, *_ in found) <= len(octets)
    assert read_puts(write_puts(found)) == found


@given(st.lists(samples(), min_size=1, max_size=5), st.data())
def test_every_beginning_is_truncated(many: list[Given], data: st.DataObject) -> None:
    octets = write_puts(many)
    with pytest.raises(Truncated):
        read_puts(octets[: data.draw(st.integers(0, len(octets) - 1))])


def test_most_samples_of_a_request_and_one_more() -> None:
    octets = write_puts([PLAIN] * PUTS_SAMPLES)
    assert len(read_puts(octets)) == PUTS_SAMPLES
    with pytest.raises(EncodeError, match="1025 samples"):
        write_puts([PLAIN] * (PUTS_SAMPLES + 1))
    for count in (PUTS_SAMPLES + 1, 65_535):
        with pytest.raises(Oversize):
            read_puts(octets[:2] + count.to_bytes(2, "little") + octets[4:])


def test_values_too_large_for_their_fields_are_not_written() -> None:
    for at, value in ((2, 1 << 32), (5, 1 << 64), (8, -1), (9, 1 << 64)):
        with pytest.raises(EncodeError):
            write_puts([(*PLAIN[:at], value, *PLAIN[at + 1 :])])  # type: ignore[list-item]
    with pytest.raises(EncodeError):
        write_puts([(*PLAIN[:7], number.to_bytes(2, "big") + b"\1", 1, 7) for number in range(257)])


@pytest.mark.parametrize(
    ("at", "octet", "error"),
    [
        (0, 2, Malformed),  # another version
        (2, 0, Malformed),  # no samples
        (4, 0, Malformed),  # a node without an id
        (4, 17, Malformed),  # and one with a long one
        (5, 0, Malformed),  # the node 0
        (6, 16, Malformed),  # a flag that there is not
        (6, 1, Malformed),  # a deletion with a payload
        (7, 1, Malformed),  # a source that there is not
        (8, 1, Malformed),  # a node of a time that there is not
        (9, 1, Malformed),  # what must be 0
        (26, 1, Malformed),  # a time although it has none
        (34, 5, TrailingBytes),  # a key that is one shorter
        (34, 7, Truncated),  # or longer
        (37, 255, Truncated),  # or 4 GB
        (42, 1, Malformed),  # a schema although there is none
        (46, 1, Malformed),  # an attachment although there is none
    ],
)
def test_each_field_is_looked_at(at: int, octet: int, error: type[DecodeError]) -> None:
    octets = bytearray(write_puts([PLAIN]))
    octets[at] = octet
    with pytest.raises(error) as raised:
        read_puts(bytes(octets))
    assert type(raised.value) is error
