"""What a data space says of the types of its payloads: samples below `@schema`, and the decoders they make.

| key | payload | encoding |
|---|---|---|
| `@schema/cdr/demo/Light` | IDL, or a message of ROS | `text/plain;omgidl`, `text/plain;ros2msg`, or neither |
| `@schema/protobuf/my.package.Speed` | a serialised `FileDescriptorSet` | any |
| `@schema/keys/fleet%2F%2A%2Fpose` | the encoding of samples of `fleet/*/pose` that do not say their type | any |

`**` does not match a chunk that begins with `@`, so nobody gets them who does not ask for them. What makes no sense is
counted and told, and declares nothing. Pure: who fills a registry is `elea.node.schemas`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from elea.content.cdr import CdrReader
from elea.content.schema import parse_idl, parse_rosmsg
from elea.content.schema.declared import Struct
from elea.content.schema.rosmsg import full_name
from elea.model import keyexpr
from elea.model.encoding import Encoding
from elea.model.errors import EleaError, InvalidSchema
from elea.model.limits import CACHED_KEY_CHARS, SCHEMA_BYTES, SCHEMAS_BYTES, SCHEMAS_KNOWN
from elea.model.logger import logger

__all__ = ["PLACE", "SchemaRegistry", "rule_key", "struct_of", "type_key"]

Decoder = Callable[[bytes], object]
"""Raises ValueError for what it cannot read."""

PLACE: Final = "@schema"
EVERYTHING: Final = f"{PLACE}/**"
KEYS: Final = "keys"
IDL: Final = "omgidl"
ROSMSG: Final = "ros2msg"

_CDR: Final = Encoding.APPLICATION_CDR.id
_PROTOBUF: Final = Encoding.APPLICATION_PROTOBUF.id
FORMATS: Final = {_CDR: "cdr", _PROTOBUF: "protobuf"}
"""The encodings whose payloads do not say what is in them."""

_log: Final = logger("elea.content")

_ROS_KEY: Final = re.compile(r"[^/]+/.+/([^/]+::dds_::[^/]+_)/(?:RIHS01_[0-9a-f]+|TypeHashNotSupported)")
"""`<domain>/<topic>/<type>/<hash>`. Spec: dds.md section 3."""

_ROS_KEY_CHARS: Final = 1_024

_CACHED: Final = 4_096
"""Keys whose rule is remembered; then all are forgotten and found again."""

Rule = tuple[int, bytes | None]
"""An encoding: its number and its schema."""

_Reader = tuple[Decoder | None, Struct | None]
"""What reads a type, and the type itself if it is one of CDR."""


def type_key(encoding: Encoding | str, name: str = "") -> str:
    """The key below which a type is declared; `name` is that of the type if the encoding does not have it.

    >>> type_key("application/cdr;std_msgs::msg::dds_::String_"), type_key("application/protobuf", "my.Speed")
    ('@schema/cdr/std_msgs/msg/String', '@schema/protobuf/my.Speed')

    Raises:
        InvalidSchema: no types are declared for this encoding, or it names none.
    """
    made = encoding if isinstance(encoding, Encoding) else Encoding(encoding)
    told = name or (made.schema or b"").decode(errors="replace")
    if made.id not in FORMATS or not told:
        raise InvalidSchema(str(made), "a type has a name, and is one of application/cdr or application/protobuf")
    return f"{PLACE}/{FORMATS[made.id]}/{_chunks(told)}"


def rule_key(key_expr: str) -> str:
    """The key below which the encoding of some keys is declared.

    >>> rule_key("fleet/*/pose")
    '@schema/keys/fleet%2F%2A%2Fpose'
    """
    keyexpr.check(key_expr)
    return f"{PLACE}/{KEYS}/{quote(key_expr, safe='')}"


def _chunks(name: str) -> str:
    """The name of a type as it stands in a key, whatever the language that writes it."""
    if name.endswith("_") and "::dds_::" in name:  # as ROS 2 names its messages in DDS
        name = name[:-1].replace("::dds_::", "::")
    return name.replace("::", "/").strip("/")


def struct_of(name: str, language: str | None, text: str) -> Struct:
    """The declared type of a text.

    Args:
        name: of the type, as in a key: `demo/Light`.
        language: `omgidl`, `ros2msg`, or None if the text itself has to tell.

    Raises:
        InvalidSchema: it is none, or declares no such type.
    """
    if language is None:
        language = IDL if "{" in text else ROSMSG
    if language == ROSMSG:
        return parse_rosmsg(text, name)[full_name(name)]
    if language != IDL:
        raise InvalidSchema(language, f"the languages are {IDL} and {ROSMSG}")
    found = {_chunks(each): its for each, its in parse_idl(text).items()}
    if name not in found:
        names = ", ".join(list(found)[:10]) or "none"
        raise InvalidSchema("IDL", f"there is no struct {name}; it declares {names}")
    return found[name]


def _rule_of_ros(key: str) -> Rule | None:
    # A longer one is none of ROS, and would take the expression long.
    found = _ROS_KEY.fullmatch(key) if len(key) <= _ROS_KEY_CHARS else None
    return None if found is None else (_CDR, found[1].encode())


class SchemaRegistry:
    """The schemas of a data space that are known, as decoders."""

    def __init__(self) -> None:
        self.refused = 0
        """Schemas that made no sense, or for which there was no room."""
        self.problems: dict[str, str] = {}
        """What is wrong with them, by key; as many as schemas may be known."""
        self.generation = 0
        """Changes with what is known."""
        self._texts: dict[str, tuple[str | None, bytes]] = {}
        self._bytes = 0
        self._rules: dict[str, Rule] = {}
        # What was found in those; `take` puts new ones there, so that a thread that has looked before fills the old.
        self._readers: dict[Rule, _Reader] = {}
        self._found: dict[str, Rule | None] = {}

    # -- what is put below @schema

    def take(self, key: str, schema: bytes | None, payload: bytes | None) -> bool:
        """A sample below `@schema`: `schema` is that of its encoding, `payload` None if it is deleted.

        Other threads may ask meanwhile; one at a time may call this.

        Returns:
            Whether it is understood; what is not is counted and told.
        """
        language = schema.decode(errors="replace") if schema else None
        before = self._texts.get(key)
        if before is not None and before == (language, payload):
            return True  # as every question brings it: decoders that were made stay
        try:
            return self._replace(key, language, payload)
        finally:  # last: what another thread has found meanwhile is not of the new generation
            self._readers = {}
            self._found = {}
            self.generation += 1

    def _replace(self, key: str, language: str | None, payload: bytes | None) -> bool:
        before = self._texts.pop(key, None)
        if before is not None:
            self._bytes -= len(before[1])
        self.problems.pop(key, None)
        self._rules.pop(key, None)
        if payload is None:
            return True
        problem = self._problem(key, language, payload)
        if problem is not None:
            self._refuse(key, problem)
            return False
        self._texts[key] = (language, payload)
        self._bytes += len(payload)
        return True

    def _problem(self, key: str, language: str | None, payload: bytes) -> str | None:
        if len(payload) > SCHEMA_BYTES:
            return f"{len(payload)} bytes are above the limit of {SCHEMA_BYTES} (SCHEMA_BYTES)"
        if len(self._texts) >= SCHEMAS_KNOWN:
            return f"there are {SCHEMAS_KNOWN} already (SCHEMAS_KNOWN)"
        if self._bytes + len(payload) > SCHEMAS_BYTES:
            return f"all together are above the limit of {SCHEMAS_BYTES} bytes (SCHEMAS_BYTES)"
        _, _, rest = key.partition(f"{PLACE}/")
        kind, _, name = rest.partition("/")
        if kind == KEYS:
            if "/" in name:
                return "a key expression stands there as one chunk: write / as %2F"
            try:
                expr = unquote_to_bytes(name).decode()
                keyexpr.check(expr)
                found = Encoding(payload.decode())
            except (EleaError, ValueError) as error:
                return str(error)
            if found.id not in FORMATS or not found.schema:
                return f"{found} names no type: write application/cdr;TYPE"
            self._rules[key] = (found.id, found.schema)
            return None
        return None if kind in FORMATS.values() and name else f"{key} is no place of a schema"

    def _refuse(self, key: str, problem: str) -> None:
        self.refused += 1
        if len(self.problems) < SCHEMAS_KNOWN:
            self.problems[key] = problem
        if self.refused & (self.refused - 1) == 0:  # said the 1st, 2nd, 4th … time
            _log.warning("schema refused: key=%s problem=%s refused=%d", key[:200], problem, self.refused)

    # -- what is asked

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def has_rules(self) -> bool:
        """Whether there are keys whose encoding is declared, or may be."""
        return bool(self._texts)

    def rule(self, key: str) -> Rule | None:
        """The encoding that is declared for a key; of several expressions that match, the longest counts.

        Keys of ROS 2 over Zenoh (`rmw_zenoh`) name their type: that is their rule, unless there is another.
        """
        known = self._found
        try:
            return known[key]
        except KeyError:  # or another thread has cleared them
            pass
        exprs = ((unquote_to_bytes(place.rpartition("/")[2]).decode(), its) for place, its in list(self._rules.items()))
        matching = [(len(expr), expr, its) for expr, its in exprs if keyexpr.intersects(expr, key)]
        found = max(matching)[2] if matching else _rule_of_ros(key)
        if len(key) <= CACHED_KEY_CHARS:
            if len(known) >= _CACHED:
                known.clear()
            known[key] = found
        return found

    def decoder(self, encoding: int, schema: bytes | None) -> Decoder | None:
        """What reads payloads of a declared type; None if it is not declared, or not as it should be."""
        return self._reader((encoding, schema))[0]

    def struct(self, encoding: int, schema: bytes | None) -> Struct | None:
        """The declared type of CDR payloads, for those who make columns."""
        return self._reader((encoding, schema))[1]

    def descriptor_set(self, schema: bytes | None) -> bytes | None:
        """The descriptors of a protobuf message."""
        found = self._text((_PROTOBUF, schema))
        return None if found is None else found[1]

    def texts(self) -> Iterator[tuple[str, str | None, bytes]]:
        """All that is known: key, language, payload."""
        yield from ((key, language, text) for key, (language, text) in sorted(self._texts.items()))

    def _text(self, asked: Rule) -> tuple[str | None, bytes] | None:
        try:
            name = (asked[1] or b"").decode()
            return self._texts.get(type_key(Encoding.of(asked[0]), name)) if name else None
        except (InvalidSchema, UnicodeDecodeError):
            return None

    def _reader(self, asked: Rule) -> _Reader:
        known = self._readers
        found = known.get(asked)
        if found is None:
            found = self._made(asked)
            if len(known) >= SCHEMAS_KNOWN:
                known.clear()
            known[asked] = found
        return found

    def _made(self, asked: Rule) -> _Reader:
        found = self._text(asked)
        if found is None:
            return None, None
        language, payload = found
        name = _chunks((asked[1] or b"").decode())
        try:
            if asked[0] == _PROTOBUF:
                from elea.content.protobuf import message_decoder

                return message_decoder(payload, name), None
            its = struct_of(name, language, payload.decode())
            return CdrReader(its).decode, its
        except (InvalidSchema, UnicodeDecodeError, ImportError) as error:
            self._refuse(type_key(Encoding.of(asked[0]), name), str(error))
            return None, None
