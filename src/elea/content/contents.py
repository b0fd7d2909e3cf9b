"""The fields of a payload, by its encoding.

| encoding | content |
|---|---|
| `application/json`, `text/json` | what the JSON says |
| `application/cbor` | what the CBOR says |
| `zenoh/bytes` (nobody has said what it is) | what the JSON says, if it is JSON |
| `text/plain`, `zenoh/string` | a text |
| `application/cdr;TYPE`, `application/protobuf;TYPE` | what it says by its type, if that is declared (`registry`) |
| `application/vnd.apache.arrow.stream` | the row of an Arrow stream with one |

Content that is no object has one field, `value`. What cannot be read is `UNKNOWN`: unknown to every predicate, counted
by whoever asks, never an exception.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from elea.content.cbor import decode_cbor
from elea.content.registry import FORMATS, SchemaRegistry
from elea.model.encoding import CUSTOM_ENCODING, Encoding
from elea.model.limits import CONTENT_BYTES
from elea.model.predicate.closure import UNKNOWN

__all__ = ["UNKNOWN", "Contents", "decode_content"]

Decoder = Callable[[bytes], object]
"""Raises ValueError or RecursionError for what it cannot read."""

Found = Mapping[str, object]

ARROW: Final = b"application/vnd.apache.arrow.stream"
"""The encoding of Arrow streams, which has no number."""

_UNSAID: Final = Encoding.ZENOH_BYTES.id

_FETCHES: Final = 2
"""How often a type is asked for before a payload is unknown: the first answer may have brought others alone."""

_read_json: Final = json.JSONDecoder().decode


def decode_json(payload: bytes) -> object:
    """What a JSON text says; of a name given twice the last one counts.

    Raises:
        ValueError: it is no JSON in UTF-8.
    """
    return _read_json(payload.decode())


def decode_arrow(payload: bytes) -> object:
    """The one row of an Arrow stream.

    Raises:
        ValueError: it is no stream of one row, or there is no pyarrow here.
    """
    try:
        from elea.content.arrowrow import decode_row
    except ImportError as error:
        raise ValueError("Arrow needs pyarrow") from error
    return decode_row(payload)


def decode_text(payload: bytes) -> object:
    """A text in UTF-8.

    Raises:
        ValueError: it is none.
    """
    return payload.decode()


BY_ENCODING: Final[dict[int, Decoder]] = {
    Encoding.ZENOH_BYTES.id: decode_json,
    Encoding.ZENOH_STRING.id: decode_text,
    Encoding.TEXT_PLAIN.id: decode_text,
    Encoding.APPLICATION_JSON.id: decode_json,
    Encoding.TEXT_JSON.id: decode_json,
    Encoding.APPLICATION_CBOR.id: decode_cbor,
}


class Contents:
    """How the payloads of a node are read: by encoding, and by declared types where there are some.

    Args:
        schemas: the declared types; None knows none.
        fetch: asks the data space for types when one is missing, and lets `schemas` take what it finds.
    """

    def __init__(self, schemas: SchemaRegistry | None = None, fetch: Callable[[], object] | None = None) -> None:
        self.schemas = schemas
        self._fetch = fetch

    def decode(self, key: str, encoding: int, schema: bytes | None, payload: bytes) -> Found | object:
        """The fields of a payload, or UNKNOWN."""
        if len(payload) > CONTENT_BYTES:
            return UNKNOWN
        if self.schemas is None or self._fetch is None:
            return self._decoded(key, encoding, schema, payload)
        for _ in range(_FETCHES):
            # Before the first look: a type may come at any moment, by another thread.
            generation = self.schemas.generation
            found = self._decoded(key, encoding, schema, payload)
            if found is not UNKNOWN:
                return found
            if not self.is_declared(key, encoding, schema):
                self._fetch()
            if self.schemas.generation == generation:
                return UNKNOWN
        return self._decoded(key, encoding, schema, payload)

    def is_declared(self, key: str, encoding: int, schema: bytes | None) -> bool:
        """Whether it is known how to read such a payload, so that one that cannot be read is broken."""
        encoding, schema = self.told(key, encoding, schema)
        if encoding in FORMATS:
            return self.schemas is not None and self.schemas.decoder(encoding, schema) is not None
        return encoding != _UNSAID or schema is not None

    def told(self, key: str, encoding: int, schema: bytes | None) -> tuple[int, bytes | None]:
        """The encoding of a payload with its type, which a rule for its key may tell."""
        if schema is None and self.schemas is not None and self.schemas.has_rules:
            if encoding == _UNSAID or encoding in FORMATS:
                rule = self.schemas.rule(key)
                if rule is not None and encoding in (_UNSAID, rule[0]):
                    return rule
        return encoding, schema

    def _decoded(self, key: str, encoding: int, schema: bytes | None, payload: bytes) -> Found | object:
        encoding, schema = self.told(key, encoding, schema)
        decoder: Decoder | None
        if encoding in FORMATS:
            decoder = None if self.schemas is None else self.schemas.decoder(encoding, schema)
        elif encoding == CUSTOM_ENCODING and (schema or b"").startswith(ARROW):
            decoder = decode_arrow
        else:
            decoder = BY_ENCODING.get(encoding)
        if decoder is None:
            return UNKNOWN
        try:
            found = decoder(payload)
        except (ValueError, RecursionError):
            return UNKNOWN
        return found if type(found) is dict else {"value": found}


PLAIN: Final = Contents()


def decode_content(encoding: Encoding, payload: bytes) -> Found | object:
    """The fields of a payload, or UNKNOWN.

    >>> decode_content(Encoding.APPLICATION_JSON, b'{"speed": 3}'), decode_content(Encoding.ZENOH_BYTES, b"21.5")
    ({'speed': 3}, {'value': 21.5})
    """
    return PLAIN.decode("", encoding.id, encoding.schema, payload)
