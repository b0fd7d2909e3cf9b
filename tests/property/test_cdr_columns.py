"""Columns of CDR payloads are what the decoder of single samples says, for every type and whatever is broken."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from elea.columnar.cdrcolumns import CdrColumns
from elea.columnar.cdrtypes import as_arrow
from elea.content.cdr import CdrReader
from elea.content.schema.declared import Struct
from tests.cdr import structs, values, write


@st.composite
def payloads(draw: st.DrawFn, its: Struct) -> list[bytes | None]:
    """Payloads of a type in several encapsulations, some of them broken."""
    found: list[bytes | None] = []
    for version, little in draw(st.lists(st.tuples(st.sampled_from([1, 2]), st.booleans()), min_size=1, max_size=3)):
        some = draw(st.lists(values(its), min_size=1, max_size=6))
        found += [write(its, value, version=version, little=little) for value in some] * 3
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(found) - 1))
        payload = found[at] or b""
        place = draw(st.integers(0, max(0, len(payload) - 1)))
        put = draw(st.binary(max_size=4))
        found[at] = draw(st.sampled_from([None, payload[:place], payload[:place] + put + payload[place + len(put) :]]))
    return found


@settings(max_examples=60)
@given(st.data(), structs())
def test_columns_are_what_the_decoder_of_samples_says(data: st.DataObject, its: Struct) -> None:
    given_ones = data.draw(payloads(its))
    before = pa.array([b"before", *given_ones], pa.binary())

    found = CdrColumns(its).decode(before.slice(1))

    found.validate(full=True)
    assert repr(found.to_pylist()) == repr(pa.array([_one(its, one) for one in given_ones], found.type).to_pylist())


def _one(its: Struct, payload: bytes | None) -> object:
    try:
        return None if payload is None else as_arrow(CdrReader(its).decode(payload))
    except ValueError:
        return None
