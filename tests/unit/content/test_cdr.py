"""CDR by declared types: bytes that cyclonedds 11.0.1 has written, what is refused, and what it may cost."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from elea.columnar.cdrcolumns import CdrColumns
from elea.columnar.cdrtypes import as_arrow
from elea.content.cdr import CdrReader
from elea.content.schema import parse_idl
from elea.model.limits import CONTENT_RECORDS
from elea.model.predicate import compile_row
from tests.cdr import write

TYPES = parse_idl("""
@mutable struct M { uint8 b; double d; string s; sequence<double> e; };
@final struct O { uint8 b; @optional double d; uint8 c; double x; };
@appendable struct N { uint8 b; double d; };
@final struct P { uint8 h; N n; sequence<N> s; double f[2]; string g[2]; uint8 z; };
enum E { A, B };
@mutable struct Q { E e; sequence<E> es; sequence<int64> ls; N n; sequence<uint8> bs; @optional int16 o; };
@appendable struct Older { uint8 b; };
@appendable struct Newer { uint8 b; double d; string s; };
struct Plain { uint8 b; double d; };
""")
M1 = """00030000 017f0800 00000000 04000000 01000000 017f0800 01000000 08000000 00000000 00000040 017f0800 02000000
    08000000 03000000 68690000 017f0800 03000000 10000000 01000000 00000000 00000000 0000f03f 027f0000"""
M2 = """000b0000 30000000 00000000 01000000 01000030 00000000 00000040 02000050 03000000 68690000 03000070 01000000
    00000000 0000f03f"""
P1 = """00010000 01020000 00000000 00000000 00000840 02000000 01000000 00000000 0000f03f 02000000 00000000
    00000000 00000040 00000000 00001440 00000000 00001840 02000000 61000000 04000000 62636400 09"""
P2 = """00070000 01000000 0c000000 02000000 00000000 00000840 24000000 02000000 0c000000 01000000 00000000 0000f03f
    0c000000 02000000 00000000 00000040 00000000 00001440 00000000 00001840 10000000 02000000 61000000 04000000
    62636400 09"""
Q1 = """00030000 017f0800 00000000 04000000 00000000 017f0800 01000000 08000000 01000000 01000000 017f0800 02000000
    18000000 02000000 00000000 01000000 00000000 02000000 00000000 017f0800 03000000 10000000 01000000 00000000
    00000000 00000040 017f0800 04000000 08000000 03000000 01020300 027f0000"""
Q2 = """000b0000 5a000000 00000020 00000000 01000050 08000000 01000000 01000000 02000070 02000000 01000000 00000000
    02000000 00000000 03000040 10000000 0c000000 01000000 00000000 00000040 04000050 03000000 01020300 05000010
    0700"""
M = {"b": 1, "d": 2.0, "s": "hi", "e": [1.0]}
P = {
    "h": 1,
    "n": {"b": 2, "d": 3.0},
    "s": [{"b": 1, "d": 1.0}, {"b": 2, "d": 2.0}],
    "f": [5.0, 6.0],
    "g": ["a", "bcd"],
    "z": 9,
}
Q = {"e": 0, "es": [1], "ls": [1, 2], "n": {"b": 1, "d": 2.0}, "bs": b"\1\2\3", "o": None}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("M", M1, M),
        ("M", M2, M),
        ("O", "00010000 01000000 017f0800 01000000 08000000 00000000 00000040 03000000 00000000 00000000 00001040",
         {"b": 1, "d": 2.0, "c": 3, "x": 4.0}),
        ("O", "00070000 01010000 00000000 00000040 03000000 00000000 00001040", {"b": 1, "d": 2.0, "c": 3, "x": 4.0}),
        ("O", "00010000 01000000 017f0800 01000000 00000000 03000000 00000000 00000000 00001040",
         {"b": 1, "d": None, "c": 3, "x": 4.0}),
        ("O", "00070000 01000300 00000000 00001040", {"b": 1, "d": None, "c": 3, "x": 4.0}),
        ("P", P1, P),
        ("P", P2, P),
        ("Q", Q1, Q),
        ("Q", Q2, {**Q, "o": 7}),
    ],
    ids=["M1", "M2", "O1", "O2", "O1-absent", "O2-absent", "P1", "P2", "Q1", "Q2"],
)  # fmt: skip
def test_bytes_of_cyclonedds_are_read(name: str, text: str, value: object) -> None:
    assert CdrReader(TYPES[name]).decode(bytes.fromhex(text)) == value


def test_the_writer_of_the_tests_writes_the_same() -> None:
    assert write(TYPES["P"], P) == bytes.fromhex(P1)
    assert write(TYPES["P"], P, version=2) == bytes.fromhex(P2)


def test_members_that_an_older_writer_did_not_have_are_null_and_newer_ones_passed_over() -> None:
    older = write(TYPES["Older"], {"b": 1}, version=2)
    newer = write(TYPES["Newer"], {"b": 1, "d": 2.0, "s": "x"}, version=2)

    assert CdrReader(TYPES["Newer"]).decode(older) == {"b": 1, "d": None, "s": None}
    assert CdrReader(TYPES["Older"]).decode(newer) == {"b": 1}


def test_a_struct_that_does_not_say_it_is_what_the_encapsulation_says() -> None:
    body = struct.pack("<Bxxxd", 1, 2.0)

    read = CdrReader(TYPES["Plain"]).decode
    assert read(b"\0\7\0\0" + body) == read(b"\0\x09\0\0" + struct.pack("<I", len(body)) + body) == {"b": 1, "d": 2.0}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("P", "", "encapsulation missing"),
        ("P", "0001", "encapsulation 0001"),
        ("P", "00040000 01", "encapsulation 0004"),
        ("M", "00010000 01", "M is mutable, and the encapsulation is for types that are final or appendable"),
        ("N", "00070000 01", "N is appendable, and the encapsulation is for types that are final"),
        ("O", "00010000 01", "no O"),
        ("Plain", "00010000 0100000000000000 0000000000000040 00000000", "4 bytes are behind it"),
        ("M", "000b0000 ffffffff", "a struct of 4294967295"),
        ("M", "000b0000 08000000 630000a0 00000000", "member 99 is not known"),
    ],
)
def test_what_is_refused(name: str, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        CdrReader(TYPES[name]).decode(bytes.fromhex(text))


@pytest.mark.parametrize("kind", ["double", "string", "N", "sequence<long>", "boolean", "E", "uint8"])
@pytest.mark.parametrize("count", [5, 1 << 20, 0xFFFFFFFF])
def test_a_length_that_the_payload_does_not_pay_for_makes_nothing(kind: str, count: int) -> None:
    its = parse_idl(f"enum E {{ A }}; struct N {{ double d; }}; struct T {{ sequence<{kind}> s; }};")["T"]

    with pytest.raises(ValueError, match=r"no T|of \d+ where -?\d+ bytes are left"):
        CdrReader(its).decode(b"\0\1\0\0" + struct.pack("<I", count) + bytes(3))


def test_elements_that_are_no_numbers_have_a_limit() -> None:
    its = parse_idl("struct S { boolean b; }; struct T { sequence<sequence<S>> s; };")["T"]
    inner = struct.pack("<I", CONTENT_RECORDS // 2) + bytes(CONTENT_RECORDS // 2)

    assert len(CdrReader(its).decode(b"\0\1\0\0" + struct.pack("<I", 1) + inner)["s"]) == 1  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="CONTENT_RECORDS"):
        CdrReader(its).decode(b"\0\1\0\0" + struct.pack("<I", 2) + inner + inner)


KINDS = [
    "octet",
    "boolean",
    "char",
    "short",
    "long",
    "double",
    "string",
    "E",
    "S",
    "sequence<double>",
    "sequence<octet>",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", range(9))
def test_everything_is_aligned_behind_everything(kind: str, before: int) -> None:
    """A member, a sequence and an array of it, and a member behind them, at every place; single and as columns."""
    octets = f"octet before[{before}];" if before else ""
    text = f"enum E {{ A, B }}; @final struct S {{ octet o; double d; }}; @final struct T {{ {octets} "
    its = parse_idl(f"{text} sequence<{kind}> s; {kind} m; {kind} a[3]; double d; sequence<{kind}> t; octet z; }};")[
        "T"
    ]
    one: object = {"boolean": True, "char": "x", "double": 1.5, "string": "ab", "S": {"o": 1, "d": 2.5}}.get(kind, 1)
    if kind.startswith("sequence"):
        one = [1.5, 2.5] if "double" in kind else b"xyz"
    many = bytes([1, 1, 1]) if kind == "octet" else [one] * 3
    for count in (0, 1, 3):
        some = many[:count]
        value = {"s": some, "m": one, "a": many, "d": -1.0, "t": some, "z": 7}
        value |= {"before": bytes(before)} if before else {}
        for version, little in ((1, True), (1, False), (2, True), (2, False)):
            payload = write(its, value, version=version, little=little)

            found = CdrReader(its).decode(payload)

            assert found == value
            column = CdrColumns(its).decode(pa.array([payload] * 10))
            assert column.to_pylist() == [as_arrow(found)] * 10


def test_labels_are_compared_by_name_and_by_number() -> None:
    row = CdrReader(TYPES["Q"]).decode(bytes.fromhex(Q2))

    assert compile_row("e = 'A' AND e < 'B' AND e = 0 AND es[0] > 'A' AND NOT es[0] <> 1")(row) is True
    assert compile_row("e = 'C'")(row) is None
    assert compile_row("e LIKE 'A%'")(row) is None
    assert compile_row("e <> es[0]")(row) is True


def test_a_number_without_a_label_is_no_value() -> None:
    its = parse_idl("enum E { A, B }; struct T { E e; };")["T"]

    with pytest.raises(ValueError, match="no T"):
        CdrReader(its).decode(b"\0\1\0\0" + struct.pack("<i", 2))
