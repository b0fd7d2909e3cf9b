"""Matching listeners of the asyncio twin."""

from __future__ import annotations

from elea.aio.handle import ReceivingHandle
from elea.api.info import MatchingStatus

__all__ = ["MatchingListener"]


class MatchingListener(ReceivingHandle[MatchingStatus]):
    """Tells when matching begins and ends."""
