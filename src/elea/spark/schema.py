"""The rows of `format("zenoh")`: which columns there are, and how the columns of a log become them.

Columns that nobody asked for are not made: a schema given by the user is the choice of columns. Everything here works
on whole Arrow columns; no row becomes a Python object. Only `rows_of` and what it needs import pyarrow.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from elea.model.encoding import CUSTOM_ENCODING, Encoding
from elea.model.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from elea.spark.options import ReadOptions

__all__ = ["COLUMNS", "METADATA", "Rows", "checked", "ddl_of", "landed", "nullable"]

COLUMNS: Final = {
    "key": "string",
    "payload": "binary",
    "encoding": "string",
    "timestamp": "timestamp",
    "kind": "string",
    "attachment": "binary",
    "source_id": "binary",
    "sn": "bigint",
}
"""What a row has unless the user says otherwise, with the types of Spark."""

METADATA: Final = {
    "hlc": "binary",
    "priority": "tinyint",
    "congestion": "string",
    "express": "boolean",
    "log": "string",
    "offset": "bigint",
    "ingest_time": "timestamp",
    "source_eid": "bigint",
}
"""What it has besides with `includeMetadata`, or if a schema names it."""

VALUE: Final = "value"
CORRUPT: Final = "_corrupt"
_ALL: Final = {**COLUMNS, **METADATA}


def ddl_of(options: ReadOptions) -> str:
    """The schema in Spark's language."""
    wanted = _ALL if options.include_metadata else COLUMNS
    parts = [f"`{name}` {kind}" for name, kind in wanted.items()]
    if options.payload_format != "raw":
        from elea.spark.payload import value_type

        if options.payload_schema is None:
            hint = "write .option('payloadSchema', 'speed double, name string')"
            raise ConfigError("option payloadSchema", f"payloadFormat={options.payload_format} needs it", hint)
        _look_at(options.payload_schema)
        parts += [f"`{VALUE}` {value_type(options.payload_schema)}", f"`{CORRUPT}` binary"]
    return ", ".join(parts)


def _look_at(payload_schema: str) -> None:
    """Say what is wrong in a `payloadSchema`: Spark, which parses it as part of a row, names neither option nor place.

    Raises:
        ConfigError: it is no schema, and what to write instead.
    """
    if payload_schema.lstrip().startswith("{") or not payload_schema.strip():
        return  # `value_type` looks at those
    from elea.spark.pipeline.ddl import fields_of, is_left_to_spark
    from elea.spark.pipeline.problem import Wrong

    try:
        fields_of(payload_schema)
    except Wrong as error:
        if not is_left_to_spark(payload_schema, error.at):
            problem = f"{payload_schema!r} does not do: {error.what} (character {error.at + 1})"
            raise ConfigError("option payloadSchema", problem, error.fix) from error


def checked(schema: StructType, options: ReadOptions) -> None:
    """Look whether every column is one that there is.

    Raises:
        ConfigError: it has another type, or nobody knows it.
    """
    has_value = options.payload_format != "raw"
    for column in schema.fields:
        path = f"column {column.name}"
        if column.name == VALUE and has_value:
            if column.dataType.typeName() != "struct":
                raise ConfigError(path, f"it is a struct, not {column.dataType.simpleString()}", "see payloadSchema")
            continue
        known = "binary" if column.name == CORRUPT and has_value else _ALL.get(column.name)
        if known is None:
            names = [*_ALL, *((VALUE, CORRUPT) if has_value else ())]
            more = "" if has_value else f"; {VALUE} and {CORRUPT} come with payloadFormat"
            raise ConfigError(path, "there is no such column", f"columns are {', '.join(names)}{more}")
        if column.dataType.simpleString() != known:
            hint = f"write it as {column.name} {known}, and cast it afterwards"
            raise ConfigError(path, f"it is of type {known}, not {column.dataType.simpleString()}", hint)


def landed(options: ReadOptions) -> StructType:
    """The columns of the files of `landing`.

    Raises:
        ConfigError: they are not given, or not ours.
    """
    from pyspark.sql.types import StructType

    try:
        schema = StructType.fromJson(json.loads(options.landing_schema or ""))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "use elea.spark.ingest"
        raise ConfigError("option landingSchema", f"it is the JSON of a schema: {error}", hint) from error
    checked(schema, options)
    return schema


def nullable(schema: pa.Schema) -> pa.Schema:
    """The same columns; everything may be null, as tables have it."""
    import pyarrow as pa

    return pa.schema([field.with_nullable(True) for field in schema])


class Rows:
    """Makes the rows of one schema."""

    def __init__(self, schema: StructType, decode: Callable[[pa.Array], tuple[pa.Array, pa.Array]] | None) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        self.schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self._decode = decode

    def rows_of(self, batch: pa.RecordBatch, log: str | None = None) -> pa.RecordBatch:
        """The rows of a batch in the columns of a log (`elea.store.columns.SCHEMA`), exactly as Spark wants them.

        Args:
            log: the name of the log; without one, positions mean nothing and `offset` is null.
        """
        import pyarrow as pa

        made: dict[str, pa.Array] = {}
        names = self.schema.names
        if self._decode is not None and (VALUE in names or CORRUPT in names):
            made[VALUE], made[CORRUPT] = self._decode(_payload(batch))
        if "log" in names:
            made["log"] = pa.nulls(batch.num_rows, pa.string()) if log is None else pa.repeat(log, batch.num_rows)
        if "offset" in names and log is None:
            made["offset"] = pa.nulls(batch.num_rows, pa.int64())
        columns = []
        for field in self.schema:
            column = made[field.name] if field.name in made else _MAKERS[field.name](batch)
            columns.append(column if column.type == field.type else column.cast(field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


# -- columns ---------------------------------------------------------------------------------------------------------


def _same(name: str) -> Callable[[pa.RecordBatch], pa.Array]:
    return lambda batch: batch.column(name)


def _payload(batch: pa.RecordBatch) -> pa.Array:
    """Null where a key is deleted: such a sample has no payload."""
    import pyarrow as pa
    import pyarrow.compute as pc

    payload, kind = batch.column("payload"), batch.column("kind")
    if not pc.any(pc.not_equal(kind, 0)).as_py():
        return payload
    return pc.if_else(pc.equal(kind, 0), payload, pa.scalar(None, payload.type))


def _encoding(batch: pa.RecordBatch) -> pa.Array:
    """`name;schema`, as an `Encoding` prints itself."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids, schema = batch.column("encoding"), batch.column("schema")
    numbers = pc.dictionary_encode(ids)
    if schema.null_count == len(schema):
        return pa.array([_text(id, None) for id in numbers.dictionary.to_pylist()], pa.string()).take(numbers.indices)
    schemas = pc.dictionary_encode(schema)
    if len(schemas.dictionary) * 8 < len(schema) or not _is_text(schema):
        return _by_pairs(numbers, schemas)
    names = pa.array([_text(id, b"") for id in numbers.dictionary.to_pylist()], pa.string()).take(numbers.indices)
    joined = pc.binary_join_element_wise(names, schema.cast(pa.string()), "")
    plain = pa.array([_text(id, None) for id in numbers.dictionary.to_pylist()], pa.string()).take(numbers.indices)
    return pc.if_else(pc.is_valid(schema), joined, plain)


def _by_pairs(numbers: pa.DictionaryArray, schemas: pa.DictionaryArray) -> pa.Array:
    """By distinct pairs, which are few as a rule."""
    import pyarrow as pa
    import pyarrow.compute as pc

    width = len(schemas.dictionary) + 1
    second = pc.fill_null(pc.cast(schemas.indices, pa.int64()), width - 1)
    pairs = pc.dictionary_encode(pc.add(pc.multiply(pc.cast(numbers.indices, pa.int64()), width), second))
    ids, known = numbers.dictionary.to_pylist(), [*schemas.dictionary.to_pylist(), None]
    texts = [_text(ids[pair // width], known[pair % width]) for pair in pairs.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(pairs.indices)


@lru_cache(maxsize=4096)
def _text(id: int, schema: bytes | None) -> str:
    return str(Encoding.of(id, schema)) if id != CUSTOM_ENCODING or schema else ""


def _is_text(column: pa.Array) -> bool:
    import pyarrow as pa

    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _microseconds(batch: pa.RecordBatch) -> pa.Array:
    """The time of an NTP64 number, cut to microseconds; null where a sample has no timestamp."""
    import pyarrow as pa
    import pyarrow.compute as pc

    stamps = batch.column("ntp64")
    u64 = pa.uint64()
    seconds = pc.shift_right(stamps, pa.scalar(32, u64))
    fraction = pc.bit_wise_and(stamps, pa.scalar(0xFFFFFFFF, u64))
    # Nanoseconds first, rounded up, as everywhere else (`ns_from_ntp64`): they are exact for times made of nanoseconds.
    nanos = pc.shift_right(
        pc.add(pc.multiply(fraction, pa.scalar(1_000_000_000, u64)), pa.scalar(0xFFFFFFFF, u64)), pa.scalar(32, u64)
    )
    micros = pc.add(pc.multiply(seconds, pa.scalar(1_000_000, u64)), pc.divide(nanos, pa.scalar(1000, u64)))
    column = micros.cast(pa.int64()).cast(pa.timestamp("us", "UTC"))
    lengths = pc.binary_length(batch.column("stamp_id"))
    if pc.min(lengths).as_py() == 0:
        column = pc.if_else(pc.greater(lengths, 0), column, pa.scalar(None, column.type))
    return column


def _kind(batch: pa.RecordBatch) -> pa.Array:
    import pyarrow as pa

    return pa.array(["PUT", "DELETE"]).take(batch.column("kind"))


def _hlc(batch: pa.RecordBatch) -> pa.Array:
    """Eight octets of time, the highest first, and the id: sorts like the timestamp. Null where there is none."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    stamps = np.ascontiguousarray(batch.column("ntp64").to_numpy(zero_copy_only=False).astype(">u8"))
    octets = pa.Array.from_buffers(pa.binary(8), len(stamps), [None, pa.py_buffer(stamps)]).cast(pa.binary())
    ids = batch.column("stamp_id")
    joined = pc.binary_join_element_wise(octets, ids, pa.scalar(b"", pa.binary()))
    return pc.if_else(pc.greater(pc.binary_length(ids), 0), joined, pa.scalar(None, pa.binary()))


def _priority(batch: pa.RecordBatch) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.bit_wise_and(batch.column("qos"), pa.scalar(7, pa.uint8()))


def _congestion(batch: pa.RecordBatch) -> pa.Array:
    import pyarrow as pa

    from elea.model.qos import Qos

    names = pa.array([Qos.from_raw(raw).congestion_control.name for raw in range(256)])
    return names.take(batch.column("qos"))


def _express(batch: pa.RecordBatch) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.not_equal(pc.bit_wise_and(batch.column("qos"), pa.scalar(16, pa.uint8())), 0)


def _arrival(batch: pa.RecordBatch) -> pa.Array:
    import pyarrow as pa

    return batch.column("arrival").cast(pa.timestamp("us", "UTC"), safe=False)


def _number(name: str) -> Callable[[pa.RecordBatch], Any]:
    def column(batch: pa.RecordBatch) -> pa.Array:
        import pyarrow as pa

        return batch.column(name).cast(pa.int64(), safe=False)  # above 2^63 they come out negative, and distinct

    return column


_MAKERS: Final[dict[str, Callable[[Any], Any]]] = {
    "key": _same("key"),
    "payload": _payload,
    "encoding": _encoding,
    "timestamp": _microseconds,
    "kind": _kind,
    "attachment": _same("attachment"),
    "source_id": _same("source_id"),
    "sn": _number("source_sn"),
    "hlc": _hlc,
    "priority": _priority,
    "congestion": _congestion,
    "express": _express,
    "offset": _same("position"),
    "ingest_time": _arrival,
    "source_eid": _number("source_eid"),
}
