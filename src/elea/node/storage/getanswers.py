"""Plain gets on stored keys: the latest values, or with parameters history, a time, positions.

`_time=[…]`, `_history`, `_as_of=…`, `_from=…`, `_to=…`, `_limit=…`, `_order=newest`, `_where=…`: a predicate, held
against what the others choose, before the limit. Names without an underscore are the programs' own and mean nothing to
a store; one with an underscore that nobody knows is a mistake, and refused.
Answers are streamed: the next ones are read when the previous ones are on their way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from elea.content import SamplePredicate
from elea.io.locator import nearest
from elea.model.errors import InvalidSelector
from elea.model.predicate.parameter import WHERE, predicate_of_parameter
from elea.model.selector import Parameters
from elea.model.timerange import TimeExpr, TimeRange
from elea.model.timestamp import Timestamp
from elea.node.storage.records import details_and_payload, takes_record
from elea.node.storage.storequery import StoreQuery
from elea.space.access import Action
from elea.space.face import Flow
from elea.space.questions import ReplyBody
from elea.store import Range, Stored

if TYPE_CHECKING:
    from elea.node.storage.storage import Storage

__all__ = ["answer", "as_of_time", "is_quick", "order_of"]

RESERVED = ("_time", "_history", "_as_of", "_from", "_to", "_limit", "_order", WHERE)
OF_OTHERS = ("_anyke",)
"""Names that eclipse-zenoh sends and that concern the node, not the store."""


PAST = ("_time", "_history", "_as_of", "_from", "_to")
"""Those that ask for more than the newest values: access rules call that `store_read`."""


def is_quick(asking: StoreQuery, storage: Storage) -> bool:
    """Whether the answer is one sample that is there: then the thread that read the query answers it."""
    return "*" not in asking.key and storage.is_settled() and not any(name[:1] == "_" for name, _ in asking.parameters)


def answer(asking: StoreQuery, storage: Storage, now_ns: int) -> None:
    """Send every sample that a query asks for.

    Raises:
        InvalidSelector, InvalidPredicate: a parameter makes no sense.
        StoreError: what it asks for cannot be read.
        Gone: nobody waits any more.
    """
    if is_quick(asking, storage):
        found = storage.log.latest(asking.key)
        if found is not None:
            asking.reply(asking.key, ReplyBody(*details_and_payload(found.record)), 0)
        return
    judge = None
    if any(name in PAST for name, _ in asking.parameters):
        asking.require(Action.STORE_READ)
        judge = asking.judge()
    chosen = _chosen(asking, storage, now_ns)
    storage.wait_settled()
    for stored in chosen:
        record = stored.record
        if judge is not None and not judge(Flow.EGRESS, Action.STORE_READ, record.key):
            continue
        body = ReplyBody(*details_and_payload(record))
        asking.reply(record.key, body, len(record.payload) + len(record.key))


def _chosen(asking: StoreQuery, storage: Storage, now_ns: int) -> Iterator[Stored]:
    parameters = asking.parameters
    _check_names(parameters)
    limit, newest = asking.number("_limit"), order_of(asking, "_order")
    where = parameters.get(WHERE)
    if where is not None:
        test = SamplePredicate(predicate_of_parameter(where), contents=asking.contents)
        chosen = _ranged(asking, storage, now_ns, None, newest)
        return islice((stored for stored in chosen if takes_record(test, stored.record)), limit)
    return _ranged(asking, storage, now_ns, limit, newest)


def _ranged(asking: StoreQuery, storage: Storage, now_ns: int, limit: int | None, newest: bool) -> Iterator[Stored]:
    parameters = asking.parameters
    time = parameters.get("_time")
    start, end = asking.number("_from"), asking.number("_to")
    if "_as_of" in parameters:
        at = as_of_time(parameters.get("_as_of") or "", now_ns)
        log = storage.log
        return _later(lambda: log.as_of(asking.key, time_ns=at, position=end, newest_first=newest, limit=limit))
    if time is None and start is None and end is None and "_history" not in parameters:
        return _later(lambda: storage.log.latest_matching(asking.key, newest_first=newest, limit=limit))
    within = None if time is None else TimeRange.parse(time).resolve(now_ns)
    wanted = Range(asking.key, start, end, within, limit, newest, by_time=within is not None)
    return _later(lambda: storage.log.read(wanted))


def _check_names(parameters: Parameters) -> None:
    for name, _ in parameters:
        if name[:1] == "_" and name not in RESERVED and name not in OF_OTHERS:
            hint = nearest(name, RESERVED)
            raise InvalidSelector(str(parameters), f"{name} is no parameter of a store; {hint}")


def order_of(asking: StoreQuery, name: str) -> bool:
    """Whether the newest are wanted first."""
    order = asking.parameters.get(name)
    if order not in (None, "", "newest", "oldest"):
        raise InvalidSelector(str(asking.parameters), f"{name} is {order!r}, neither newest nor oldest")
    return order == "newest"


def as_of_time(text: str, now_ns: int) -> int:
    """A time as nanoseconds since 1970: an instant, `now(…)`, or a timestamp."""
    if "/" in text:
        try:
            return Timestamp.parse(text).ns
        except ValueError as error:
            raise InvalidSelector(text, str(error)) from error
    return TimeExpr.parse(text).resolve(now_ns)


def _later(make: Callable[[], Iterator[Stored]]) -> Iterator[Stored]:
    """The same samples, looked for when the first is wanted."""
    yield from make()
