"""Session rules of the two early dialects that need neither bytes nor time."""

from elea.protocol.early.acknack import AckNackFields, acknack, requested, synch_available
from elea.protocol.early.commit import MaySend, may_send, tolerates_commit
from elea.protocol.early.rules import (
    REACTIONS,
    Terms,
    check_declaration,
    check_message,
    check_packet,
    declared_id,
)
from elea.protocol.early.serial import distance, serial_less, successor, window_limit
from elea.protocol.early.window import next_opening, window_open

__all__ = [
    "REACTIONS",
    "AckNackFields",
    "MaySend",
    "Terms",
    "acknack",
    "check_declaration",
    "check_message",
    "check_packet",
    "declared_id",
    "distance",
    "may_send",
    "next_opening",
    "requested",
    "serial_less",
    "successor",
    "synch_available",
    "tolerates_commit",
    "window_limit",
    "window_open",
]
