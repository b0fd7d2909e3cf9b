"""`ZBytes`, also against that of eclipse-zenoh."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elea.api.zbytes import IntoZBytes, ZBytes, into_bytes

zenoh = pytest.importorskip("zenoh")

GIVEN = st.binary() | st.text(st.characters(codec=None, exclude_categories=())) | st.binary().map(bytearray)


@given(GIVEN)
def test_it_holds_the_same_octets_as_the_real_one(value: bytes | str | bytearray) -> None:
    mine, real = ZBytes(value), zenoh.ZBytes(value)

    assert mine.to_bytes() == bytes(mine) == real.to_bytes()
    assert (len(mine), bool(mine), hash(mine)) == (len(real), bool(real), hash(real))
    assert (mine == value) is (real == value)


@given(st.binary())
def test_it_reads_as_the_same_text_as_the_real_one(value: bytes) -> None:
    try:
        expected = zenoh.ZBytes(value).to_string()
    except ValueError:
        with pytest.raises(ValueError):
            ZBytes(value).to_string()
        with pytest.raises(ValueError):
            str(ZBytes(value))
    else:
        assert ZBytes(value).to_string() == str(ZBytes(value)) == expected


@given(GIVEN, GIVEN)
def test_it_equals_the_same_as_the_real_one(one: bytes | str | bytearray, two: bytes | str | bytearray) -> None:
    assert (ZBytes(one) == ZBytes(two)) is (zenoh.ZBytes(one) == zenoh.ZBytes(two))
    assert (ZBytes(one) == two) is (zenoh.ZBytes(one) == two)


def test_bytes_are_not_copied_and_what_can_change_is() -> None:
    data = b"x" * 100
    changing = bytearray(b"abc")
    kept = ZBytes(changing)

    changing[0] = 0

    assert ZBytes(data).to_bytes() is data
    assert ZBytes(ZBytes(data)).to_bytes() is data
    assert kept == b"abc"


def test_nothing_is_empty() -> None:
    assert ZBytes() == ZBytes(None) == b""
    assert not ZBytes()


def test_it_has_no_shared_memory() -> None:
    assert ZBytes(b"a").as_shm() is None  # type: ignore[func-returns-value]


def test_copies_and_pickles_are_equal() -> None:
    data = ZBytes(b"21.5")

    assert pickle.loads(pickle.dumps(data)) == copy.copy(data) == copy.deepcopy(data) == data


def test_its_repr_shows_the_octets() -> None:
    assert repr(ZBytes("aé")) == "ZBytes(b'a\\xc3\\xa9')"


@pytest.mark.parametrize("value", [5, 1.5, [1], object(), {}])
def test_what_is_neither_bytes_nor_text_is_refused(value: IntoZBytes) -> None:
    with pytest.raises(TypeError):
        zenoh.ZBytes(value)
    with pytest.raises(TypeError, match="expected bytes/str type"):
        ZBytes(value)
    with pytest.raises(TypeError):
        into_bytes(value)


def test_it_differs_from_other_things() -> None:
    assert ZBytes(b"5") != 5
    assert ZBytes(b"") != None  # noqa: E711


def test_a_view_is_taken_as_its_octets() -> None:
    assert into_bytes(memoryview(b"abc")[1:]) == b"bc"


def test_half_a_surrogate_pair_becomes_replacement_characters() -> None:
    assert ZBytes("\ud800").to_bytes() == zenoh.ZBytes("\ud800").to_bytes()
