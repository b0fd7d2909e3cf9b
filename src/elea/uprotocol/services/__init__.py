"""Core services (layer 3): uSubscription for one authority, uTwin on what brokers keep."""

from __future__ import annotations

from elea.uprotocol.services.usubscription import USubscription
from elea.uprotocol.services.utwin import LastMessages, UTwin

__all__ = ["LastMessages", "USubscription", "UTwin"]
