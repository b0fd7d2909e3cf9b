"""Encodings: what a payload is, as a number with an optional schema, and as text.

This module owns the table of Zenoh 1.x names and the text form `name;schema`. It never looks at a payload and
does not know how the number is put in bytes. Spec: zenoh-1 §1.7.
"""

from __future__ import annotations

from typing import ClassVar, Final

from elea.model.limits import ENCODING_SCHEMA_BYTES
from elea.model.values import value_class

__all__ = ["CUSTOM_ENCODING", "ENCODING_NAMES", "Encoding"]

CUSTOM_ENCODING: Final = 0xFFFF
"""The id of an encoding without a number of its own: its whole text is in the schema."""

ENCODING_NAMES: Final[tuple[str, ...]] = (
    "zenoh/bytes",
    "zenoh/string",
    "zenoh/serialized",
    "application/octet-stream",
    "text/plain",
    "application/json",
    "text/json",
    "application/cdr",
    "application/cbor",
    "application/yaml",
    "text/yaml",
    "text/json5",
    "application/python-serialized-object",
    "application/protobuf",
    "application/java-serialized-object",
    "application/openmetrics-text",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/bmp",
    "image/webp",
    "application/xml",
    "application/x-www-form-urlencoded",
    "text/html",
    "text/xml",
    "text/css",
    "text/javascript",
    "text/markdown",
    "text/csv",
    "application/sql",
    "application/coap-payload",
    "application/json-patch+json",
    "application/json-seq",
    "application/jsonpath",
    "application/jwt",
    "application/mp4",
    "application/soap+xml",
    "application/yang",
    "audio/aac",
    "audio/flac",
    "audio/mp4",
    "audio/ogg",
    "audio/vorbis",
    "video/h261",
    "video/h263",
    "video/h264",
    "video/h265",
    "video/h266",
    "video/mp4",
    "video/ogg",
    "video/raw",
    "video/vp8",
    "video/vp9",
)
"""The names in the order of their ids, from 0."""

_MAX_ID: Final = (1 << 31) - 1  # the field is 32 bits wide and its lowest bit tells whether a schema follows

_IDS: Final = {name: id for id, name in enumerate(ENCODING_NAMES)}


@value_class
class Encoding:
    """The encoding of a payload: `id` and `schema`, as they travel. Made from its text form.

    >>> Encoding("text/plain;utf-8").id
    4
    >>> str(Encoding.APPLICATION_JSON.with_schema("draft-07"))
    'application/json;draft-07'
    >>> Encoding("my/own").id == CUSTOM_ENCODING
    True
    >>> Encoding.TEXT_PLAIN == "text/plain"
    True
    """

    id: int
    schema: bytes | None

    ZENOH_BYTES: ClassVar[Encoding]
    ZENOH_STRING: ClassVar[Encoding]
    ZENOH_SERIALIZED: ClassVar[Encoding]
    APPLICATION_OCTET_STREAM: ClassVar[Encoding]
    TEXT_PLAIN: ClassVar[Encoding]
    APPLICATION_JSON: ClassVar[Encoding]
    TEXT_JSON: ClassVar[Encoding]
    APPLICATION_CDR: ClassVar[Encoding]
    APPLICATION_CBOR: ClassVar[Encoding]
    APPLICATION_YAML: ClassVar[Encoding]
    TEXT_YAML: ClassVar[Encoding]
    TEXT_JSON5: ClassVar[Encoding]
    APPLICATION_PYTHON_SERIALIZED_OBJECT: ClassVar[Encoding]
    APPLICATION_PROTOBUF: ClassVar[Encoding]
    APPLICATION_JAVA_SERIALIZED_OBJECT: ClassVar[Encoding]
    APPLICATION_OPENMETRICS_TEXT: ClassVar[Encoding]
    IMAGE_PNG: ClassVar[Encoding]
    IMAGE_JPEG: ClassVar[Encoding]
    IMAGE_GIF: ClassVar[Encoding]
    IMAGE_BMP: ClassVar[Encoding]
    IMAGE_WEBP: ClassVar[Encoding]
    APPLICATION_XML: ClassVar[Encoding]
    APPLICATION_X_WWW_FORM_URLENCODED: ClassVar[Encoding]
    TEXT_HTML: ClassVar[Encoding]
    TEXT_XML: ClassVar[Encoding]
    TEXT_CSS: ClassVar[Encoding]
    TEXT_JAVASCRIPT: ClassVar[Encoding]
    TEXT_MARKDOWN: ClassVar[Encoding]
    TEXT_CSV: ClassVar[Encoding]
    APPLICATION_SQL: ClassVar[Encoding]
    APPLICATION_COAP_PAYLOAD: ClassVar[Encoding]
    APPLICATION_JSON_PATCH_JSON: ClassVar[Encoding]
    APPLICATION_JSON_SEQ: ClassVar[Encoding]
    APPLICATION_JSONPATH: ClassVar[Encoding]
    APPLICATION_JWT: ClassVar[Encoding]
    APPLICATION_MP4: ClassVar[Encoding]
    APPLICATION_SOAP_XML: ClassVar[Encoding]
    APPLICATION_YANG: ClassVar[Encoding]
    AUDIO_AAC: ClassVar[Encoding]
    AUDIO_FLAC: ClassVar[Encoding]
    AUDIO_MP4: ClassVar[Encoding]
    AUDIO_OGG: ClassVar[Encoding]
    AUDIO_VORBIS: ClassVar[Encoding]
    VIDEO_H261: ClassVar[Encoding]
    VIDEO_H263: ClassVar[Encoding]
    VIDEO_H264: ClassVar[Encoding]
    VIDEO_H265: ClassVar[Encoding]
    VIDEO_H266: ClassVar[Encoding]
    VIDEO_MP4: ClassVar[Encoding]
    VIDEO_OGG: ClassVar[Encoding]
    VIDEO_RAW: ClassVar[Encoding]
    VIDEO_VP8: ClassVar[Encoding]
    VIDEO_VP9: ClassVar[Encoding]

    def __init__(self, text: str | None = None) -> None:
        id, schema = _parse(text or "")
        self._set(id, schema)

    @classmethod
    def of(cls, id: int, schema: bytes | None = None) -> Encoding:
        """The encoding with these wire values; ids nobody has named are kept as they are."""
        made = cls.__new__(cls)
        made._set(id, schema)
        return made

    def with_schema(self, schema: str) -> Encoding:
        """The same encoding with another schema; of a custom one, what follows its first `;` is replaced."""
        if self.id != CUSTOM_ENCODING:
            return Encoding.of(self.id, schema.encode())
        name = (self.schema or b"").decode(errors="ignore").partition(";")[0]
        return Encoding.of(CUSTOM_ENCODING, ";".join(part for part in (name, schema) if part).encode())

    def _set(self, id: int, schema: bytes | None) -> None:
        if not 0 <= id <= _MAX_ID:
            raise ValueError(f"an encoding id is a number from 0 to {_MAX_ID}, not {id}")
        if schema is not None and len(schema) > ENCODING_SCHEMA_BYTES:
            # Refused here and not when sent: eclipse-zenoh accepts the value, and its link dies of it.
            raise ValueError(f"an encoding schema has at most {ENCODING_SCHEMA_BYTES} bytes, not {len(schema)}")
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "schema", schema)

    def __reduce__(self) -> tuple[object, ...]:
        return Encoding.of, (self.id, self.schema)

    def __str__(self) -> str:
        schema = None if self.schema is None else _text(self.schema)
        if self.id == CUSTOM_ENCODING:
            return schema or ""
        name = ENCODING_NAMES[self.id] if self.id < len(ENCODING_NAMES) else f"unknown({self.id})"
        return name if schema is None else f"{name};{schema}"

    def __repr__(self) -> str:
        return f"Encoding({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return self._matches(other)
        if isinstance(other, Encoding):
            return (self.id, self.schema) == (other.id, other.schema)
        return NotImplemented

    def _matches(self, text: str) -> bool:
        try:
            return (self.id, self.schema) == _parse(text)
        except UnicodeEncodeError:  # text with lone surrogates is no encoding at all
            return False

    def __hash__(self) -> int:
        # The hash of the text, so that an encoding and the text equal to it find each other in a dictionary.
        return hash(str(self))


def _parse(text: str) -> tuple[int, bytes | None]:
    if not text:
        return 0, None
    name, _, schema = text.partition(";")
    if name not in _IDS:
        return CUSTOM_ENCODING, text.encode()
    # An empty schema after `;` counts as none, although `with_schema("")` makes one: so does eclipse-zenoh.
    return _IDS[name], schema.encode() if schema else None


def _text(schema: bytes) -> str:
    try:
        return schema.decode()
    except UnicodeDecodeError:
        return "unknown(non-utf8)"


def _attribute(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name).upper()


for _id, _name in enumerate(ENCODING_NAMES):
    setattr(Encoding, _attribute(_name), Encoding.of(_id))
