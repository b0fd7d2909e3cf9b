"""Elea for asyncio: the same names as in `elea`, awaited.

::

    async with aio.open(aio.Config()) as session:
        async with session.declare_subscriber("home/**") as subscriber:
            await session.put("home/1/temp", "21.5")
            async for sample in subscriber:
                print(sample.key_expr, sample.payload.to_string())

There is no second implementation: links are read and written by the threads of `elea`, and what arrives is handed to
the loop in batches. Whatever is a plain value (`Config`, `KeyExpr`, `Sample`, …) is the one of `elea`.
"""

from __future__ import annotations

from typing import Any

import elea
from elea.aio.handle import Pending
from elea.aio.inbox import Overflow
from elea.aio.info import LinkEventsListener, SessionInfo, TransportEventsListener
from elea.aio.liveliness import Liveliness, LivelinessSubscriber, LivelinessToken
from elea.aio.matching import MatchingListener
from elea.aio.publisher import Publisher
from elea.aio.querier import Querier, Replies
from elea.aio.queryable import Query, Queryable
from elea.aio.rangereader import Cursor, Reading
from elea.aio.session import Session, open
from elea.aio.subscriber import Subscriber

__all__ = [
    "Cursor",
    "LinkEventsListener",
    "Liveliness",
    "LivelinessSubscriber",
    "LivelinessToken",
    "MatchingListener",
    "Overflow",
    "Pending",
    "Publisher",
    "Querier",
    "Query",
    "Queryable",
    "Reading",
    "Replies",
    "Session",
    "SessionInfo",
    "Subscriber",
    "TransportEventsListener",
    "open",
]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'elea.aio' has no attribute {name!r}")
    return getattr(elea, name)
