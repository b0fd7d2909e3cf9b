"""Every bound Elea puts on what others may make it do: one named constant each, with its reason."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ACKNACK_SPAN",
    "CAPTURE_BLOCK_BYTES",
    "CAPTURE_INTERFACES",
    "CAPTURE_PACKET_BYTES",
    "CLI_UNIT_BYTES",
    "CLOCK_DRIFT_NS",
    "DURATION_NS",
    "ENCODING_SCHEMA_BYTES",
    "INCLUSION_SETS",
    "KEY_EXPR_BYTES",
    "MAX_BATCH",
    "MAX_DECLARED_ID",
    "MAX_EXTENSIONS",
    "MAX_MESSAGE",
    "MAX_NUMBERS",
    "MAX_PACKET",
    "NATURAL_BITS",
    "NODE_ID_BYTES",
    "RESCAN_BYTES",
    "RESOURCE_BYTES",
    "SN_BITS_MAX",
    "SN_BITS_MIN",
    "TCP_FLOWS",
    "TCP_PENDING_BYTES",
    "TCP_PENDING_TOTAL",
    "TCP_STRAY_BYTES",
    "TIME_EXPR_CHARS",
    "UDP_ENDPOINTS",
]

NATURAL_BITS: Final = 64
"""Numbers on the wire; the papers leave them unbounded (decision DEC-03)."""

NODE_ID_BYTES: Final = 16
"""A node identifier has 1 to 16 octets in all dialects."""

MAX_BATCH: Final = 65_535
"""Zenoh 1.x: the length prefix of a batch is 16 bits wide."""

MAX_PACKET: Final = 65_535
"""Early dialects: default MTU of a stream link; a larger frame ends the session (Z18-FRM-04)."""

MAX_MESSAGE: Final = 1 << 30
"""A reassembled message; the default of eclipse-zenoh (`max_message_size`)."""

KEY_EXPR_BYTES: Final = 65_535
"""A key expression travels with a 16-bit length."""

CAPTURE_BLOCK_BYTES: Final = 1 << 24
"""A pcapng block read whole; only comments and secrets make a block large, and those are passed over."""

CAPTURE_INTERFACES: Final = 4_096
"""Interfaces of one pcapng section; each is remembered until the section ends."""

CAPTURE_PACKET_BYTES: Final = 262_144
"""One captured packet; the largest snap length libpcap accepts."""

CLI_UNIT_BYTES: Final = 1 << 26
"""One unit given to `elea decode` or `elea encode` as raw bytes or as a line; far above any batch."""

TCP_FLOWS: Final = 16_384
"""Directions of TCP connections followed at once in a capture; the longest idle one gives way."""

TCP_PENDING_BYTES: Final = 1 << 22
"""Octets of one direction held while an earlier segment is missing; then the hole is a gap."""

TCP_PENDING_TOTAL: Final = 1 << 27
"""The same over all directions of a capture."""

TCP_STRAY_BYTES: Final = 1 << 30
"""A segment further than the largest TCP window from its stream cannot belong to it."""

UDP_ENDPOINTS: Final = 4_096
"""Addresses remembered as having scouted in a capture, so that the answers are known for what they are."""

ENCODING_SCHEMA_BYTES: Final = 255
"""Zenoh 1.x: a schema travels with an 8-bit length; eclipse-zenoh 1.10.2 breaks its link on a longer one."""

CLOCK_DRIFT_NS: Final = 500_000_000
"""A timestamp further ahead of local time than this does not move the clock; the default of eclipse-zenoh."""

SN_BITS_MIN: Final = 4
"""Early dialects: the shortest serial number; its window is 6 messages (Z18-SES-06)."""

SN_BITS_MAX: Final = 63
"""Early dialects: the longest serial number; one bit below the naturals that carry it (Z18-SES-06)."""

ACKNACK_SPAN: Final = 65
"""Early dialects: serial numbers one AckNack can ask for: its own and 64 of the mask (DEC-03)."""

MAX_DECLARED_ID: Final = (1 << 63) - 1
"""Early dialects: the largest id of a resource or selection (Z18-DCL-07)."""

MAX_EXTENSIONS: Final = 64
"""Unknown extensions kept of one message; real messages carry a handful, a chain of 65,000 would be an attack."""

RESOURCE_BYTES: Final = 65_535
"""A resource or selection of the early dialects; the same room as a key expression."""

INCLUSION_SETS: Final = 4_096
"""Sets of places an exact inclusion may look at: patterns can be written that need exponentially many."""

TIME_EXPR_CHARS: Final = 64
"""One bound of a time range; the longest useful one has 30 characters."""

DURATION_NS: Final = (1 << 63) - 1
"""A duration in a time range: 292 years, as much as 64 bits of nanoseconds hold."""

RESCAN_BYTES: Final = 1 << 22
"""Octets of one message read again because its stream came in crumbs (unbounded streams of the early dialects)."""

MAX_NUMBERS: Final = 60_000
"""Keys a node gives numbers to; a number on the wire has 16 bits, and later keys travel literally."""
