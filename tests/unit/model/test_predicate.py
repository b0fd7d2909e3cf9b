"""The predicate language: grammar, canonical text, errors with their place, three-valued logic, bounds."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from decimal import Decimal
from time import thread_time

import pytest

from elea.model.errors import InvalidPredicate
from elea.model.limits import (
    PREDICATE_CHARS,
    PREDICATE_DEPTH,
    PREDICATE_INDEX,
    PREDICATE_PATH,
    PREDICATE_PATTERN,
    PREDICATE_TERMS,
)
from elea.model.predicate import Predicate, compile_row, is_predicate
from elea.model.predicate.functions import register
from elea.model.predicate.patterns import glob_pattern, like_pattern
from elea.model.predicate.syntax import Literal
from elea.model.predicate.typed import check
from elea.model.predicate.types import Enumeration, Scalar, record

SCHEMA = record(
    {
        "id": Scalar.INTEGER,
        "name": Scalar.STRING,
        "light": Scalar.FLOAT,
        "mode": Enumeration.of("OFF", "ON", "AUTO"),
        "pos": {"x": Scalar.FLOAT},
        "hist": [Scalar.INTEGER],
        "on": Scalar.BOOLEAN,
        "raw": Scalar.BINARY,
        "at": Scalar.TIME,
    }
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (" a  =  1 ", "a=1"),
        ("a != 1", "a<>1"),
        ("a=0x1F", "a=31"),
        ("a=-1.50e0", "a=-1.5"),
        ("a=+7", "a=7"),
        ("a = 'it''s'", "a='it''s'"),
        ("a = true or b = FALSE", "a=TRUE OR b=FALSE"),
        ("a.b[2].c >= %3", "a.b[2].c>=%3"),
        ("(a = 1 AND b = 2) AND c = 3", "a=1 AND b=2 AND c=3"),
        ("a = 1 OR (b = 2 OR c = 3)", "a=1 OR b=2 OR c=3"),
        ("(a = 1 OR b = 2) AND c = 3", "(a=1 OR b=2) AND c=3"),
        ("a = 1 OR (b = 2 AND c = 3)", "a=1 OR b=2 AND c=3"),
        ("NOT (a = 1 AND b = 2)", "NOT(a=1 AND b=2)"),
        ("NOT NOT a = 1", "NOT NOT a=1"),
        ("NOT (a BETWEEN 1 AND 2)", "a NOT BETWEEN 1 AND 2"),
        ("a not like 'x%'", "a NOT LIKE 'x%'"),
        ("a not match 'x*'", "a NOT MATCH 'x*'"),
        ("a in (1, 'x', %0)", "a IN(1,'x',%0)"),
        ("a is not null", "a IS NOT NULL"),
        ('"odd name"."x" = 1', '"odd name".x=1'),
        ('"key" = 1 AND "key".b = 2', '"key"=1 AND "key".b=2'),
        ('"sample".x = 1 AND "in" = 2', '"sample".x=1 AND "in"=2'),
        ("sample.key = 'a' AND sample.size > 3", "key='a' AND sample.size>3"),
        ("property.location IS NULL AND property.8 = 'x'", "property.location IS NULL AND property.8='x'"),
        ("inRange( property.location , someLocation , radius )", "inRange(property.location,someLocation,radius)"),
        ("inRange(p, [1, 2.5], 3)", "inRange(p,[1.0,2.5],3)"),
        ("distance(p, q) < 2", "distance(p,q)<2"),
        ("sample = 1", "sample=1"),
        ("property[0] = 1", "property[0]=1"),
    ],
)
def test_text_is_canonical(text: str, canonical: str) -> None:
    parameters = ["1"] * 4

    predicate = Predicate(text, parameters)

    assert predicate.text == canonical
    assert Predicate(canonical, parameters) == predicate
    assert Predicate(canonical, parameters).condition == predicate.condition


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "empty"),
        ("   ", 4, "empty"),
        ("a >", 4, "expected a field or a constant, not the end"),
        ("a", 2, "expected a comparison"),
        ("a NOT = 1", 7, "expected a comparison"),
        ("a = = 3", 5, "expected a field"),
        ("BETWEEN 1 AND 2", 1, "expected a field"),
        ("a BETWEEN 1", 12, "expected AND"),
        ("a BETWEEN b AND 2", 11, "the lower bound"),
        ("1 BETWEEN 1 AND 2", 1, "a constant stands where a field"),
        ("1 = 1", 1, "two constants"),
        ("a = %100", 5, "%0 to %99"),
        ("a = %", 5, "%0 to %99"),
        ("a = %0", 5, "parameter %0 is not given"),
        ("a = 1; DROP", 6, "text behind the predicate"),
        ("a = 1 b = 2", 7, "text behind the predicate"),
        ("a = 1 ORDER BY a", 7, "ORDER BY"),
        ("a = 'x", 5, "the string does not end"),
        ("a = 'x\ny'", 5, "the string does not end"),
        ('"a = 1', 1, "the name in quotes does not end"),
        ('"" = 1', 1, "is empty"),
        ("(a = 1", 7, "expected ), not the end"),
        ("a = 1)", 6, "text behind"),
        ("a = NULL", 5, "IS NULL"),
        ("a LIKE 3", 8, "is a string"),
        ("a LIKE b", 8, "the pattern of LIKE"),
        ("a MATCH '[x'", 1, "set does not end"),
        ("a MATCH '[z-a]'", 1, "nothing from"),
        ("a IN ()", 7, "expected a constant"),
        ("a = 3x", 5, "no number"),
        ("a = 1e999", 5, "range of a double"),
        ("a = 18446744073709551616", 5, "beyond 64 bits"),
        ("a[-1] = 1", 3, "from 0 on"),
        ("a[1.5] = 1", 3, "from 0 on"),
        ("a. = 1", 4, "name of a field"),
        ("a.3 = 1", 3, "name of a field"),
        ("property.-3 = 1", 10, "name of a field"),
        ("property.3.x = 1", 10, "no number"),
        ("a @ 1", 3, "unexpected '@'"),
        ("nosuch(a)", 1, "no function"),
        ("inRange(a, b)", 1, "takes 3 arguments"),
        ("inRange(distance(a,b), b, 1)", 9, "function within a function"),
        ("inRange(a, [1,2,3,4], 1)", 19, "one to three"),
        ("inRange(a, [], 1)", 14, "one to three"),
        ("inRange(a, [x], 1)", 13, "a point has numbers"),
        ("inRange(a b, 1)", 11, "expected ,"),
        ("key.x = 1", 1, "has no parts"),
        ("sample.nosuch = 1", 1, "sample. is followed by"),
        ("property.a.b = 1", 1, "a property has no parts"),
    ],
)
def test_error_says_where(text: str, column: int, problem: str) -> None:
    with pytest.raises(InvalidPredicate) as caught:
        Predicate(text)

    assert problem in caught.value.problem
    assert caught.value.column == column
    assert is_predicate(text) is (problem.startswith(("parameter", "set", "nothing", "no function", "takes")))


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("name = 3", 8, "name is compared with a text"),
        ("nosuch = 1", 1, "there is no field nosuch"),
        ("id = 1 AND pos.y > 0", 12, "there is no field pos.y"),
        ("id = 'x'", 6, "a number"),
        ("mode = 'BLUE'", 8, "one of 'OFF', 'ON', 'AUTO'"),
        ("mode LIKE 'A%'", 1, "mode is no text"),
        ("on > FALSE", 6, "has no order"),
        ("raw = 'x'", 7, "raw is compared with"),
        ("pos = 1", 7, "pos is compared with"),
        ("name = id", 1, "cannot be compared"),
        ("at > 3", 6, "an instant in UTC"),
        ("distance(hist,[1])", 1, "gives a float"),
        ("kind = 'put'", 8, "one of 'PUT', 'DELETE'"),
        ("timestamp > 12", 13, 'the field of the payload is "timestamp"'),
    ],
)
def test_declared_types_are_checked(text: str, column: int, problem: str) -> None:
    with pytest.raises(InvalidPredicate) as caught:
        check(Predicate(text), SCHEMA)

    assert problem in caught.value.problem
    assert caught.value.column == column


@pytest.mark.parametrize("text", ["kind = 'put'", "timestamp = 3", "key = 5", "'x' < sample.priority"])
def test_what_a_sample_says_is_checked_without_a_schema(text: str) -> None:
    with pytest.raises(InvalidPredicate, match="compared with"):
        compile_row(text)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("a = 1 AND nothing = 1", None),
        ("a = 2 AND nothing = 1", False),
        ("nothing = 1 OR a = 1", True),
        ("nothing = 1 OR a = 2", None),
        ("NOT nothing = 1", None),
        ("nothing IS NULL", True),
        ('"null" IS NULL', True),
        ("a IS NULL", False),
        ("a = 1.0", True),
        ("big > 9007199254740992.0", False),
        ("big > 9007199254740992", True),
        ("huge > 1.0", True),
        ("nan = nan", False),
        ("nan <> 1", True),
        ("NOT nan > 1", True),
        ("s = 1", None),
        ("a = 'x'", None),
        ("on = 1", True),
        ("on = 2", None),
        ("on < TRUE", None),
        ("on = a", None),
        ("a = TRUE", None),
        ("at > '2026-01-01T00:00:00Z'", True),
        ("at > 'yesterday'", None),
        ("at = naive", True),
        ("price < 2", True),
        ("price = price", True),
        ("price = 1.5", True),
        ("a < price", True),
        ("inRange(rec.list, [1], [2])", None),
        ("list = list", None),
        ("raw = 'x'", None),
        ("list[1].x = 5", True),
        ("list[7].x = 5", None),
        ("rec.list[0] = 1", True),
        ("rec[0] = 1", None),
        ("s[0] = 'a'", None),
        ("s LIKE 'a%'", True),
        ("a LIKE '1'", None),
        ("s IN (1, 'abc')", True),
        ("s NOT IN ('x', 2)", None),
        ("distance(rec.list, [4, 6]) = 5", True),
        ("distance(rec.list, s) = 5", None),
        ("inRange(rec.list, [1, 2], s)", None),
        ("inRange(huges, [1], 1)", False),
        ("distance(rec.list, rec.list)", None),
    ],
)
def test_unknown_is_neither_true_nor_false(text: str, verdict: bool | None) -> None:
    row = {
        "a": 1,
        "null": None,
        "big": 2**53 + 1,
        "huge": 10**400,
        "huges": [10**400],
        "nan": float("nan"),
        "s": "abc",
        "on": True,
        "at": datetime(2026, 6, 1, tzinfo=UTC),
        "naive": datetime(2026, 6, 1),
        "price": Decimal("1.5"),
        "raw": b"x",
        "list": [1, {"x": 5}],
        "rec": {"list": [1, 2]},
    }

    assert compile_row(text)(row) is verdict


@pytest.mark.parametrize(
    ("text", "parameters", "verdict"),
    [
        ("n = %0", ["2"], True),
        ("n = %0", ["2.0"], True),
        ("n = %0", ["0x2"], True),
        ("n = %0", [2], True),
        ("n = %0", ["two"], None),
        ("n = %0", ["99999999999999999999"], None),
        ("s = %0", ["2"], True),
        ("s = %0", ["'2'"], True),
        ("s = %0", [2], None),
        ("on = %0", ["TRUE"], True),
        ("on = %0", ["1"], True),
        ("on = %0", [True], True),
        ("mode = %0", ["ON"], True),
        ("mode = %0", ["'ON'"], True),
        ("mode = %0", ["1"], True),
        ("mode = %0", ["BLUE"], None),
        ("s LIKE %0", ["2%"], True),
        ("%0 < n AND n < %1", ["1", "3"], True),
        ("distance([1,2],%0) = 0", ["[1,2]"], True),
        ("distance([1],%0) = 0", ["1"], True),
        ("distance([1],%0) = 0", ["x"], None),
        ("distance([1],%0) = 0", ["[1"], True),
        ("distance([1],%0) = 0", ["[[1]]"], None),
    ],
)
def test_parameter_becomes_what_it_meets(text: str, parameters: list[str | int], verdict: bool | None) -> None:
    predicate = Predicate(text, parameters)
    schema = record({"mode": Enumeration.of("OFF", "ON")})

    assert compile_row(predicate, schema=schema)({"n": 2, "s": "2", "on": True, "mode": "ON"}) is verdict
    assert Predicate.of(str(predicate)) == predicate
    assert pickle.loads(pickle.dumps(predicate)) == predicate


def test_predicates_are_values() -> None:
    one, same, other = Predicate("a  = %0", ["x"]), Predicate("a=%0", ["x"]), Predicate("a=%0", ["y"])

    assert {one, same, other} == {same, other}
    assert (repr(one), repr(Predicate("a=1"))) == ("Predicate('a=%0', ['x'])", "Predicate('a=1')")
    assert len({Literal(1), Literal(1.0), Literal(True), Literal(1)}) == 3
    assert like_pattern("a%b").java() == "\\A(?s:a.*b)\\z"
    with pytest.raises(TypeError, match="no type"):
        record({"a": 3})  # type: ignore[dict-item]


def test_names_of_a_selection_stand_in_for_fields_that_are_not_there() -> None:
    test = compile_row(
        "inRange(property.location,someLocation,radius) AND limit > level AND word LIKE 'a%'",
        names={"someLocation": "[1, 2]", "radius": "2", "limit": "5", "word": "abc"},
        properties={"location": [1, 3]},
    )

    assert test({"level": 4}) is True
    assert test({"level": 4, "radius": 0.5}) is False
    assert test({"level": 4, "limit": None}) is None
    assert test({"level": 6}) is False


def test_two_names_of_a_selection_are_compared_as_numbers_or_texts() -> None:
    test = compile_row("low < high", names={"low": "9", "high": "10"})

    assert test({}) is True
    assert test({"low": 11}) is False
    assert compile_row("low < high", names={"low": "a", "high": "b"})({}) is True
    assert compile_row("on = wanted", names={"wanted": "TRUE"})({"on": True}) is True
    assert compile_row("raw = wanted", names={"wanted": "TRUE"})({"raw": b"x"}) is None


def test_enumeration_may_come_as_label_or_number_and_orders_by_number() -> None:
    schema = record({"mode": Enumeration((("LOW", 5), ("HIGH", 9), ("OFF", 0))), "was": Enumeration.of("A", "B")})
    test = compile_row("mode > 'LOW'", schema=schema)

    assert [test({"mode": mode}) for mode in ("HIGH", "LOW", "OFF", 9, 5, "other", 1.5)] == [
        True,
        False,
        False,
        True,
        False,
        None,
        None,
    ]
    assert compile_row("mode LIKE 'L%'", schema=schema)({"mode": "LOW"}) is None
    assert compile_row("mode > was", schema=schema)({"mode": "LOW", "was": "B"}) is True
    assert compile_row("was < mode", schema=schema)({"mode": "LOW", "was": 7}) is False


def test_function_is_registered_by_name() -> None:
    register("elea_test_is_even", lambda value: None if type(value) is not int else value % 2 == 0, arity=1)

    test = compile_row("elea_test_is_even(n) AND NOT elea_test_is_even(m)")

    assert (test({"n": 2, "m": 3}), test({"n": 1, "m": 3}), test({"n": 2, "m": "x"})) == (True, False, None)
    with pytest.raises(ValueError, match="already"):
        register("inRange", max, arity=2)


@pytest.mark.parametrize("text", ["[]", "[1]", '["a=%0",null]', "[" * 5000, "[a=1", '["a=%0",[1]]'])
def test_what_is_no_predicate_with_parameters_is_refused(text: str) -> None:
    with pytest.raises(InvalidPredicate):
        Predicate.of(text)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("a%", ["a", "abc", "a\n%"], ["", "ba"]),
        ("%b_", ["xbc", "bb", "bbb"], ["b", "xb"]),
        ("%a%b%a%", ["aba", "xaxbxa"], ["ab", "bab"]),
        ("a.c", ["a.c"], ["abc"]),
        ("a\\%", ["a\\", "a\\x"], ["a%"]),
        ("__", ["ab", "日本", "𝄞x"], ["a", "abc"]),
        ("", [""], ["a"]),
        ("ab%ab", ["abab", "ab1ab"], ["ab", "aba"]),
        ("%aab%", ["aaab"], ["aba"]),
    ],
)
def test_like(pattern: str, matching: list[str], other: list[str]) -> None:
    match = like_pattern(pattern).matcher().fullmatch

    assert [text for text in matching if match(text) is None] == []
    assert [text for text in other if match(text) is not None] == []


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("lamp[12],it*", ["lamp1", "lamp2", "it", "its"], ["lamp3", "lamp", "lamp12"]),
        ("[!a-c]?", ["dx", "-x"], ["ax", "d"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[a\\]]", ["]", "a"], ["\\"]),
        ("[a-]", ["-", "a"], ["b"]),
        ("\\*,\\,", ["*", ","], ["x", "\\"]),
        ("a\\", ["a\\"], ["a"]),
        ("**a**", ["a", "xax"], ["b"]),
        ("[^x]", ["^", "x"], ["a"]),
    ],
)
def test_match(pattern: str, matching: list[str], other: list[str]) -> None:
    match = glob_pattern(pattern).matcher().fullmatch

    assert [text for text in matching if match(text) is None] == []
    assert [text for text in other if match(text) is not None] == []


# -- bounds ------------------------------------------------------------------------------------------------------------


def at_bound(make: object, bound: int, name: str) -> None:
    """A text is taken at the bound and refused above it, and far above."""
    assert callable(make)
    Predicate(make(bound))
    for size in (bound + 1, bound * 50):
        with pytest.raises(InvalidPredicate, match=name):
            Predicate(make(size))


def test_length_is_bounded() -> None:
    with pytest.raises(InvalidPredicate, match="canonical"):
        Predicate("a" * (PREDICATE_CHARS - 5) + "=1e15")
    at_bound(lambda size: "a = 1".ljust(size), PREDICATE_CHARS, "PREDICATE_CHARS")


@pytest.mark.parametrize("opening", ["(", "NOT ", "NOT("])
def test_depth_is_bounded(opening: str) -> None:
    levels = 2 if opening == "NOT(" else 1
    closing = ")" if "(" in opening else ""

    at_bound(
        lambda size: (
            opening * (size // levels)
            + ("(" if size % levels else "")
            + "a=1"
            + closing * (size // levels)
            + (")" if size % levels else "")
        ),
        PREDICATE_DEPTH,
        "PREDICATE_DEPTH",
    )


def test_terms_are_bounded() -> None:
    at_bound(lambda size: " OR ".join(["a=1"] * size), PREDICATE_TERMS, "PREDICATE_TERMS|PREDICATE_CHARS")
    at_bound(lambda size: f"a IN({','.join(['1'] * size)})", PREDICATE_TERMS, "PREDICATE_TERMS|PREDICATE_CHARS")


def test_path_index_and_pattern_are_bounded() -> None:
    at_bound(lambda size: ".".join(["a"] * size) + "=1", PREDICATE_PATH, "PREDICATE_PATH")
    at_bound(lambda size: f"a[{size}]=1", PREDICATE_INDEX, "PREDICATE_INDEX")
    at_bound(lambda size: f"a LIKE '{'_' * size}'", PREDICATE_PATTERN, "PREDICATE_PATTERN|PREDICATE_CHARS")
    with pytest.raises(InvalidPredicate, match="PREDICATE_PATTERN"):
        Predicate("a LIKE %0", ["x" * (PREDICATE_PATTERN + 1)])
    with pytest.raises(InvalidPredicate, match="is a string"):
        Predicate("a LIKE %0", [3])


@pytest.mark.parametrize(
    "text",
    [
        "s LIKE '" + "%a" * 127 + "%b'",
        "s LIKE '" + "%a_" * 80 + "b%'",
        "s LIKE '%" + "a" * 254 + "b'",
        "s MATCH '" + "*[ab]" * 50 + "c'",
        "s MATCH '" + ",".join(["*a*a*a*c"] * 28) + "'",
    ],
)
def test_pattern_takes_bounded_time(text: str) -> None:
    """A backtracking engine would need longer than the universe has been there."""
    test = compile_row(text)
    row = {"s": "a" * 20_000}

    start = thread_time()
    assert test(row) is False
    assert thread_time() - start < 2.0


@pytest.mark.parametrize("text", ["(" * 8000, "NOT " * 2000, "a=" * 4000, "'" * 8191, "a.b" * 2000, "%" * 8000])
def test_hostile_text_is_refused_in_bounded_time(text: str) -> None:
    start = thread_time()
    with pytest.raises(InvalidPredicate):
        Predicate(text)
    assert thread_time() - start < 0.5
