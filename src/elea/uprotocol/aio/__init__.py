"""uProtocol for asyncio: the same names as in `elea.uprotocol`, awaited."""

from __future__ import annotations

from elea.uprotocol.aio.communication import Notifier, Publisher, Subscriber
from elea.uprotocol.aio.rpcclient import RpcClient
from elea.uprotocol.aio.rpcserver import RpcServer
from elea.uprotocol.aio.transport import UTransport, open

__all__ = ["Notifier", "Publisher", "RpcClient", "RpcServer", "Subscriber", "UTransport", "open"]
