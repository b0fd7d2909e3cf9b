"""Batches of samples for tests of captures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from elea.model.encoding import Encoding
from elea.recorder.rotation import CaptureFiles, Rotation
from elea.recorder.samplebatch import SCHEMA

NOON = 1_700_000_000_000_000_000
JSON = Encoding.APPLICATION_JSON.id
FORMATS = (".mcap", ".parquet", ".arrows")


def row(number: int = 0, **fields: Any) -> dict[str, Any]:
    """A plain sample, with the fields given in place of its own."""
    return {
        "key": "home/1/temp",
        "payload": b'{"speed": %d}' % number,
        "ntp64": (NOON // 10**9 << 32) + number,
        "stamp_id": b"\x07",
        "arrival": NOON + number * 1000,
        "kind": 0,
        "encoding": JSON,
        "schema": None,
        "attachment": None,
        "source_id": None,
        "source_eid": None,
        "source_sn": None,
        "qos": 5,
        **fields,
    }


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """The batch of these rows."""
    columns = []
    for field in SCHEMA:
        values = [each[field.name] for each in rows]
        if field.name == "arrival":
            columns.append(pa.array(values, pa.int64()).cast(field.type))
        else:
            columns.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def table_of(batches: Any) -> pa.Table:
    """All rows of some batches, in one piece."""
    return pa.Table.from_batches(list(batches), SCHEMA).combine_chunks()


def written(path: Path, batches: list[pa.RecordBatch], **options: Any) -> list[Path]:
    """A capture of these batches; its files."""
    files = CaptureFiles(path, {"key_expr": "home/**"}, options.pop("rotation", Rotation()), now=0.0, **options)
    for batch in batches:
        files.write(batch, 0.0)
    files.finish({"dropped": "0"})
    return files.paths


def _present(given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | given


@st.composite
def sample_rows(draw: st.DrawFn) -> dict[str, Any]:
    """Any sample that the wire can carry."""
    has_stamp, has_source = draw(st.booleans()), draw(st.booleans())
    number = st.integers
    return {
        "key": draw(st.sampled_from(["a", "home/1/temp", "höhe/π", "@adv/x", "a/b/c/d"])),
        "payload": draw(st.binary(max_size=40)),
        "ntp64": draw(number(0, (1 << 64) - 1)) if has_stamp else None,
        "stamp_id": draw(st.binary(min_size=1, max_size=16)) if has_stamp else None,
        "arrival": draw(number(1, 1 << 61)),
        "kind": draw(number(0, 1)),
        "encoding": draw(st.sampled_from([0, 1, JSON, Encoding.APPLICATION_CDR.id, 60_000])),
        "schema": draw(_present(st.binary(max_size=8))),
        "attachment": draw(_present(st.binary(max_size=8))),
        "source_id": draw(st.binary(min_size=1, max_size=16)) if has_source else None,
        "source_eid": draw(number(0, (1 << 32) - 1)) if has_source else None,
        "source_sn": draw(number(0, (1 << 64) - 1)) if has_source else None,
        "qos": draw(number(0, 255)),
    }
