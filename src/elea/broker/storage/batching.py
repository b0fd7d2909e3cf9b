"""`@store/batch`: many samples in one request, as an Arrow stream, stored without an object per row."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from elea.broker.storage.requests import Source, source_of, subject_of
from elea.model import keyexpr
from elea.model.errors import Congested, InvalidKeyExpr, StoreError
from elea.model.limits import CACHED_KEY_CHARS
from elea.store import SCHEMA
from elea.store.columns import records_of
from elea.store.reading import Keys

if TYPE_CHECKING:
    from elea.broker.node import Node
    from elea.broker.storage.asking import Asking
    from elea.broker.storage.publishing import Publishing
    from elea.broker.storage.storage import Storage
    from elea.broker.storage.turns import Turn

__all__ = ["answer_batch", "check_keys", "columns_of", "decoded", "publish_batch"]

KNOWN: Final = 50_000
"""Keys of batches that are known to be keys; then all are forgotten and looked at again."""

_KNOWN: Final[set[str]] = set()

BLOCKED_SECONDS: Final = 5.0
"""How long a batch waits for those that came before it; as long as samples sent with BLOCK wait for the disk."""

GIVEN: Final = ("kind", "encoding", "schema", "attachment", "ntp64", "stamp_id")


def answer_batch(node: Node, asking: Asking, storage: Storage, publishing: Publishing, turn: Turn) -> None:
    """Store the rows in their turn, publish them if anybody wants them, and say where they are.

    Raises:
        InvalidSelector, StoreError, Congested: nothing is stored.
    """
    log = storage.log
    with turn:
        value = asking.body.value
        given = decoded(b"" if value is None else value.payload)
        check_keys(given.column("key"), subject_of(asking.key), Keys(storage.key_expr))
        batch = columns_of(node, given, source_of(asking.parameters.get("src") or ""), asking.qos)
        turn.wait(BLOCKED_SECONDS)
        before = asking.parameters.get("after")
        if before is not None and not log.knows(*source_of(before)):
            # Sent while the part before it was on its way, which did not arrive, or was refused.
            raise Congested(f"what comes before this part of a batch, up to {before}, is not stored; send it first")
        if batch.num_rows:
            storage.wait_settled()  # single puts that came before have the lower positions
        receipt = storage.append_arrow(batch)
        # One look for the whole expression: most batches nobody waits for, and looking key by key takes 20 µs each.
        if publishing.is_wanted(subject_of(asking.key), storage):
            publish_batch(batch, receipt.repeated, storage, publishing)
    form = {"log": storage.name, "epoch": log.epoch, "first": receipt.first, "rows": receipt.rows, "in_turn": True}
    asking.reply_json({**form, "repeated": len(receipt.repeated)})


def decoded(data: bytes) -> Any:
    """The batch in an Arrow stream, which has at least keys and payloads.

    Raises:
        StoreError: it is none.
    """
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
            batches = list(stream)
        if not batches:
            return pa.RecordBatch.from_pylist([], schema=SCHEMA)
        batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    except pa.ArrowException as error:
        raise StoreError(f"the payload is no Arrow stream of samples: {error}") from error
    names = set(batch.schema.names)
    if not {"key", "payload"} <= names:
        raise StoreError(f"a batch has the columns key and payload, not only {', '.join(sorted(names)) or 'none'}")
    return batch


def columns_of(node: Node, given: Any, source: Source, qos: int) -> Any:
    """The columns of the log from those that were given; the numbers of the samples begin with that of `source`."""
    rows = given.num_rows
    names = set(given.schema.names)
    now_ns = node.keeper.wall_ns()
    id, entity, number = source
    columns: dict[str, Any] = {"key": given.column("key"), "payload": given.column("payload")}
    columns |= {name: given.column(name) for name in GIVEN if name in names}
    if "ntp64" not in columns or "stamp_id" not in columns:
        columns["ntp64"] = _counted("Q", pa.uint64(), node.clock.reserve(now_ns, max(rows, 1)), rows)
        columns["stamp_id"] = _same(node.node_id, pa.binary(), rows)
    same = {"kind": 0, "encoding": 0, "source_id": id, "source_eid": entity, "once": True, "qos": qos}
    for name, value in same.items():
        columns.setdefault(name, _same(value, SCHEMA.field(name).type, rows))
    columns["arrival"] = _same(now_ns, pa.int64(), rows).cast(SCHEMA.field("arrival").type)
    columns["source_sn"] = _counted("Q", pa.uint64(), number, rows)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def check_keys(column: Any, subject: str, allowed: Keys) -> None:
    """Refuse keys that do not belong to the request, or not to the storage."""
    is_covered, is_allowed = Keys(subject).has, allowed.has
    keys = pc.unique(column).to_pylist()
    # Mostly the keys of one batch are those of the one before: looking at each again was a quarter of storing it.
    fresh = [key for key in keys if key not in _KNOWN]
    for key in fresh:
        try:
            keyexpr.check(key)
        except (InvalidKeyExpr, TypeError) as error:
            raise StoreError(f"{key!r} is no key: {error}") from error
    for key in keys:
        if "*" in key or not is_covered(key) or not is_allowed(key):
            raise StoreError(f"key {key!r} does not belong to {subject}; nothing of the batch is stored")
    fresh = [key for key in fresh if len(key) <= CACHED_KEY_CHARS]
    if fresh:
        if len(_KNOWN) + len(fresh) > KNOWN:
            _KNOWN.clear()
        _KNOWN.update(fresh[:KNOWN])


def _same(value: object, type_: Any, rows: int) -> Any:
    return pa.repeat(pa.scalar(value, type_), rows)


def _counted(code: str, type_: Any, first: int, rows: int) -> Any:
    return pa.Array.from_buffers(type_, rows, [None, pa.py_buffer(array(code, range(first, first + rows)))])


def publish_batch(batch: Any, repeated: dict[int, int | None], storage: Storage, publishing: Publishing) -> None:
    """Send what is new of a batch to whoever wants it."""
    if not any(publishing.is_wanted(key, storage) for key in pc.unique(batch.column("key")).to_pylist()):
        return
    whole = pa.RecordBatch.from_arrays(
        [
            _counted("q", pa.int64(), 0, batch.num_rows)
            if field.name == "position"
            else batch.column(field.name).cast(field.type)
            if field.name in batch.schema.names
            else pa.nulls(batch.num_rows, field.type)
            for field in SCHEMA
        ],
        schema=SCHEMA,
    )
    publishing.publish([one.record for one in records_of(whole) if one.position not in repeated], storage)
