"""`UUri`: the address of a uEntity or of one of its resources, as text, as protobuf, and as a pattern."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from elea.model.limits import UAUTHORITY_CHARS, UURI_CHARS
from elea.uprotocol.protobuf import SIZED, VARINT, fields, number, sized, text_of
from elea.uprotocol.status import InvalidUri

__all__ = [
    "ANY_AUTHORITY",
    "ANY_INSTANCE",
    "ANY_RESOURCE",
    "ANY_TYPE",
    "ANY_UURI",
    "ANY_VERSION",
    "FIRST_TOPIC",
    "UUri",
    "authority_problem",
    "read_uuri",
    "write_uuri",
]

ANY_AUTHORITY: Final = "*"
ANY_TYPE: Final = 0xFFFF
ANY_INSTANCE: Final = 0xFFFF
ANY_VERSION: Final = 0xFF
ANY_RESOURCE: Final = 0xFFFF

FIRST_TOPIC: Final = 0x8000
"""Resources from here on are topics; those below are methods, and 0 is the entity itself."""

SCHEME: Final = "up:"

_TEXT: Final = re.compile(r"(?:up:)?(?://([^/?#]+))?/([^/?#]*)/([^/?#]*)/([^/?#]*)")
_HEX: Final = re.compile(r"[0-9A-Fa-f]+")
_NAME: Final = re.compile(r"[a-z0-9\-._~]+")
_PARTS: Final = (("entity id", 32), ("version", 8), ("resource id", 16))


class UUri(NamedTuple):
    """An address; any part of a filter may be its wildcard.

    >>> topic = UUri.parse("//vcu.my_vin/1A40101/1/8000")
    >>> topic.ue_type, topic.ue_instance, topic.is_topic, str(topic)
    (257, 420, True, '//vcu.my_vin/1A40101/1/8000')
    """

    authority_name: str = ""
    ue_id: int = 0
    ue_version_major: int = 0
    resource_id: int = 0

    @classmethod
    def parse(cls, text: str) -> UUri:
        """The address written as `[up:][//authority]/entity/version/resource`, the numbers in hex.

        Raises:
            InvalidUri: it is none, and why.
        """
        if len(text) > UURI_CHARS:
            raise InvalidUri(text, f"{len(text)} characters are above the limit of {UURI_CHARS}")
        found = _TEXT.fullmatch(text)
        if found is None:
            raise InvalidUri(text, _form_problem(text))
        authority = found[1] or ""
        if authority and (problem := authority_problem(authority)):
            raise InvalidUri(text, problem)
        numbers = [_number(text, found[index + 2], *_PARTS[index]) for index in range(3)]
        return cls(authority, *numbers)

    @classmethod
    def of(cls, authority: str, ue_type: int, version: int, resource: int, *, instance: int = 0) -> UUri:
        """The address with these parts.

        Raises:
            InvalidUri: a part is out of its range.
        """
        if not 0 <= ue_type <= 0xFFFF or not 0 <= instance <= 0xFFFF:
            raise InvalidUri(f"type {ue_type}, instance {instance}", "both are numbers of 16 bits")
        uri = cls(authority, instance << 16 | ue_type, version, resource)
        if problem := uri.problem:
            raise InvalidUri(str(uri), problem)
        return uri

    @classmethod
    def from_bytes(cls, data: bytes) -> UUri:
        """The address of a protobuf.

        Raises:
            DecodeError: the bytes are no protobuf.
            InvalidUri: a number is out of its range, or the authority is none.
        """
        uri = read_uuri(data)
        if problem := uri.problem:
            raise InvalidUri(str(uri), problem)
        return uri

    def to_bytes(self) -> bytes:
        """The protobuf."""
        return write_uuri(self)

    def __str__(self) -> str:
        authority = f"//{self.authority_name}" if self.authority_name else ""
        return f"{authority}/{self.ue_id:X}/{self.ue_version_major:X}/{self.resource_id:X}"

    def __repr__(self) -> str:
        return f"UUri({str(self)!r})"

    def with_scheme(self) -> str:
        """The text with `up:` before it."""
        return f"{SCHEME}{self}"

    @property
    def ue_type(self) -> int:
        """What kind of entity: the lower half of its id."""
        return self.ue_id & 0xFFFF

    @property
    def ue_instance(self) -> int:
        """Which entity of its kind: the upper half of its id."""
        return self.ue_id >> 16

    @property
    def problem(self) -> str:
        """What keeps it from being an address or a filter; empty if nothing does."""
        if not 0 <= self.ue_id <= 0xFFFF_FFFF:
            return f"entity id {self.ue_id:#x} is above 32 bits"
        if not 0 <= self.ue_version_major <= 0xFF:
            return f"version {self.ue_version_major} is above 255"
        if not 0 <= self.resource_id <= 0xFFFF:
            return f"resource id {self.resource_id} is above 65535"
        return authority_problem(self.authority_name) if self.authority_name else ""

    # -- what it may be used for

    @property
    def is_topic(self) -> bool:
        """Whether it names what can be published or notified."""
        return FIRST_TOPIC <= self.resource_id < ANY_RESOURCE

    @property
    def is_method(self) -> bool:
        """Whether it names what can be called."""
        return 0 < self.resource_id < FIRST_TOPIC

    @property
    def is_entity(self) -> bool:
        """Whether it names the entity itself: where responses and notifications go."""
        return self.resource_id == 0

    @property
    def kind(self) -> str:
        """The same as a word: `topic`, `rpc_method`, `response_or_notification_sink`, or `any` for the wildcard."""
        if self.is_entity:
            return "response_or_notification_sink"
        if self.is_method:
            return "rpc_method"
        return "topic" if self.is_topic else "any"

    @property
    def wildcards(self) -> tuple[str, ...]:
        """The parts that stand for any value."""
        given = {
            "authority": self.authority_name == ANY_AUTHORITY,
            "type": self.ue_type == ANY_TYPE,
            "instance": self.ue_instance == ANY_INSTANCE,
            "version": self.ue_version_major == ANY_VERSION,
            "resource": self.resource_id == ANY_RESOURCE,
        }
        return tuple(part for part, wild in given.items() if wild)

    def matches(self, candidate: UUri) -> bool:
        """Whether `candidate` is one of those that this pattern stands for; part by part.

        >>> UUri.parse("//*/FFFF0101/1/FFFF").matches(UUri.parse("//vcu/1A40101/1/8000"))
        True
        """
        return (
            self.authority_name in (ANY_AUTHORITY, candidate.authority_name)
            and self.ue_type in (ANY_TYPE, candidate.ue_type)
            and self.ue_instance in (ANY_INSTANCE, candidate.ue_instance)
            and self.ue_version_major in (ANY_VERSION, candidate.ue_version_major)
            and self.resource_id in (ANY_RESOURCE, candidate.resource_id)
        )

    def with_authority(self, authority: str) -> UUri:
        """The same with `authority` if it has none."""
        return self if self.authority_name else self._replace(authority_name=authority)

    def with_resource(self, resource: int) -> UUri:
        """Another resource of the same entity."""
        return self._replace(resource_id=resource)


ANY_UURI: Final = UUri(ANY_AUTHORITY, 0xFFFF_FFFF, ANY_VERSION, ANY_RESOURCE)
"""Matches every address."""


def authority_problem(name: str) -> str:
    """What keeps a name that is not empty from being an authority; empty if nothing does."""
    if len(name) > UAUTHORITY_CHARS:
        return f"an authority of {len(name)} characters is above the limit of {UAUTHORITY_CHARS}"
    if name == ANY_AUTHORITY or _NAME.fullmatch(name):
        return ""
    if name.startswith("["):
        return "" if name.endswith("]") and _is_ipv6(name[1:-1]) else f"authority {name!r} is no IPv6 address"
    if "@" in name:
        return f"authority {name!r} has user information"
    if ":" in name:
        return f"authority {name!r} has a port"
    if name != name.lower():
        return f"authority {name!r} has upper-case letters"
    return f"authority {name!r} has other characters than a-z 0-9 - . _ ~"


def write_uuri(uri: UUri) -> bytes:
    """The protobuf: fields in order, without those that are 0 or empty."""
    authority, entity, version, resource = uri
    return b"".join(
        (
            sized(1, authority.encode()) if authority else b"",
            number(2, entity, "ue_id") if entity else b"",
            number(3, version, "ue_version_major") if version else b"",
            number(4, resource, "resource_id") if resource else b"",
        )
    )


def read_uuri(data: bytes) -> UUri:
    """What a protobuf says, also if it is out of range.

    Raises:
        DecodeError: it is no protobuf.
    """
    authority, numbers = "", [0, 0, 0, 0, 0]
    for field, wire, value in fields(data):
        if field == 1 and wire == SIZED and isinstance(value, bytes):
            authority = text_of(value, "authority_name")
        elif 2 <= field <= 4 and wire == VARINT and isinstance(value, int):
            numbers[field] = value & 0xFFFF_FFFF
    return UUri(authority, numbers[2], numbers[3], numbers[4])


def _number(text: str, digits: str, what: str, bits: int) -> int:
    if not digits:
        raise InvalidUri(text, f"the {what} is missing")
    # `int` would also take a sign, spaces, 0x and _.
    if not _HEX.fullmatch(digits):
        raise InvalidUri(text, f"the {what} {digits!r} is not hexadecimal")
    value = int(digits, 16)
    if value >> bits:
        raise InvalidUri(text, f"the {what} {digits!r} is above {bits} bits")
    return value


def _form_problem(text: str) -> str:
    """Why a text does not have the form of an address."""
    if not text.strip():
        return "it is empty"
    rest = text.removeprefix(SCHEME)
    head = rest.split("/", 1)[0]
    if ":" in head:
        return f"its scheme is {head.split(':')[0]!r} and not 'up'"
    if "?" in rest or "#" in rest:
        return "it has a query or a fragment"
    if not rest.startswith("/"):
        return "it does not begin with a slash"
    path = rest.removeprefix("//").partition("/")[2] if rest.startswith("//") else rest[1:]
    count = len(path.split("/")) if path else 0
    if rest.startswith("///"):
        return "it has an empty authority; leave out both slashes"
    return f"it has {count} path segments and not 3: entity id, version, resource id"


def _is_ipv6(text: str) -> bool:
    import ipaddress  # 3 ms that few need

    try:
        return ipaddress.IPv6Address(text).scope_id is None
    except ValueError:
        return False
