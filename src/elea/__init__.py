"""Elea: the Zenoh data space in Python. `import elea as zenoh` runs programs written for eclipse-zenoh's Python API.

Names are imported when first used: a program that only decodes bytes does not load sessions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elea import aio as aio
    from elea import ext as ext
    from elea import handlers as handlers
    from elea.api.apitimestamp import NTP64 as NTP64
    from elea.api.apitimestamp import Timestamp as Timestamp
    from elea.api.apitimestamp import TimestampId as TimestampId
    from elea.api.cancellation import CancellationToken as CancellationToken
    from elea.api.channels import Handler as Handler
    from elea.api.config import Config as Config
    from elea.api.cursor import Cursor as Cursor
    from elea.api.events import LinkEvent as LinkEvent
    from elea.api.events import LinkEventsListener as LinkEventsListener
    from elea.api.events import TransportEvent as TransportEvent
    from elea.api.events import TransportEventsListener as TransportEventsListener
    from elea.api.historysubscriber import Loss as Loss
    from elea.api.identity import EntityGlobalId as EntityGlobalId
    from elea.api.identity import SourceInfo as SourceInfo
    from elea.api.identity import ZenohId as ZenohId
    from elea.api.info import Hello as Hello
    from elea.api.info import Link as Link
    from elea.api.info import MatchingStatus as MatchingStatus
    from elea.api.info import Transport as Transport
    from elea.api.instrumentation import InterceptionPoint as InterceptionPoint
    from elea.api.instrumentation import TimestampContext as TimestampContext
    from elea.api.instrumentation import TimestampInstrumentation as TimestampInstrumentation
    from elea.api.instrumentation import TimestampInstrumentationBuilder as TimestampInstrumentationBuilder
    from elea.api.instrumentation import TimestampStack as TimestampStack
    from elea.api.instrumentation import TimestampStackRecord as TimestampStackRecord
    from elea.api.liveliness import Liveliness as Liveliness
    from elea.api.liveliness import LivelinessToken as LivelinessToken
    from elea.api.loginit import init_log_from_env_or as init_log_from_env_or
    from elea.api.loginit import try_init_log_from_env as try_init_log_from_env
    from elea.api.matching import MatchingListener as MatchingListener
    from elea.api.pacedsubscriber import Periodic as Periodic
    from elea.api.pacedsubscriber import Pull as Pull
    from elea.api.publisher import Publisher as Publisher
    from elea.api.querier import Querier as Querier
    from elea.api.query import Query as Query
    from elea.api.queryable import Queryable as Queryable
    from elea.api.queryoptions import QueryConsolidation as QueryConsolidation
    from elea.api.queryoptions import ReplyKeyExpr as ReplyKeyExpr
    from elea.api.rangereader import Reading as Reading
    from elea.api.receipt import Receipt as Receipt
    from elea.api.reply import Reply as Reply
    from elea.api.reply import ReplyError as ReplyError
    from elea.api.sample import Sample as Sample
    from elea.api.scout import Scout as Scout
    from elea.api.scout import scout as scout
    from elea.api.session import Session as Session
    from elea.api.session import open as open
    from elea.api.sessioninfo import SessionInfo as SessionInfo
    from elea.api.stored import StoredSample as StoredSample
    from elea.api.subscriber import Subscriber as Subscriber
    from elea.api.whatami import WhatAmI as WhatAmI
    from elea.api.whatami import WhatAmIMatcher as WhatAmIMatcher
    from elea.api.zbytes import ZBytes as ZBytes
    from elea.model.encoding import Encoding as Encoding
    from elea.model.errors import ZError as ZError
    from elea.model.keyexpr import KeyExpr as KeyExpr
    from elea.model.keyexpr import SetIntersectionLevel as SetIntersectionLevel
    from elea.model.predicate import Predicate as Predicate
    from elea.model.qos import CongestionControl as CongestionControl
    from elea.model.qos import ConsolidationMode as ConsolidationMode
    from elea.model.qos import Locality as Locality
    from elea.model.qos import Priority as Priority
    from elea.model.qos import QueryTarget as QueryTarget
    from elea.model.qos import Reliability as Reliability
    from elea.model.qos import SampleKind as SampleKind
    from elea.model.selector import Parameters as Parameters
    from elea.model.selector import Selector as Selector

__version__ = "0.1.0"

_HOMES = {
    "api.cancellation": "CancellationToken",
    "api.channels": "Handler",
    "api.config": "Config",
    "api.cursor": "Cursor",
    "api.events": "LinkEvent LinkEventsListener TransportEvent TransportEventsListener",
    "api.historysubscriber": "Loss",
    "api.identity": "EntityGlobalId SourceInfo ZenohId",
    "api.info": "Hello Link MatchingStatus Transport",
    "api.instrumentation": "InterceptionPoint TimestampContext TimestampInstrumentation "
    "TimestampInstrumentationBuilder TimestampStack TimestampStackRecord",
    "api.liveliness": "Liveliness LivelinessToken",
    "api.loginit": "init_log_from_env_or try_init_log_from_env",
    "api.matching": "MatchingListener",
    "api.pacedsubscriber": "Periodic Pull",
    "api.publisher": "Publisher",
    "api.query": "Query",
    "api.querier": "Querier",
    "api.queryable": "Queryable",
    "api.rangereader": "Reading",
    "api.receipt": "Receipt",
    "api.reply": "Reply ReplyError",
    "api.sample": "Sample",
    "api.scout": "Scout scout",
    "api.session": "Session open",
    "api.sessioninfo": "SessionInfo",
    "api.stored": "StoredSample",
    "api.subscriber": "Subscriber",
    "api.apitimestamp": "NTP64 Timestamp TimestampId",
    "api.queryoptions": "QueryConsolidation ReplyKeyExpr",
    "api.whatami": "WhatAmI WhatAmIMatcher",
    "api.zbytes": "ZBytes",
    "model.encoding": "Encoding",
    "model.errors": "ZError",
    "model.keyexpr": "KeyExpr SetIntersectionLevel",
    "model.predicate": "Predicate",
    "model.qos": "CongestionControl ConsolidationMode Locality Priority QueryTarget Reliability SampleKind",
    "model.selector": "Parameters Selector",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = ["__version__", "ext", "handlers", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name in ("aio", "ext", "handlers"):
        return import_module(f"elea.{name}")
    home = _HOME.get(name)
    if name == "shm":
        raise AttributeError("elea.shm is not built: large payloads go through shared memory by themselves")
    if home is None:
        raise AttributeError(f"module 'elea' has no attribute {name!r}")
    value = getattr(import_module(f"elea.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
