"""The fields of a payload, by its encoding.

| encoding | content |
|---|---|
| `application/json`, `text/json` | what the JSON says |
| `application/cbor` | what the CBOR says |
| `zenoh/bytes` (nobody has said what it is) | what the JSON says, if it is JSON |
| `text/plain`, `zenoh/string` | a text |

Content that is no object has one field, `value`. What cannot be read is `UNKNOWN`: unknown to every predicate, counted
by whoever asks, never an exception.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from elea.content.cbor import decode_cbor
from elea.model.encoding import Encoding
from elea.model.limits import CONTENT_BYTES
from elea.model.predicate.closure import UNKNOWN

__all__ = ["UNKNOWN", "Contents", "decode_content"]

Decoder = Callable[[bytes], object]
"""Raises ValueError or RecursionError for what it cannot read."""

Found = Mapping[str, object]

_read_json: Final = json.JSONDecoder().decode


def decode_json(payload: bytes) -> object:
    """What a JSON text says; of a name given twice the last one counts.

    Raises:
        ValueError: it is no JSON in UTF-8.
    """
    return _read_json(payload.decode())


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
    """How the payloads of a node are read: by encoding, and by declared types where there are some."""

    def decode(self, encoding: int, schema: bytes | None, payload: bytes) -> Found | object:
        """The fields of a payload, or UNKNOWN."""
        decoder = BY_ENCODING.get(encoding)
        if decoder is None or len(payload) > CONTENT_BYTES:
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
    return PLAIN.decode(encoding.id, encoding.schema, payload)
