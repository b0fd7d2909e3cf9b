"""CDR payloads of random types: what is written is read, by every encoding, and as the libraries of others read it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from elea.content.cdr import CdrReader
from elea.content.schema import parse_rosmsg
from elea.content.schema.declared import Struct
from tests.cdr import rosmsg_text, structs, values, write

ENCODINGS = st.tuples(st.sampled_from([1, 2]), st.booleans(), st.booleans())


@given(st.data(), structs(), ENCODINGS)
def test_what_is_written_is_read(data: st.DataObject, its: Struct, how: tuple[int, bool, bool]) -> None:
    value = data.draw(values(its))
    version, little, padded = how

    payload = write(its, value, version=version, little=little, padded=padded)

    assert CdrReader(its).decode(payload) == value


@given(st.data(), structs(), ENCODINGS, st.binary(min_size=1, max_size=3), st.integers(0, 200))
def test_broken_payloads_are_read_or_refused(
    data: st.DataObject, its: Struct, how: tuple[int, bool, bool], put: bytes, at: int
) -> None:
    version, little, _ = how
    payload = write(its, data.draw(values(its)), version=version, little=little)
    at %= len(payload)

    for broken in (payload[:at], payload[:at] + put + payload[at + len(put) :], payload[:at] + put + payload[at:]):
        try:
            CdrReader(its).decode(broken)
        except ValueError:
            continue


@settings(max_examples=40)
@given(st.data(), structs(ros=True), st.booleans())
def test_rosbags_reads_the_same(data: st.DataObject, its: Struct, little: bool) -> None:
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    text = rosmsg_text(its)
    payload = write(its, data.draw(values(its)), little=little)
    others = get_typestore(Stores.EMPTY)
    others.register(get_types_from_msg(text, "demo/msg/T"))

    found = CdrReader(parse_rosmsg(text, "demo/T")["demo/msg/T"]).decode(payload)

    assert _plain(others.deserialize_cdr(payload, "demo/msg/T")) == found


def _plain(value: Any) -> Any:
    """What rosbags gives, as our reader has it."""
    if isinstance(value, np.ndarray):
        return value.tobytes() if value.dtype == np.uint8 else value.tolist()
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if hasattr(value, "__msgtype__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__ if name != "__msgtype__"}
    return value
