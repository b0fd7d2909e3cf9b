"""What clients ask of a store by name: `@store/put`, `batch`, `read`, `cursor`. Parameters are in docs/store.md."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from elea.model import keyexpr
from elea.model.details import Source
from elea.model.errors import InvalidSelector, StoreError
from elea.model.jsontext import read_json
from elea.model.node_id import NodeId
from elea.model.predicate import Predicate
from elea.model.timerange import TimeRange
from elea.model.timestamp import Timestamp
from elea.node.storage.getanswers import order_of
from elea.node.storage.owners import Owners, user_of
from elea.space.access import Action
from elea.space.face import Flow
from elea.store import DEL, PUT, Range, Record
from elea.store.rangesize import measured

if TYPE_CHECKING:
    from elea.model.selector import Parameters
    from elea.node.node import Node
    from elea.node.storage.stampcheck import Stamping
    from elea.node.storage.storage import Storage
    from elea.node.storage.storequery import Judge, StoreQuery

__all__ = ["PIECE_BYTES", "Source", "answer_cursor", "answer_read", "put_record", "source_of", "subject_of"]

PIECE_BYTES: Final = 1 << 18
"""Bytes of one reply of a range read. It is made when the outbox is half empty and fits in the other half: a full one
would be taken for a reader that is stuck."""

LOOKED_AT: Final = 4
"""How many times the bytes of an answer a store looks through for what a predicate holds for: a second or two."""

_PAYLOAD: Final = 'the payload of a read is {"keys": [key expression, …], "where": predicate}'

NAMED_BYTES: Final = 1 << 16
"""What a block that is named, not sent, counts of the bytes of an answer, at most: its reader takes one at a time."""


def subject_of(key: str) -> str:
    """The key expression behind `@store/<verb>/`."""
    return key.split("/", 2)[2]


def source_of(text: str) -> Source:
    """The parameter `src`: by it a retry is known."""
    try:
        id, entity, number = text.split(".")
        return _node_id(id), int(entity), int(number)
    except ValueError as error:
        raise InvalidSelector(f"src={text}", "src is <node id>.<entity>.<number>") from error


@lru_cache(maxsize=1024)
def _node_id(text: str) -> bytes:
    return NodeId.parse(text.lower()).data


def put_record(node: Node, asking: StoreQuery, stamping: Stamping) -> tuple[Record, bool]:
    """The sample that a put request asks to store, and whether its timestamp was replaced; stamped if it has none."""
    now_ns = node.loop.wall_ns()
    fields = asking.fields()
    kind = fields.get("kind", "put")
    if kind not in ("put", "del"):
        raise InvalidSelector(str(asking.parameters), f"kind is {kind!r}, neither put nor del")
    body = asking.body
    ntp64, stamp_id, is_other = stamping.one(_stamp(fields.get("time")), now_ns)
    record = Record(
        subject_of(asking.key),
        b"" if body.payload is None or kind == "del" else body.payload,
        ntp64,
        stamp_id,
        stamping.arrival(now_ns),
        DEL if kind == "del" else PUT,
        body.encoding.id,
        body.encoding.schema,
        body.attachment,
        *source_of(fields.get("src", "")),
        True,
        asking.qos,
    )
    return record, is_other


def _stamp(text: str | None) -> tuple[int, bytes] | None:
    if text is None:
        return None
    time, _, id = text.partition(".")
    try:
        stamp = Timestamp(int(time, 16), NodeId.parse(id.lower()))
    except ValueError as error:
        raise InvalidSelector(f"time={text}", "time is <ntp64 in hex>.<node id>") from error
    return stamp.ntp64, stamp.id.data


# -- reading ----------------------------------------------------------------------------------------------------------


def answer_read(asking: StoreQuery, storage: Storage, now_ns: int) -> None:
    """Stream a range as Arrow IPC, then say where it ended.

    Raises:
        InvalidSelector, InvalidPredicate: a parameter makes no sense.
        StoreTrimmed, StoreCorrupt: it cannot be read as asked.
        Gone: nobody waits any more.
    """
    wanted, rows = _range(asking, storage, now_ns)
    where = _where(asking)
    storage.wait_settled()
    if "measure" in asking.parameters:
        answer_measure(asking, storage, wanted)
        return
    log = storage.log
    end = log.end if wanted.end is None else min(wanted.end, log.end)
    start = log.first if wanted.start is None else wanted.start
    wanted = replace(wanted, end=end)
    following = max(end, min(start, log.end))
    budget = None if wanted.by_time else asking.number("bytes")
    more = False
    places: list[list[object]] = []
    judge = asking.judge()
    if where is not None and not (judge is None and wanted.is_plain and _is_here(asking)):
        following, more = _send_filtered(asking, storage, wanted, where, budget, following, judge)
    elif judge is not None:
        following, more = _send_batches(asking, storage, wanted, rows, budget, following, judge)
    elif wanted.limit is None and rows is None and budget is None:
        for piece in log.read_ipc(wanted):
            _send(asking, piece)
    elif wanted.is_plain and rows is None and budget is not None:
        following, more, places = _send_messages(asking, storage, wanted, budget, following)
    else:
        following, more = _send_batches(asking, storage, wanted, rows, budget, following)
    facts = {"log": storage.name, "epoch": log.epoch, "first": log.first, "next": following, "end": log.end}
    if budget is not None:
        facts["more"] = more
    if places:
        facts["places"] = places
    asking.reply_json(facts)


def _range(asking: StoreQuery, storage: Storage, now_ns: int) -> tuple[Range, int | None]:
    parameters = asking.parameters
    subject = subject_of(asking.key)
    time = parameters.get("time")
    by = parameters.get("by")
    if by not in (None, "time", "position"):
        raise InvalidSelector(str(parameters), f"by is {by!r}, neither time nor position")
    wanted = Range(
        # Without keys to look for, blocks go out as they lie on disk.
        _keys(asking) or (None if keyexpr.includes(subject, storage.key_expr) else subject),
        asking.number("from"),
        asking.number("to"),
        None if time is None else TimeRange.parse(time).resolve(now_ns),
        asking.number("limit"),
        order_of(asking, "order"),
        by == "time",
        "skip_damaged" in parameters,
        _kind(parameters),
    )
    return wanted, asking.number("rows") or None


def _kind(parameters: Parameters) -> int | None:
    kind = parameters.get("kind")
    if kind not in (None, "put", "del"):
        raise InvalidSelector(str(parameters), f"kind is {kind!r}, neither put nor del")
    return None if kind is None else PUT if kind == "put" else DEL


def _keys(asking: StoreQuery) -> tuple[str, ...] | None:
    """Several key expressions, which are in the payload since a parameter could not hold every key."""
    found = _payload(asking).get("keys")
    if found is None:
        return None
    try:
        if not isinstance(found, list):
            raise TypeError("keys is no list")
        return tuple(str(keyexpr.KeyExpr(one)) for one in found)
    except (ValueError, TypeError) as error:
        raise InvalidSelector(asking.key, f"{_PAYLOAD}: {error}") from error


def _where(asking: StoreQuery) -> Predicate | None:
    """The predicate, which is there for the same reason."""
    found = _payload(asking).get("where")
    if found is None:
        return None
    if not isinstance(found, str):
        raise InvalidSelector(asking.key, f"{_PAYLOAD}: where is no text")
    return Predicate.of(found)


def _payload(asking: StoreQuery) -> dict[str, object]:
    if asking.body.payload is None:
        return {}
    try:
        found = read_json(asking.body.payload)
        if not isinstance(found, dict) or not found or found.keys() - {"keys", "where"}:
            raise TypeError("it is no object with these")
    except (ValueError, TypeError) as error:
        raise InvalidSelector(asking.key, f"{_PAYLOAD}: {error}") from error
    return found


def _is_here(asking: StoreQuery) -> bool:
    """Whether the reader is on this machine, where it reads blocks itself and holds them against its predicate."""
    from elea.store.inplace import machine

    asker = asking.parameters.get("machine")
    return asker is not None and asker == machine()


def answer_measure(asking: StoreQuery, storage: Storage, wanted: Range) -> None:
    """Say how far `measure` bytes of a range reach, without reading it."""
    log = storage.log
    start = log.first if wanted.start is None else wanted.start
    end = log.end if wanted.end is None else min(wanted.end, log.end)
    following = measured(log.shelf.sizes(), start, end, asking.number("measure") or 0)
    asking.reply_json({"log": storage.name, "epoch": log.epoch, "first": log.first, "next": following, "end": log.end})


def _send_messages(
    asking: StoreQuery, storage: Storage, wanted: Range, budget: int, following: int
) -> tuple[int, bool, list[list[object]]]:
    """All samples of a range, blocks as they lie on disk; returns as `_send_batches`.

    To a reader on this machine whole blocks are not sent: told is where they lie, each behind how many that were sent.
    """
    from elea.store import SCHEMA
    from elea.store.inplace import Place, machine
    from elea.store.log import END_OF_STREAM

    asker = asking.parameters.get("machine")
    _send(asking, SCHEMA.serialize().to_pybytes())
    octets, sent, reached, more = 0, 0, following, False
    places: list[list[object]] = []
    for message, behind in storage.log.read_messages(wanted, in_place=asker is not None and asker == machine()):
        if octets >= budget:
            more = True
            break
        if isinstance(message, Place):
            places.append([sent, *message])
            octets += min(message.size, NAMED_BYTES)
        else:
            _send(asking, message)
            sent += 1
            octets += len(message)
        reached = behind
    _send(asking, END_OF_STREAM)
    return (reached if more else following), more, places


def _send_batches(
    asking: StoreQuery,
    storage: Storage,
    wanted: Range,
    rows: int | None,
    budget: int | None,
    following: int,
    judge: Judge | None = None,
) -> tuple[int, bool]:
    """The same in batches of at most `rows`; where a reader goes on, and whether `budget` bytes were not enough.

    With a `judge`, samples that the reader may not have are left out, and it goes on behind them.
    """
    import pyarrow.compute as pc

    from elea.store import SCHEMA
    from elea.store.log import END_OF_STREAM

    _send(asking, SCHEMA.serialize().to_pybytes())
    sent, octets, last, low, more = 0, 0, -1, 0, False
    for batch in storage.log.read_arrow(wanted):
        if budget is not None and octets >= budget:
            more = True
            break
        allowed = batch if judge is None else _allowed(batch, judge)
        step = rows or max(allowed.num_rows, 1)
        for at in range(0, allowed.num_rows, step):
            piece = allowed.slice(at, step).serialize().to_pybytes()
            _send(asking, piece)
            octets += len(piece)
        sent += batch.num_rows
        bounds = pc.min_max(batch.column("position"))
        low, last = bounds["min"].as_py(), max(last, bounds["max"].as_py())
    _send(asking, END_OF_STREAM)
    cut = wanted.limit is not None and sent >= wanted.limit and not wanted.newest_first and not wanted.by_time
    if more:
        return (low if wanted.newest_first else last + 1), True
    return (last + 1 if cut and last >= 0 else following), False


def _allowed(batch: Any, judge: Judge) -> Any:
    """The rows of a batch whose keys a reader may read."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = pc.unique(batch.column("key")).to_pylist()
    allowed = [key for key in keys if judge(Flow.EGRESS, Action.STORE_READ, key)]
    if len(allowed) == len(keys):
        return batch
    return batch.filter(pc.is_in(batch.column("key"), pa.array(allowed, batch.column("key").type)))


def _send_filtered(
    asking: StoreQuery,
    storage: Storage,
    wanted: Range,
    where: Predicate,
    budget: int | None,
    following: int,
    judge: Judge | None,
) -> tuple[int, bool]:
    """The samples of a range that may be read and for which a predicate holds; returns as `_send_batches`.

    An answer ends where `budget` bytes are sent or many times as many read: else a predicate that holds for nothing
    would let its reader wait in vain.
    """
    import pyarrow.compute as pc

    from elea.columnar.batchfilter import BatchFilter
    from elea.store import SCHEMA
    from elea.store.log import END_OF_STREAM

    test = BatchFilter(where, contents=asking.contents)
    left = wanted.limit
    sent, looked, more, reached = 0, 0, False, following
    _send(asking, SCHEMA.serialize().to_pybytes())
    for batch in storage.log.read_arrow(replace(wanted, limit=None)):
        if left == 0:
            break
        if budget is not None and (sent >= budget or looked >= LOOKED_AT * budget):
            more = True
            break
        asking.await_room()  # also while nothing is found: nobody may be waiting any more
        looked += batch.nbytes
        bounds = pc.min_max(batch.column("position"))
        reached = bounds["min"].as_py() if wanted.newest_first else bounds["max"].as_py() + 1
        found = test.filter(batch if judge is None else _allowed(batch, judge), asking.await_room)
        if left is not None and found.num_rows:
            found = found.slice(0, left)
            left -= found.num_rows
            if left == 0:
                reached = found.column("position")[found.num_rows - 1].as_py() + 1
        if found.num_rows:
            piece = found.serialize().to_pybytes()
            _send(asking, piece)
            sent += len(piece)
    _send(asking, END_OF_STREAM)
    is_cut = left == 0 and not wanted.newest_first and not wanted.by_time
    return (reached if more or is_cut else following), more


def _send(asking: StoreQuery, data: bytes) -> None:
    for at in range(0, len(data), PIECE_BYTES):
        piece = data if len(data) <= PIECE_BYTES else data[at : at + PIECE_BYTES]
        asking.reply(asking.key, piece, len(piece))


# -- cursors ----------------------------------------------------------------------------------------------------------


def answer_cursor(asking: StoreQuery, storage: Storage, owners: Owners) -> None:
    """Tell, move or drop a cursor; that of another user only tell."""
    name = asking.parameters.get("name")
    if not name:
        raise InvalidSelector(str(asking.parameters), "name is missing")
    log = storage.log
    position = asking.number("move")
    try:
        if position is not None:
            owners.claim(name, user_of(asking))
            log.move_cursor(name, position)
        elif "drop" in asking.parameters:
            owners.check(name, user_of(asking))
            log.drop_cursor(name)
            owners.forget(name)
    except ValueError as error:
        raise StoreError(str(error)) from error
    facts = {"log": storage.name, "epoch": log.epoch, "first": log.first, "end": log.end}
    damaged = [(damage.first, damage.last) for damage in log.damage if damage.first <= damage.last]
    asking.reply_json({**facts, "position": log.cursor(name), "damaged": damaged})
