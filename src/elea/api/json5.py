"""JSON5 to Python values, with the place of every mistake.

JSON plus comments, trailing commas, unquoted and single-quoted names, multi-line strings, hexadecimal numbers,
signs, leading and trailing points, `Infinity` and `NaN`. A name given twice is refused: in a configuration the
first one would be lost without a word. This module knows nothing of what the values mean.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn, TypeAlias

from elea.model.errors import ConfigError
from elea.model.limits import MAX_DEPTH

__all__ = ["MAX_DEPTH", "Json", "parse"]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

# White space of JSON5 is that of ECMAScript: the BOM and all space separators count.
_BLANK: Final = re.compile(r"(?:[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*", re.DOTALL)
_NAME: Final = re.compile(r"(?:[^\W\d]|\$|\\u[0-9a-fA-F]{4})(?:\w|\$|[\u200c\u200d]|\\u[0-9a-fA-F]{4})*")
_NUMBER: Final = (
    r"[+-]?(?:0[xX][0-9a-fA-F]+|Infinity|NaN|(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)
_PLAIN: Final = {'"': re.compile(r'[^"\\\n\r]+'), "'": re.compile(r"[^'\\\n\r]+")}
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_LINE_ENDS: Final = ("\r\n", "\n", "\r", "\u2028", "\u2029")


def parse(text: str, source: str = "json5") -> Json:
    """The value written in `text`.

    >>> parse("{mode: 'client', /* two */ n: [0x10, .5, +1,],}")
    {'mode': 'client', 'n': [16, 0.5, 1]}

    Raises:
        ConfigError: it is no JSON5; `path` is `source:line:column`.
    """
    reader = _Reader(text, source)
    value = reader.value(0)
    reader.blank()
    if reader.at < len(text):
        reader.fail("nothing may follow the value", "remove it, or put a comma or bracket before it")
    return value


class _Reader:
    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.at = 0

    def fail(self, problem: str, hint: str = "", at: int | None = None) -> NoReturn:
        at = self.at if at is None else at
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        raise ConfigError(f"{self.source}:{line}:{column}", problem, hint)

    def blank(self) -> str:
        """Skip space and comments; the next character, empty at the end."""
        match = _BLANK.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        if self.text.startswith("/*", self.at):
            self.fail("comment without end", "close it with '*/'")
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Json:
        start = self.blank()
        if not start:
            self.fail("the text ends where a value should be")
        if start in "{[" and depth >= MAX_DEPTH:
            self.fail(f"more than {MAX_DEPTH} levels of nesting")
        if start == "{":
            return self.object(depth)
        if start == "[":
            return self.array(depth)
        if start in "\"'":
            return self.string(start)
        return self.word_or_number()

    def object(self, depth: int) -> dict[str, Json]:
        found: dict[str, Json] = {}
        self.at += 1
        while self.blank() != "}":
            at = self.at
            name = self.name()
            if name in found:
                self.fail(f"name {name!r} is given twice", "remove one of them", at)
            if self.blank() != ":":
                self.fail(f"':' expected after the name {name!r}")
            self.at += 1
            found[name] = self.value(depth + 1)
            self.separator("}")
        self.at += 1
        return found

    def array(self, depth: int) -> list[Json]:
        found: list[Json] = []
        self.at += 1
        while self.blank() != "]":
            found.append(self.value(depth + 1))
            self.separator("]")
        self.at += 1
        return found

    def separator(self, end: str) -> None:
        following = self.blank()
        if following == ",":
            self.at += 1
        elif following != end:
            self.fail(f"',' or '{end}' expected", "" if following else "the text ends too early")

    def name(self) -> str:
        start = self.blank()
        if start and start in "\"'":
            return self.string(start)
        match = _NAME.match(self.text, self.at)
        if match is None:
            self.fail("name expected", "quote names that are not made of letters, digits, '_' and '$'")
        self.at = match.end()
        return re.sub(r"\\u(....)", lambda found: chr(int(found[1], 16)), match[0])

    def word_or_number(self) -> Json:
        match = re.compile(_NUMBER).match(self.text, self.at)
        if match is None:
            match = _NAME.match(self.text, self.at)
            if match is None or match[0] not in _WORDS:
                word = match[0] if match else self.text[self.at]
                self.fail(f"{word!r} is no value", "put text in quotes")
            self.at = match.end()
            return _WORDS[match[0]]
        follow = _NAME.match(self.text, match.end())
        if follow is not None or self.text[match.end() : match.end() + 1].isdigit():
            self.fail(f"{match[0]!r} is followed by what belongs to no number", "put text in quotes")
        self.at = match.end()
        return _number(match[0])

    def string(self, quote: str) -> str:
        start, pieces = self.at, []
        self.at += 1
        while True:
            match = _PLAIN[quote].match(self.text, self.at)
            if match is not None:
                pieces.append(match[0])
                self.at = match.end()
            following = self.text[self.at : self.at + 1]
            if following == quote:
                self.at += 1
                return _join_surrogates("".join(pieces))
            if following != "\\":
                self.fail(f"text without closing {quote}", "end a line inside of text with a backslash", start)
            pieces.append(self.escape())

    def escape(self) -> str:
        self.at += 1
        for end in _LINE_ENDS:
            if self.text.startswith(end, self.at):
                self.at += len(end)
                return ""
        code = self.text[self.at : self.at + 1]
        digits = {"x": 2, "u": 4}.get(code, 0)
        self.at += 1
        if not digits:
            if not code or code in "123456789" or (code == "0" and self.text[self.at : self.at + 1].isdigit()):
                self.fail(f"'\\{code}' is no escape", "write '\\x..' or '\\u....'", self.at - 2)
            return _ESCAPES.get(code, code)
        number = self.text[self.at : self.at + digits]
        if not re.fullmatch(rf"[0-9a-fA-F]{{{digits}}}", number):
            self.fail(f"'\\{code}' needs {digits} hexadecimal digits", at=self.at - 2)
        self.at += digits
        return chr(int(number, 16))


def _number(text: str) -> int | float:
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-")
    if digits[:2] in ("0x", "0X"):
        return sign * int(digits, 16)
    if digits == "Infinity":
        return sign * float("inf")
    if digits.isdecimal():
        # The length is bounded because Python refuses to read numbers of thousands of digits as integers.
        return sign * int(digits) if len(digits) <= 400 else sign * float(digits)
    return sign * float(digits)


def _join_surrogates(text: str) -> str:
    r"""Characters written as a pair of `\u` escapes become one."""
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
