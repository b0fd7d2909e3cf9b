"""`@store/batch`: many samples in one request, as an Arrow stream, stored without an object per row."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from elea.broker.storage.requests import source_of, subject_of
from elea.model import keyexpr
from elea.model.errors import InvalidKeyExpr, StoreError
from elea.store import SCHEMA
from elea.store.columns import records_of
from elea.store.reading import Keys

if TYPE_CHECKING:
    from elea.broker.node import Node
    from elea.broker.storage.asking import Asking
    from elea.broker.storage.publishing import Publishing
    from elea.broker.storage.storage import Storage

__all__ = ["answer_batch"]

GIVEN: Final = ("kind", "encoding", "schema", "attachment", "ntp64", "stamp_id")


def answer_batch(node: Node, asking: Asking, storage: Storage, publishing: Publishing) -> None:
    """Store the rows, publish them if anybody wants them, and say where they are.

    Raises:
        InvalidSelector, StoreError: nothing is stored.
    """
    value = asking.body.value
    batch = _columns(node, asking, _decoded(b"" if value is None else value.payload), Keys(storage.key_expr))
    if batch.num_rows:
        storage.wait_settled()  # single puts that came before have the lower positions
    receipt = storage.log.append_arrow(batch)
    storage.kept += receipt.rows
    log = storage.log
    # One look for the whole expression: most batches nobody waits for, and looking key by key takes 20 µs each.
    if publishing.is_wanted(subject_of(asking.key)):
        _publish(batch, receipt.repeated, storage, publishing)
    form = {"log": storage.name, "epoch": log.epoch, "first": receipt.first, "rows": receipt.rows}
    asking.reply_json({**form, "repeated": len(receipt.repeated)})


def _decoded(data: bytes) -> Any:
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
            batches = list(stream)
        if not batches:
            return pa.RecordBatch.from_pylist([], schema=SCHEMA)
        return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
    except pa.ArrowException as error:
        raise StoreError(f"the payload is no Arrow stream of samples: {error}") from error


def _columns(node: Node, asking: Asking, given: Any, allowed: Keys) -> Any:
    """The columns of the log from those that were given."""
    rows = given.num_rows
    names = set(given.schema.names)
    if not {"key", "payload"} <= names:
        raise StoreError(f"a batch has the columns key and payload, not only {', '.join(sorted(names)) or 'none'}")
    _check_keys(given.column("key"), subject_of(asking.key), allowed)
    now_ns = node.keeper.wall_ns()
    id, entity, number = source_of(asking.parameters.get("src") or "")
    columns: dict[str, Any] = {"key": given.column("key"), "payload": given.column("payload")}
    columns |= {name: given.column(name) for name in GIVEN if name in names}
    if "ntp64" not in columns or "stamp_id" not in columns:
        columns["ntp64"] = _counted("Q", pa.uint64(), node.clock.reserve(now_ns, max(rows, 1)), rows)
        columns["stamp_id"] = _same(node.node_id, pa.binary(), rows)
    same = {"kind": 0, "encoding": 0, "source_id": id, "source_eid": entity, "once": True, "qos": asking.qos}
    for name, value in same.items():
        columns.setdefault(name, _same(value, SCHEMA.field(name).type, rows))
    columns["arrival"] = _same(now_ns, pa.int64(), rows).cast(SCHEMA.field("arrival").type)
    columns["source_sn"] = _counted("Q", pa.uint64(), number, rows)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _check_keys(column: Any, subject: str, allowed: Keys) -> None:
    covered = Keys(subject)
    for key in pc.unique(column).to_pylist():
        try:
            keyexpr.check(key)
        except (InvalidKeyExpr, TypeError) as error:
            raise StoreError(f"{key!r} is no key: {error}") from error
        if "*" in key or not covered.has(key) or not allowed.has(key):
            raise StoreError(f"key {key!r} does not belong to {subject}; nothing of the batch is stored")


def _same(value: object, type_: Any, rows: int) -> Any:
    return pa.repeat(pa.scalar(value, type_), rows)


def _counted(code: str, type_: Any, first: int, rows: int) -> Any:
    return pa.Array.from_buffers(type_, rows, [None, pa.py_buffer(array(code, range(first, first + rows)))])


def _publish(batch: Any, repeated: dict[int, int | None], storage: Storage, publishing: Publishing) -> None:
    if not any(publishing.is_wanted(key) for key in pc.unique(batch.column("key")).to_pylist()):
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
