"""A predicate over samples as they travel through a node: nothing is decoded that it does not look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Final, cast

from elea.content.contents import PLAIN, UNKNOWN, Contents
from elea.model.encoding import CUSTOM_ENCODING, Encoding
from elea.model.errors import DecodeError
from elea.model.predicate import Predicate, compile_test
from elea.model.predicate.closure import path_getter
from elea.model.predicate.syntax import Condition, Field, Like, Match, Metadata, Property, walk
from elea.model.timestamp import datetime_from_ns, ns_from_ntp64
from elea.wire.details import DEFAULT_QOS, Parts, RawSample, unpack_parts

__all__ = ["SamplePredicate", "SampleView", "compile_sample", "encoding_text", "sample_test", "view_of"]

_PLAIN_PARTS: Final[Parts] = (False, None, 0, None, None, None)


class SampleView:
    """One sample, looked into as far as somebody asks."""

    __slots__ = ("_content", "_contents", "_parts", "key", "payload", "qos")

    def __init__(self, key: str, payload: bytes, qos: int, parts: Parts, contents: Contents = PLAIN) -> None:
        self.key = key
        self.payload = payload
        self.qos = qos
        self._parts = parts
        self._contents = contents
        self._content: object = None

    @property
    def is_deletion(self) -> bool:
        return self._parts[0]

    @property
    def stamp(self) -> tuple[int, bytes] | None:
        """Its timestamp; one of nobody is none."""
        stamp = self._parts[1]
        return stamp if stamp is not None and stamp[1].strip(b"\0") else None

    @property
    def encoding(self) -> tuple[int, bytes | None]:
        return self._parts[2], self._parts[3]

    def content(self) -> object:
        """The fields of its payload, or UNKNOWN; a deletion has no content."""
        found = self._content
        if found is None:
            found = UNKNOWN
            if not self._parts[0]:
                found = self._contents.decode(self.key, self._parts[2], self._parts[3], self.payload)
            self._content = found
        return found

    @property
    def is_undeclared(self) -> bool:
        """Whether nobody has said here how its payload is to be read."""
        return not self._parts[0] and not self._contents.is_declared(self.key, self._parts[2], self._parts[3])


class SamplePredicate:
    """A predicate that samples are held against; counts what it lets through.

    >>> where = SamplePredicate(Predicate("speed > 2 AND key LIKE 'fleet/%'"))
    >>> where.takes("fleet/1", None, b'{"speed": 3}'), where.takes("fleet/1", None, b'{"speed": 1}')
    (True, False)
    """

    __slots__ = ("__weakref__", "_contents", "_test", "_uses_content", "passed", "predicates", "refused", "unreadable")

    def __init__(
        self,
        predicate: Predicate | str,
        *,
        names: Mapping[str, str] | None = None,
        properties: Mapping[str | int, object] | None = None,
        contents: Contents = PLAIN,
    ) -> None:
        made = Predicate.of(predicate)
        self.predicates: tuple[Predicate, ...] = (made,)
        self._contents = contents
        self._test = compile_test(made, _SampleAccess(properties or {}), names=names)
        self._uses_content = bool(made.fields)
        self.passed = 0
        """Samples that were taken."""
        self.refused = 0
        """Samples that were not, those below included."""
        self.unreadable = 0
        """Samples of which nobody could tell, because the payload is not what its encoding says, or has none."""

    @classmethod
    def either(cls, predicates: Sequence[Predicate | str], *, contents: Contents = PLAIN) -> SamplePredicate:
        """What takes a sample if one of several predicates holds."""
        made = [cls(predicate, contents=contents) for predicate in predicates]
        first = made[0]
        if len(made) > 1:
            tests = [each._test for each in made]
            first._test = lambda view: any(test(view) is True for test in tests)
            first.predicates = tuple(predicate for each in made for predicate in each.predicates)
            first._uses_content = any(each._uses_content for each in made)
        return first

    def takes(self, key: str, meta: bytes | None, payload: bytes, qos: int = DEFAULT_QOS) -> bool:
        """Whether a sample, with its details packed, is one of those wanted."""
        return self.takes_view(view_of(key, (0, 0, b"", qos, meta, payload), self._contents))

    def takes_parts(self, key: str, payload: bytes, qos: int, parts: Parts) -> bool:
        """The same for those who have columns."""
        return self.takes_view(SampleView(key, payload, qos, parts, self._contents))

    def takes_view(self, view: SampleView | None) -> bool:
        """The same for a sample that others look into, too; None is one whose details make no sense."""
        if view is None:
            self.unreadable += 1
            self.refused += 1
            return False
        if self._test(view) is True:
            self.passed += 1
            return True
        self.refused += 1
        if self._uses_content and not view.is_deletion and view.content() is UNKNOWN:
            self.unreadable += 1
        return False

    def chosen(self, key: str, run: Sequence[RawSample]) -> list[RawSample]:
        """Those of a run that are wanted; the run itself if all are."""
        takes = self.takes
        found = [raw for raw in run if takes(key, raw[4], raw[5], raw[3])]
        return found if len(found) < len(run) else cast("list[RawSample]", run)

    @property
    def uses_content(self) -> bool:
        """Whether it looks at fields of payloads."""
        return self._uses_content

    @property
    def weight(self) -> int:
        """How many steps it may take for each character of a text, and beside that: terms and lengths of patterns."""
        return sum(_weight(predicate) for predicate in self.predicates)


def compile_sample(
    text: str,
    parameters: Sequence[str] | None = None,
    properties: Mapping[str, str] | None = None,
    of_resource: Mapping[str | int, object] | None = None,
    contents: Contents = PLAIN,
) -> SamplePredicate:
    """What an early selection needs. Spec: zenoh-2018.md section 6, Z18-SEL-04.

    Args:
        parameters: what `%0`, `%1`, … stand for; unless given, the named properties `%0`, `%1`, … of the selection.
        properties: the selection's own named properties, for names that are neither fields nor properties.
        of_resource: the properties of the resource by name or number, for `property.`; looked up with each sample.

    Raises:
        InvalidPredicate: the answer is status 6.

    >>> where = compile_sample("speed > limit AND lane = %0", properties={"limit": "2", "%0": "left"})
    >>> where.takes("fleet/1", None, b'{"speed": 3, "lane": "left"}')
    True
    """
    named = dict(properties or {})
    if parameters is None:
        parameters = [named[f"%{at}"] for at in takewhile(lambda at: f"%{at}" in named, range(100))]
    return SamplePredicate(Predicate(text, parameters), names=named, properties=of_resource, contents=contents)


def _weight(predicate: Predicate) -> int:
    nodes = list(walk(predicate.condition))
    patterns = [predicate.constant(node.pattern).text or "" for node in nodes if isinstance(node, Like | Match)]
    return len(nodes) + sum(map(len, patterns))


def view_of(key: str, raw: RawSample, contents: Contents = PLAIN) -> SampleView | None:
    """A sample to look into; None if its details make no sense."""
    if raw[4] is None:
        return SampleView(key, raw[5], raw[3], _PLAIN_PARTS, contents)
    try:
        return SampleView(key, raw[5], raw[3], unpack_parts(raw[4]), contents)
    except DecodeError:
        return None


def sample_test(predicate: Predicate, condition: Condition) -> Callable[[SampleView], bool | None]:
    """What a part of a predicate says of a sample: True, False, or None for unknown."""
    return compile_test(predicate, _SampleAccess({}), condition=condition)


class _SampleAccess:
    """How operands are got out of a `SampleView`."""

    def __init__(self, properties: Mapping[str | int, object]) -> None:
        self._properties = properties

    def __call__(
        self, operand: Field | Metadata | Property, default: object = None, /
    ) -> Callable[[SampleView], object]:
        if isinstance(operand, Metadata):
            return _METADATA[operand.name]
        if isinstance(operand, Property):
            # Properties of a resource may change, so they are looked up each time.
            properties, name = self._properties, operand.name
            return lambda view: properties.get(name)
        get = path_getter(operand.path, default)

        def field(view: SampleView) -> object:
            content = view.content()
            return content if content is UNKNOWN else get(cast("Mapping[str, object]", content))

        return field


def _timestamp(view: SampleView) -> object:
    stamp = view.stamp
    # Cut to the microsecond: all that a `datetime` has, and Spark.
    return None if stamp is None else datetime_from_ns(ns_from_ntp64(stamp[0]) // 1_000 * 1_000)


@lru_cache(maxsize=4096)
def encoding_text(id: int, schema: bytes | None) -> str:
    """An encoding as text, as an `Encoding` prints itself; a custom one without a name is the empty text."""
    return str(Encoding.of(id, schema)) if id != CUSTOM_ENCODING or schema else ""


_METADATA: Final[Mapping[str, Callable[[SampleView], object]]] = {
    "key": lambda view: view.key,
    "kind": lambda view: int(view.is_deletion),
    "timestamp": _timestamp,
    "encoding": lambda view: encoding_text(*view.encoding),
    "priority": lambda view: view.qos & 7,
    "express": lambda view: view.qos & 16 != 0,
    "size": lambda view: len(view.payload),
}
