"""Texts that declare types: what is understood, and where what is wrong stands."""

from __future__ import annotations

import pytest

from elea.content.schema import parse_idl, parse_rosmsg
from elea.content.schema.declared import Array, Sequence, Text, predicate_type
from elea.model.errors import InvalidSchema
from elea.model.limits import SCHEMA_BYTES, SCHEMA_DEPTH, SCHEMA_ELEMENTS, SCHEMA_MEMBERS
from elea.model.predicate.types import Enumeration, ListOf, Record, Scalar

IDL = """
// a comment
#include "other.idl"
module demo { /* another
   * one */
  const unsigned long SIZE = 0x3;
  module inner { typedef sequence<string<8>, SIZE> Names; enum Mode { OFF, @value(7) ON, AUTO }; };
  @verbatim (language="comment", text=
    "of (ROS)") @nested
  struct Base { @key @id(5) long long id; };
  struct Later;
  @mutable struct Light : Base {
    inner::Names names;
    ::demo::inner::Mode mode;
    @default (value=1.5) float a, b[2][SIZE];
    @optional octet raw[16];
  };
};
"""


def test_idl_is_understood() -> None:
    light = parse_idl(IDL)["demo::Light"]

    assert [(member.name, member.id) for member in light.members] == [
        ("id", 5), ("names", 6), ("mode", 7), ("a", 8), ("b", 9), ("raw", 10),
    ]  # fmt: skip
    assert light.members[1].type == Sequence(Text(8), 3)
    assert isinstance(light.members[4].type, Array)
    assert light.members[4].type.sizes == (2, 3)
    assert light.members[5].is_optional
    assert predicate_type(light) == Record(
        (
            ("id", Scalar.INTEGER),
            ("names", ListOf(Scalar.STRING)),
            ("mode", Enumeration((("OFF", 0), ("ON", 7), ("AUTO", 8)))),
            ("a", Scalar.FLOAT),
            ("b", ListOf(ListOf(Scalar.FLOAT))),
            ("raw", Scalar.BINARY),
        )
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("struct T { long a; }", 1, 21, "expected ';', not the end"),
        ("struct T {\n  long a\n};", 3, 1, "expected ';', not '}'"),
        ("struct T { };", 1, 8, "at least one member"),
        ("struct T { T t; };", 1, 12, "a struct cannot contain itself"),
        ("struct T; struct U { sequence<T> t; };", 1, 31, "cannot contain itself"),
        ("struct T { wstring s; };", 1, 12, "wide strings are not read"),
        ("struct T { long double d; };", 1, 17, "long double is not read"),
        ("union U switch (long) { case 1: long a; };", 1, 1, "unions are not read"),
        ("struct T { nosuch a; };", 1, 12, "nosuch is not declared"),
        ("struct T { long a; long a; };", 1, 25, "a or its id 1 is there twice"),
        ("struct T { @id(0) long a; @id(0) long b; };", 1, 39, "b or its id 0 is there twice"),
        ("struct T { long a; }; struct T { long a; };", 1, 30, "T is declared twice"),
        ("struct T { long a[0]; };", 1, 19, "a size is a number from 1"),
        ("const long N = 2 + 3;", 1, 18, "expressions are not read"),
        ("struct T { long a; }; }", 1, 23, "a } without a {"),
        ("/* no end", 1, 1, "a comment that does not end"),
        ("struct T { long ä; };", 1, 17, "unexpected 'ä'"),
        ("enum E { A, A };", 1, 13, "A or its number 1 is there twice"),
        ("enum E { @value(4294967296) A };", 1, 29, "has 32 bits"),
        ("@autoid(HASH) struct T { long a; };", 1, 1, "hashed ids are not read"),
        ("typedef long L; struct T : L { long a; };", 1, 28, "a struct is derived from a struct"),
        ("struct T { @x( long a; };", 1, 26, "an annotation does not end"),
    ],
)
def test_what_is_wrong_in_idl_is_told_with_its_place(text: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(InvalidSchema, match=problem) as caught:
        parse_idl(text)

    assert (caught.value.line, caught.value.column) == (line, column)


MSG = """# a header
std_msgs/Header header
float64[9] covariance 1.0
string<=10[<=5] names # short ones
int32 X=5
byte[] data
Other[] others
================================================================================
MSG: demo/Other
char a
================================================================================
MSG: demo/Unused
nosuch/Thing a
"""


def test_messages_of_ros_are_understood() -> None:
    found = parse_rosmsg(MSG, "demo/Pose")

    assert [member.name for member in found["demo/msg/Pose"].members] == [
        "header", "covariance", "names", "data", "others",
    ]  # fmt: skip
    assert predicate_type(found["std_msgs/msg/Header"]) == Record(
        (("stamp", Record((("sec", Scalar.INTEGER), ("nanosec", Scalar.INTEGER)))), ("frame_id", Scalar.STRING))
    )
    assert parse_rosmsg("", "std_msgs/msg/Empty")["std_msgs/msg/Empty"].members[0].name.startswith("structure_needs")


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("int32 a\n  int32", 2, 3, "no field"),
        ("int32 a\nOther b", 2, 1, "demo/msg/Other is not declared"),
        ("int32 a\nint8 a", 2, 1, "a is there twice"),
        ("wstring a", 1, 1, "wide strings are not read"),
        ("int32<=3 a", 1, 1, "only strings have a length"),
        ("int32[0] a", 1, 1, "at least one element"),
        ("T a", 1, 1, "demo/msg/T contains itself"),
        ("int32 a\n" + "=" * 40 + "\nint32 b", 3, 1, "expected MSG:"),
        ("int32 a\n" + "=" * 40 + "\nMSG: demo/T\nint32 b", 3, 1, "demo/msg/T is declared twice"),
        ("int32 a!", 1, 8, "unexpected '!'"),
    ],
)
def test_what_is_wrong_in_a_message_is_told_with_its_place(text: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(InvalidSchema, match=problem) as caught:
        parse_rosmsg(text, "demo/T")

    assert (caught.value.line, caught.value.column) == (line, column)


def doubling(levels: int) -> str:
    """Structs of two others each."""
    return "struct S0 { long a; };" + "".join(
        f"struct S{level} {{ S{level - 1} a, b; }};" for level in range(1, levels + 1)
    )


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (doubling(13), "SCHEMA_MEMBERS"),
        ("struct T { long " + ", ".join(f"a{at}" for at in range(SCHEMA_MEMBERS + 1)) + "; };", "SCHEMA_MEMBERS"),
        (
            "struct T { " + "sequence<" * (SCHEMA_DEPTH + 1) + "long" + ">" * (SCHEMA_DEPTH + 1) + " a; };",
            "SCHEMA_DEPTH",
        ),
        ("module m { " * (SCHEMA_DEPTH + 1), "SCHEMA_DEPTH"),
        (
            "typedef long T0;" + "".join(f"typedef sequence<T{at}> T{at + 1};" for at in range(3000)),
            "SCHEMA_DEPTH",
        ),
        ("typedef long T0;" + "".join(f"typedef T{at} T{at + 1}[1];" for at in range(3000)), "SCHEMA_DEPTH"),
        (f"struct T {{ long a[{SCHEMA_ELEMENTS}][2]; }};", "SCHEMA_ELEMENTS"),
        ("//" + " " * SCHEMA_BYTES, "SCHEMA_BYTES"),
    ],
    ids=["doubling", "members", "depth", "modules", "typedefs", "arrays", "elements", "characters"],
)
def test_hostile_idl_is_refused(text: str, limit: str) -> None:
    with pytest.raises(InvalidSchema, match=limit):
        parse_idl(text)


def test_idl_at_its_limits_is_taken() -> None:
    parse_idl(doubling(12))
    parse_idl("struct T { long " + ", ".join(f"a{at}" for at in range(SCHEMA_MEMBERS)) + "; };")
    parse_idl(f"struct T {{ long a[{SCHEMA_ELEMENTS}]; }};")


def test_hostile_messages_are_refused() -> None:
    chain = "".join(f"\n{'=' * 40}\nMSG: demo/S{at}\nS{at + 1} a\nS{at + 1} b" for at in range(40))

    with pytest.raises(InvalidSchema, match="SCHEMA_DEPTH"):
        parse_rosmsg("S0 a" + chain, "demo/T")
    with pytest.raises(InvalidSchema, match="SCHEMA_BYTES"):
        parse_rosmsg("#" * (SCHEMA_BYTES + 1), "demo/T")
    with pytest.raises(InvalidSchema, match="SCHEMA_MEMBERS"):
        parse_rosmsg("\n".join(f"int8 a{at}" for at in range(SCHEMA_MEMBERS + 1)), "demo/T")
