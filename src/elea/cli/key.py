"""`elea key`: how two key expressions relate and why, or whether one is valid.

Both grammars are understood, also mixed: texts with a scheme (`zenoh://…`, `xrce://…`) are of the early one.
Exit codes: 0 they have a key in common (the one is valid), 1 they have none (it is not canonical), 2 invalid.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from elea.cli.style import CliError, Style
from elea.model.errors import InvalidKeyExpr, InvalidResource, InvalidSelector, LimitReached

if TYPE_CHECKING:
    from elea.model.pattern import Pattern
    from elea.model.resource import Resource

__all__ = ["add_arguments", "run"]

SCHEMES: Final = ("zenoh://", "xrce://")
INVALID: Final = 2

COLOURS: Final = {"disjoint": "red", "intersects": "yellow"}
VERBS: Final = {
    "equals": "is the same set of keys as",
    "includes": "includes",
    "included": "is included in",
    "intersects": "intersects",
    "disjoint": "is disjoint from",
}


@dataclass(frozen=True, slots=True)
class Key:
    """A key expression of either grammar."""

    text: str
    pattern: Pattern
    resource: Resource | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """How two key expressions relate; `witness` is a key of both."""

    relation: str
    reason: str
    witness: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `elea key`."""
    parser.add_argument("a", metavar="A", help="a key expression: a/*/c, or zenoh://a/?/c")
    parser.add_argument("b", metavar="B", nargs="?", help="another to compare it with")


def run(args: argparse.Namespace) -> int:
    """Compares two key expressions, or checks one."""
    style = Style.for_stream(sys.stdout, args.color)
    try:
        if args.b is None:
            return _check_one(args.a, args.json, style)
        return _compare(_parse(args.a), _parse(args.b), args.json, style)
    except (InvalidKeyExpr, InvalidResource, InvalidSelector) as error:
        hint = _hint(error)
        if args.json:
            print(json.dumps({"error": "INVALID_KEY", "key": error.text, "problem": error.problem, "hint": hint}))
        raise CliError(f"{error.text!r} is not valid: {error.problem}", hint, INVALID) from error


def _parse(text: str) -> Key:
    from elea.model.pattern import Pattern
    from elea.model.resource import Selection

    if not text.startswith(SCHEMES):
        return Key(text, Pattern.of(text))
    selection = Selection.parse(text)
    return Key(str(selection), Pattern.of(selection), selection.resource)


def _hint(error: InvalidKeyExpr | InvalidResource | InvalidSelector) -> str:
    from elea.model.keyexpr import canonize

    if not isinstance(error, InvalidKeyExpr):
        return "scheme, names parted by single '/', then '#tag': zenoh://home/*/temp#transient"
    try:
        return f"its canonical form {canonize(error.text)!r}"
    except InvalidKeyExpr:
        return error.hint or "chunks parted by single '/': home/*/temp"


# -- one -----------------------------------------------------------------------------------------------------


def _check_one(text: str, as_json: bool, style: Style) -> int:
    canonical = _canonical(text)
    same = canonical == text
    if as_json:
        form = {"key": text, "canonical": canonical, "is_canonical": same, "grammar": _grammar(text)}
        print(json.dumps(form))
    elif same:
        print(f"{style.paint(text, 'bold')}  {style.paint('valid', 'green')}, {_grammar(text)} grammar")
    else:
        print(f"{style.paint(text, 'bold')}  {style.paint('not canonical', 'yellow')}, {_grammar(text)} grammar")
        print(f"canonical  {style.paint(canonical, 'bold')}")
    return 0 if same else 1


def _canonical(text: str) -> str:
    from elea.model.keyexpr import canonize

    return _parse(text).text if text.startswith(SCHEMES) else canonize(text)


def _grammar(text: str) -> str:
    return "early" if text.startswith(SCHEMES) else "1.x"


# -- two -----------------------------------------------------------------------------------------------------


def _compare(a: Key, b: Key, as_json: bool, style: Style) -> int:
    answer = _answer(a, b)
    if as_json:
        form = {"a": a.text, "b": b.text, "relation": answer.relation}
        print(json.dumps(form | {"reason": answer.reason, "witness": answer.witness}))
    else:
        verb = style.paint(VERBS[answer.relation], COLOURS.get(answer.relation, "green"))
        print(f"{style.paint(a.text, 'bold')}  {verb}  {style.paint(b.text, 'bold')}")
        print(f"reason   {answer.reason}")
        if answer.witness is not None:
            print(f"witness  {style.paint(answer.witness, 'cyan')}")
    return 1 if answer.relation == "disjoint" else 0


def _answer(a: Key, b: Key) -> Answer:
    apart = _set_apart(a.resource, b.resource)
    if apart:
        return Answer("disjoint", apart, None)
    relation = _relation(a.pattern, b.pattern)
    reason = _explain_chunks(a, b) if a.resource is None and b.resource is None else _explain(a, b, relation)
    return Answer(relation, reason, None if relation == "disjoint" else a.pattern.witness(b.pattern))


def _set_apart(a: Resource | None, b: Resource | None) -> str:
    """What beside their paths keeps two early resources apart (Z18-DUR-02, Z18-MET-01)."""
    if a is None or b is None:
        return ""
    from elea.model.resource import tags_agree

    if a.meta != b.meta:
        return "a meta resource is not the resource it tells about"
    if not tags_agree(a.tags, b.tags) and not tags_agree(b.tags, a.tags):
        return f"tags {', '.join(a.tags)} and {', '.join(b.tags)} have none in common"
    return ""


def _relation(a: Pattern, b: Pattern) -> str:
    more, less = a.includes(b), b.includes(a)
    if more or less:
        return "equals" if more and less else "includes" if more else "included"
    return "intersects" if a.intersects(b) else "disjoint"


def _explain_chunks(a: Key, b: Key) -> str:
    from elea.model.keyexplain import explain

    # The sentence starts with the relation, which is printed already.
    return explain(a.text, b.text).partition(": ")[2] or "the same text"


def _explain(a: Key, b: Key, relation: str) -> str:
    """In keys rather than chunks, for early wildcards know no chunks."""
    if relation == "equals":
        return "every key of either is one of the other"
    if relation == "disjoint":
        return "no key belongs to both"
    extra = [text for text in (_extra(a, b), _extra(b, a)) if text]
    return "; ".join(extra) or "some keys belong to both"


def _extra(a: Key, b: Key) -> str:
    try:
        only = b.pattern.missing(a.pattern)
    except LimitReached:
        return ""
    return f"only {a.text} has {only}" if only is not None else f"every key of {a.text} is one of {b.text}"
