"""CBOR: the same values as `cbor2` reads, and no input that does harm."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elea.content.cbor import decode_cbor
from elea.model.limits import CONTENT_DEPTH

PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(max_size=20),
    st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC)),
)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(), inner, max_size=4)
)


@given(VALUES)
def test_value_is_read_as_it_was_written(value: object) -> None:
    assert decode_cbor(cbor2.dumps(value, timezone=UTC)) == value


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        decode_cbor(data)
    except ValueError:
        return


@given(st.binary(max_size=12))
def test_what_both_read_is_the_same(data: bytes) -> None:
    try:
        ours = decode_cbor(data)
        theirs: Any = cbor2.loads(data)
    except Exception:  # noqa: BLE001 - each has refusals of its own
        return
    if not _has_tag(theirs):
        assert repr(ours) == repr(theirs)


def _has_tag(value: Any) -> bool:
    """Whether something in it is none of the values we have: a tag, a simple value, a set, a time, a fraction."""
    if isinstance(value, dict):
        return any(_has_tag(each) for pair in value.items() for each in pair)
    if isinstance(value, list | tuple):
        return any(map(_has_tag, value))
    return type(value) not in (type(None), bool, int, float, str, bytes)


@pytest.mark.parametrize(
    ("octets", "value"),
    [
        ("5f42010243030405ff", b"\x01\x02\x03\x04\x05"),
        ("7f657374726561646d696e67ff", "streaming"),
        ("9f018202039f0405ffff", [1, [2, 3], [4, 5]]),
        ("bf61610161629f0203ffff", {"a": 1, "b": [2, 3]}),
        ("c11a514b67b0", datetime(2013, 3, 21, 20, 4, tzinfo=UTC)),
        ("c074323031332d30332d32315432303a30343a30305a", datetime(2013, 3, 21, 20, 4, tzinfo=UTC)),
        ("d818456449455446", b"dIETF"),
        ("f7", None),
    ],
)
def test_forms_of_the_standard(octets: str, value: object) -> None:
    assert decode_cbor(bytes.fromhex(octets)) == value


@pytest.mark.parametrize(
    "octets",
    [
        "",
        "0102",
        "ff",
        "81ff",
        "1f",
        "1c",
        "f8ff",
        "62c328",
        "9bffffffffffffffff",
        "bb7fffffffffffffff",
        "5bffffffffffffffff00",
        "bf01ff",
        "5f6161ff",
        "a1800",
        "a18001",
        "c0626161",
        "c1fb7ff0000000000000",
        "c25841" + "ff" * 65,
        "81" * (CONTENT_DEPTH + 1) + "01",
        "9f" * 5000,
        "c1" * 5000 + "01",
    ],
)
def test_what_is_no_cbor_is_refused(octets: str) -> None:
    with pytest.raises(ValueError):
        decode_cbor(bytes.fromhex(octets + "0" * (len(octets) % 2)))


def test_depth_is_bounded() -> None:
    assert decode_cbor(b"\x81" * CONTENT_DEPTH + b"\x01") is not None
