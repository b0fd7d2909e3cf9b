"""`@store/align/<key expression>`: what another broker asks who compares its log with ours.

| what   | parameters                                                  | answer                                    |
|--------|-------------------------------------------------------------|-------------------------------------------|
| head   | `floor`, `forget` (NTP64 in hex)                            | JSON: `node, epoch, floor, buckets`       |
| digest | the same, `level`, `of` (buckets of the level above)        | JSON: `buckets`: number, fingerprint, samples |
| list   | the same, `level`, `bucket`, `part`, `parts`                | an Arrow stream in pieces, JSON: `epoch`  |
| rows   | `epoch`, and positions as payload (64 bits each, little-endian) | an Arrow stream in pieces, JSON: `epoch` |
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from elea.model.errors import InvalidSelector
from elea.model.limits import STORE_ALIGN_BUCKETS
from elea.node.storage.requests import PIECE_BYTES
from elea.store import SCHEMA
from elea.store.alignment import ROWS_AT_ONCE, Near
from elea.store.digest import LEVELS
from elea.store.fingerprints import Bucket
from elea.store.log import END_OF_STREAM
from elea.store.scope import Scope, scope_of

if TYPE_CHECKING:
    import pyarrow as pa

    from elea.node.storage.storage import Storage
    from elea.node.storage.storequery import StoreQuery

__all__ = ["answer_align", "own_scope", "packed", "unpacked"]

AT_ONCE: Final = 256
"""Samples read for one piece of an answer: they may be large."""


def own_scope(storage: Storage, now_ns: int) -> Scope:
    """What a storage can be compared by."""
    age = storage.settings.max_age
    return scope_of(storage.log, now_ns, age_ns=None if age is None else int(age * 1e9))


def packed(positions: Iterable[int]) -> bytes:
    """Positions as bytes."""
    found = array("q", positions)
    if sys.byteorder == "big":
        found.byteswap()
    return found.tobytes()


def unpacked(data: bytes) -> list[int]:
    """The same, back."""
    found = array("q", data[: len(data) // 8 * 8])
    if sys.byteorder == "big":
        found.byteswap()
    return found.tolist()


def answer_align(asking: StoreQuery, storage: Storage, node: str, now_ns: int) -> None:
    """Answer one request.

    Raises:
        InvalidSelector: it makes no sense.
        StoreError: the log cannot be read, or is another than the one that was asked before.
        Gone: nobody waits any more.
    """
    near = Near(storage.log, storage.digest, own_scope(storage, now_ns).floor, node)
    what = asking.parameters.get("what")
    if what == "head":
        storage.wait_settled()
        head = near.head(_scope(asking))
        form = {"node": head.node, "epoch": head.epoch, "floor": f"{head.floor:x}"}
        asking.reply_json({**form, "buckets": _forms(head.buckets)})
    elif what == "digest":
        within = _numbers(asking, "of", STORE_ALIGN_BUCKETS)
        asking.reply_json({"buckets": _forms(near.buckets(_level(asking, 1), _scope(asking), within))})
    elif what == "list":
        (bucket,), (part,), (parts,) = (_numbers(asking, name, 1) for name in ("bucket", "part", "parts"))
        if not 0 <= part < parts or bucket >= 1 << 64:
            raise InvalidSelector(str(asking.parameters), "part is from 0 to below parts, and bucket has 64 bits")
        epoch, table = near.listing(_level(asking, 0), bucket, part, parts, _scope(asking))
        _send(asking, table.schema, table.to_batches())
        asking.reply_json({"epoch": epoch})
    elif what == "rows":
        _rows(asking, near)
    else:
        raise InvalidSelector(str(asking.parameters), f"what is {what!r}, none of head, digest, list, rows")


def _rows(asking: StoreQuery, near: Near) -> None:
    positions = unpacked(asking.body.payload or b"")
    if len(positions) > ROWS_AT_ONCE:
        raise InvalidSelector(str(asking.parameters), f"{len(positions)} positions, at most {ROWS_AT_ONCE}")
    epoch = asking.parameters.get("epoch") or ""
    chunks = (positions[at : at + AT_ONCE] for at in range(0, len(positions), AT_ONCE))
    _send(asking, SCHEMA, (batch for chunk in chunks for batch in near.rows(epoch, chunk, 0)))
    asking.reply_json({"epoch": epoch})


def _forms(buckets: dict[int, Bucket]) -> list[list[int]]:
    return [[bucket, *one] for bucket, one in sorted(buckets.items())]


def _scope(asking: StoreQuery) -> Scope:
    try:
        floor, forget = (int(asking.parameters.get(name) or "0", 16) for name in ("floor", "forget"))
    except ValueError as error:
        raise InvalidSelector(str(asking.parameters), "floor and forget are times as NTP64, in hex") from error
    return Scope(floor, forget)


def _level(asking: StoreQuery, least: int) -> int:
    level = asking.number("level")
    if level not in LEVELS[least:]:
        raise InvalidSelector(str(asking.parameters), f"level is {level}, none of {LEVELS[least:]}")
    return level


def _numbers(asking: StoreQuery, name: str, most: int) -> list[int]:
    pieces = (asking.parameters.get(name) or "").split(".")
    if len(pieces) > most or not all(piece.isascii() and piece.isdigit() and len(piece) <= 20 for piece in pieces):
        raise InvalidSelector(str(asking.parameters), f"{name} is up to {most} numbers with dots between")
    return [int(piece) for piece in pieces]


def _send(asking: StoreQuery, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Batches as an Arrow stream, in pieces that fit in an outbox."""
    data = schema.serialize().to_pybytes()
    for batch in batches:
        data += batch.serialize().to_pybytes()
        while len(data) > PIECE_BYTES:
            asking.reply(asking.key, data[:PIECE_BYTES], PIECE_BYTES)
            data = data[PIECE_BYTES:]
    data += END_OF_STREAM
    asking.reply(asking.key, data, len(data))
