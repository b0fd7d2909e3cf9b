"""Predicates of selections: which samples a subscriber or a pull wants. Spec: zenoh-2018 §5.17, §6.

The selection's named properties (property 1) give values to names that are no fields; `property.NAME` and `property.N`
are those of the sample's resource, as this node knows them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from elea.content import Contents, compile_sample
from elea.content.contents import PLAIN
from elea.protocol.early.terms import PropertyId, value_of
from elea.wire.details import RawSample
from elea.wire.primitives import read_nat

if TYPE_CHECKING:
    from elea.node.early.catalogue import Catalogue

__all__ = ["Filter", "named_values"]


class Filter:
    """The predicate of one selection.

    Raises:
        InvalidPredicate: it is none, or uses a function that nobody knows (status 6).
        ValueError: its named properties are not what they should be (status 5).
    """

    def __init__(
        self, text: str, properties: Sequence[Any] | None, catalogue: Catalogue, contents: Contents = PLAIN
    ) -> None:
        self._of_resource = _OfResource(catalogue)
        named = named_values(value_of(properties, PropertyId.NAMED) or b"\0")
        self._where = compile_sample(text, properties=named, of_resource=self._of_resource, contents=contents)
        self._lock = threading.Lock()

    def chosen(self, key: str, run: Sequence[RawSample]) -> Sequence[RawSample]:
        """Those of a run that are wanted."""
        with self._lock:  # the resource is that of one key at a time
            self._of_resource.turn_to(key)
            return self._where.chosen(key, run)

    def takes(self, key: str, payload: bytes) -> bool:
        """Whether a sample is wanted of which nothing but its payload is known."""
        return bool(self.chosen(key, ((0, 0, b"", 5, None, payload),)))


class _OfResource(Mapping[str | int, object]):
    """The properties of one resource after the other: named ones by name, all by their number."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._of: object = None
        self._found: dict[str | int, object] = {}

    def turn_to(self, key: str) -> None:
        """The next samples are of this key."""
        known = self._catalogue.get(key)
        if known is self._of and known is not None:
            return
        self._of, self._found = known, {}
        if known is None:
            return
        for id, value in _listed(known.properties):
            self._found[id] = value.decode("latin-1")
            if id == PropertyId.NAMED:
                try:
                    named = named_values(value)
                except ValueError:
                    continue
                self._found |= {name: _value(text) for name, text in named.items()}

    def __getitem__(self, name: str | int) -> object:
        return self._found[name]

    def __iter__(self) -> Iterator[str | int]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __bool__(self) -> bool:
        return True  # it has nothing now, and will have


def named_values(octets: bytes) -> dict[str, str]:
    """Named properties: `[record { name: string, value: string }]`, values as JSON.

    Raises:
        ValueError: they are not that.

    >>> named_values(bytes.fromhex("01 01 72 02 31 30"))
    {'r': '10'}
    """
    found: dict[str, str] = {}
    try:
        count, at = read_nat(octets, 0, "property")
        for _ in range(count):
            name, at = _text(octets, at)
            found[name], at = _text(octets, at)
    except IndexError as error:
        raise ValueError("named properties are cut short") from error
    return found


def _text(octets: bytes, at: int) -> tuple[str, int]:
    size, at = read_nat(octets, at, "property")
    if at + size > len(octets):
        raise IndexError(size)
    return octets[at : at + size].decode("utf-8"), at + size


def _listed(octets: bytes) -> Iterator[tuple[int, bytes]]:
    """The properties of a `[Property]` that this node has written."""
    count, at = read_nat(octets, 0, "property")
    for _ in range(count):
        id, at = read_nat(octets, at, "property")
        size, at = read_nat(octets, at, "property")
        yield id, octets[at : at + size]
        at += size


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
