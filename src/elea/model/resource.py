"""Resources and selections of the early dialects (2017, 2018): grammar, canonical text, matching.

A resource is a path and tags: `zenoh://home/*/temp#transient`. Its wildcards work on characters, not on
chunks: `?` is one character, `*` any number of them within a name, `**` any number across names. A selection
adds a predicate. The 1.x grammar is `elea.model.keyexpr`; both kinds meet in `elea.model.pattern`. What a
predicate means is known in `elea.model.predicate`. Spec: zenoh-2018.md sections 5.16 and 5.17, decisions DEC-18,
19, 22, 23, 32.
"""

from __future__ import annotations

import re
from typing import Final

from elea.model.errors import InvalidResource, InvalidSelector, LimitReached
from elea.model.globs import compile_characters, globs_intersect
from elea.model.globsearch import find_counterexample
from elea.model.limits import RESOURCE_BYTES, RESOURCE_PATTERN_CHARS
from elea.model.qos import Durability
from elea.model.values import value_class

__all__ = [
    "XRCE_SCHEME",
    "ZENOH_SCHEME",
    "Resource",
    "Selection",
    "path_includes",
    "paths_intersect",
    "resources_match",
    "tags_agree",
]

ZENOH_SCHEME: Final = "zenoh://"
XRCE_SCHEME: Final = "xrce://"

_NAME: Final = re.compile(r"(?:[A-Za-z0-9\-._~!&'()+,;=:@?*]|%[0-9A-Fa-f]{2})+")
_TAG: Final = re.compile(r"[A-Za-z0-9_.-]+")
# DEC-22: the paper printed `\${s}` for `$ls`; every spelling met is read, one is written.
_META: Final = re.compile(r"\\?\$(?:(?P<ls>ls|\{ls\}|\{s\})|id|\{id\})\Z")
_WILDCARD: Final = re.compile(r"[?*]")


def paths_intersect(a: str, b: str) -> bool:
    """Whether two path texts, valid or not, describe a common text."""
    if a == b:
        return True
    if _WILDCARD.search(a) is None and _WILDCARD.search(b) is None:
        return False
    return globs_intersect(compile_characters(a), compile_characters(b))


def path_includes(a: str, b: str) -> bool:
    """Whether every path of `b` is one of `a`.

    Exact, but for pairs written to need exponentially many steps: those are answered no, the careful answer.
    """
    if a == b:
        return True
    if _WILDCARD.search(b) is None:
        return paths_intersect(a, b)
    try:
        return find_counterexample(compile_characters(a), compile_characters(b)) is None
    except LimitReached:
        return False


def tags_agree(wanted: tuple[str, ...], given: tuple[str, ...]) -> bool:
    """Whether an expression with the wanted tags takes a resource with the given ones (Z18-DUR-02).

    No wanted tag takes everything; otherwise one in common is enough, so that `#{transient,persistent}` takes
    all durable resources and no volatile one. The rule has a direction: `#transient` does not take an
    untagged resource.
    """
    return not wanted or not set(wanted).isdisjoint(given)


def resources_match(expression: Resource, resource: Resource) -> bool:
    """Whether an expression (of a subscriber, of a pull) takes a resource (of a publisher, of a sample)."""
    return (
        expression.meta == resource.meta
        and tags_agree(expression.tags, resource.tags)
        and paths_intersect(expression.path, resource.path)
    )


@value_class
class Resource:
    """A path with its tags; `meta` is `ls` or `id` for the two meta resources of a path.

    >>> str(Resource.parse("zenoh://a/b#{transient, x, transient}"))
    'zenoh://a/b#{transient,x}'
    >>> Resource.parse("zenoh://a/b#persistent").durability.name
    'PERSISTENT'
    """

    scheme: str
    path: str
    tags: tuple[str, ...] = ()
    meta: str = ""

    @classmethod
    def parse(cls, text: str, scheme: str | None = None) -> Resource:
        """Read a resource of one scheme, or of either.

        Raises:
            InvalidResource: the text breaks the grammar; the early dialects answer with status 5.
        """
        head, _, tags = text.strip().partition("#")
        path = _path_after_scheme(text, head.rstrip(), scheme)
        return cls.of_path(text, path, _parse_tags(text, tags.strip()))

    @classmethod
    def of_path(cls, text: str, schemed_path: str, tags: tuple[str, ...]) -> Resource:
        """Check a path that still has its scheme; `text` is what an error quotes."""
        scheme, path, meta = _split_meta(text, schemed_path)
        _check_path(text, path)
        return cls(scheme, path, tags, meta)

    @property
    def trivial(self) -> bool:
        """Whether the path has no wildcard, so that it names one resource."""
        return _WILDCARD.search(self.path) is None

    @property
    def durability(self) -> Durability:
        """What the tags say; of two durabilities the stronger."""
        if "persistent" in self.tags:
            return Durability.PERSISTENT
        return Durability.TRANSIENT if "transient" in self.tags else Durability.VOLATILE

    def __str__(self) -> str:
        text = f"{self.scheme}{self.path}"
        if self.meta:
            text += f"${self.meta}"
        if not self.tags:
            return text
        return f"{text}#{self.tags[0]}" if len(self.tags) == 1 else f"{text}#{{{','.join(self.tags)}}}"


@value_class
class Selection:
    """A resource with a predicate over the content of its samples; no predicate holds for all.

    >>> selection = Selection.parse("zenoh://home/*/light#{transient}?{luminosity>0}")
    >>> selection.path, selection.tags, selection.predicate, str(selection)
    ('home/*/light', ('transient',), 'luminosity>0', 'zenoh://home/*/light#transient?{luminosity>0}')
    """

    resource: Resource
    predicate: str | None = None

    @classmethod
    def parse(cls, text: str, scheme: str | None = None) -> Selection:
        """Read a selection of one scheme, or of either. Whether a predicate behind `?` is one is found out by its user.

        Raises:
            InvalidResource: the resource part breaks the grammar.
            InvalidSelector: the predicate part does.
        """
        head, predicate = _split_predicate(text)
        before, _, tags = head.partition("#")
        path = _path_after_scheme(text, before.rstrip(), scheme)
        tags = tags.strip()
        # DEC-19: the paper prints `#{luminosity>0}` where it means `#?{luminosity>0}`.
        if not predicate and tags[:1] == "{" and tags[-1:] == "}" and not _are_tags(tags[1:-1]):
            predicate, tags = tags[1:-1].strip(), ""
            from elea.model.predicate import is_predicate  # not with the module: few nodes see a predicate

            if not is_predicate(predicate):
                raise InvalidSelector(text, f"{predicate!r} is neither a list of tags nor a predicate")
        return cls(Resource.of_path(text, path, _parse_tags(text, tags)), predicate or None)

    @property
    def path(self) -> str:
        """The path of the resource."""
        return self.resource.path

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the resource."""
        return self.resource.tags

    def __str__(self) -> str:
        return f"{self.resource}?{{{self.predicate}}}" if self.predicate else str(self.resource)


def _split_predicate(text: str) -> tuple[str, str]:
    """Part the predicate from the rest (Z18-SEL-02): `?` is a wildcard, `?{` starts a predicate."""
    text = text.strip()
    head, mark, rest = text.partition("?{")
    if mark:
        if not rest.endswith("}"):
            raise InvalidSelector(text, "the predicate that starts at '?{' does not end in '}'")
        return head, rest[:-1].strip()
    if "#" in text and text.endswith("?"):
        return text[:-1], ""
    return text, ""


def _path_after_scheme(text: str, head: str, scheme: str | None) -> str:
    if len(text) > RESOURCE_BYTES:
        shown = f"{text[:100]}…"
        raise InvalidResource(shown, f"{len(text)} characters are above the limit of {RESOURCE_BYTES}")
    schemes = (ZENOH_SCHEME, XRCE_SCHEME) if scheme is None else (scheme,)
    if not head.startswith(schemes):
        raise InvalidResource(text, f"does not start with {' or '.join(schemes)}")
    return head


def _split_meta(text: str, schemed_path: str) -> tuple[str, str, str]:
    scheme = ZENOH_SCHEME if schemed_path.startswith(ZENOH_SCHEME) else XRCE_SCHEME
    path = schemed_path[len(scheme) :]
    found = _META.search(path)
    if found is None:
        return scheme, path, ""
    if scheme == XRCE_SCHEME:
        raise InvalidResource(text, "xrce2017 has no meta resources")
    return scheme, path[: found.start()], "ls" if found["ls"] else "id"


def _check_path(text: str, path: str) -> None:
    if not path:
        raise InvalidResource(text, "the path is empty")
    if len(path) > RESOURCE_PATTERN_CHARS and _WILDCARD.search(path) is not None:
        limit = f"the limit of {RESOURCE_PATTERN_CHARS} for paths with wildcards (RESOURCE_PATTERN_CHARS)"
        raise InvalidResource(f"{text[:100]}…", f"{len(path)} characters are above {limit}")
    for number, name in enumerate(path.split("/"), start=1):
        if not name:
            # DEC-32: the default partition of DDS gives `zenoh:///T`, whose first name is empty.
            if number == 1 and path != "/":
                continue
            raise InvalidResource(text, f"name {number} of the path is empty; only the first may be")
        if _NAME.fullmatch(name) is None:
            raise InvalidResource(text, f"name {number} of the path, {name!r}, has a character that is not allowed")


def _are_tags(text: str) -> bool:
    return all(_TAG.fullmatch(tag.strip()) for tag in text.split(","))


def _parse_tags(text: str, tags: str) -> tuple[str, ...]:
    if not tags:
        return ()
    names = tags[1:-1].split(",") if tags[0] == "{" and tags[-1] == "}" else [tags]
    for name in names:
        if _TAG.fullmatch(name.strip()) is None:
            raise InvalidResource(text, f"tag {name!r} is not made of letters, digits, '_', '.' and '-'")
    return tuple(sorted({name.strip() for name in names}))
