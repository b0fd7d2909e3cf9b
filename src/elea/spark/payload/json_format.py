"""JSON payloads, many at once: joined to lines, read by Arrow, cast to the type wanted.

What Arrow takes is a part of what `json_rows` takes, and means the same there; everything else is left to that.
Arrow reads documents, not lines. That each payload is exactly one of them is assured so:

- every payload begins with `{`, and nowhere in it (strings included) does anything but `,`, `}`, `]` or the end follow
  a `}`: so none holds a second document, nor the `null` between documents at which Arrow 26 ends the process;
- so rows can only be fewer than payloads, where one that is not closed takes in the next; their number tells.

1.2 µs a payload of four fields, where `json_rows` takes 6 µs.
"""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from elea.columnar.permissive import permissive
from elea.spark.payload.json_encoding import JsonEncoder
from elea.spark.payload.json_rows import DAY, ZONE, JsonRows
from elea.spark.payload.registry import Decoder, Encoder

__all__ = ["decoder", "encoder"]

DOUBTFUL: Final = r"\}[ \t\r\n]*[^,\}\] \t\r\n]|NaN|Inf"
"""Payloads in which Arrow may see more than one document; and numbers that it spells in more ways than Python."""

TIMES: Final = r"(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?"
"""As in `json_rows`, but Arrow does not cut off nanoseconds."""

ZONED: Final = rf"^{DAY}{TIMES}(?:{ZONE})?)?$"
LOCAL: Final = rf"^{DAY}{TIMES})?$"
HAS_ZONE: Final = rf":\d{{2}}[^-+]*(?:{ZONE})$"
YEAR_ZERO: Final = "0000"
"""Arrow has such a year, Python has not."""

ROW_OF_ERROR: Final = re.compile(r"in row (\d+)")
TRIES: Final = 4
"""Errors looked for one by one before an array is given up; in a large one, each costs much."""

MANY: Final = 4_096


class _Refused(Exception):
    """A column that the quick way does not take, because of a text in it."""


def decoder(schema: pa.StructType) -> Decoder:
    """Payloads to structs of `schema`."""
    read = _reading_type(schema)
    quick = _Quick(schema, read) if read is not None else _never
    rows = JsonRows(schema, quick)
    if isinstance(quick, _Quick):
        quick.rows = rows

    def decode(payloads: pa.Array) -> tuple[pa.Array, pa.Array]:
        return permissive(payloads, schema, quick, rows)

    return decode


def encoder(schema: pa.StructType) -> Encoder:
    """Rows of `schema` to documents."""
    return JsonEncoder(schema)


def _never(_: pa.Array) -> None:
    return None


class _Quick:
    """All payloads of an array at once, or none."""

    rows: JsonRows

    def __init__(self, target: pa.StructType, read: pa.StructType) -> None:
        self._target = target
        self._read = read
        self._parse = pj.ParseOptions(explicit_schema=pa.schema(list(read)), unexpected_field_behavior="ignore")

    def __call__(self, payloads: pa.Array) -> pa.Array | None:
        try:
            texts = payloads.cast(pa.string())  # refuses what is not UTF-8, which Arrow's reader passes through
        except pa.ArrowInvalid:
            return None
        plain = pc.and_not(pc.starts_with(texts, "{"), pc.match_substring_regex(texts, DOUBTFUL))
        for _ in range(TRIES if len(texts) <= MANY else 2):
            if 2 * plain.true_count <= len(texts) and len(texts) > 1:
                return None  # More than half row by row: that is what the slow way is for.
            try:
                return self._mixed(payloads, texts, plain)
            except (_Refused, pa.ArrowInvalid) as error:
                suspects = _suspects(str(error), texts, plain)
            if suspects is None:
                return None
            plain = pc.and_not(plain, suspects)
        return None

    def _mixed(self, payloads: pa.Array, texts: pa.Array, plain: pa.Array) -> pa.Array | None:
        """The plain ones here, the others row by row, and all back in order."""
        if plain.true_count == len(texts):
            return self._documents(texts)
        if not plain.true_count:
            return None
        good, others = pc.indices_nonzero(plain), pc.indices_nonzero(pc.invert(plain))
        values = pa.concat_arrays([self._documents(texts.take(good)), self.rows(payloads.take(others))])
        return values.take(pc.sort_indices(pa.concat_arrays([good, others])))

    def _documents(self, texts: pa.Array) -> pa.Array:
        joined = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "\n")[0].as_buffer()
        # One block: a document may have line ends of its own.
        options = pj.ReadOptions(use_threads=False, block_size=joined.size + 1)
        table = pj.read_json(pa.BufferReader(joined), read_options=options, parse_options=self._parse)
        if table.num_rows != len(texts):
            raise _Refused("")
        columns = [_converted(_whole(table[field.name]), field.type) for field in self._target]
        values = pa.StructArray.from_arrays(columns, fields=list(self._target))
        values.validate(full=True)  # Arrow's reader lets decimals be larger than their type
        return values


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _reading_type(target: pa.DataType) -> Any:
    """The type to read as, None if the quick way cannot: strings for times, doubles for floats."""
    if pa.types.is_struct(target):
        fields = [(field.name, _reading_type(field.type)) for field in target]
        return None if any(read is None for _, read in fields) else pa.struct(fields)
    if pa.types.is_list(target):
        element = _reading_type(target.value_type)
        return None if element is None else pa.list_(target.value_field.with_type(element))
    if pa.types.is_timestamp(target) or pa.types.is_date(target):
        return pa.string()
    if pa.types.is_float32(target):
        return pa.float64()  # rounded twice, as it is row by row
    return None if pa.types.is_map(target) or pa.types.is_binary(target) else target


def _converted(array: pa.Array, target: pa.DataType) -> pa.Array:
    """A column of the reading type as one of the type wanted."""
    if array.type == target:
        return array
    if pa.types.is_struct(target):
        columns = [_converted(array.field(i), field.type) for i, field in enumerate(target)]
        return pa.StructArray.from_arrays(columns, fields=list(target), mask=array.is_null())
    if pa.types.is_list(target):
        values = _converted(array.values, target.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=target, mask=array.is_null())
    if pa.types.is_date(target):
        return _matching(array, rf"^{DAY}$").cast(target)
    if pa.types.is_timestamp(target) and target.tz is None:
        return _matching(array, LOCAL).cast(target)
    if pa.types.is_timestamp(target):
        texts = _matching(array, ZONED)
        missing = pc.and_not(pc.greater(pc.binary_length(texts), 10), pc.match_substring_regex(texts, HAS_ZONE))
        return pc.if_else(missing, pc.binary_join_element_wise(texts, "Z", ""), texts).cast(target)
    return array.cast(target, safe=False)


def _matching(texts: pa.Array, pattern: str) -> pa.Array:
    good = pc.and_not(pc.match_substring_regex(texts, pattern), pc.starts_with(texts, YEAR_ZERO))
    if pc.all(good, min_count=0).as_py() is False:
        raise _Refused(f"couldn't parse:{texts.filter(pc.invert(good))[0]}")
    return texts


def _suspects(problem: str, texts: pa.Array, plain: pa.Array) -> pa.Array | None:
    """Which rows Arrow means, None if it does not say. Only a hint: whatever is wrong in it costs time, not values."""
    place = ROW_OF_ERROR.search(problem)
    if place is not None:
        rows = pc.indices_nonzero(plain)
        row = int(place[1])
        return pc.equal(pa.array(range(len(texts))), rows[row].cast(pa.int64())) if row < len(rows) else None
    _, found, text = problem.partition("couldn't parse:")
    return pc.match_substring(texts, text) if found and text else None
