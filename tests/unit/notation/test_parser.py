"""The parser: every construct to its tree, every fault with its line and column."""

from __future__ import annotations

import pytest

from elea.model.errors import NotationError
from elea.notation import syntax as s
from elea.notation.parser import parse

AT = s.Position(1, 1)


def type_of(text: str) -> s.Type:
    return parse(f"T = {text}", dialect="toy").types["T"]


def nat() -> s.Nat:
    return s.Nat(at=AT)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("nat", nat()),
        ("byte", s.Byte(at=AT)),
        ("Other", s.Ref("Other", at=AT)),
        ("enum { a = 1, b = 20 }", s.Enum((("a", 1), ("b", 20)), at=AT)),
        ("header 5 byte", s.Header(5, s.Byte(at=AT), at=AT)),
        ("flag 6", s.Flag(6, 6, at=AT)),
        ("flag 4 ... 7", s.Flag(4, 7, at=AT)),
        ("flag 0 ... 1 of Role", s.Flag(0, 1, s.Ref("Role", at=AT), at=AT)),
        ("nat range 1 ... 9", s.Range(nat(), 1, 9, at=AT)),
        ("nat range 1 ...", s.Range(nat(), 1, None, at=AT)),
        ("nat range 1 ... 9 range 2 ... 3", s.Range(s.Range(nat(), 1, 9, at=AT), 2, 3, at=AT)),
        ("if P then nat", s.Option(s.Ref("P", at=AT), nat(), at=AT)),
        ("if flag 5 then nat", s.Option(s.Flag(5, 5, at=AT), nat(), at=AT)),
        ("z8", s.Bounded(8, at=AT)),
        ("z64 of E", s.Bounded(64, s.Ref("E", at=AT), at=AT)),
        ("u16", s.Fixed(at=AT)),
        ("stem 5 z64", s.Stem(5, s.Bounded(64, at=AT), at=AT)),
        ("sized nat", s.Sized(nat(), at=AT)),
        ("run M", s.Run(s.Ref("M", at=AT), at=AT)),
        ("unit", s.Unit(at=AT)),
        ("[nat]", s.Sequence(s.Count(type=nat()), nat(), at=AT)),
        ("[Other]", s.Sequence(s.Count(type=nat()), s.Ref("Other", at=AT), at=AT)),
        ("[[byte]]", s.Sequence(s.Count(type=nat()), s.Sequence(s.Count(type=nat()), s.Byte(at=AT), at=AT), at=AT)),
        ("[z16: byte]", s.Sequence(s.Count(type=s.Bounded(16, at=AT)), s.Byte(at=AT), at=AT)),
        ("[z16]", s.Sequence(s.Count(type=nat()), s.Bounded(16, at=AT), at=AT)),
        ("[8: nat]", s.Sequence(s.Count(constant=8), nat(), at=AT)),
        ("[*: byte]", s.Sequence(s.Count(), s.Byte(at=AT), at=AT)),
        ("[links: nat]", s.Sequence(s.Count(member="links"), nat(), at=AT)),
        ("[flag 4 ... 7 + 1: byte]", s.Sequence(s.Count(flag=s.Flag(4, 7, at=AT), plus=1), s.Byte(at=AT), at=AT)),
        ("[flag 4 ... 7: byte]", s.Sequence(s.Count(flag=s.Flag(4, 7, at=AT)), s.Byte(at=AT), at=AT)),
        ("utf8 [z8: byte]", s.Text(s.Sequence(s.Count(type=s.Bounded(8, at=AT)), s.Byte(at=AT), at=AT), at=AT)),
        (
            "case k of { a, b -> nat, 1 ... 9, 12 -> byte }",
            s.Case(
                "k",
                (
                    s.Arm((s.Label("a", 0, 0, AT), s.Label("b", 0, 0, AT)), nat()),
                    s.Arm((s.Label(None, 1, 9, AT), s.Label(None, 12, 12, AT)), s.Byte(at=AT)),
                ),
                at=AT,
            ),
        ),
        (
            "record { a: nat, octet, chain f { x: 1! = unit, y: 2 = z8 } }",
            s.Record(
                (
                    s.Member("a", nat()),
                    s.Member("", s.Octet(at=AT)),
                    s.Member(
                        "",
                        s.Chain(
                            "f",
                            (
                                s.Extension("x", 1, True, s.Unit(at=AT), AT),
                                s.Extension("y", 2, False, s.Bounded(8, at=AT), AT),
                            ),
                            at=AT,
                        ),
                    ),
                ),
                at=AT,
            ),
        ),
        ("record { chain { } }", s.Record((s.Member("", s.Chain(None, (), at=AT)),), at=AT)),
    ],
)
def test_construct_becomes_its_tree(text: str, tree: s.Type) -> None:
    assert type_of(text) == tree


def test_names_before_one_type_share_it() -> None:
    types = parse("S, M = flag 5  T = nat", dialect="toy").types

    assert list(types) == ["S", "M", "T"]
    assert types["S"] is types["M"]


def test_comments_and_spaces_count_only_for_positions() -> None:
    definitions = parse("-- a comment\n\n  T = -- another\n    nat", dialect="toy")

    assert definitions.types["T"].at == s.Position(4, 5)


def test_new_keywords_are_names_in_the_papers_notation() -> None:
    types = parse("sized = nat  T = record { chain: sized, octet: nat }", dialect="toy", extended=False).types

    assert types["T"] == s.Record((s.Member("chain", s.Ref("sized", at=AT)), s.Member("octet", nat())), at=AT)


@pytest.mark.parametrize(
    ("header", "extension"),
    [(0x01, "1 = unit"), (0x11, "1! = unit"), (0x32, "2! = z16"), (0x22, "2 = z8"), (0x4F, "15 = sized nat")],
)
def test_extension_knows_its_header(header: int, extension: str) -> None:
    record = type_of(f"record {{ chain {{ x: {extension} }} }}")

    assert isinstance(record, s.Record)
    chain = record.members[0].type
    assert isinstance(chain, s.Chain)
    assert chain.extensions[0].header == header


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("", 1, 1, "no definitions"),
        ("-- nothing\n", 2, 1, "no definitions"),
        ("T = $", 1, 5, "character '$' does not belong here"),
        ("T = nat\n  ?", 2, 3, "character '?' does not belong here"),
        ("= nat", 1, 1, "expected a definition"),
        ("record = nat", 1, 1, "expected a definition"),
        ("S, = flag 5", 1, 4, "expected a name"),
        ("T nat", 1, 3, "expected '='"),
        ("T = ", 1, 5, "expected a type, found 'end of file'"),
        ("T = of", 1, 5, "expected a type, found 'of'"),
        ("T = 5", 1, 5, "expected a type, found '5'"),
        ("T = nat T = byte", 1, 9, "'T' is defined twice"),
        ("T, T = byte", 1, 4, "'T' is defined twice"),
        ("T = header nat", 1, 12, "expected a number"),
        ("T = flag", 1, 9, "expected a number"),
        ("T = flag 1 ... x", 1, 16, "expected a number"),
        ("T = z8 of 5", 1, 11, "expected an enum"),
        ("T = stem 1 nat", 1, 15, "a stem is a z8"),
        ("T = nat range ... 5", 1, 15, "expected a number"),
        ("T = nat range 1 5", 1, 17, "expected '...'"),
        ("T = enum { }", 1, 12, "expected a symbol"),
        ("T = enum { a }", 1, 14, "expected '='"),
        ("T = enum { a = 1,\n }", 2, 2, "expected a symbol"),
        ("T = record { }", 1, 14, "expected a member"),
        ("T = record { a nat }", 1, 16, "expected ':'"),
        ("T = record { a: nat", 1, 20, "expected '}'"),
        ("T = case of { a -> nat }", 1, 10, "expected a member"),
        ("T = case k { a -> nat }", 1, 12, "expected 'of'"),
        ("T = case k of { }", 1, 17, "expected a number"),
        ("T = case k of { a nat }", 1, 19, "expected '->'"),
        ("T = if P nat", 1, 10, "expected 'then'"),
        ("T = [nat", 1, 9, "expected ']'"),
        ("T = [5]", 1, 6, "expected a type"),
        ("T = utf8 nat", 1, 10, "expected '['"),
        ("T = run nat", 1, 9, "expected a message"),
        ("T = record { chain { x } }", 1, 24, "expected ':'"),
        ("T = record { chain { x: y } }", 1, 25, "expected a number"),
        ("T = record { chain { x: 1 unit } }", 1, 27, "expected '='"),
        ("T = record { chain { 5 } }", 1, 22, "expected an extension"),
    ],
)
def test_fault_is_told_with_its_place(text: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(NotationError) as error:
        parse(text, dialect="toy")

    assert (error.value.line, error.value.column) == (line, column)
    assert error.value.problem.startswith(problem)
    assert str(error.value).startswith(f"toy.zn:{line}:{column}: ")


def test_fault_names_the_file_it_is_given() -> None:
    with pytest.raises(NotationError, match=r"^my\.zn:1:1: "):
        parse("", dialect="toy", source="my.zn")
