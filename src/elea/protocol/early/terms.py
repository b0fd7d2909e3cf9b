"""What two nodes offer each other when they open a session, and what they agree on: Open, Accept and their properties.

Spec: zenoh-2018 §5.5 (Z18-SES-04 to 07, 09), §5.6 (properties).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from elea.model.errors import DecodeError, RuleBroken
from elea.model.limits import EARLY_WINDOW, EARLY_WINDOW_BYTES, NODE_ID_BYTES, SN_BITS_MAX, SN_BITS_MIN
from elea.protocol.early.generation import Generation
from elea.protocol.early.profile import PAPERS, Profile
from elea.wire.primitives import read_nat, write_nat

__all__ = [
    "ANY_LEASE",
    "VERSION",
    "Agreement",
    "Offer",
    "PropertyId",
    "Reason",
    "nat_octets",
    "property_number",
    "value_of",
]

VERSION: Final = 1
"""In both dialects (DEC-21)."""

DEFAULT_SN_BITS: Final = 14
ANY_LEASE: Final = 0
LEASE_UNIT: Final = 0.1


class Reason(IntEnum):
    """Why a session ends (Z18-SES-09)."""

    SUCCESS = 0
    INVALID_AUTHENTICATION = 1
    UNSUPPORTED_PROTOCOL = 2
    OUT_OF_RESOURCES = 3
    UNSUPPORTED_SN_LENGTH = 4
    UNSUPPORTED_PARAMETER = 5
    INCOMPATIBLE_DECLARATION = 6
    GENERIC = 255


class PropertyId(IntEnum):
    """The properties known here (Z18-PRP-03); odd ones are Elea's own."""

    VENDOR = 0
    NAMED = 1
    CONDUITS = 2
    DDS_QOS = 3
    SN_BITS = 4
    FEATURES = 5
    RELIABILITY = 6
    DURABILITY = 8
    COMMIT_MODE = 10
    AUTHENTICATION = 12
    CLIENT_HASH = 14


BATCHES: Final = 1
"""Feature: BatchedData is understood. Core conformance asks for it, but no program of the papers' time has it."""

BROKER: Final = 2
PEER: Final = 4
"""Features: what a node is, which the papers let only Hello say."""

LARGE: Final = 8
"""Feature: packets of any size are taken, also where others have to keep to 1472 bytes (Z18-FRM-04)."""


def nat_octets(value: int) -> bytes:
    """A natural as octets."""
    out = bytearray()
    write_nat(out, value, "value")
    return bytes(out)


def value_of(properties: Sequence[Any] | None, id: int) -> bytes | None:
    """The value of a property; of one given twice the first (Z18-PRP-04)."""
    for one in properties or ():
        if one.id == id:
            return bytes(one.value)
    return None


def property_number(
    properties: Sequence[Any] | None, id: int, default: int, *, least: int = 0, most: int = 1 << 63
) -> int:
    """A property that is a number: what follows it in the value is ignored (Z18-PRP-02).

    Raises:
        ValueError: it is cut short or out of range.
    """
    value = value_of(properties, id)
    if value is None:
        return default
    try:
        number, _ = read_nat(value, 0, "property")
    except (IndexError, DecodeError) as error:
        raise ValueError(f"property {id} is cut short") from error
    if not least <= number <= most:
        raise ValueError(f"property {id} is {number}, not from {least} to {most}")
    return number


@dataclass(frozen=True, slots=True)
class Offer:
    """What this node brings to a session."""

    pid: bytes
    lease: float = 10.0
    """Seconds within which it says something; 0 for no promise."""
    sn_bits: int = DEFAULT_SN_BITS
    conduits: int = 1
    commit_mode: int = 0
    authentication: bytes | None = None
    nonce: bytes | None = None
    """Told as the client hash: by it a repeated Open is known from one of a restarted node."""
    batches: bool = True
    mtu: int = 1472
    largest: int = 0
    """The largest packet for a node that takes any, if that is more; without it such packets are not asked for, too."""
    window: int = EARLY_WINDOW
    window_bytes: int = EARLY_WINDOW_BYTES
    lifetime: float = 0.0
    """Seconds a datagram may wander: a number means nothing else within them. 0 where nothing overtakes."""
    patience: float = 5.0
    """Seconds, at least, after which a node is given up that acknowledges nothing."""
    is_broker: bool = False
    is_durable: bool = False
    """Whether it keeps data."""
    is_peer: bool = False
    max_lease: float = 0.0
    """Longer leases of others are refused; 0 for no bound."""
    open_timeout: float = 1.0
    open_retries: int = 10
    accept_resends: int = 10
    profile: Profile = PAPERS
    """What kind of program the other node is."""
    authenticate: Callable[[bytes, bytes | None], bool] = field(default=lambda pid, data: True)
    admit: Callable[[bytes], int | None] = field(default=lambda pid: None)
    """Whether there is room for a node: the reason why not."""

    @property
    def lease_units(self) -> int:
        return max(1, round(self.lease / LEASE_UNIT)) if self.lease else ANY_LEASE

    def open(self, generation: Generation) -> bytes:
        """Our Open."""
        m = generation.messages
        listed = self._properties(m, asks=True)
        fits = 6 + len(self.pid) + sum(2 + len(one.value) for one in listed)
        while listed and fits > self.mtu:  # a link of 20 octets: the least needed goes first
            fits -= 2 + len(listed.pop().value)
        return generation.encode(m.Open(VERSION, self.pid, self.lease_units, (), tuple(listed) or None))

    def accept(self, generation: Generation, to: bytes) -> bytes:
        """Our Accept."""
        m = generation.messages
        listed = self._properties(m, asks=False)
        fits = 5 + len(self.pid) + len(to) + sum(2 + len(one.value) for one in listed)
        while listed and fits > self.mtu:
            fits -= 2 + len(listed.pop().value)
        return generation.encode(m.Accept(to, self.pid, self.lease_units, tuple(listed) or None))

    def _properties(self, m: Any, *, asks: bool) -> list[Any]:
        """The most needed first. Who accepts has nothing to say about the length of numbers."""
        listed: list[Any] = []
        if not self.profile.takes_properties:
            return listed
        if asks and self.sn_bits != DEFAULT_SN_BITS:
            listed.append(m.Property(PropertyId.SN_BITS, nat_octets(self.sn_bits)))
        if self.authentication is not None:
            listed.append(m.Property(PropertyId.AUTHENTICATION, self.authentication))
        if self.conduits != 1:
            listed.append(m.Property(PropertyId.CONDUITS, nat_octets(self.conduits)))
        if self.commit_mode:
            listed.append(m.Property(PropertyId.COMMIT_MODE, nat_octets(self.commit_mode)))
        if asks and self.nonce is not None:
            listed.append(m.Property(PropertyId.CLIENT_HASH, self.nonce))
        features = BATCHES * self.batches | BROKER * self.is_broker | PEER * self.is_peer | LARGE * (self.largest > 0)
        if features:
            listed.append(m.Property(PropertyId.FEATURES, nat_octets(features)))
        return listed


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a session works with, from the side of one node."""

    peer: bytes
    peer_lease: float
    sn_bits: int
    peer_conduits: int = 1
    peer_commit_mode: int = 0
    takes_batches: bool = False
    nonce: bytes | None = None
    is_broker: bool | None = None
    """Whether the other node is a broker or, if not, a peer; None if it does not say."""
    mtu: int = 0
    """The largest packet to send, if it is not that of the offer."""

    @classmethod
    def of_open(cls, message: Any, offer: Offer) -> Agreement:
        """What an Open asks for, checked in the order of Z18-SES-05.

        Raises:
            RuleBroken: with the reason to close with.
        """
        pid, properties = message.pid, message.properties
        if message.version != VERSION:
            raise _refused(Reason.UNSUPPORTED_PROTOCOL, f"version {message.version} is not {VERSION}")
        if not offer.authenticate(pid, value_of(properties, PropertyId.AUTHENTICATION)):
            raise _refused(Reason.INVALID_AUTHENTICATION, "the authentication data are not accepted")
        agreed = _agreement(cls, pid, message.lease, properties, offer, None)
        refusal = offer.admit(pid)
        if refusal is not None:
            raise _refused(refusal, "there is no room for this node")
        return agreed

    @classmethod
    def of_accept(cls, message: Any, offer: Offer) -> Agreement:
        """What an Accept says. Raises RuleBroken as `of_open`."""
        return _agreement(cls, message.acceptPid, message.lease, message.properties, offer, offer.sn_bits)


def _agreement(
    cls: type[Agreement], pid: bytes, lease: int, properties: Sequence[Any] | None, offer: Offer, asked: int | None
) -> Agreement:
    try:
        bits = property_number(properties, PropertyId.SN_BITS, asked or DEFAULT_SN_BITS)
    except ValueError as error:
        raise _refused(Reason.UNSUPPORTED_PARAMETER, str(error)) from None
    if not SN_BITS_MIN <= bits <= SN_BITS_MAX or (asked is not None and bits != asked):
        raise _refused(Reason.UNSUPPORTED_SN_LENGTH, f"serial numbers of {bits} bits")
    if not 1 <= len(pid) <= NODE_ID_BYTES:
        raise _refused(Reason.UNSUPPORTED_PARAMETER, f"a node id of {len(pid)} octets")
    seconds = lease * LEASE_UNIT
    if offer.max_lease and seconds > offer.max_lease:
        raise _refused(Reason.UNSUPPORTED_PARAMETER, f"a lease of {seconds:g} s is above {offer.max_lease:g} s")
    try:
        features = property_number(properties, PropertyId.FEATURES, 0)
        return cls(
            pid,
            seconds,
            bits,
            property_number(properties, PropertyId.CONDUITS, 1, least=1),
            property_number(properties, PropertyId.COMMIT_MODE, 0),
            features & BATCHES != 0,
            value_of(properties, PropertyId.CLIENT_HASH),
            bool(features & BROKER) if features & (BROKER | PEER) else None,
            max(offer.mtu, offer.largest) if features & LARGE else 0,
        )
    except ValueError as error:
        raise _refused(Reason.UNSUPPORTED_PARAMETER, str(error)) from None


def _refused(reason: int, problem: str) -> RuleBroken:
    return RuleBroken("OPEN_REFUSED", f"close-{int(reason)}", problem)
