"""Matching listeners of the asyncio twin."""

from __future__ import annotations

from elea.aio.handle import Receiving
from elea.api.info import MatchingStatus

__all__ = ["MatchingListener"]


class MatchingListener(Receiving[MatchingStatus]):
    """Tells when matching begins and ends."""
