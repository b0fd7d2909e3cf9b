"""Text of a definition file to a tree. Errors name line and column; grammar in `docs/notation.md`."""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from elea.model.errors import NotationError
from elea.notation import syntax as s

__all__ = ["parse"]

KEYWORDS = frozenset(
    "byte case enum flag header if nat of range record then "
    "chain octet run sized stem u16 unit utf8 z8 z16 z32 z64".split()
)
PAPER_KEYWORDS = frozenset("byte case enum flag header if nat of range record then".split())
NUMBER_DIGITS = 20  # of 2^64, the largest that can be of use
BITS = {"z8": 8, "z16": 16, "z32": 32, "z64": 64}

_TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>[0-9]+)"
    r"|(?P<mark>->|\.\.\.|[=,:\[\]{}!+*])"
)


class _Token(NamedTuple):
    kind: str
    text: str
    at: s.Position


def parse(text: str, *, dialect: str, extended: bool = True, source: str | None = None) -> s.Definitions:
    """Parse a definition file.

    Args:
        extended: accept the constructs added for Zenoh 1.x; without it their keywords are plain names.
        source: the file name to show in errors; the dialect's by default.

    Raises:
        NotationError: with line and column of the first token that does not fit.
    """
    parser = _Parser(text, dialect, extended, source or f"{dialect}.zn")
    try:
        return parser.definitions()
    except RecursionError:
        parser.fail("types are nested too deeply")


class _Parser:
    def __init__(self, text: str, dialect: str, extended: bool, source: str) -> None:
        self.dialect = dialect
        self.source = source
        self.keywords = KEYWORDS if extended else PAPER_KEYWORDS
        self.tokens = list(self._scan(text))
        self.next = 0

    def _scan(self, text: str) -> list[_Token]:
        tokens: list[_Token] = []
        line, start, at = 1, 0, 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            where = s.Position(line, at - start + 1)
            if found is None:
                raise NotationError(
                    self.source, where.line, where.column, f"character {text[at]!r} does not belong here"
                )
            kind = found.lastgroup or ""
            if kind == "name" and found.group() in self.keywords:
                kind = "keyword"
            if kind != "space":
                tokens.append(_Token(kind, found.group(), where))
            newlines = found.group().count("\n")
            if newlines:
                line += newlines
                start = at + found.group().rindex("\n") + 1
            at = found.end()
        tokens.append(_Token("end", "end of file", s.Position(line, at - start + 1)))
        return tokens

    # -- tokens ---------------------------------------------------------------------------------------------------

    @property
    def token(self) -> _Token:
        return self.tokens[self.next]

    def fail(self, problem: str) -> NoReturn:
        at = self.token.at
        raise NotationError(self.source, at.line, at.column, problem)

    def take(self) -> _Token:
        token = self.token
        self.next += 1
        return token

    def accept(self, text: str) -> bool:
        if self.token.kind in ("mark", "keyword") and self.token.text == text:
            self.next += 1
            return True
        return False

    def expect(self, text: str) -> _Token:
        if self.token.kind not in ("mark", "keyword") or self.token.text != text:
            self.fail(f"expected {text!r}, found {self.token.text!r}")
        return self.take()

    def name(self, what: str) -> str:
        if self.token.kind != "name":
            self.fail(f"expected {what}, found {self.token.text!r}")
        return self.take().text

    def number(self) -> int:
        if self.token.kind != "number":
            self.fail(f"expected a number, found {self.token.text!r}")
        if len(self.token.text) > NUMBER_DIGITS:
            self.fail(f"a number of more than {NUMBER_DIGITS} digits")
        return int(self.take().text)

    # -- definitions ----------------------------------------------------------------------------------------------

    def definitions(self) -> s.Definitions:
        types: dict[str, s.Type] = {}
        while self.token.kind != "end":
            names = [(self.token.at, self.name("a definition"))]
            while self.accept(","):
                names.append((self.token.at, self.name("a name")))
            self.expect("=")
            type = self.type()
            for at, name in names:
                if name in types:
                    raise NotationError(self.source, at.line, at.column, f"{name!r} is defined twice")
                types[name] = type
        if not types:
            self.fail("no definitions")
        return s.Definitions(self.dialect, types)

    def type(self) -> s.Type:
        type = self.primary()
        while self.token.text == "range" and self.token.kind == "keyword":
            at = self.take().at
            low = self.number()
            self.expect("...")
            high = self.number() if self.token.kind == "number" else None
            type = s.Range(type, low, high, at=at)
        return type

    def primary(self) -> s.Type:
        token = self.token
        if token.kind == "name":
            return s.Ref(self.take().text, at=token.at)
        if token.text == "[":
            return self.sequence()
        if token.kind != "keyword":
            self.fail(f"expected a type, found {token.text!r}")
        self.take()
        at = token.at
        match token.text:
            case "nat":
                return s.Nat(at=at)
            case "byte":
                return s.Byte(at=at)
            case "header":
                return s.Header(self.number(), self.type(), at=at)
            case "flag":
                return self.flag(at)
            case "enum":
                return self.enum(at)
            case "record":
                return self.record(at)
            case "case":
                return self.case(at)
            case "if":
                condition = self.type()
                self.expect("then")
                return s.Option(condition, self.type(), at=at)
            case "z8" | "z16" | "z32" | "z64":
                return s.Bounded(BITS[token.text], self.of_enum(), at=at)
            case "u16":
                return s.Fixed(at=at)
            case "octet":
                return s.Octet(at=at)
            case "stem":
                return self.stem(at)
            case "utf8":
                return s.Text(self.sequence(), at=at)
            case "sized":
                return s.Sized(self.type(), at=at)
            case "run":
                where = self.token.at
                return s.Run(s.Ref(self.name("a message"), at=where), at=at)
            case "chain":
                return self.chain(at)
            case "unit":
                return s.Unit(at=at)
        self.next -= 1
        self.fail(f"expected a type, found {token.text!r}")

    def of_enum(self) -> s.Ref | None:
        if not self.accept("of"):
            return None
        at = self.token.at
        return s.Ref(self.name("an enum"), at=at)

    def flag(self, at: s.Position) -> s.Flag:
        low = self.number()
        if not self.accept("..."):
            return s.Flag(low, low, at=at)
        return s.Flag(low, self.number(), self.of_enum(), at=at)

    def stem(self, at: s.Position) -> s.Stem:
        bits = self.number()
        base = self.primary()
        if not isinstance(base, s.Bounded):
            self.fail("a stem is a z8, z16, z32 or z64")
        return s.Stem(bits, base, at=at)

    def enum(self, at: s.Position) -> s.Enum:
        symbols: list[tuple[str, int]] = []
        self.expect("{")
        while True:
            symbol = self.name("a symbol")
            self.expect("=")
            symbols.append((symbol, self.number()))
            if not self.accept(","):
                break
        self.expect("}")
        return s.Enum(tuple(symbols), at=at)

    def record(self, at: s.Position) -> s.Record:
        members: list[s.Member] = []
        self.expect("{")
        while True:
            members.append(self.member())
            if not self.accept(","):
                break
        self.expect("}")
        return s.Record(tuple(members), at=at)

    def member(self) -> s.Member:
        if self.token.kind == "keyword" and self.token.text in ("octet", "chain"):
            return s.Member("", self.primary())
        name = self.name("a member")
        self.expect(":")
        return s.Member(name, self.type())

    def case(self, at: s.Position) -> s.Case:
        discriminator = self.name("a member")
        self.expect("of")
        self.expect("{")
        arms: list[s.Arm] = []
        while True:
            labels = [self.label()]
            while self.accept(","):
                labels.append(self.label())
            self.expect("->")
            arms.append(s.Arm(tuple(labels), self.type()))
            if not self.accept(","):
                break
        self.expect("}")
        return s.Case(discriminator, tuple(arms), at=at)

    def label(self) -> s.Label:
        at = self.token.at
        if self.token.kind == "name":
            return s.Label(self.take().text, 0, 0, at)
        low = self.number()
        return s.Label(None, low, self.number() if self.accept("...") else low, at)

    def sequence(self) -> s.Sequence:
        at = self.expect("[").at
        count = self.count()
        element = self.type()
        self.expect("]")
        return s.Sequence(count, element, at=at)

    def count(self) -> s.Count:
        """`[T]`, `[z16: T]`, `[8: T]`, `[*: T]`, `[flag 4 ... 7 + 1: T]` or `[member: T]`."""
        start = self.next
        count = self._count_before_colon()
        if count is not None and self.accept(":"):
            return count
        self.next = start
        return s.Count(type=s.Nat(at=self.token.at))

    def _count_before_colon(self) -> s.Count | None:
        token = self.token
        if token.kind == "number":
            return s.Count(constant=self.number())
        if self.accept("*"):
            return s.Count()
        if token.kind == "name":
            return s.Count(member=self.take().text)
        if token.text in BITS:
            return s.Count(type=self.primary())
        if token.text == "flag":
            flag = self.flag(self.take().at)
            return s.Count(flag=flag, plus=self.number() if self.accept("+") else 0)
        return None

    def chain(self, at: s.Position) -> s.Chain:
        flag = self.take().text if self.token.kind == "name" else None
        self.expect("{")
        extensions: list[s.Extension] = []
        while self.token.text != "}":
            where = self.token.at
            name = self.name("an extension")
            self.expect(":")
            number = self.number()
            mandatory = self.accept("!")
            self.expect("=")
            extensions.append(s.Extension(name, number, mandatory, self.type(), where))
            if not self.accept(","):
                break
        self.expect("}")
        return s.Chain(flag, tuple(extensions), at=at)
