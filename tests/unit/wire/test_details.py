"""Details of samples, packed and unpacked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from elea.model.details import Details
from elea.model.encoding import Encoding
from elea.model.errors import DecodeError
from elea.model.node_id import NodeId
from elea.model.qos import SampleKind
from elea.model.timestamp import Timestamp
from elea.wire.details import (
    STAMPED,
    STAMPED_PUT,
    attachment_of,
    has_timestamp,
    is_deletion,
    pack,
    pack_attachment,
    pack_parts,
    read_stamp,
    unpack,
    unpack_parts,
)
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.samples import split_body

STAMP = Timestamp(1 << 60, NodeId(b"\x34\x12"))
FULL = Details(SampleKind.PUT, Encoding("text/plain;utf-8"), STAMP, b"note", (b"\x77", 6, 7))


@pytest.mark.parametrize(
    "details",
    [
        Details(),
        FULL,
        Details(SampleKind.DELETE),
        Details(SampleKind.DELETE, timestamp=STAMP, attachment=b"why", source=(b"\x01", 0, 0)),
        Details(encoding=Encoding.of(0, b"")),
        Details(attachment=b""),
    ],
    ids=str,
)
def test_what_is_packed_is_unpacked(details: Details) -> None:
    assert unpack(pack(details)) == details


def test_the_compact_form_is_that_of_the_message_body() -> None:
    body = m.Put(
        b"x",
        m.Timestamp(STAMP.ntp64, b"\x34\x12"),
        m.Encoding(4, b"utf-8"),
        m.SourceInfo(b"\x77", 6, 7),
        attachment=b"note",
    )

    assert split_body(body) == (pack(FULL), b"x")


def test_details_that_say_nothing_are_none() -> None:
    assert pack(Details()) is None
    assert pack_parts(False, None, 0, None, None, None) is None
    assert unpack(None) is unpack(None)


def test_kind_and_timestamp_are_known_without_unpacking() -> None:
    put, gone = pack(FULL), pack(Details(SampleKind.DELETE))
    assert put is not None

    assert (is_deletion(None), is_deletion(put), is_deletion(gone)) == (False, False, True)
    assert (has_timestamp(None), has_timestamp(put), has_timestamp(gone)) == (False, True, False)
    assert read_stamp(put)[:2] == (1 << 60, b"\x34\x12")
    assert put[0] & STAMPED
    only = pack(Details(timestamp=STAMP))
    assert only is not None
    assert (only[0], read_stamp(only)[2]) == (STAMPED_PUT, len(only))


def test_a_timestamp_of_nobody_is_none_but_stays_in_the_parts() -> None:
    meta = pack_parts(False, (5, b"\0"), 0, None, None, None)
    assert meta is not None

    assert unpack(meta).timestamp is None
    assert unpack_parts(meta)[1] == (5, b"\0")


def test_details_show_what_they_have() -> None:
    assert repr(Details()) == "Details(SampleKind.PUT, Encoding('zenoh/bytes'), None, None, None)"
    assert Details() != Details(attachment=b"x")
    assert Details() != "Details"


@pytest.mark.parametrize("size", [0, 1, 127, 128, 300, 16_383, 16_384, 70_000])
def test_an_attachment_alone_is_packed_and_found_as_with_others(size: int) -> None:
    attachment = bytes(size)
    alone = pack_parts(False, None, 0, None, attachment, None)

    assert pack_attachment(attachment) == alone
    assert attachment_of(alone) == attachment
    stamped = pack_parts(False, (1 << 60, b"\x01"), 0, None, attachment, None)
    assert attachment_of(stamped) == attachment
    others = pack_parts(False, None, 10, b"s", attachment, (b"\x01", 2, 3))
    assert attachment_of(others) == attachment
    assert attachment_of(pack_parts(False, None, 10, None, None, None)) is None
    assert attachment_of(None) is None


@pytest.mark.parametrize("octets", ["8143", "81430578", "81438000", "814381007878", "8143808001", "81c3007878"])
def test_an_attachment_of_nonsense_is_what_unpacking_says(octets: str) -> None:
    meta = bytes.fromhex(octets)

    assert _said(attachment_of, meta) == _said(lambda data: unpack_parts(data)[4], meta)


def _said(read: Callable[[bytes], bytes | None], meta: bytes) -> object:
    try:
        return read(meta)
    except (DecodeError, IndexError) as error:  # it is cut off, which what came over a link never is
        return str(error)
