"""OMG IDL to declared types: modules, structs, enumerations, typedefs, constants, and the annotations that matter.

What no two implementations write alike is refused: `wchar`, `wstring`, `long double`. So are unions, bit sets and maps.
Spec: dds.md section 2 (CDR facts); OMG IDL 4.2, XTypes 1.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from elea.content.schema.declared import (
    BOOLEAN,
    CHAR,
    PRIMITIVES,
    UINT8,
    Array,
    Declared,
    EnumType,
    Extensibility,
    Member,
    Sequence,
    Struct,
    Text,
    check_array,
    check_size,
)
from elea.content.schema.idltokens import Token, Tokens
from elea.model.limits import SCHEMA_DEPTH, SCHEMA_MEMBERS
from elea.model.predicate.types import Enumeration

__all__ = ["parse_idl"]

Value = int | float | str | bool

REFUSED: Final = {
    "union": "unions are not read",
    "bitmask": "bit masks are not read; declare the integer",
    "bitset": "bit sets are not read; declare the integer",
    "map": "maps are not read; declare a sequence of structs",
    "any": "any is not read",
    "wchar": "wide characters are not read: implementations write them differently",
    "wstring": "wide strings are not read: implementations write them differently",
    "fixed": "fixed-point numbers are not read",
    "interface": "interfaces have no data",
    "valuetype": "value types are not read",
}
_WORDS: Final = {
    "boolean": BOOLEAN,
    "octet": UINT8,
    "char": CHAR,
    "float": PRIMITIVES["float32"],
    "double": PRIMITIVES["float64"],
    "short": PRIMITIVES["int16"],
    **{name: PRIMITIVES[name] for name in PRIMITIVES if name.startswith(("int", "uint"))},
}
_EXTENSIBILITY: Final = {each.value: each for each in Extensibility}
_LAST_ID: Final = (1 << 28) - 1


class _Annotation(NamedTuple):
    name: str
    value: Value | None
    at: int


def parse_idl(text: str) -> Mapping[str, Struct]:
    """The structs of a text by their full names, such as `demo::Light`, in the order in which they stand.

    Raises:
        InvalidSchema: it is no IDL, or declares what is not read; with line and column.

    >>> light = parse_idl("module demo { @final struct Light { long id; sequence<short> hist; }; };")["demo::Light"]
    >>> [member.name for member in light.members]
    ['id', 'hist']
    """
    parser = _Parser(text)
    parser.definitions(())
    return parser.structs


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = Tokens(text)
        self._known: dict[str, Declared | Value | None] = {}
        """Types and constants by full name; None is a struct of which only the name was told."""
        self._sizes: dict[int, tuple[int, int]] = {}
        self.structs: dict[str, Struct] = {}

    # -- definitions

    def definitions(self, scope: tuple[str, ...]) -> None:
        """All definitions up to the end of the text, or of a module."""
        tokens = self._tokens
        if len(scope) > SCHEMA_DEPTH:
            tokens.fail(f"modules deeper than {SCHEMA_DEPTH} (SCHEMA_DEPTH)")
        while tokens.now.kind != "end" and tokens.now.value != "}":
            notes = self._annotations(scope)
            word = tokens.name("a definition")
            if word.value == "module":
                name = tokens.name("the name of a module").value
                tokens.expect("{")
                self.definitions((*scope, name))
                tokens.expect("}")
            elif word.value == "struct":
                self._struct(scope, notes)
            elif word.value == "enum":
                self._enum(scope, notes)
            elif word.value == "typedef":
                self._typedef(scope)
            elif word.value == "const":
                self._const(scope)
            else:
                tokens.fail(REFUSED.get(word.value, f"expected a definition, not {word.value!r}"), word.at)
            tokens.expect(";")
        if not scope and tokens.now.kind != "end":
            tokens.fail("a } without a {")

    def _struct(self, scope: tuple[str, ...], notes: list[_Annotation]) -> None:
        tokens = self._tokens
        name = tokens.name("the name of a struct")
        full = self._declare(scope, name, None)
        if tokens.now.value == ";":
            return  # only the name is told
        members: list[Member] = []
        extensibility = _extensibility(notes)
        if tokens.accept(":"):
            place = tokens.now.at
            base = self._type(scope, 0)
            if not isinstance(base, Struct):
                tokens.fail("a struct is derived from a struct", place)
            members += base.members
            extensibility = extensibility or base.extensibility
        if any(note.name == "autoid" and note.value == "HASH" for note in notes):
            tokens.fail("members with hashed ids are not read; give each an @id", notes[0].at)
        tokens.expect("{")
        taken: set[str | int] = {key for member in members for key in (member.name, member.id)}
        while not tokens.accept("}"):
            self._members(scope, members, taken)
        if not members:
            tokens.fail("a struct has at least one member", name.at)
        made = Struct(full, tuple(members), extensibility)
        problem = check_size(made, self._sizes)
        if problem is not None:
            tokens.fail(problem, name.at)
        self._known[full] = self.structs[full] = made

    def _members(self, scope: tuple[str, ...], members: list[Member], taken: set[str | int]) -> None:
        """The members that one declaration makes; `taken` are the names and ids of those there are."""
        tokens = self._tokens
        notes = self._annotations(scope)
        given = {note.name: note for note in notes}
        if "hashid" in given:
            tokens.fail("members with hashed ids are not read; give each an @id", given["hashid"].at)
        its = self._type(scope, 0)
        while True:
            name = tokens.name("the name of a member")
            id = members[-1].id + 1 if members else 0
            if "id" in given:
                id = _whole(given["id"].value, 0, _LAST_ID)
                if id < 0:
                    tokens.fail("an id is a number below 2^28", given["id"].at)
            if name.value in taken or id in taken:
                tokens.fail(f"{name.value} or its id {id} is there twice", name.at)
            taken |= {name.value, id}
            if len(members) >= SCHEMA_MEMBERS:
                tokens.fail(f"more than {SCHEMA_MEMBERS} members (SCHEMA_MEMBERS)", name.at)
            is_optional = "optional" in given and given["optional"].value is not False
            members.append(Member(name.value, self._dimensions(scope, its), id, is_optional))
            if not tokens.accept(","):
                tokens.expect(";")
                return

    def _enum(self, scope: tuple[str, ...], notes: list[_Annotation]) -> None:
        tokens = self._tokens
        name = tokens.name("the name of an enumeration")
        bits = next((_whole(note.value, 1, 32) for note in notes if note.name == "bit_bound"), 32)
        if bits < 0:
            tokens.fail("a bit_bound is a number from 1 to 32", name.at)
        tokens.expect("{")
        labels: dict[str, int] = {}
        numbers: set[int] = set()
        number = 0
        while True:
            given = {note.name: note.value for note in self._annotations(scope)}
            label = tokens.name("a label")
            if "value" in given:
                number = _whole(given["value"], -(1 << 31), (1 << 31) - 1)
            if not -(1 << 31) <= number < 1 << 31:
                tokens.fail("the number of a label has 32 bits", label.at)
            if label.value in labels or number in numbers:
                tokens.fail(f"{label.value} or its number {number} is there twice", label.at)
            numbers.add(number)
            if len(labels) >= SCHEMA_MEMBERS:
                tokens.fail(f"more than {SCHEMA_MEMBERS} labels (SCHEMA_MEMBERS)", label.at)
            labels[label.value] = number
            self._declare(scope, label, number)
            number += 1
            if not tokens.accept(","):
                break
            if tokens.now.value == "}":
                break
        tokens.expect("}")
        size = 1 if bits <= 8 else 2 if bits <= 16 else 4
        full = "::".join((*scope, name.value))
        self._declare(scope, name, EnumType(full, Enumeration(tuple(labels.items())), size))

    def _typedef(self, scope: tuple[str, ...]) -> None:
        its = self._type(scope, 0)
        while True:
            name = self._tokens.name("the name of a type")
            self._declare(scope, name, self._dimensions(scope, its))
            if not self._tokens.accept(","):
                return

    def _const(self, scope: tuple[str, ...]) -> None:
        self._type(scope, 0)
        name = self._tokens.name("the name of a constant")
        self._tokens.expect("=")
        self._declare(scope, name, self._value(scope))

    def _declare(self, scope: tuple[str, ...], name: Token, its: Declared | Value | None) -> str:
        full = "::".join((*scope, name.value))
        if self._known.get(full) is not None:
            self._tokens.fail(f"{full} is declared twice", name.at)
        self._known[full] = its
        return full

    # -- types

    def _type(self, scope: tuple[str, ...], depth: int) -> Declared:
        tokens = self._tokens
        if depth > SCHEMA_DEPTH:
            tokens.fail(f"deeper than {SCHEMA_DEPTH} (SCHEMA_DEPTH)")
        self._annotations(scope)
        word = tokens.now
        if word.value in REFUSED:
            tokens.fail(REFUSED[word.value])
        if tokens.accept("unsigned"):
            return self._integer(tokens.name("short or long"), is_signed=False)
        if word.value == "long":
            return self._integer(tokens.take(), is_signed=True)
        if word.value in _WORDS:
            return _WORDS[tokens.take().value]
        if tokens.accept("string"):
            return Text(self._bound(scope))
        if tokens.accept("sequence"):
            tokens.expect("<")
            element = self._type(scope, depth + 1)
            bound = self._size(scope) if tokens.accept(",") else None
            tokens.expect(">")
            self._check_depth(element, word.at)
            return Sequence(element, bound)
        found = self._named(scope)
        if found is None or isinstance(found, Value):
            what = "is not yet whole here: a struct cannot contain itself" if found is None else "is no type"
            tokens.fail(f"{word.value} {what}", word.at)
        return found

    def _integer(self, word: Token, *, is_signed: bool) -> Declared:
        if word.value not in ("short", "long"):
            self._tokens.fail(f"expected short or long, not {word.value!r}", word.at)
        bits = 16
        if word.value == "long":
            bits = 32
            if self._tokens.now.value == "double":
                self._tokens.fail("long double is not read: implementations write it differently")
            if self._tokens.accept("long"):
                bits = 64
        return PRIMITIVES[f"{'int' if is_signed else 'uint'}{bits}"]

    def _dimensions(self, scope: tuple[str, ...], its: Declared) -> Declared:
        sizes: list[int] = []
        place = self._tokens.now.at
        while self._tokens.accept("["):
            sizes.append(self._size(scope))
            self._tokens.expect("]")
        if not sizes:
            return its
        problem = check_array((*sizes, its.count) if isinstance(its, Array) else tuple(sizes))
        if problem is not None:
            self._tokens.fail(problem, place)
        self._check_depth(its, place)
        return Array(its, tuple(sizes))

    def _check_depth(self, element: Declared, place: int) -> None:
        """Lists within lists, of which typedefs make any number; structs are measured when they are whole."""
        depth = 0
        while isinstance(element, Sequence | Array):
            element, depth = element.element, depth + 1
        if depth >= SCHEMA_DEPTH:
            self._tokens.fail(f"deeper than {SCHEMA_DEPTH} (SCHEMA_DEPTH)", place)

    def _bound(self, scope: tuple[str, ...]) -> int | None:
        if not self._tokens.accept("<"):
            return None
        bound = self._size(scope)
        self._tokens.expect(">")
        return bound

    def _size(self, scope: tuple[str, ...]) -> int:
        place = self._tokens.now.at
        found = self._value(scope)
        size = _whole(found, 1, (1 << 32) - 1)
        return size if size > 0 else self._tokens.fail(f"a size is a number from 1 to 2^32 - 1, not {found!r}", place)

    def _named(self, scope: tuple[str, ...]) -> Declared | Value | None:
        """What a name, perhaps with those of modules, stands for; the innermost scope counts."""
        tokens = self._tokens
        place = tokens.now.at
        is_absolute = tokens.accept("::") is not None
        parts = [tokens.name("a type").value]
        while tokens.accept("::"):
            parts.append(tokens.name("a name").value)
        for outer in range(0 if is_absolute else len(scope), -1, -1):
            full = "::".join((*scope[:outer], *parts))
            if full in self._known:
                return self._known[full]
        tokens.fail(f"{'::'.join(parts)} is not declared", place)

    # -- annotations and values

    def _annotations(self, scope: tuple[str, ...]) -> list[_Annotation]:
        found: list[_Annotation] = []
        tokens = self._tokens
        while mark := tokens.accept("@"):
            name = tokens.name("the name of an annotation").value
            while tokens.accept("::"):
                name = tokens.name("the name of an annotation").value
            value = self._argument(scope) if tokens.accept("(") else None
            found.append(_Annotation(name, value, mark.at))
        return found

    def _argument(self, scope: tuple[str, ...]) -> Value | None:
        """The value of an annotation with one, named or not; others are passed over up to their end."""
        tokens = self._tokens
        taken: list[Token] = []
        depth = 1
        while True:
            token = tokens.take()
            if token.kind == "end":
                tokens.fail("an annotation does not end")
            depth += (token.value == "(" and token.kind == "mark") - (token.value == ")" and token.kind == "mark")
            if not depth:
                break
            taken.append(token)
        if len(taken) == 3 and taken[1].value == "=":
            taken = taken[2:]
        negative = len(taken) == 2 and taken[0].value == "-"
        if len(taken) - negative != 1:
            return None
        return _literal(taken[-1], negative, self._known)

    def _value(self, scope: tuple[str, ...]) -> Value:
        tokens = self._tokens
        sign = tokens.accept("-", "+")
        token = tokens.now
        if token.kind == "name" and token.value not in ("TRUE", "FALSE"):
            found = self._named(scope)
            if not isinstance(found, Value):
                tokens.fail(f"{token.value} is no constant", token.at)
        else:
            tokens.take()
            literal = _literal(token, sign is not None and sign.value == "-", {})
            if literal is None:
                tokens.fail("expected a value", token.at)
            found = literal
        if tokens.now.kind == "mark" and tokens.now.value in "+-*/":
            tokens.fail("expressions are not read; write the number")
        return found


def _literal(token: Token, negative: bool, known: Mapping[str, Declared | Value | None]) -> Value | None:
    text = token.value
    if token.kind == "number":
        if len(text) > 40:
            return None
        is_whole = text[:2].lower() == "0x" or text.isdigit()
        number: int | float = int(text, 16 if text[:2].lower() == "0x" else 10) if is_whole else float(text)
        return -number if negative else number
    if token.kind == "text":
        return text[1:-1]
    if text in ("TRUE", "FALSE", "true", "false"):
        return text.upper() == "TRUE"
    if token.kind == "name":
        found = known.get(text)
        return found if isinstance(found, Value) else text
    return None


def _whole(value: Value | None, least: int, most: int) -> int:
    """A whole number within bounds, or one below all of them."""
    return value if type(value) is int and least <= value <= most else least - 1


def _extensibility(notes: list[_Annotation]) -> Extensibility | None:
    for note in notes:
        if note.name in _EXTENSIBILITY:
            return _EXTENSIBILITY[note.name]
        if note.name == "extensibility" and str(note.value).lower() in _EXTENSIBILITY:
            return _EXTENSIBILITY[str(note.value).lower()]
    return None
