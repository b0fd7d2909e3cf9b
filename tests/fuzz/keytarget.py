"""Texts of every grammar of keys: lines of an input are texts, each read in every way and set against the next."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

from elea.model.encoding import Encoding
from elea.model.errors import InvalidKeyExpr, InvalidResource, InvalidSelector, LimitReached
from elea.model.keyexplain import explain
from elea.model.keyexpr import KeyExpr, SetIntersectionLevel, canonize, witness
from elea.model.pattern import Pattern
from elea.model.resource import Resource, Selection, path_includes, paths_intersect, resources_match
from elea.model.selector import Parameters, Selector
from elea.model.timerange import TimeRange
from tests.fuzz import corpus
from tests.fuzz.laws import broken, require
from tests.fuzz.target import Target

__all__ = ["key_target"]

LINES = 4
SHORT = 60
"""Searches that find a key to show are bounded by the product of the sizes, so they are given short texts only."""

LONG = 1_024
"""Exact inclusion is bounded by a number of sets of places, each as large as the text: 40 ms at 4,096 characters."""

NOW = 1_700_000_000_000_000_000


def key_target() -> Target:
    """Checking, canonizing and comparing; what is timed is reading the texts and comparing the patterns."""

    def decode(data: bytes) -> list[Pattern]:
        texts = data.decode("utf-8", "surrogateescape").split("\n")[:LINES]
        patterns = [pattern for text in texts for pattern in _patterns(text)]
        for one, other in pairwise(patterns):
            one.intersects(other)
            if len(one.text) + len(other.text) < LONG:
                one.includes(other)
        return patterns

    def law(data: bytes, patterns: list[Pattern]) -> None:
        for text in data.decode("utf-8", "surrogateescape").split("\n")[:LINES]:
            _check_canonical(text)
            _check_selector(text)
        for one, other in pairwise(patterns):
            _check_pair(one, other)

    return Target("keyexpr", decode, law, (), corpus.key_seeds, lambda: corpus.KEY_TOKENS, 1_024)


def _patterns(text: str) -> list[Pattern]:
    found: list[Pattern] = []
    with suppress(InvalidKeyExpr):
        found.append(Pattern.of(KeyExpr(text)))
    with suppress(InvalidResource):
        found.append(Pattern.of(Resource.parse(text)))
    with suppress(InvalidResource, InvalidSelector):
        found.append(Pattern.of(Selection.parse(text)))
    return found


def _check_canonical(text: str) -> None:
    try:
        canonical = canonize(text)
    except InvalidKeyExpr:
        pass
    else:
        require(canonize(canonical) == canonical, "the canonical form is its own", canonical)
        require(KeyExpr(canonical) == canonical, "the canonical form is valid", canonical)
    for parse in (Resource.parse, Selection.parse):
        try:
            value = parse(text)
        except (InvalidResource, InvalidSelector):
            continue
        require(parse(str(value)) == value, "a printed resource or selection reads the same", value)
    try:
        require(Encoding(str(Encoding(text))) == Encoding(text), "a printed encoding reads the same", text)
    except ValueError:
        return


def _check_selector(text: str) -> None:
    parameters = Parameters(text)
    require(Parameters(str(parameters)) == parameters, "printed parameters read the same", parameters)
    list(parameters)
    try:
        selector = Selector(text)
    except InvalidKeyExpr:
        return
    require(Selector(str(selector)) == selector, "a printed selector reads the same", selector)
    try:
        time_range = selector.time_range
    except InvalidSelector:
        return
    if time_range is not None:
        _check_time(time_range)


def _check_time(time_range: TimeRange) -> None:
    resolved = time_range.resolve(NOW)
    require(resolved.contains(NOW) == time_range.contains(NOW, NOW), "a resolved range holds the same", time_range)
    try:
        again = TimeRange.parse(str(time_range))
    except InvalidSelector as error:
        broken("a printed time range reads the same", time_range, error)
    require(again == time_range, "a printed time range reads the same", time_range)


def _check_pair(one: Pattern, other: Pattern) -> None:
    meets = one.intersects(other)
    require(other.intersects(one) == meets, "intersection is symmetric", one, other)
    if len(one.text) > SHORT or len(other.text) > SHORT:
        return
    includes = one.includes(other)
    require(one.includes(one), "a pattern includes itself", one)
    key = one.witness(other)
    require((key is None) != meets, "there is a witness where patterns intersect", one, other, key)
    if key is not None:
        require(one.matches(key) and other.matches(key), "a witness belongs to both", one, other, key)
    try:
        missing = one.missing(other)
    except LimitReached:
        return
    require(missing is None or not includes, "nothing is missing from what includes it", one, other, missing)
    if missing is not None:
        require(other.matches(missing) and not one.matches(missing), "what is missing is missing", one, other, missing)
    if one.kind is other.kind:
        _check_texts(one, other, meets, includes)


def _check_texts(one: Pattern, other: Pattern, meets: bool, includes: bool) -> None:
    """The functions over texts say what the patterns say."""
    if one.kind.value == "characters":
        require(paths_intersect(one.text, other.text) == meets, "paths intersect as patterns do", one, other)
        require(path_includes(one.text, other.text) == includes, "paths include as patterns do", one, other)
        a, b = Resource("zenoh://", one.text), Resource("zenoh://", other.text)
        require(resources_match(a, b) == meets, "resources match as patterns do", one, other)
        return
    level = KeyExpr(one.text).relation_to(other.text)
    require((level >= SetIntersectionLevel.INTERSECTS) == meets, "the relation agrees with intersection", one, other)
    require((level >= SetIntersectionLevel.INCLUDES) == includes, "the relation agrees with inclusion", one, other)
    require((witness(one.text, other.text) is None) != meets, "the witness agrees with intersection", one, other)
    explain(one.text, other.text)
