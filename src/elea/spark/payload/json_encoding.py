"""Rows to JSON documents, column by column: every column becomes text, texts are joined.

A null field is left out, as Spark's `to_json` does; a null in an array is `null`. `json_rows` reads it all back.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from elea.spark.payload.json_rows import reader

__all__ = ["JsonEncoder"]

MUST_BE_ESCAPED: Final = r'[\x00-\x1f"\\]'


class JsonEncoder:
    """RecordBatches (or struct columns) of `schema` to one document a row."""

    def __init__(self, schema: pa.StructType) -> None:
        reader(schema, "value")  # raises for a type that JSON has not
        self._schema = schema

    def __call__(self, rows: pa.RecordBatch | pa.StructArray) -> pa.Array:
        """One binary payload a row; null for a null struct."""
        if isinstance(rows, pa.RecordBatch):
            columns = [rows.column(field.name) for field in self._schema]
            rows = pa.StructArray.from_arrays(columns, fields=list(self._schema))
        return _text(rows).cast(pa.binary())


def _text(array: pa.Array) -> pa.Array:
    """The JSON text of every value; null stays null."""
    kind = array.type
    if pa.types.is_struct(kind):
        return _objects(array)
    if pa.types.is_map(kind):
        return _maps(array)
    if pa.types.is_list(kind):
        return _arrays(array)
    if pa.types.is_string(kind):
        return _strings(array)
    if pa.types.is_binary(kind):
        return pa.array([None if v is None else f'"{b64encode(v).decode()}"' for v in array.to_pylist()], pa.string())
    if pa.types.is_floating(kind):
        return _floats(array)
    if pa.types.is_timestamp(kind):
        return _quoted(pc.replace_substring(array.cast(pa.string()), " ", "T"))
    if pa.types.is_date(kind):
        return _quoted(array.cast(pa.string()))
    return array.cast(pa.string())


def _objects(array: pa.StructArray) -> pa.Array:
    if not len(array):
        return pa.array([], pa.string())
    # Each field is `,"name":value` or nothing; the first comma goes.
    parts: list[Any] = []
    for field, column in zip(array.type, array.flatten(), strict=True):
        head = f",{json.dumps(field.name, ensure_ascii=False)}:"
        parts.append(pc.fill_null(pc.binary_join_element_wise(head, _text(column), ""), ""))
    inside = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*parts, ""), start=1)
    return _where_valid(array, pc.binary_join_element_wise("{", inside, "}", ""))


def _maps(array: pa.MapArray) -> pa.Array:
    start, stop = _span(array)
    keys, items = array.keys.slice(start, stop - start), array.items.slice(start, stop - start)
    entries = pc.binary_join_element_wise(_text(keys.cast(pa.string())), pc.fill_null(_text(items), "null"), ":")
    return _joined(array, entries, "{", "}")


def _arrays(array: pa.ListArray) -> pa.Array:
    start, stop = _span(array)
    return _joined(array, pc.fill_null(_text(array.values.slice(start, stop - start)), "null"), "[", "]")


def _joined(array: pa.Array, texts: pa.Array, begin: str, end: str) -> pa.Array:
    """The texts of the elements, joined for every row."""
    offsets = pc.subtract(array.offsets, array.offsets[0])
    inside = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), ",")
    return _where_valid(array, pc.binary_join_element_wise(begin, inside, end, ""))


def _span(array: Any) -> tuple[int, int]:
    """Where the elements of a column, which may be a slice, are in its values."""
    return (array.offsets[0].as_py(), array.offsets[-1].as_py()) if len(array) else (0, 0)


def _where_valid(array: pa.Array, texts: pa.Array) -> pa.Array:
    return texts if not array.null_count else pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string()))


def _strings(array: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(array, MUST_BE_ESCAPED)
    quoted = _quoted(array)
    if not special.true_count:
        return quoted
    escaped = [json.dumps(text, ensure_ascii=False) for text in array.filter(special).to_pylist()]
    return pc.replace_with_mask(quoted, pc.fill_null(special, False), pa.array(escaped, pa.string()))


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _floats(array: pa.Array) -> pa.Array:
    # A float has fewer digits than the double of the same value: 0.1 stays 0.1.
    texts = array.cast(pa.string())
    finite = pc.is_finite(array)
    if pc.all(finite, min_count=0).as_py() is not False:
        return texts
    names = pc.if_else(pc.is_nan(array), '"NaN"', pc.if_else(pc.greater(array, 0), '"Infinity"', '"-Infinity"'))
    return pc.if_else(finite, texts, names)
