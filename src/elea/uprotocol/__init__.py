"""uProtocol over the data space: addresses, messages, the transport (layer 1), and what is built on it.

values          UUri · UUID · UAttributes · UMessage · UPayload · UCode · UStatus · UStatusError
layer 1         UTransportZenoh (`open`)
layer 2         `communication`: Publisher, Subscriber, Notifier, RpcClient, RpcServer
layer 3         `services`: USubscription, UTwin
asyncio         `aio`: the same, awaited
"""

from __future__ import annotations

from elea.uprotocol.attributes import UAttributes, UMessageType, UPayloadFormat, UPriority, is_expired
from elea.uprotocol.communication import (
    CallOptions,
    Notifier,
    PendingCall,
    Publisher,
    RpcClient,
    RpcServer,
    Subscriber,
)
from elea.uprotocol.message import ReceivedMessage, UMessage
from elea.uprotocol.payload import UPayload
from elea.uprotocol.status import InvalidUri, InvalidUuid, UCode, UStatus, UStatusError
from elea.uprotocol.transport import LocalUri, LocalUriProvider, UListener, UTransport
from elea.uprotocol.uuid7 import UUID, new_uuid
from elea.uprotocol.uuri import ANY_UURI, UUri
from elea.uprotocol.zenohkey import key_of, uris_of
from elea.uprotocol.zenohtransport import UTransportZenoh, open

__all__ = [
    "ANY_UURI",
    "UUID",
    "CallOptions",
    "InvalidUri",
    "InvalidUuid",
    "LocalUri",
    "LocalUriProvider",
    "Notifier",
    "PendingCall",
    "Publisher",
    "ReceivedMessage",
    "RpcClient",
    "RpcServer",
    "Subscriber",
    "UAttributes",
    "UCode",
    "UListener",
    "UMessage",
    "UMessageType",
    "UPayload",
    "UPayloadFormat",
    "UPriority",
    "UStatus",
    "UStatusError",
    "UTransport",
    "UTransportZenoh",
    "UUri",
    "is_expired",
    "key_of",
    "new_uuid",
    "open",
    "uris_of",
]
