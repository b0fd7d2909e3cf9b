"""What two nodes of Zenoh 1.x offer each other and agree on when they open a session.

This module owns the values and the arithmetic of negotiation; who speaks when is the business of `opening`.
Spec: zenoh-1 §4.1-4.3, §5.2-5.5.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from elea.model.errors import RuleBroken
from elea.model.limits import LEASE_LEAST, LEASE_MOST, MAX_BATCH, MIN_BATCH
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.model.values import value_class
from elea.protocol.zenoh1.sn import SN_MASKS, initial_sn
from elea.wire.zenoh1 import messages
from elea.wire.zenoh1.messages import Init, Open, Sizes

__all__ = [
    "MIN_BATCH",
    "PATCH",
    "VERSION",
    "Agreement",
    "CloseReason",
    "Offer",
    "agree",
    "announced_qos",
    "first_sn",
    "init_message",
    "lease_fields",
    "least_sizes",
    "sizes_of",
]

VERSION: Final = 9
"""The protocol version in INIT, SCOUT, HELLO and JOIN."""

PATCH: Final = 1
"""The protocol patch this implementation knows: markers on the first and on an abandoned fragment."""

REQUEST_ID_CODE: Final = 2  # 32 bits, the only width eclipse-zenoh offers
DEFAULT_SIZES: Final = Sizes(0x0A, MAX_BATCH)
CODE: Final = 0x03
REGION_NAME_BYTES: Final = 32

QOS_PLAIN: Final = 1
QOS_RANGE: Final = 0x02
QOS_RELIABILITY: Final = 0x04
QOS_LINK_BITS: Final = 0xF_FFFF
LAST_PRIORITY: Final = 7


class CloseReason(IntEnum):
    """The number in a CLOSE. Spec: zenoh-1 §4.3."""

    GENERIC = 0
    UNSUPPORTED = 1
    INVALID = 2
    MAX_SESSIONS = 3
    MAX_LINKS = 4
    EXPIRED = 5
    UNRESPONSIVE = 6
    CONNECTION_TO_SELF = 7

    @classmethod
    def describe(cls, reason: int) -> str:
        """A reason for people, known or not.

        >>> CloseReason.describe(4), CloseReason.describe(99)
        ('max links (reason 4)', 'unknown (reason 99)')
        """
        name = cls(reason).name.lower().replace("_", " ") if reason in cls._value2member_map_ else "unknown"
        return f"{name} (reason {reason})"


@value_class
class Offer:
    """What this node wants of a session; `batch_size` already takes the link's own limit into account.

    `credentials` are the user and password an initiator proves; what an acceptor demands is its own argument.
    """

    node_id: bytes
    role: Role
    batch_size: int = MAX_BATCH
    sn_bits: int = 32
    qos: bool = True
    lowlatency: bool = False
    compression: bool = False
    patch: int = PATCH
    lease_ms: int = 10_000
    region_name: bytes | None = None
    credentials: tuple[bytes, bytes] | None = None

    def __repr__(self) -> str:
        user = None if self.credentials is None else self.credentials[0]
        return f"Offer(node_id={self.node_id.hex()!r}, role={self.role}, user={user!r}, lease_ms={self.lease_ms})"

    def __post_init__(self) -> None:
        object.__setattr__(self, "node_id", NodeId(self.node_id).data)
        if not MIN_BATCH <= self.batch_size <= MAX_BATCH:
            raise ValueError(f"batch size {self.batch_size} is not between {MIN_BATCH} and {MAX_BATCH}")
        if self.sn_bits not in (8, 16, 32):
            raise ValueError(f"sequence numbers of {self.sn_bits} bits: choose 8, 16 or 32")
        if self.qos and self.lowlatency:
            raise ValueError("qos and lowlatency exclude each other: switch one of them off")
        if not 0 <= self.patch <= PATCH:
            raise ValueError(f"patch {self.patch} is not between 0 and {PATCH}")
        if self.lease_ms < 1:
            raise ValueError(f"a lease of {self.lease_ms} ms: give at least 1")
        if self.region_name is not None and not 1 <= len(self.region_name) <= REGION_NAME_BYTES:
            raise ValueError(f"a region name has 1 to {REGION_NAME_BYTES} bytes, not {len(self.region_name)}")

    @property
    def sn_code(self) -> int:
        """The width of sequence numbers as INIT writes it: 0 for 8 bits, 1 for 16, 2 for 32."""
        return self.sn_bits.bit_length() - 4

    @property
    def resolution(self) -> int:
        """Both widths in one byte: request ids and sequence numbers."""
        return REQUEST_ID_CODE << 2 | self.sn_code


@value_class
class Agreement:
    """What both nodes will do in the session; leases are in seconds."""

    peer_id: bytes
    peer_role: Role
    batch_size: int
    sn_mask: int
    qos: bool
    lowlatency: bool
    compression: bool
    patch: int
    own_sn: int
    peer_sn: int
    own_lease: float
    peer_lease: float


def init_message(offer: Offer, sizes: Sizes | None = None) -> Init:
    """An INIT that says everything `offer` does; an acceptor then takes back what was not offered to it."""
    sizes = sizes or Sizes(offer.resolution, offer.batch_size)
    return Init(
        version=VERSION,
        whatami=messages.Role(offer.role.code),
        zid=offer.node_id,
        sizes=None if sizes == DEFAULT_SIZES else sizes,
        qos=offer.qos,
        lowlatency=offer.lowlatency,
        compression=offer.compression,
        patch=offer.patch or None,
        region_name=offer.region_name,
    )


def sizes_of(message: Init) -> Sizes:
    """The sizes an INIT states, or those it means by saying nothing."""
    return message.sizes or DEFAULT_SIZES


def least_sizes(offer: Offer, asked: Sizes) -> Sizes:
    """The smaller of both sides, field by field."""
    sn = min(offer.sn_code, asked.resolution & CODE)
    request_id = min(REQUEST_ID_CODE, asked.resolution >> 2 & CODE)
    return Sizes(request_id << 2 | sn, min(offer.batch_size, asked.batch_size))


def announced_qos(message: Init) -> int | None:
    """What an INIT says of QoS: None for nothing, 1 for plain QoS, else the settings of a QoSLink extension."""
    value = message.qos_link
    if value is None:
        return QOS_PLAIN if message.qos else None
    if message.qos:
        raise RuleBroken("zenoh1-qos-link", "close-0", "QoS and QoSLink in one INIT")
    if value in (0, QOS_PLAIN):
        return value or None
    first, last = value >> 3 & 0xFF, value >> 11 & 0xFF
    if not value & (QOS_RANGE | QOS_RELIABILITY) or value > QOS_LINK_BITS:
        raise RuleBroken("zenoh1-qos-link", "close-0", f"QoSLink of {value:#x} sets nothing we know")
    if value & QOS_RANGE and not first <= last <= LAST_PRIORITY:
        raise RuleBroken("zenoh1-qos-link", "close-0", f"no priorities from {first} to {last}")
    return value


def first_sn(offer: Offer, peer: Init, ack: Init) -> int:
    """The sequence number this node starts every conduit with."""
    return initial_sn(NodeId(offer.node_id), NodeId(peer.zid), sn_mask(ack))


def sn_mask(ack: Init) -> int:
    """The largest sequence number an INIT_ACK allows."""
    return SN_MASKS[8 << (sizes_of(ack).resolution & CODE)]


def lease_fields(lease_ms: int) -> tuple[int, bool]:
    """The lease as OPEN has it: the number, and whether it counts seconds."""
    seconds, rest = divmod(lease_ms, 1000)
    return (lease_ms, False) if rest else (seconds, True)


def agree(offer: Offer, peer: Init, *, ack: Init, opened: Open) -> Agreement:
    """What is agreed after INITs and OPENs: what the INIT_ACK says, as far as `offer` wants it.

    `peer` is the INIT of the other node and `opened` its OPEN.
    """
    mask = sn_mask(ack)
    if opened.initial_sn > mask:
        raise RuleBroken("zenoh1-initial-sn", "close-2", f"first sequence number {opened.initial_sn} above {mask}")
    lowlatency = offer.lowlatency and ack.lowlatency
    return Agreement(
        peer_id=NodeId(peer.zid).data,
        peer_role=Role.from_code(peer.whatami),
        batch_size=min(offer.batch_size, sizes_of(ack).batch_size),
        sn_mask=mask,
        qos=offer.qos and announced_qos(ack) is not None,
        lowlatency=lowlatency,
        # A low-latency session has no header to say that a batch is compressed; eclipse-zenoh, asked for both,
        # agrees to both and compresses nothing.
        compression=offer.compression and ack.compression and not lowlatency,
        patch=min(offer.patch, ack.patch or 0),
        own_sn=first_sn(offer, peer, ack),
        peer_sn=opened.initial_sn,
        own_lease=offer.lease_ms / 1000,
        peer_lease=_lease(float(opened.lease) if opened.seconds else opened.lease / 1000),
    )


def _lease(seconds: float) -> float:
    """A lease as it is held: one of no time would end the session at once, one of years would keep a dead one."""
    return min(max(seconds, LEASE_LEAST), LEASE_MOST)
