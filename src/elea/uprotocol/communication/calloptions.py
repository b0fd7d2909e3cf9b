"""`CallOptions`: how a message is to be sent."""

from __future__ import annotations

from elea.model.values import value_class
from elea.uprotocol.attributes import RPC_PRIORITY, UPriority
from elea.uprotocol.status import UCode, UStatusError
from elea.uprotocol.uuid7 import UUID

__all__ = ["CallOptions"]


@value_class
class CallOptions:
    """What a caller wants; what is left out is what the kind of message has by default.

    Args of the constructor: `ttl` in milliseconds (a call: 10,000; else none), `priority` (a call: CS4), `id` of the
    message, `token` and `permission_level` of a call, `traceparent`.
    """

    ttl: int | None = None
    priority: int | None = None
    id: UUID | None = None
    token: str | None = None
    permission_level: int | None = None
    traceparent: str | None = None

    @property
    def sent_priority(self) -> int:
        """The priority of a publish message or notification."""
        return UPriority.UNSPECIFIED if self.priority is None else self.priority

    @property
    def call_priority(self) -> int:
        """The priority of a call."""
        return RPC_PRIORITY if self.priority is None else self.priority

    @property
    def call_ttl(self) -> int:
        """The time to live of a call.

        Raises:
            UStatusError: INVALID_ARGUMENT: it is 0 or below, and a call must end some time.
        """
        ttl = CALL_TTL if self.ttl is None else self.ttl
        if ttl <= 0:
            raise UStatusError(UCode.INVALID_ARGUMENT, f"the ttl of a call is {ttl} ms, and must be above 0")
        return ttl


CALL_TTL = 10_000
"""Milliseconds a call may take, unless its options say otherwise; as in the public libraries."""

PLAIN = CallOptions()
