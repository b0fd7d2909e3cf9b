"""`@store/batch`: many samples in one request, as an Arrow stream, stored without an object per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from elea.model import keyexpr
from elea.model.errors import AccessDenied, ArrowRefused, Congested, InvalidKeyExpr, StoreError
from elea.model.limits import CACHED_KEY_CHARS, STORE_BATCH_PARTS, STORE_BATCH_ROWS
from elea.node.storage.requests import Source, source_of, subject_of
from elea.space.access import Action
from elea.space.face import Flow
from elea.store import DEL, SCHEMA
from elea.store.columns import records_of
from elea.store.entrance import Form, read_stream
from elea.store.logreads import Keys
from elea.store.stamps import counted

if TYPE_CHECKING:
    from elea.node.node import Node
    from elea.node.storage.republisher import Republisher
    from elea.node.storage.sequencer import Ticket
    from elea.node.storage.stampcheck import Stamping
    from elea.node.storage.storage import Storage
    from elea.node.storage.storequery import StoreQuery

__all__ = [
    "STAMP",
    "answer_batch",
    "check_access",
    "check_keys",
    "columns_of",
    "decoded",
    "is_stamped",
    "publish_batch",
]

KNOWN: Final = 50_000
"""Keys of batches that are known to be keys; then all are forgotten and looked at again."""

_KNOWN: Final[set[str]] = set()

BLOCKED_SECONDS: Final = 5.0
"""How long a batch waits for those that came before it; as long as samples sent with BLOCK wait for the disk."""

STAMP: Final = ("ntp64", "stamp_id")

GIVEN: Final = ("kind", "encoding", "schema", "attachment")

SAMPLES: Final = Form(
    "the payload, an Arrow stream of samples,",
    {name: SCHEMA.field(name).type for name in ("key", "payload", *GIVEN, *STAMP)},
    frozenset({"key", "payload"}),
    frozenset({"key", "payload", "kind", "encoding", "ntp64", "stamp_id"}),
    STORE_BATCH_ROWS,
    STORE_BATCH_PARTS,
)


def answer_batch(node: Node, asking: StoreQuery, storage: Storage, publishing: Republisher, turn: Ticket) -> None:
    """Store the rows in their turn, publish them if anybody wants them, and say where they are.

    Raises:
        InvalidSelector, StoreError, Congested: nothing is stored.
    """
    log = storage.log
    with turn:
        given = decoded(asking.body.payload or b"", storage)
        check_keys(given.column("key"), subject_of(asking.key), Keys(storage.key_expr))
        check_access(asking, given)
        source = source_of(asking.parameters.get("src") or "")
        batch, restamped = columns_of(node, given, source, asking.qos, storage.stamping)
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
    asking.reply_json({**form, "repeated": len(receipt.repeated), "restamped": restamped})


def decoded(data: bytes, storage: Storage) -> Any:
    """The batch in an Arrow stream, which has at least keys and payloads.

    Raises:
        ArrowRefused: it is none; counted.
    """
    try:
        batches = read_stream(data, SAMPLES)
        if not batches:
            return pa.RecordBatch.from_pylist([], schema=SCHEMA)
        try:
            return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
        except pa.ArrowException as error:  # more bytes in one column than its offsets can count
            raise ArrowRefused(SAMPLES.what, "its batches are too large to be one") from error
    except ArrowRefused:
        storage.refused += 1
        raise


def columns_of(node: Node, given: Any, source: Source, qos: int, stamping: Stamping) -> tuple[Any, int]:
    """The columns of the log from those that were given, and how many timestamps are others; the numbers of the samples
    begin with that of `source`.

    Raises:
        StoreError: the timestamps are none.
    """
    rows = given.num_rows
    names = set(given.schema.names)
    now_ns = node.loop.wall_ns()
    id, entity, number = source
    columns: dict[str, Any] = {"key": given.column("key"), "payload": given.column("payload")}
    columns |= {name: given.column(name) for name in GIVEN if name in names}
    stamps = given if is_stamped(given) else None
    columns["ntp64"], columns["stamp_id"], restamped = stamping.columns(stamps, rows, now_ns)
    same = {"kind": 0, "encoding": 0, "source_id": id, "source_eid": entity, "once": True, "qos": qos}
    for name, value in same.items():
        columns.setdefault(name, _same(value, SCHEMA.field(name).type, rows))
    columns["arrival"] = _same(stamping.arrival(now_ns), pa.int64(), rows).cast(SCHEMA.field("arrival").type)
    columns["source_sn"] = counted("Q", pa.uint64(), number, rows)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)), restamped


def is_stamped(given: Any) -> bool:
    """Whether the samples of a batch came with timestamps."""
    return set(STAMP) <= set(given.schema.names)


def check_keys(column: Any, subject: str, allowed: Keys) -> None:
    """Refuse keys that do not belong to the request, or not to the storage."""
    is_covered, is_allowed = Keys(subject).has, allowed.has
    keys = pc.unique(column).to_pylist()
    # Mostly the keys of one batch are those of the one before: looking at each again was a quarter of storing it.
    fresh = [key for key in keys if key not in _KNOWN]
    for key in fresh:
        try:
            keyexpr.check(key)
        except InvalidKeyExpr as error:
            raise StoreError(f"{key[:80]!r} is no key: {error.problem}") from error
    for key in keys:
        if "*" in key or not is_covered(key) or not is_allowed(key):
            raise StoreError(f"key {key[:80]!r} does not belong to {subject}; nothing of the batch is stored")
    fresh = [key for key in fresh if len(key) <= CACHED_KEY_CHARS]
    if fresh:
        if len(_KNOWN) + len(fresh) > KNOWN:
            _KNOWN.clear()
        _KNOWN.update(fresh[:KNOWN])


def check_access(asking: StoreQuery, batch: Any) -> None:
    """Refuse a batch with samples that its sender may not put, or delete.

    Raises:
        AccessDenied: the first such key.
    """
    judge = asking.judge()
    if judge is None:
        return
    kinds = {Action.PUT: batch}
    if "kind" in batch.schema.names:
        is_deletion = pc.equal(batch.column("kind"), DEL)
        kinds = {Action.PUT: batch.filter(pc.invert(is_deletion)), Action.DELETE: batch.filter(is_deletion)}
    for action, rows in kinds.items():
        for key in pc.unique(rows.column("key")).to_pylist():
            if not judge(Flow.INGRESS, action, key):
                raise AccessDenied(action.label, key)


def _same(value: object, type_: Any, rows: int) -> Any:
    return pa.repeat(pa.scalar(value, type_), rows)


def publish_batch(batch: Any, repeated: dict[int, int | None], storage: Storage, publishing: Republisher) -> None:
    """Send what is new of a batch to whoever wants it."""
    if not any(publishing.is_wanted(key, storage) for key in pc.unique(batch.column("key")).to_pylist()):
        return
    whole = pa.RecordBatch.from_arrays(
        [
            counted("q", pa.int64(), 0, batch.num_rows)
            if field.name == "position"
            else batch.column(field.name).cast(field.type)
            if field.name in batch.schema.names
            else pa.nulls(batch.num_rows, field.type)
            for field in SCHEMA
        ],
        schema=SCHEMA,
    )
    publishing.publish([one.record for one in records_of(whole) if one.position not in repeated], storage)
