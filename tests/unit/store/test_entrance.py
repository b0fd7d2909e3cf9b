"""The entrance for Arrow from outside: what honest writers send comes through, and there is no other way in."""

from __future__ import annotations

import ast
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import elea
from elea.model.errors import ArrowRefused
from elea.model.limits import ARROW_HEAD_BYTES
from elea.store import SCHEMA, Range, memory_log, open_log
from elea.store.arrowframes import END
from elea.store.entrance import ANSWER, FILE, Form, read_block, read_file, read_row, read_rows, read_stream, schema_size
from tests.hostile.arrows import bomb, honest, lies, shifted, stream
from tests.unit.store.samples import sample

SAMPLES = Form(
    "the test",
    {name: SCHEMA.field(name).type for name in ("key", "payload", "kind", "schema", "ntp64", "stamp_id")},
    frozenset({"key", "payload"}),
    frozenset({"key", "payload", "kind", "ntp64", "stamp_id"}),
    1_000,
    100,
)
ROOT = Path(elea.__path__[0])

READERS = {"open_stream", "open_file", "read_message", "read_record_batch", "read_schema", "read_table", "read_feather",
           "RecordBatchStreamReader", "RecordBatchFileReader", "MessageReader", "read_tensor", "deserialize",
           "read_pandas", "get_record_batch_size", "deserialize_pandas", "_import_from_c"}  # fmt: skip
"""Whatever of pyarrow makes something of octets that somebody wrote."""

OWN = {
    # Payloads, after their metadata have been judged; and blocks of files that nobody else can have written.
    "store/entrance.py": {"open_stream", "read_message", "read_record_batch"},
    "store/segment.py": {"read_message", "read_record_batch", "read_schema"},  # own files, by a checksum with a secret
    "store/disk.py": {"open_stream"},  # the index, the same
    "spark/pipeline/rowsplitter.py": {"read_schema"},  # what the driver of this job gave its task
    "spark/deltafiles.py": {"open_stream", "read_schema"},  # and the task gives back
    "demo/evidence.py": {"read_table"},  # the tables that the demo wrote
}
"""Where Arrow made by this very store or job is read; nothing of a peer comes here."""


def called(path: Path) -> set[str]:
    """Names of readers that a module mentions, as an attribute or imported."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in READERS and not _is_ours(node):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyarrow"):
            found |= READERS & {alias.name for alias in node.names}
    return found


def _is_ours(node: ast.Attribute) -> bool:
    """Methods of the codecs have some of these names too; theirs are of `self` and of modules called codec."""
    return isinstance(node.value, ast.Name | ast.Attribute) and ast.unparse(node.value) in (
        "self",
        "self.codec",
        "functions",
    )


# -- the only way in ---------------------------------------------------------------------------------------------------


def test_arrow_is_read_at_the_entrance_and_from_own_files_only() -> None:
    found = {str(path.relative_to(ROOT)): names for path in sorted(ROOT.rglob("*.py")) if (names := called(path))}

    assert found == OWN


# -- honest streams ----------------------------------------------------------------------------------------------------


def test_stream_of_a_client_comes_through_as_it_is() -> None:
    data = honest(("f/a", "f/b", "f/c"))

    (batch,) = read_stream(data, SAMPLES)

    assert batch.equals(pa.ipc.open_stream(data).read_all().to_batches()[0])


@pytest.mark.parametrize("rows", [0, 1, 100])
def test_range_of_a_log_comes_through_as_it_is(rows: int) -> None:
    with memory_log() as log:
        log.append([sample(number) for number in range(rows)])
        data = b"".join(log.read_ipc(Range()))

    table = pa.Table.from_batches(read_stream(data, ANSWER), SCHEMA)

    assert table.equals(pa.ipc.open_stream(data).read_all())
    table.validate(full=True)


def test_nulls_stay_nulls() -> None:
    rows = pa.record_batch({"key": ["a"] * 9, "payload": [b""] * 9, "schema": [None, b"x", None] * 3})

    (batch,) = read_stream(stream(rows), SAMPLES)

    assert batch.column("schema").to_pylist() == [None, b"x", None] * 3


def test_other_widths_are_cast_and_values_that_do_not_fit_refused() -> None:
    wide = {"key": pa.array(["a"], pa.large_string()), "payload": pa.array([b"x"], pa.large_binary())}

    (batch,) = read_stream(stream(pa.record_batch({**wide, "kind": pa.array([1], pa.int64())})), SAMPLES)

    assert [field.type for field in batch.schema] == [pa.string(), pa.binary(), pa.uint8()]
    assert batch.to_pylist() == [{"key": "a", "payload": b"x", "kind": 1}]
    with pytest.raises(ArrowRefused, match="column 'kind' are not what they claim"):
        read_stream(stream(pa.record_batch({**wide, "kind": pa.array([300], pa.int64())})), SAMPLES)


def test_segment_is_imported_as_an_export_is(tmp_path: Path) -> None:
    with open_log(tmp_path / "log") as log:
        log.append([sample(number) for number in range(10)])
        exported = io.BytesIO(b"".join(log.read_ipc(Range())))
    (segment,) = (tmp_path / "log").glob("0*.arrows")

    with segment.open("rb") as file:
        found = pa.Table.from_batches(read_file(file), SCHEMA)

    assert found.equals(pa.Table.from_batches(read_file(exported), SCHEMA))
    assert found.num_rows == 10


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "data"), list(lies()), ids=lambda value: value if isinstance(value, str) else "")
def test_lie_is_refused(name: str, data: bytes) -> None:
    with pytest.raises(ArrowRefused) as refused:
        read_stream(data, SAMPLES)

    assert refused.value.what == "the test"
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: bomb("zstd", 1 << 26), "it is compressed"),
        (lambda: bomb("lz4", 1 << 26), "it is compressed"),
        (lambda: shifted(100), "column 'key' are not what they claim"),
        (lambda: honest(("a",) * 1_001), "1001 samples, the limit is 1000"),
        (
            lambda: b"\xff\xff\xff\xff" + (ARROW_HEAD_BYTES + 1).to_bytes(4, "little"),
            f"the limit is {ARROW_HEAD_BYTES}",
        ),
        (lambda: honest(("",)), "values of column 'key' have 1 to 65535 octets"),
        (lambda: stream(pa.record_batch({"key": ["a"], "payload": [b""], "x" * 2_000: [1]})), "a name has 2000 octets"),
        (lambda: stream(*[pa.record_batch({"key": ["a"], "payload": [b""]})] * 101), "more than 100 batches"),
    ],
)
def test_refusal_says_what_and_which_limit(make: Callable[[], bytes], problem: str) -> None:
    with pytest.raises(ArrowRefused, match=problem):
        read_stream(make(), SAMPLES)


def test_buffers_that_lie_in_each_other_are_refused() -> None:
    """One long value that all columns share would become as many when they are cast."""
    data = stream(pa.record_batch({"key": ["abcdefgh"], "payload": [b"ijklmnop"]}))
    places = b"".join(number.to_bytes(8, "little") for number in (24, 8))
    assert data.count(places) == 1 or pytest.fail("the layout of Arrow's writer has changed")

    with pytest.raises(ArrowRefused, match="is not in its place"):
        read_stream(data.replace(places, b"".join(number.to_bytes(8, "little") for number in (0, 8))), SAMPLES)


def test_file_that_promises_much_makes_no_room_for_it() -> None:
    data = honest()
    head = 8 + int.from_bytes(data[4:8], "little")
    size = len(data) - len(END) - head - 8 - int.from_bytes(data[head + 4 : head + 8], "little")
    huge = data.replace(size.to_bytes(8, "little"), (1 << 62).to_bytes(8, "little"))
    short = data.replace(size.to_bytes(8, "little"), (1 << 29).to_bytes(8, "little"))

    for lie, problem in ((huge, f"a body has {1 << 62} octets"), (short, "in the middle of a message")):
        with pytest.raises(ArrowRefused, match=problem):
            list(read_file(io.BytesIO(lie), SAMPLES))
    with pytest.raises(ArrowRefused, match="no column 'ntp64'"):
        list(read_file(io.BytesIO(data), FILE))


def test_block_of_another_process_is_looked_at_too() -> None:
    with memory_log() as log:
        log.append([sample(number) for number in range(5)])
        (batch,) = log.read_arrow()
    good = batch.serialize()

    assert read_block(good).equals(batch)
    body = bytearray(good.to_pybytes())
    body[body.index((0).to_bytes(4, "little") + (11).to_bytes(4, "little")) + 4] = 200
    with pytest.raises(ArrowRefused):
        read_block(pa.py_buffer(bytes(body)))
    with pytest.raises(ArrowRefused, match="not one batch"):
        read_block(pa.py_buffer(good.to_pybytes() + b"x"))


# -- payloads ----------------------------------------------------------------------------------------------------------


def payload(columns: dict[str, Any], **options: Any) -> bytes:
    return stream(pa.record_batch(columns), **options)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1]), pa.array(["x"]), pa.array([None]), pa.array([[1, 2]]), pa.array([{"a": [None, "x"]}]),
        pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), pa.array(["x"]).dictionary_encode(),
        pa.array([[1, 2]], pa.list_(pa.int32(), 2)), pa.array([1.5]), pa.array([b"xyz"], pa.binary(3)),
        pa.array([1], pa.duration("s")), pa.array([1], pa.date32()), pa.array([True]), pa.array([{}], pa.struct([])),
    ],
    ids=lambda column: str(column.type),
)  # fmt: skip
def test_payload_of_any_plain_type_is_read(column: pa.Array) -> None:
    data = payload({"a": column})

    table = read_row(data)

    assert table.to_pylist() == [{"a": column[0].as_py()}]
    if not pa.types.is_dictionary(column.type):
        size = schema_size(data)
        body = pa.py_buffer(data[size : -len(END)])
        assert read_rows(data[:size], [body, body]).to_pylist() == [{"a": column[0].as_py()}] * 2


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (payload({"a": [bytes(1 << 20)]}, compression="zstd"), "compressed"),
        (payload({"a": pa.array(["x"]).cast(pa.string_view())}), "of a type that payloads do not have"),
        (payload({"a": pa.RunEndEncodedArray.from_arrays([1], [7])}), "of a type that payloads do not have"),
        (payload({"a": pa.array([1, 2])}), "2 rows"),
        (payload({"a": pa.nulls(1, pa.list_(pa.null(), 1 << 30))}), "more values than its octets can have"),
        (payload({"a": pa.array([1])}) + b"x", "not one row"),
        (payload({f"{n}": [1] for n in range(2_100)}), "more columns than the 2048"),
        (b"", "middle of a message"),
        (END, "no schema"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_payload_that_is_something_else_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(ArrowRefused, match=problem):
        read_row(data)


def test_payload_of_columns_within_columns_without_end_is_refused() -> None:
    type_: pa.DataType = pa.int8()
    for _ in range(40):
        type_ = pa.list_(type_)

    with pytest.raises(ArrowRefused, match="columns within columns"):
        read_row(payload({"a": pa.array([[]], type_)}))
