"""The static checks: each refuses what it should at the right place, and the papers' example works."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from elea.model.errors import EncodeError, NotationError
from elea.notation.check import check, integral_bounds, union_arms
from elea.notation.generate import codec_module, messages_module
from elea.notation.parser import parse
from elea.notation.plan import load

EXAMPLE = (
    "M = record { a: header 5 enum { x = 1, y = 2 }, b: flag 5, c: case b of { true -> record { d: flag 6, e: nat } } }"
)


def in_record(text: str) -> str:
    return f"T = record {{ {text} }}"


FAULTS = [
    # names
    ("T = Absent", 1, 5, "'Absent' is not defined"),
    ("T = record { a: nat,\n b: Absent }", 2, 5, "'Absent' is not defined"),
    ("T = T", 1, 5, "'T' contains itself"),
    ("A = record { b: B }\nB = [A]", 2, 6, "'A' contains itself"),
    ("T = record { a: if a then T }", 1, 27, "'T' contains itself"),
    ("T = z8 of Absent", 1, 11, "'Absent' is not defined"),
    # enums
    ("T = enum { true = 1 }", 1, 5, "'true' and 'false' belong to"),
    ("T = enum { a = 1, a = 2 }", 1, 5, "an enum has each symbol and each number once"),
    ("T = enum { a = 1, b = 1 }", 1, 5, "an enum has each symbol and each number once"),
    ("N = nat  T = z8 of N", 1, 20, "'N' is not an enum"),
    (in_record("h: header 4 byte, f: flag 4 ... 5 of N") + " N = nat", 1, 51, "'N' is not an enum"),
    # headers
    ("T = record { h: header 0 byte }", 1, 17, "a header has 1 to 8 value bits, not 0"),
    ("T = record { h: header 9 byte }", 1, 17, "a header has 1 to 8 value bits, not 9"),
    ("T = record { h: header 5 nat }", 1, 17, "a header is a byte or an enum"),
    ("T = record { h: header 2 enum { a = 4 } }", 1, 17, "4 does not fit in a header of 2 bits"),
    ("T = record { s: stem 8 z8 }", 1, 17, "a stem of a z8 has 1 to 7 flag bits"),
    ("T = record { s: stem 0 z16 }", 1, 17, "a stem of a z16 has 1 to 15 flag bits"),
    # ranges
    ("T = nat range 5 ... 4", 1, 9, "range 5 ... 4 is empty"),
    ("T = byte range 1 ... 256", 1, 10, "a range within 0 ... 255 is needed"),
    ("T = byte range 300 ...", 1, 10, "a range within 0 ... 255 is needed"),
    ("T = nat range 5 ... 9 range 4 ... 9", 1, 23, "a range inside a range must narrow it"),
    ("T = nat range 5 ... 9 range 5 ... 10", 1, 23, "a range inside a range must narrow it"),
    ("T = nat range 5 ... 9 range 6 ...", 1, 23, "a range inside a range must narrow it"),
    ("E = enum { a = 1 }  T = E range 0 ... 1", 1, 27, "a range is for a number or a sequence"),
    # sequences and text
    ("T = record { h: header 5 byte, s: [flag 5] }", 1, 35, "a flag cannot be an element of a sequence"),
    ("E = record { chain { } }  T = [E]", 1, 31, "an element of a sequence takes at least one octet"),
    ("T = [if flag 5 then nat]", 1, 5, "an element of a sequence takes at least one octet"),
    ("T = [*: nat]", 1, 5, "only bytes can fill a region"),
    ("T = [0: nat]  U = [T]", 1, 19, "an element of a sequence takes at least one octet"),
    ("T = utf8 [nat]", 1, 5, "utf8 is for a sequence of bytes"),
    ("T = run R  R = record { a: nat }", 1, 5, "'R' is not a message"),
    (in_record("a: nat, b: [a: nat]"), 1, 25, "'a' is no earlier sequence of this record"),
    (in_record("b: [a: nat], a: [nat]"), 1, 17, "'a' is no earlier sequence of this record"),
    # chains
    (in_record("chain { x: 16 = unit }"), 1, 22, "an extension id is below 16"),
    (in_record("chain { x: 1 = nat }"), 1, 22, "an extension is unit, a bounded natural, or sized"),
    (in_record("chain { x: 1 = z8, y: 1 = z64 }"), 1, 33, "extension header 0x21 is used twice"),
    (in_record("chain { x: 1 = z8, x: 2 = z64 }"), 1, 33, "member 'x' stands twice in this record"),
    (in_record("chain f { }"), 1, 14, "'f' is no earlier flag of this record"),
    (in_record("f: nat, chain f { }"), 1, 22, "'f' is no earlier flag of this record"),
    (in_record("h: header 4 byte, f: flag 4 ... 5, chain f { }"), 1, 49, "'f' is no earlier flag of this record"),
    # records
    (in_record("a: nat, a: byte"), 1, 25, "member 'a' stands twice in this record"),
    (in_record("a: nat, chain { a: 1 = unit }"), 1, 30, "member 'a' stands twice in this record"),
    (in_record("a: nat, b: if a then nat"), 1, 28, "'a' is no earlier flag of this record"),
    (in_record("b: if nat then nat"), 1, 20, "the condition of an option is a flag"),
    (in_record("h: header 4 byte, b: if flag 4 ... 5 then nat"), 1, 38, "the condition of an option is a flag"),
    # cases
    (in_record("b: case a of { true -> nat }"), 1, 17, "discriminator 'a' is no earlier member"),
    (in_record("a: nat, b: case a of { x -> nat }"), 1, 37, "'x' is no value of the discriminator"),
    (in_record("a: [nat], b: case a of { 1 -> nat }"), 1, 39, "the discriminator has symbols, not numbers"),
    ("E = enum { x = 1 }\n" + in_record("a: E, b: case a of { 1 -> nat }"), 2, 35, "the discriminator has symbols"),
    ("E = enum { x = 1 }\n" + in_record("a: E, b: case a of { y -> nat }"), 2, 35, "'y' is no value"),
    (in_record("a: byte, b: case a of { 1 ... 256 -> nat }"), 1, 38, "labels within 0 ... 255 are needed"),
    (in_record("a: byte, b: case a of { 9 ... 8 -> nat }"), 1, 38, "labels within 0 ... 255 are needed"),
    (
        in_record("a: byte, b: case a of { 1 ... 5 -> nat, 5 -> byte }"),
        1,
        54,
        "this label is covered by an earlier one",
    ),
    (in_record("a: byte, b: case a of { 1, 1 -> nat }"), 1, 41, "this label is covered by an earlier one"),
    # flags
    (in_record("f: flag 5"), 1, 17, "a flag needs a header before it"),
    (in_record("a: nat, f: flag 5, h: header 5 byte"), 1, 25, "a flag needs a header before it"),
    (in_record("h: header 5 byte, f: flag 4"), 1, 35, "flag 4 is outside positions 5 to 7 of its header"),
    (in_record("h: header 5 byte, f: flag 8"), 1, 35, "flag 8 is outside positions 5 to 7 of its header"),
    (in_record("s: stem 2 z8, f: flag 2"), 1, 31, "flag 2 is outside positions 0 to 1 of its header"),
    (in_record("h: header 5 byte, f: flag 5, g: flag 5"), 1, 46, "position 5 of the header is taken"),
    (in_record("h: header 4 byte, f: flag 4 ... 6, g: flag 5"), 1, 52, "position 5 of the header is taken"),
    (in_record("h: header 5 byte, f: flag 6 ... 5"), 1, 35, "flag positions run from low to high"),
    (in_record("octet, f: [flag 4 ... 7 + 1: byte], g: flag 7"), 1, 53, "position 7 of the header is taken"),
    (
        in_record("h: header 5 byte, r: record { i: header 5 byte }, f: flag 5"),
        1,
        67,
        "a flag may not follow a member that has a header of its own",
    ),
    (
        in_record("h: header 5 byte, f: flag 5, o: if f then I, g: flag 6") + " I = record { i: header 5 byte }",
        1,
        62,
        "a flag may not follow a member that has a header of its own",
    ),
    (
        in_record("h: header 5 byte, s: sized I") + " I = record { f: flag 5 }",
        1,
        61,
        "a flag needs a header before it",
    ),
]


@pytest.mark.parametrize(("text", "line", "column", "problem"), FAULTS)
def test_fault_is_told_with_its_place(text: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(NotationError) as error:
        check(parse(text, dialect="toy"))

    assert error.value.problem.startswith(problem)
    assert (error.value.line, error.value.column) == (line, column)


@pytest.mark.parametrize(
    "text",
    [
        EXAMPLE,
        in_record("h: header 5 byte, f: flag 5, b: case f of { true -> nat, false -> byte }"),
        in_record("h: header 4 byte, b: if flag 4 then nat, c: if flag 5 then nat"),
        in_record("a: byte range 0 ... 254, b: case a of { 1 ... 254 -> nat }"),
        in_record("links: [nat], weights: [links: z16]"),
        in_record("h: header 5 byte, c: if flag 5 then record { i: header 5 byte, f: flag 5 }"),
        "T = nat range 5 ... 9 range 6 ... 9",
        "T = [byte] range 1 ... 16",
        "F = flag 5",
        "A, B = record { h: header 5 byte, f: F }  F = flag 5",
        in_record("octet, a: flag 0 ... 6, octet, b: flag 0 ... 7"),
    ],
)
def test_sound_definitions_pass(text: str) -> None:
    definitions = parse(text, dialect="toy")

    assert check(definitions) is definitions


def test_checker_names_the_file_it_is_given() -> None:
    with pytest.raises(NotationError, match=r"^my\.zn:1:5: "):
        check(parse("T = T", dialect="toy"), source="my.zn")


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("nat", (0, (1 << 64) - 1)),
        ("byte", (0, 255)),
        ("u16", (0, 65_535)),
        ("z32", (0, (1 << 32) - 1)),
        ("flag 4 ... 6", (0, 7)),
        ("flag 4", None),
        ("header 5 byte", (0, 31)),
        ("nat range 3 ...", (3, (1 << 64) - 1)),
        ("nat range 3 ... 9", (3, 9)),
        ("[nat]", None),
        ("[byte] range 1 ... 2", None),
        ("enum { a = 1 }", None),
    ],
)
def test_bounds_of_a_type(text: str, bounds: tuple[int, int] | None) -> None:
    definitions = parse(f"T = {text}", dialect="toy")

    assert integral_bounds(definitions, definitions.types["T"]) == bounds


@pytest.mark.parametrize(
    ("text", "is_union"),
    [
        ("T = record { k: header 5 E, b: case k of { a -> A } } E = enum { a = 1 } A = record { n: nat }", True),
        ("T = record { k: header 5 E, b: case k of { a -> record { n: nat } } } E = enum { a = 1 }", False),
        ("T = record { k: header 5 E, n: nat } E = enum { a = 1 }", False),
        ("T = record { k: header 5 byte, b: case k of { 1 -> A } } A = record { n: nat }", False),
        ("T = record { n: nat }", False),
        ("T = nat", False),
    ],
)
def test_union_is_a_header_and_a_case_of_named_records(text: str, is_union: bool) -> None:
    definitions = check(parse(text, dialect="toy"))

    assert (union_arms(definitions, definitions.types["T"]) is not None) is is_union


# -- the example of the papers, through generated code ----------------------------------------------------------------


def compiled(text: str) -> ModuleType:
    """The generated modules of a definition file, executed as one."""
    plan = load(text, dialect="toy")
    module = ModuleType("toy")
    imports = "from elea.wire.toy.messages"
    code = codec_module(plan).split("\n\nDIALECT", 1)
    head = "\n".join(line for line in code[0].splitlines() if not line.startswith(imports))
    exec(messages_module(plan), module.__dict__)
    exec(f"{head}\n\nDIALECT{code[1]}", module.__dict__)
    return module


@pytest.mark.parametrize(("fields", "octets"), [((1, None, False), "01"), ((2, (300, True), True), "62ac02")])
def test_example_of_the_papers_is_encoded_as_they_say(fields: Any, octets: str) -> None:
    toy = compiled(EXAMPLE)
    a, c, b = fields
    value = toy.M(a=a, b=b, c=None if c is None else toy.MC(e=c[0], d=c[1]))
    out = bytearray()

    toy.write_m(out, value)

    assert out.hex() == octets
    assert toy.read_m(bytes(out), 0) == (value, len(out))


def test_example_refuses_what_its_flag_does_not_ask_for() -> None:
    toy = compiled(EXAMPLE)

    with pytest.raises(EncodeError, match="missing, b asks for it"):
        toy.write_m(bytearray(), toy.M(a=1, b=True))
    with pytest.raises(EncodeError, match="not allowed with this b"):
        toy.write_m(bytearray(), toy.M(a=1, b=False, c=toy.MC(e=0)))
    with pytest.raises(EncodeError, match="does not fit in 5 bits"):
        toy.write_m(bytearray(), toy.M(a=32))
