"""Batches of samples as the pieces in which they travel to a store: Arrow IPC streams. Imports pyarrow when used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from elea.api.zbytes import IntoZBytes, into_bytes
from elea.model.errors import StoreError
from elea.model.keyexpr import KeyExpr

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Piece", "arrow", "parts_of", "pieces_of"]

PIECE_BYTES: Final = 8 << 20
PIECE_ROWS: Final = 65_536
"""A piece is what is stored and acknowledged together, with one sync."""

TYPES: Final = {
    "key": "string",
    "payload": "binary",
    "kind": "uint8",
    "encoding": "uint32",
    "schema": "binary",
    "attachment": "binary",
    "ntp64": "uint64",
    "stamp_id": "binary",
}
GIVEN_ANEW: Final = {"position", "arrival", "source_id", "source_eid", "source_sn", "once", "qos"}
"""Columns that a range read gives and that say where a sample was, not what it is."""


class Piece(NamedTuple):
    """Some of the samples of a batch."""

    key: str
    data: bytes
    rows: int


def arrow() -> Any:
    """The module pyarrow.

    Raises:
        StoreError: it is not installed.
    """
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.ipc
    except ImportError as error:
        raise StoreError(
            "batches and range reads need pyarrow; run in a clone of Elea: pip install '.[broker]'"
        ) from error
    return pyarrow


def pieces_of(
    batch: pa.RecordBatch | pa.Table | Iterable[tuple[str, IntoZBytes]], key_expr: KeyExpr | str | None
) -> Iterator[Piece]:
    """Cut a batch; each piece goes to a key expression that has all its keys, the one given if there is one.

    Raises:
        ValueError: a column is missing, has nulls or a type that does not fit, or is none a sample has.
    """
    pa = arrow()
    expr = None if key_expr is None else str(KeyExpr(key_expr) if isinstance(key_expr, str) else key_expr)
    for part in parts_of(pa, batch):
        rows = part.num_rows
        step = min(max(PIECE_BYTES * rows // max(part.nbytes, 1), 1), PIECE_ROWS)
        for start in range(0, rows, step):
            piece = part.slice(start, step)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, piece.schema) as writer:
                writer.write_batch(piece)
            yield Piece(expr or _covering(pa, piece.column("key")), sink.getvalue().to_pybytes(), piece.num_rows)


def parts_of(pa: Any, batch: Any) -> Iterator[Any]:
    """A batch in its checked columns, part by part; raises as `pieces_of`."""
    if isinstance(batch, pa.RecordBatch):
        batch = pa.Table.from_batches([batch])
    if isinstance(batch, pa.Table):
        yield from (part for part in _checked(pa, batch).to_batches() if part.num_rows)
        return
    from elea.columnar.arrays import octets_of, texts_of

    pairs = iter(batch)
    while chunk := list(islice(pairs, PIECE_ROWS)):
        keys = texts_of([str(key) for key, _ in chunk])
        payloads = octets_of([into_bytes(payload) for _, payload in chunk])
        yield pa.RecordBatch.from_arrays([keys, payloads], ["key", "payload"])


def _checked(pa: Any, table: Any) -> Any:
    names = [name for name in table.column_names if name not in GIVEN_ANEW]
    unknown = [name for name in names if name not in TYPES]
    missing = [name for name in ("key", "payload") if name not in names]
    if ("ntp64" in names) != ("stamp_id" in names):
        missing.append("ntp64" if "stamp_id" in names else "stamp_id")
    if unknown or missing:
        told = [f"no column {name!r}" for name in missing] + [
            f"column {name!r}, which no sample has" for name in unknown
        ]
        raise ValueError(f"the batch has {', '.join(told)}; its columns are {', '.join(TYPES)}")
    table = table.select(names)
    for name in ("key", "payload"):
        if table.column(name).null_count:
            raise ValueError(f"column {name!r} has {table.column(name).null_count} nulls and must have none")
    try:
        return table.cast(pa.schema([(name, pa.type_for_alias(TYPES[name])) for name in names])).combine_chunks()
    except (pa.ArrowException, ValueError) as error:
        raise ValueError(f"the batch does not fit the columns of samples: {error}") from error


def _covering(pa: Any, keys: Any) -> str:
    """A key expression that has all these keys: one of them, or everything below what they have in common."""
    # What the least and the greatest have in common all have.
    bounds = pa.compute.min_max(keys)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low == high:
        return str(KeyExpr(low))
    common = []
    for one, other in zip(low.split("/"), high.split("/"), strict=False):
        if one != other:
            break
        common.append(one)
    return "/".join([*common, "**"])
