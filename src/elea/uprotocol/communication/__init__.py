"""Layer 2: publish, subscribe, notify and call, in terms of a transport (layer 1) only."""

from __future__ import annotations

from elea.uprotocol.communication.calloptions import CallOptions
from elea.uprotocol.communication.notifier import Notifier
from elea.uprotocol.communication.publisher import Publisher
from elea.uprotocol.communication.rpcclient import PendingCall, RpcClient
from elea.uprotocol.communication.rpcserver import RequestHandler, RpcServer
from elea.uprotocol.communication.subscriber import ChangeHandler, Subscriber

__all__ = [
    "CallOptions",
    "ChangeHandler",
    "Notifier",
    "PendingCall",
    "Publisher",
    "RequestHandler",
    "RpcClient",
    "RpcServer",
    "Subscriber",
]
