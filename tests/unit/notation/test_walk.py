"""The walker: values, the place of every field, errors with what was read before them, and lenient numbers."""

from __future__ import annotations

from typing import Any

import pytest

from elea.model.errors import DecodeError, PaddedNatural, TrailingBytes
from elea.model.limits import MAX_EXTENSIONS
from elea.notation.plan import load
from elea.notation.walk import Walker

TOY = load(
    """
    M = record { k: header 5 K, b: case k of { a -> A, c -> C } }
    K = enum { a = 1, c = 2, spare = 3 }
    A = record { deep: flag 5, n: nat, list: [nat], text: if flag 6 then utf8 [z8: byte], small: byte range 1 ... 9 }
    C = record { more: flag 7, what: case more of { true -> u16, false -> z16 }, inner: sized D }
    D = record { octet, mode: flag 0 ... 1 of E, ids: [flag 4 ... 7 + 1: byte], chain { x: 1 = z8, y: 2! = unit } }
    E = enum { one = 1, two = 2 }
    Declaration = record { k: header 5 L, b: case k of { d -> F } }
    L = enum { d = 1 }
    F = record { n: nat }
    R = record { head: stem 2 z16, f: flag 1, all: run M }
    """,
    dialect="toy",
)


def build(name: str, fields: dict[str, object]) -> object:
    return name, fields


def walk(octets: str, name: str = "M", *, lenient: bool = False) -> Walker:
    return Walker(TOY, bytes.fromhex(octets), build, lenient=lenient)


def test_record_is_built_from_its_members() -> None:
    found = walk("61 8101 02 05 06 02 c3a9 09").whole("M")

    assert found == ("A", {"deep": True, "n": 129, "list": (5, 6), "text": "é", "small": 9})


@pytest.mark.parametrize(("octets", "what"), [("82 0102 03 11 aabb", 0x0201), ("02 8701 03 11 aabb", 0x87)])
def test_case_follows_its_flag(octets: str, what: int) -> None:
    inner = ("D", {"mode": 1, "ids": b"\xaa\xbb", "x": None, "y": False, "unknown": ()})

    assert walk(octets).whole("M") == ("C", {"more": octets[0] == "8", "what": what, "inner": inner})


def test_chain_keeps_what_it_does_not_know() -> None:
    found = walk("01 aa a1 05 92 8f a3 8101 4e 02 ffff", "D").whole("D")

    unknown = ((0x0F, None), (0x23, 129), (0x4E, b"\xff\xff"))
    assert found == ("D", {"mode": 1, "ids": b"\xaa", "x": 5, "y": True, "unknown": unknown})


def test_run_ends_where_no_message_starts() -> None:
    walker = walk("0a 01 00 00 01 01 00 00 02 05", "R")

    found: Any = walker.named("R", "R")

    name, fields = found
    assert (name, fields["head"], fields["f"], len(fields["all"])) == ("R", 2, True, 2)
    assert walker.at == 9


def test_pieces_say_where_each_field_is() -> None:
    walker = walk("61 8101 02 05 06 01 78 09")

    walker.whole("M")

    assert [(p.depth, p.name, p.start, p.end) for p in walker.pieces[:2]] == [(0, "A", 0, 9), (1, "header", 0, 1)]
    assert [(p.depth, p.name, p.start, p.end, p.value) for p in walker.pieces[2:]] == [
        (1, "deep", 0, 1, True),
        (1, "n", 1, 3, 129),
        (1, "list", 3, 6, "2 elements"),
        (2, "list[0]", 4, 5, 5),
        (2, "list[1]", 5, 6, 6),
        (1, "text", 6, 8, "x"),
        (1, "small", 8, 9, 9),
    ]


def test_pieces_before_an_error_are_kept() -> None:
    walker = walk("01 05 00 0a")

    with pytest.raises(DecodeError):
        walker.whole("M")

    assert [(piece.name, piece.start, piece.end) for piece in walker.pieces] == [
        ("A", 0, 4),
        ("header", 0, 1),
        ("deep", 0, 1),
        ("n", 1, 2),
        ("list", 2, 3),
    ]


@pytest.mark.parametrize(
    ("name", "octets", "code", "at"),
    [
        ("M", "", "TRUNCATED", 0),
        ("M", "04", "UNKNOWN_MESSAGE", 0),
        ("M", "03", "RESERVED_MESSAGE", 0),
        ("Declaration", "02", "UNKNOWN_DECLARATION", 0),
        ("M", "01 8000", "VLE_NONCANONICAL", 2),
        ("M", "01 ffffffffffffffffff02", "VLE_OVERFLOW", 10),
        ("M", "01 00 05 00", "TRUNCATED", 4),
        ("M", "41 00 00 02 c328", "BAD_TEXT", 4),
        ("M", "41 00 00 05 61", "TRUNCATED", 5),
        ("M", "01 00 00 0a", "CONSTRAINT", 3),
        ("M", "01 00 00 01 00", "TRAILING", 4),
        ("M", "82 01", "TRUNCATED", 2),
        ("M", "02 ffff7f", "VLE_OVERFLOW", 3),
        ("M", "02 00 09 11 aabb", "TRUNCATED", 6),
        ("M", "02 00 02 10 aa", "BAD_ENUM", 3),
        ("M", "02 00 03 01 aa 13", "UNKNOWN_EXTENSION", 5),
        ("M", "02 00 03 01 aa 11", "UNKNOWN_EXTENSION", 5),
        ("M", "02 00 03 01 aa 61", "MALFORMED", 5),
        ("M", "02 00 04 01 aa 01 00", "TRAILING", 6),
        ("M", "02 00 03 01 aa 21", "TRUNCATED", 6),
        ("M", "02 00 04 01 aa 4e 09", "TRUNCATED", 7),
    ],
)
def test_fault_is_told_with_its_class_and_place(name: str, octets: str, code: str, at: int) -> None:
    with pytest.raises(DecodeError) as error:
        walk(octets).whole(name)

    assert (error.value.code, error.value.at) == (code, at)


@pytest.mark.parametrize("over", [0, 1])
def test_chain_of_unknown_extensions_has_a_limit(over: int) -> None:
    octets = "01 aa" + "8f" * (MAX_EXTENSIONS + over - 1) + "0f"

    if not over:
        assert walk(octets, "D").whole("D")
        return
    with pytest.raises(DecodeError) as error:
        walk(octets, "D").whole("D")
    assert (error.value.code, error.value.at) == ("OVERSIZE", 2 + MAX_EXTENSIONS)


def test_lenient_walker_takes_padded_numbers() -> None:
    octets = "01 8500 00 09"

    with pytest.raises(PaddedNatural):
        walk(octets).whole("M")

    assert walk(octets, lenient=True).whole("M") == ("A", {"deep": False, "n": 5, "list": (), "text": None, "small": 9})


def test_named_reads_from_where_it_is() -> None:
    walker = walk("01 07 01 08", "Declaration")

    first = walker.named("Declaration", "one")
    second = walker.named("Declaration", "two")

    assert (first, second) == (("F", {"n": 7}), ("F", {"n": 8}))
    assert [piece.name for piece in walker.pieces if piece.depth == 0] == ["one: F", "two: F"]
    walker.finish()


def test_finish_tells_what_is_left() -> None:
    walker = walk("01 07 01", "Declaration")
    walker.named("Declaration", "Declaration")

    with pytest.raises(TrailingBytes, match="1 octets left over at octet 2"):
        walker.finish()
