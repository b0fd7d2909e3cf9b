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
    "MAX_DECLARATIONS",
    "MAX_DECLARED_ID",
    "MAX_EXTENSIONS",
    "MAX_INTERESTS",
    "MAX_KEY_OCTETS",
    "MAX_MESSAGE",
    "MAX_NUMBERS",
    "MAX_PACKET",
    "MAX_QUERIES",
    "MAX_RESOURCE_OCTETS",
    "NATURAL_BITS",
    "NODE_ID_BYTES",
    "RESCAN_BYTES",
    "RESOURCE_BYTES",
    "SN_BITS_MAX",
    "SN_BITS_MIN",
    "STORE_BLOCK_BYTES",
    "STORE_BLOCK_ROWS",
    "STORE_CACHED_BLOCKS",
    "STORE_CURSORS",
    "STORE_CURSOR_CHARS",
    "STORE_FRAME_HEAD_BYTES",
    "STORE_PENDING_BYTES",
    "STORE_SEGMENT_BYTES",
    "STORE_SOURCES",
    "STORE_SOURCE_RUNS",
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

MAX_DECLARATIONS: Final = 250_000
"""Subscribers, queryables and tokens of one session. Each costs a node about 1 kB; real programs have thousands."""

MAX_INTERESTS: Final = 250_000
"""Interests of one session: its publishers, queriers and whoever watches. Each costs a node about 1 kB."""

MAX_KEY_OCTETS: Final = 1 << 26
"""Octets of the keys of all these together: a key may have 64 KiB, and a quarter million of those would be 16 GB."""

MAX_RESOURCE_OCTETS: Final = 1 << 26
"""Octets of the key expressions one session gives numbers to; there are 65,535 numbers, enough for 4 GB of text."""

MAX_QUERIES: Final = 65_536
"""Queries of one session that wait for answers at once. Each costs a node about 2 kB until it ends or times out."""

STORE_SEGMENT_BYTES: Final = 64 << 20
"""A segment of the store; the next sample then opens a new one. Retention takes away whole segments."""

STORE_BLOCK_ROWS: Final = 16_384
"""Samples of one block; larger batches are cut. Scans gain nothing beyond, and a lost block loses less."""

STORE_BLOCK_BYTES: Final = 8 << 20
"""Octets of one block, if it has more than one sample."""

STORE_FRAME_HEAD_BYTES: Final = 1 << 20
"""The part of a frame before its columns; a real one has 2 kB, a damaged length could ask for anything."""

STORE_CACHED_BLOCKS: Final = 32
"""Blocks kept decoded per log, so that reading keys one by one does not check the same block each time."""

STORE_PENDING_BYTES: Final = 64 << 20
"""Samples waiting for the disk; more are refused as congestion, so that a slow disk cannot fill the memory."""

STORE_SOURCES: Final = 100_000
"""Sources whose numbers a log remembers to store a retry once; the longest silent one is forgotten first."""

STORE_SOURCE_RUNS: Final = 1_024
"""Runs of consecutive numbers remembered per source; numbers below them count as stored."""

STORE_CURSORS: Final = 10_000
"""Named cursors of one log."""

STORE_CURSOR_CHARS: Final = 255
"""The name of a cursor."""
