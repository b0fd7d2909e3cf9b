"""Frames that follow each other in the octets of a stream: where one of them ends, and which are next."""

from __future__ import annotations

from elea.wire.values import MessageValue

__all__ = ["Frames"]


class Frames(MessageValue):
    """A FRAME among others of its conduit.

    Behind `stop` the next batch begins, with its length of two octets. It is read too if it begins with a FRAME of the
    same `header` (no extension) and the next number; -1 is the header of none.
    """

    stop: int
    header: int = -1
    sn: int = 0
    mask: int = 0
    more: int = 0
    """How many were read besides the first."""
