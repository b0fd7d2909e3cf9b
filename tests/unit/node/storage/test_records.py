"""Records of the store as samples, and back."""

from __future__ import annotations

import pytest

from elea.model.qos import SampleKind
from elea.node.storage.records import details_and_payload, records_of_run, sample_of
from elea.store.record import DEL, PUT, Record
from elea.wire.details import unpack

RECORDS = [
    Record("a", b"x", 1 << 60, b"\x01", 9, PUT),
    Record("a", b"x", 1 << 60, b"\x01", 9, PUT, 4, b"utf-8", b"more", b"\x02", 3, 4, False, 13),
    Record("a", b"", 1 << 60, b"\x01", 9, DEL, 0, None, b"why", b"\x02", 3, 4),
]


@pytest.mark.parametrize("record", RECORDS, ids=str)
def test_a_record_is_the_same_sample_again(record: Record) -> None:
    assert records_of_run("a", [sample_of(record)], 9) == [record]


def test_a_deletion_that_was_stored_with_a_payload_has_none() -> None:
    meta, payload = details_and_payload(RECORDS[0]._replace(kind=DEL, payload=b"stored all the same"))

    assert (unpack(meta).kind, payload) == (SampleKind.DELETE, b"")


def test_a_number_of_64_bits_is_cut_to_those_of_a_sample() -> None:
    meta, _ = details_and_payload(RECORDS[1]._replace(source_sn=(1 << 40) + 7))

    assert unpack(meta).source == (b"\x02", 3, 7)
