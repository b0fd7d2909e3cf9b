"""Blocks to batches, with the kernels and with their twins."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from elea.columnar import gather
from elea.columnar.blocks import Block, block_of_samples
from elea.columnar.gather import SCHEMA, Columns
from elea.store import columns as log_columns
from elea.wire.zenoh1.messages import Del, Encoding, Put, SourceInfo, Timestamp
from elea.wire.zenoh1.samples import Pushed, split_body


@pytest.fixture(params=["kernels", "twins"])
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "kernels":
        pytest.importorskip("numba")
    else:
        monkeypatch.setattr(gather, "kernels", lambda: None)
    return request.param


def sample(body: Put | Del, qos: int = 5) -> Pushed:
    meta, payload = split_body(body)
    return 0, 0, b"", qos, None if meta == b"\x01" else meta, payload


STAMP = Timestamp((1 << 63) + 7, b"\x01\x02")
BODIES: list[Put | Del] = [
    Put(b"plain"),
    Put(b"", STAMP),
    Put(b"third", None, Encoding(4, b"utf8"), SourceInfo(b"\x09" * 16, 7, 1 << 31), attachment=b""),
    Del(STAMP, SourceInfo(b"\x08", 0, 3), b"why"),
    Put(b"\0" * 300, encoding=Encoding(0, b"")),
    Put(b"last"),
]


def expected(body: Put | Del, key: str, arrival: int, qos: int) -> dict[str, Any]:
    put = isinstance(body, Put)
    stamp, source, encoding = body.timestamp, body.source_info, body.encoding if isinstance(body, Put) else None
    return {
        "key": key,
        "payload": body.payload if isinstance(body, Put) else b"",
        "ntp64": None if stamp is None else stamp.ntp64,
        "stamp_id": None if stamp is None else stamp.id,
        "arrival": arrival,
        "kind": 0 if put else 1,
        "encoding": 0 if encoding is None else encoding.id,
        "schema": None if encoding is None else encoding.schema,
        "attachment": body.attachment,
        "source_id": None if source is None else source.zid,
        "source_eid": None if source is None else source.eid,
        "source_sn": None if source is None else source.sn,
        "qos": qos,
    }


def plain_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    batch.validate(full=True)
    at = batch.schema.get_field_index("arrival")
    return batch.set_column(at, "arrival", batch.column(at).cast(pa.int64())).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.usefixtures("ways")
def test_every_column_says_what_the_sample_said() -> None:
    columns = Columns(100)
    keys = ["a", "ü/b"]
    codes = [index % 2 for index in range(len(BODIES))]

    block, bad = block_of_samples(keys, codes, [sample(body, 13) for body in BODIES], range(len(BODIES)))
    assert columns.add(block) is None
    batch = columns.take()

    assert bad == 0
    assert batch.schema == SCHEMA
    wanted = [expected(body, keys[code], at, 13) for at, (body, code) in enumerate(zip(BODIES, codes, strict=True))]
    assert plain_rows(batch) == wanted


@pytest.mark.usefixtures("ways")
def test_blocks_with_and_without_details_and_of_other_keys_make_one_batch() -> None:
    columns = Columns(100)
    first, second = ["x"], ["y", "z"]
    plain, _ = block_of_samples(first, [0, 0], [sample(BODIES[0])] * 2, [1, 1])
    detailed, _ = block_of_samples(second, [1, 0], [sample(BODIES[3]), sample(BODIES[0])], [2, 3])

    for block in (plain, detailed, plain, detailed):
        columns.add(block)
    rows = plain_rows(columns.take())

    assert [row["key"] for row in rows] == ["x", "x", "z", "y"] * 2
    assert [row["attachment"] for row in rows] == [None, None, b"why", None] * 2
    assert [row["source_id"] for row in rows] == [None, None, b"\x08", None] * 2


@pytest.mark.usefixtures("ways")
def test_a_batch_has_so_many_rows_and_the_rest_of_a_block_goes_to_the_next() -> None:
    columns = Columns(4)
    block, _ = block_of_samples(["k"], [0] * 10, [sample(Put(b"%d" % n, STAMP)) for n in range(10)], range(10))
    left: Block | None = block
    batches = []

    while left is not None:
        left = columns.add(left)
        if columns.is_full or left is None:
            batches.append(columns.take())

    assert [batch.num_rows for batch in batches] == [4, 4, 2]
    rows = [row for batch in batches for row in plain_rows(batch)]
    assert [(row["payload"], row["arrival"], row["ntp64"]) for row in rows] == [
        (b"%d" % n, n, STAMP.ntp64) for n in range(10)
    ]


@pytest.mark.usefixtures("ways")
def test_memory_grows_with_large_payloads_and_batches_keep_theirs() -> None:
    columns = Columns(100, 1 << 20)
    batches = []
    for number in range(3):
        for size in (10, 200_000, 3_000_000):
            block, _ = block_of_samples(["k"], [0], [sample(Put(bytes([number]) * size))], [0])
            columns.add(block)
        batches.append(columns.take())

    for number, batch in enumerate(batches):
        assert [len(value) for value in batch.column("payload").to_pylist()] == [10, 200_000, 3_000_000]
        assert set(b"".join(batch.column("payload").to_pylist())) == {number}


def test_samples_whose_details_cannot_be_read_are_left_out_and_counted() -> None:
    broken: Pushed = (0, 0, b"", 5, b"\x81\x41\x00", b"no source in it")

    block, bad = block_of_samples(["k"], [0] * 3, [sample(BODIES[0]), broken, sample(BODIES[1])], [1, 2, 3])
    columns = Columns(10)
    columns.add(block)

    assert bad == 1
    assert [row["arrival"] for row in plain_rows(columns.take())] == [1, 3]


def test_a_batch_without_samples_has_no_rows() -> None:
    assert Columns(10).take().num_rows == 0


def test_columns_are_those_of_a_log() -> None:
    names = [name for name in log_columns.SCHEMA.names if name not in ("position", "once")]

    assert SCHEMA.names == names
    assert [SCHEMA.field(name).type for name in names] == [log_columns.SCHEMA.field(name).type for name in names]
