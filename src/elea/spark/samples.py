"""Rows of Spark as samples: the columns that the sink takes, turned into those of a log, whole columns at a time.

| column | type | without it |
|---|---|---|
| `key` | string | option `key` |
| `payload` | binary or string; null deletes, if there is no `kind` | `payloadFormat` packs the other columns |
| `encoding` | string | option `encoding`; else that of the format, or none |
| `attachment` | binary or string | none |
| `kind` | `PUT` or `DELETE` | PUT, or DELETE where the payload is null |
| `timestamp` | timestamp | given by the broker |

Nothing here makes a Python object a row, but the errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from elea.model import keyexpr
from elea.model.encoding import Encoding
from elea.model.errors import ConfigError, InvalidKeyExpr, InvalidSample

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from elea.spark.options import WriteOptions

__all__ = ["COLUMNS", "Samples", "checked"]

COLUMNS: Final = {
    "key": ("string",),
    "payload": ("binary", "string"),
    "encoding": ("string",),
    "attachment": ("binary", "string"),
    "kind": ("string",),
    "timestamp": ("timestamp", "timestamp_ntz"),
}
VALUE: Final = "value"
KINDS: Final = {"PUT": 0, "DELETE": 1, "DEL": 1}
ENCODINGS: Final = {
    "json": "application/json",
    "arrow": "application/vnd.apache.arrow.stream",
    "cdr": "application/cdr",
}

SECOND_US: Final = 1_000_000
LAST_US: Final = ((1 << 32) - 1) * SECOND_US
"""The last time that a timestamp of a sample can say, in 2106."""


def checked(schema: StructType, options: WriteOptions) -> list[str]:
    """Look whether rows of this schema can be samples; the columns that are packed into the payload.

    Raises:
        ConfigError: they cannot, and what to do about it.
    """
    names = schema.fieldNames()
    others = [name for name in names if name not in COLUMNS]
    for field in schema.fields:
        wanted = COLUMNS.get(field.name)
        kind = field.dataType.simpleString()
        if wanted is not None and kind not in wanted:
            hint = f"cast it, e.g. {field.name} AS {wanted[0].upper()}"
            raise ConfigError(f"column {field.name}", f"it is {' or '.join(wanted)}, not {kind}", hint)
    if "key" not in names and options.key is None:
        raise ConfigError("column key", "there is none", "add one, or write .option('key', 'fleet/result')")
    if options.payload_format == "raw":
        if others:
            hint = f"select {', '.join(COLUMNS)}, or pack the others with .option('payloadFormat', 'json')"
            raise ConfigError(f"column {others[0]}", "no sample has such a column", hint)
        if "payload" not in names:
            hint = "add one, or pack other columns with .option('payloadFormat', 'json')"
            raise ConfigError("column payload", "there is none", hint)
    elif "payload" in names:
        hint = "leave out the column, or the option"
        raise ConfigError("column payload", f"payloadFormat={options.payload_format} makes the payload", hint)
    elif not others:
        raise ConfigError("column payload", "there is no column to make a payload of", "select some")
    return others


class Samples:
    """Turns batches of rows into batches of samples. Made in an executor, for rows of one schema."""

    def __init__(self, schema: pa.Schema, options: WriteOptions, packed: list[str]) -> None:
        self._options = options
        self._packed = packed
        self._encode: Callable[[Any], Any] | None = None
        self._has_value = False
        default = options.encoding
        if packed:
            import pyarrow as pa

            from elea.spark.payload import encoder, load

            load(options.payload_format, options.payload_module)
            struct = pa.struct([schema.field(name) for name in packed])
            self._has_value = packed == [VALUE] and pa.types.is_struct(struct.field(0).type)
            self._encode = encoder(options.payload_format, struct.field(0).type if self._has_value else struct)
            default = default or ENCODINGS.get(options.payload_format)
        self._encoding = Encoding(default)

    def of(self, rows: pa.RecordBatch, stamp_id: bytes, now_us: int) -> pa.RecordBatch:
        """The samples of some rows: `key, payload, kind, encoding`, and of the others what there is.

        Args:
            stamp_id: who gives the timestamps.
            now_us: the time of rows whose `timestamp` is null while others have one.

        Raises:
            InvalidSample: a row cannot be a sample.
        """
        import pyarrow as pa

        have = set(rows.schema.names)
        made: dict[str, Any] = {"key": self._keys(rows, have)}
        payload, kind = self._payload_and_kind(rows, have)
        made["payload"], made["kind"] = payload, kind
        made |= self._encodings(rows, have)
        if "attachment" in have and rows.column("attachment").null_count < rows.num_rows:
            made["attachment"] = _binary(rows.column("attachment"))
        if "timestamp" in have and rows.column("timestamp").null_count < rows.num_rows:
            made["ntp64"] = _ntp64(rows.column("timestamp"), now_us)
            made["stamp_id"] = pa.repeat(pa.scalar(stamp_id, pa.binary()), rows.num_rows)
        return pa.RecordBatch.from_arrays(list(made.values()), names=list(made))

    def _keys(self, rows: pa.RecordBatch, have: set[str]) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        default = self._options.key
        if "key" not in have:
            keys = pa.repeat(pa.scalar(default, pa.string()), rows.num_rows)
        else:
            keys = rows.column("key")
            if default is not None:
                keys = pc.fill_null(keys, default)
            if keys.null_count:
                raise InvalidSample("key", _first(pc.is_null(keys)), None, "give every row one, or the option key")
        for key in pc.unique(keys).to_pylist():
            try:
                keyexpr.check(key)
            except InvalidKeyExpr as error:
                raise InvalidSample("key", _first(pc.equal(keys, key)), key, str(error)) from error
            if "*" in key:
                raise InvalidSample("key", _first(pc.equal(keys, key)), key, "a sample has one key, without wildcards")
        return keys

    def _payload_and_kind(self, rows: pa.RecordBatch, have: set[str]) -> tuple[pa.Array, pa.Array]:
        import pyarrow as pa
        import pyarrow.compute as pc

        given = rows.column(VALUE) if self._has_value else None
        if self._encode is None:
            payload = _binary(rows.column("payload"))
        elif given is not None:
            payload = self._encode(pa.RecordBatch.from_struct_array(pc.fill_null(given, _empty(given.type))))
            payload = pc.if_else(pc.is_null(given), pa.scalar(None, payload.type), payload)
        else:
            payload = self._encode(rows.select(self._packed))
        deleted = pc.is_null(payload)
        if "kind" in have:
            kinds = rows.column("kind")
            upper = pc.utf8_upper(kinds)
            unknown = pc.and_(pc.is_valid(kinds), pc.invert(pc.is_in(upper, pa.array(list(KINDS)))))
            if pc.any(unknown).as_py():
                row = _first(unknown)
                raise InvalidSample("kind", row, kinds[row].as_py(), "it is PUT or DELETE")
            said = pc.is_in(upper, pa.array([name for name, kind in KINDS.items() if kind]))
            bare = pc.and_(pc.and_(pc.is_valid(kinds), pc.invert(said)), deleted)
            if pc.any(bare).as_py():
                raise InvalidSample(
                    "payload", _first(bare), None, "a PUT has one; to delete, let kind be DELETE or null"
                )
            deleted = pc.or_(said, deleted)
        # A deletion has no payload on the wire.
        return pc.if_else(deleted, pa.scalar(b"", pa.binary()), payload).cast(pa.binary()), deleted.cast(pa.uint8())

    def _encodings(self, rows: pa.RecordBatch, have: set[str]) -> dict[str, pa.Array]:
        import pyarrow as pa

        if "encoding" not in have:
            found = [self._encoding]
            which = pa.repeat(pa.scalar(0, pa.int32()), rows.num_rows)
        else:
            column = rows.column("encoding").dictionary_encode(null_encoding="encode")
            texts = column.dictionary.to_pylist()
            found = [self._encoding if text is None else Encoding(text) for text in texts]
            which = column.indices
        made = {"encoding": pa.array([one.id for one in found], pa.uint32()).take(which)}
        if any(one.schema is not None for one in found):
            made["schema"] = pa.array([one.schema for one in found], pa.binary()).take(which)
        return made


def _binary(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    return column if column.type == pa.binary() else column.cast(pa.binary())


def _empty(type_: Any) -> Any:
    """A struct of this type whose fields are all null."""
    import pyarrow as pa

    return pa.scalar({field.name: None for field in type_}, type_)


def _ntp64(column: pa.Array, now_us: int) -> pa.Array:
    """Times as 32 bits of seconds and 32 of their fraction, rounded down."""
    import pyarrow as pa
    import pyarrow.compute as pc

    micros = pc.fill_null(column.cast(pa.int64()), now_us)
    outside = pc.or_(pc.less(micros, 0), pc.greater(micros, LAST_US))
    if pc.any(outside).as_py():
        row = _first(outside)
        raise InvalidSample("timestamp", row, str(column[row]), "it lies between 1970 and 2106")
    seconds = pc.divide(micros, SECOND_US)
    rest = pc.subtract(micros, pc.multiply(seconds, SECOND_US))
    fraction = pc.divide(
        pc.shift_left(rest.cast(pa.uint64()), pa.scalar(32, pa.uint64())), pa.scalar(SECOND_US, pa.uint64())
    )
    return pc.bit_wise_or(pc.shift_left(seconds.cast(pa.uint64()), pa.scalar(32, pa.uint64())), fraction)


def _first(mask: Any) -> int:
    """The first row for which it is true."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found: int = pc.index(mask, pa.scalar(True)).as_py()
    return found
