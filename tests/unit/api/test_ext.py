"""`z_serialize` and `z_deserialize` against those of eclipse-zenoh."""

from __future__ import annotations

import importlib
import math
from types import GenericAlias
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elea import ext
from elea.api.zbytes import ZBytes

zenoh = pytest.importorskip("zenoh")
real = importlib.import_module("zenoh.ext")

SIZES = {
    name: (int(name.strip("UInt")), name.startswith("I"))
    for name in ("Int8", "Int16", "Int32", "Int64", "Int128", "UInt8", "UInt16", "UInt32", "UInt64", "UInt128")
}

Pair = tuple[object, object, object, object]
"""The same value and type, ours and theirs: value, real value, type, real type."""


def numbers(name: str) -> st.SearchStrategy[Pair]:
    bits, signed = SIZES[name]
    low = -(1 << (bits - 1)) if signed else 0
    mine, theirs = getattr(ext, name), getattr(real, name)
    return st.integers(low, low + (1 << bits) - 1).map(lambda n: (mine(n), theirs(n), mine, theirs))


def same(strategy: st.SearchStrategy[object], tp: type) -> st.SearchStrategy[Pair]:
    return strategy.map(lambda value: (value, value, tp, tp))


SCALARS = st.one_of(
    *(numbers(name) for name in SIZES),
    same(st.integers(-(1 << 31), (1 << 31) - 1), int),
    same(st.floats(), float),
    same(st.booleans(), bool),
    same(st.text(), str),
    same(st.binary(), bytes),
    same(st.binary().map(bytearray), bytearray),
    st.floats(width=32).map(lambda x: (ext.Float32(x), real.Float32(x), ext.Float32, real.Float32)),
    st.floats().map(lambda x: (ext.Float64(x), real.Float64(x), ext.Float64, real.Float64)),
    st.binary().map(lambda x: (ZBytes(x), zenoh.ZBytes(x), ZBytes, zenoh.ZBytes)),
)


def tuples(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    def join(rows: list[Pair]) -> Pair:
        columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
        return columns[0], columns[1], GenericAlias(tuple, columns[2]), GenericAlias(tuple, columns[3])

    return st.lists(inner, max_size=4).map(join)


def lists(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    # One value several times, so that all elements have one type.
    return st.tuples(inner, st.integers(1, 3)).map(
        lambda drawn: (
            [drawn[0][0]] * drawn[1],
            [drawn[0][1]] * drawn[1],
            GenericAlias(list, (drawn[0][2],)),
            GenericAlias(list, (drawn[0][3],)),
        )
    )


def dicts(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    return st.tuples(st.text(), inner).map(
        lambda drawn: (
            {drawn[0]: drawn[1][0]},
            {drawn[0]: drawn[1][1]},
            GenericAlias(dict, (str, drawn[1][2])),
            GenericAlias(dict, (str, drawn[1][3])),
        )
    )


def read(tp: object, data: ZBytes) -> object:
    """Types are values here, which no checker can follow."""
    return ext.z_deserialize(cast("type[object]", tp), data)


VALUES = st.recursive(SCALARS, lambda inner: tuples(inner) | lists(inner) | dicts(inner), max_leaves=8)


@given(VALUES)
def test_every_value_has_the_same_octets(pair: Pair) -> None:
    mine, theirs, _, _ = pair

    assert ext.z_serialize(mine).to_bytes() == real.z_serialize(theirs).to_bytes()


@given(VALUES)
def test_every_value_is_read_back(pair: Pair) -> None:
    value, theirs, tp, real_tp = pair

    back = read(tp, ext.z_serialize(value))
    other = real.z_deserialize(real_tp, real.z_serialize(theirs))

    assert type(back).__name__ == type(other).__name__
    assert repr(back).replace("-nan", "nan") == repr(value).replace("-nan", "nan")


TYPES = [
    int,
    float,
    bool,
    str,
    bytes,
    list[int],
    list[str],
    set[int],
    frozenset[bool],
    dict[str, int],
    tuple[int, str],
    tuple[()],
    list[tuple[bool, bytes]],
]


SMALL = st.lists(st.integers(0, 127), max_size=12).map(bytes)
"""Octets below 128: for larger sizes eclipse-zenoh allocates first and ends the process when that fails."""


@given(SMALL, st.sampled_from(TYPES))
def test_any_octets_are_read_or_refused_the_same(data: bytes, tp: type) -> None:
    try:
        expected = real.z_deserialize(tp, zenoh.ZBytes(data))
    except real.ZDeserializeError:
        with pytest.raises(ext.ZDeserializeError):
            ext.z_deserialize(tp, ZBytes(data))
    else:
        found = read(tp, ZBytes(data))
        assert found == expected or (isinstance(found, float) and math.isnan(found))


@pytest.mark.parametrize("value", [None, object(), range(3), memoryview(b""), 1j])
def test_what_has_no_form_is_refused(value: object) -> None:
    for serialize in (ext.z_serialize, real.z_serialize):
        with pytest.raises(TypeError):
            serialize(value)


def test_subclasses_have_no_form() -> None:
    class Own(int): ...

    for serialize in (ext.z_serialize, real.z_serialize):
        with pytest.raises(TypeError):
            serialize(Own(5))


def test_elements_of_different_types_are_refused() -> None:
    for serialize in (ext.z_serialize, real.z_serialize):
        with pytest.raises(ValueError):
            serialize([1, "a"])
        with pytest.raises(ValueError):
            serialize({1: 1, "a": 1})


def test_a_plain_number_of_more_than_32_bits_is_refused() -> None:
    for serialize in (ext.z_serialize, real.z_serialize):
        with pytest.raises(OverflowError):
            serialize(1 << 31)


def test_a_large_float_becomes_infinite() -> None:
    for number in (1e300, -1e300, math.inf):
        mine, theirs = ext.z_serialize(ext.Float32(number)), real.z_serialize(real.Float32(number))
        assert mine.to_bytes() == theirs.to_bytes()


@pytest.mark.parametrize("name", SIZES)
def test_numbers_outside_of_their_range_are_refused(name: str) -> None:
    bits, signed = SIZES[name]
    low = -(1 << (bits - 1)) if signed else 0
    for module in (ext, real):
        for number in (low - 1, low + (1 << bits)):
            with pytest.raises(AssertionError, match=f"too big for {name}"):
                getattr(module, name)(number)
        assert getattr(module, name)(low) == low


def test_arithmetic_gives_plain_numbers() -> None:
    assert type(ext.Int8(5) + ext.Int8(6)) is int
    assert repr(ext.UInt8(5)) == "5"
    assert ext.Int8(5.5) == 5  # type: ignore[arg-type]


UNREADABLE: list[tuple[object, type[Exception]]] = [
    (list, ValueError),
    (tuple, ValueError),
    (dict, ValueError),
    (object, TypeError),
    (None, TypeError),
    (tuple[int, ...], TypeError),
    (list["int"], TypeError),
    (set[list[int]], TypeError),
]


@pytest.mark.parametrize(("tp", "error"), UNREADABLE)
def test_a_type_that_cannot_be_read_is_refused(tp: type, error: type[Exception]) -> None:
    data = b"\1\1\1\0\0\0"

    with pytest.raises(error):
        real.z_deserialize(tp, zenoh.ZBytes(data))
    with pytest.raises(error):
        ext.z_deserialize(tp, ZBytes(data))


def test_other_generic_types_have_no_form() -> None:
    with pytest.raises(TypeError):
        read(type[int], ZBytes(b""))


def test_only_zbytes_are_read() -> None:
    with pytest.raises(TypeError):
        ext.z_deserialize(int, b"\0\0\0\0")  # type: ignore[arg-type]


def test_elements_without_octets_are_counted() -> None:
    for module, data in ((ext, ZBytes(b"\5")), (real, zenoh.ZBytes(b"\5"))):
        assert module.z_deserialize(list[tuple[()]], data) == [()] * 5


def test_a_lie_about_the_size_costs_nothing() -> None:
    huge = ZBytes(b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f")

    for tp in (str, list[int], list[tuple[()]], dict[str, str]):
        with pytest.raises(ext.ZDeserializeError):
            ext.z_deserialize(tp, huge)
    with pytest.raises(ext.ZDeserializeError):
        ext.z_deserialize(str, ZBytes(b"\x80" * 10 + b"\x01"))


def test_sizes_above_127_take_more_octets() -> None:
    text = "x" * 300

    assert ext.z_serialize(text).to_bytes() == real.z_serialize(text).to_bytes()
    assert ext.z_deserialize(str, ext.z_serialize(text)) == text


def test_text_that_is_no_utf8_is_refused() -> None:
    with pytest.raises(ext.ZDeserializeError, match="UTF-8"):
        ext.z_deserialize(str, ZBytes(b"\2\xff\xff"))
