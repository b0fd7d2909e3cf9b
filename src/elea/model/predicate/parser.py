"""From text to a condition: recursive descent, one function a rule, as deep as `PREDICATE_DEPTH` allows.

condition  = both { OR both } ;   both = one { AND one } ;   one = NOT one | ( condition ) | predicate
predicate  = operand relop operand | operand [NOT] BETWEEN constant AND constant | operand [NOT] LIKE constant
           | operand [NOT] MATCH constant | operand [NOT] IN ( constant {, constant} ) | operand IS [NOT] NULL | call
operand    = field | constant | call ;   call = name ( argument {, argument} ) ;   argument = operand | [ x, y ]
field      = name { . name | [ index ] } ;   constant = number | string | TRUE | FALSE | %n
"""

from __future__ import annotations

from typing import Final, NoReturn, TypeVar

from elea.model.errors import InvalidPredicate
from elea.model.limits import PREDICATE_DEPTH, PREDICATE_INDEX, PREDICATE_PATH, PREDICATE_PATTERN, PREDICATE_TERMS
from elea.model.predicate.lexer import Token, tokens_of
from elea.model.predicate.syntax import (
    METADATA_NAMES,
    And,
    Between,
    Call,
    Comparison,
    Condition,
    Field,
    In,
    IsNull,
    Like,
    Literal,
    Match,
    Metadata,
    Node,
    Not,
    Operand,
    Or,
    Parameter,
    Point,
    Property,
)

__all__ = ["SAMPLE_NAMES", "Parser"]

N = TypeVar("N", bound=Node)

OPERATORS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})
SAMPLE_NAMES: Final = (*sorted(METADATA_NAMES), "express", "priority", "size")
"""What `sample.` may be followed by."""


class Parser:
    """Reads one text; `places` tells where in it each node begins, for errors that are found later."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places: dict[int, int] = {}
        self._tokens = tokens_of(text)
        self._at = 0
        self._terms = 0

    def parse(self) -> Condition:
        """The whole text as one condition.

        Raises:
            InvalidPredicate: it is none, and where.
        """
        if self._next.kind == "end":
            self._fail("the predicate is empty")
        condition = self._either(0)
        if self._next.kind != "end":
            if str(self._next.value).upper() == "ORDER":
                self._fail("ORDER BY belongs to a query, not to a predicate")
            self._fail(f"there is text behind the predicate: {_shown(self._next)}")
        return condition

    # -- conditions

    def _either(self, depth: int) -> Condition:
        terms = [self._both(depth)]
        while self._skip("OR"):
            terms.append(self._both(depth))
        if len(terms) == 1:
            return terms[0]
        return Or(tuple(part for term in terms for part in (term.terms if isinstance(term, Or) else (term,))))

    def _both(self, depth: int) -> Condition:
        terms = [self._one(depth)]
        while self._skip("AND"):
            terms.append(self._one(depth))
        if len(terms) == 1:
            return terms[0]
        return And(tuple(part for term in terms for part in (term.terms if isinstance(term, And) else (term,))))

    def _one(self, depth: int) -> Condition:
        if depth > PREDICATE_DEPTH:
            self._fail(f"deeper than the limit of {PREDICATE_DEPTH} (PREDICATE_DEPTH)")
        if self._skip("NOT"):
            return Not(self._one(depth + 1))
        if self._skip("("):
            condition = self._either(depth + 1)
            self._want(")")
            return condition
        return self._predicate()

    def _predicate(self) -> Condition:
        start = self._next
        self._count()
        value = self._operand()
        operator = self._next
        if operator.kind == "mark" and operator.value in OPERATORS:
            self._at += 1
            return self._comparison(str(operator.value), value, start)
        if self._skip("IS"):
            negated = self._skip("NOT")
            self._want("NULL")
            return self._tail(IsNull(self._not_constant(value, start)), negated, start)
        negated = self._skip("NOT")
        word = self._next
        if self._skip("BETWEEN"):
            self._count()
            low = self._constant("the lower bound")
            self._want("AND")
            return self._tail(
                Between(self._not_constant(value, start), low, self._constant("the upper bound")), negated, start
            )
        if self._skip("LIKE"):
            return self._tail(Like(self._not_constant(value, start), self._pattern(word)), negated, start)
        if self._skip("MATCH"):
            return self._tail(Match(self._not_constant(value, start), self._pattern(word)), negated, start)
        if self._skip("IN"):
            return self._tail(In(self._not_constant(value, start), self._choices()), negated, start)
        if isinstance(value, Call) and not negated:
            return value
        self._fail(f"expected a comparison such as = or LIKE, not {_shown(self._next)}")

    def _comparison(self, operator: str, left: Operand, start: Token) -> Comparison:
        right = self._operand()
        if isinstance(left, Literal | Parameter) and isinstance(right, Literal | Parameter):
            self._fail("two constants are compared; one side has to be a field", start)
        return self._placed(Comparison(operator, left, right), start)

    def _tail(self, term: Between | Like | Match | In | IsNull, negated: bool, start: Token) -> Condition:
        self._placed(term, start)
        return self._placed(Not(term), start) if negated else term

    def _choices(self) -> tuple[Literal | Parameter, ...]:
        self._want("(")
        choices = [self._constant("a constant")]
        while self._skip(","):
            self._count()
            choices.append(self._constant("a constant"))
        self._want(")")
        return tuple(choices)

    def _pattern(self, word: Token) -> Literal | Parameter:
        token = self._next
        pattern = self._constant(f"the pattern of {word.value}")
        if isinstance(pattern, Literal):
            if not isinstance(pattern.value, str):
                self._fail(f"the pattern of {word.value} is a string", token)
            if len(pattern.value) > PREDICATE_PATTERN:
                limit = f"the limit of {PREDICATE_PATTERN} (PREDICATE_PATTERN)"
                self._fail(f"a pattern of {len(pattern.value)} characters is above {limit}", token)
        return pattern

    # -- operands

    def _operand(self) -> Operand:
        token = self._next
        if token.kind == "quoted":
            return self._field(token)
        if token.kind == "name":
            following = self._tokens[self._at + 1]
            return self._call(token) if following.value == "(" and following.kind == "mark" else self._field(token)
        return self._constant("a field or a constant")

    def _field(self, first: Token) -> Operand:
        path: list[str | int] = []
        while True:
            token = self._next
            if token.kind in ("name", "quoted"):
                path.append(str(token.value))
            elif path == ["property"] and first.kind == "name" and _is_natural(token):
                self._at += 1
                return self._placed(Property(int(token.value)), first)  # `property.8`
            else:
                self._fail(f"expected the name of a field, not {_shown(token)}")
            self._at += 1
            while self._skip("["):
                path.append(self._index())
            if len(path) > PREDICATE_PATH:
                self._fail(
                    f"a field of {len(path)} parts is above the limit of {PREDICATE_PATH} (PREDICATE_PATH)", first
                )
            if not self._skip("."):
                return self._placed(self._named(first, tuple(path)), first)

    def _named(self, first: Token, path: tuple[str | int, ...]) -> Operand:
        """What a path stands for: a name in quotes is always a field."""
        if first.kind == "quoted":
            return Field(path)
        if path[0] in METADATA_NAMES:
            if len(path) > 1:
                hint = f'write "{path[0]}" for the field of the payload'
                self._fail(f"{path[0]} is the sample's own and has no parts; {hint}", first)
            return Metadata(str(path[0]))
        if path[0] == "sample" and len(path) > 1 and isinstance(path[1], str):
            if len(path) > 2 or path[1] not in SAMPLE_NAMES:
                self._fail(f'sample. is followed by one of {", ".join(SAMPLE_NAMES)}; a field is "sample"', first)
            return Metadata(path[1])
        if path[0] == "property" and len(path) > 1 and isinstance(path[1], str):
            if len(path) > 2:
                self._fail('a property has no parts; a field is "property"', first)
            return Property(path[1])
        return Field(path)

    def _index(self) -> int:
        token = self._next
        if not _is_natural(token):
            self._fail(f"a place in an array is a number from 0 on, not {_shown(token)}")
        if int(token.value) > PREDICATE_INDEX:
            self._fail(f"a place in an array is above the limit of {PREDICATE_INDEX} (PREDICATE_INDEX)")
        self._at += 1
        self._want("]")
        return int(token.value)

    def _call(self, name: Token) -> Call:
        self._at += 1
        self._want("(")
        arguments: list[Operand] = []
        while not self._skip(")"):
            if arguments:
                self._want(",")
            self._count()
            # Not nested: a function of a function has no use yet, and would need a bound of its own.
            token = self._next
            argument = self._point() if self._skip("[") else self._operand()
            if isinstance(argument, Call):
                self._fail("a function within a function", token)
            arguments.append(argument)
        return self._placed(Call(str(name.value), tuple(arguments)), name)

    def _point(self) -> Point:
        numbers: list[float] = []
        while not self._skip("]"):
            if numbers:
                self._want(",")
            token = self._next
            if token.kind != "number":
                self._fail(f"a point has numbers, not {_shown(token)}")
            if len(numbers) == 3:
                self._fail("a point has one to three numbers")
            numbers.append(float(token.value))
            self._at += 1
        if not numbers:
            self._fail("a point has one to three numbers")
        return Point(tuple(numbers))

    def _constant(self, wanted: str) -> Literal | Parameter:
        token = self._next
        if token.kind in ("number", "string"):
            self._at += 1
            return self._placed(Literal(token.value), token)
        if token.kind == "parameter":
            self._at += 1
            return self._placed(Parameter(int(token.value)), token)
        if token.kind == "keyword" and token.value in ("TRUE", "FALSE"):
            self._at += 1
            return self._placed(Literal(token.value == "TRUE"), token)
        if token.kind == "keyword" and token.value == "NULL":
            self._fail("nothing is equal to NULL; write IS NULL")
        self._fail(f"expected {wanted}, not {_shown(token)}")

    def _not_constant(self, value: Operand, start: Token) -> Operand:
        if isinstance(value, Literal | Parameter):
            self._fail("a constant stands where a field is expected", start)
        return value

    # -- tokens

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _skip(self, value: str) -> bool:
        """Go past a mark or a keyword, if it is the next token."""
        token = self._next
        if token.value == value and token.kind in ("mark", "keyword"):
            self._at += 1
            return True
        return False

    def _want(self, value: str) -> None:
        if not self._skip(value):
            self._fail(f"expected {value}, not {_shown(self._next)}")

    def _count(self) -> None:
        self._terms += 1
        if self._terms > PREDICATE_TERMS:
            self._fail(f"more terms than the limit of {PREDICATE_TERMS} (PREDICATE_TERMS)")

    def _placed(self, node: N, token: Token) -> N:
        self.places[id(node)] = token.column
        return node

    def _fail(self, problem: str, token: Token | None = None) -> NoReturn:
        raise InvalidPredicate(self.text, (token or self._next).column, problem)


def _shown(token: Token) -> str:
    return "the end" if token.kind == "end" else repr(token.value)


def _is_natural(token: Token) -> bool:
    return token.kind == "number" and type(token.value) is int and token.value >= 0
