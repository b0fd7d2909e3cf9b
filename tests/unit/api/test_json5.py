"""JSON5: everything it adds to JSON, and the place of every mistake."""

from __future__ import annotations

import contextlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elea.api.json5 import MAX_DEPTH, Json, parse
from elea.model.errors import ConfigError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(value=JSON, indent=st.sampled_from([None, 2]), ascii=st.booleans())
def test_every_json_text_reads_the_same(value: Json, indent: int | None, ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)

    assert parse(text) == json.loads(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1, $b_2: 2, ü: 3}", {"a": 1, "$b_2": 2, "ü": 3}),
        ("{'a': \"x\", \"b\": 'y'}", {"a": "x", "b": "y"}),
        (r"{\u0061b: 1}", {"ab": 1}),
        ("[1, 2,]", [1, 2]),
        ("{a: 1,}", {"a": 1}),
        ("// line\n1", 1),
        ("/* one */ [ /* two\n */ 1 // three\n ] /**/", [1]),
        ("'a\\\nb\\\r\nc'", "abc"),
        (r"'\x41\u00e9\n\t\v\0\q\'\"'", "A\xe9\n\t\v\0q'\""),
        (r"'\ud83d\ude00'", "😀"),
        ("0x1F", 31),
        ("-0xff", -255),
        ("+5", 5),
        ("-5", -5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("Infinity", math.inf),
        ("-Infinity", -math.inf),
        ("true", True),
        ("null", None),
        ("\ufeff 1 \u00a0", 1),
        ("1" + "0" * 500, math.inf),
    ],
)
def test_extensions_of_json5(text: str, value: Json) -> None:
    assert parse(text) == value


def test_not_a_number() -> None:
    value = parse("NaN")

    assert isinstance(value, float)
    assert math.isnan(value)


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("", "1:1", "ends where a value"),
        ("{", "1:2", "name expected"),
        ("{a", "1:3", "':' expected"),
        ("{a: }", "1:5", "no value"),
        ("{a: 1 b: 2}", "1:7", "',' or '}'"),
        ("[1", "1:3", "',' or ']'"),
        ("{\n  a: 1,\n  a: 2}", "3:3", "twice"),
        ("/* x", "1:1", "without end"),
        ("1 2", "1:3", "nothing may follow"),
        ("router", "1:1", "'router' is no value"),
        ("'abc", "1:1", "without closing"),
        ("'a\nb'", "1:1", "without closing"),
        (r"'\x4'", "1:2", "hexadecimal digits"),
        (r"'\1'", "1:2", "no escape"),
        (r"'\01'", "1:2", "no escape"),
        ("0o777", "1:1", "belongs to no number"),
        ("01", "1:1", "belongs to no number"),
        ("{1a: 2}", "1:2", "name expected"),
        ("]", "1:1", "no value"),
    ],
)
def test_mistakes_are_named_with_line_and_column(text: str, place: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, "f.json5")

    assert caught.value.path == f"f.json5:{place}"
    assert problem in caught.value.problem


def test_nesting_is_bounded() -> None:
    assert parse("[" * MAX_DEPTH + "]" * MAX_DEPTH) is not None

    with pytest.raises(ConfigError, match="nesting"):
        parse("[" * 100_000)
