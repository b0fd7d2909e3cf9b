"""Captures: what goes into a file comes out of it, whatever happened to its end."""

from __future__ import annotations

import io
import random
from functools import partial
from pathlib import Path
from typing import Any

import lz4.frame
import pyarrow as pa
import pyarrow.ipc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.data_stream import ReadDataStream
from mcap.opcode import Opcode
from mcap.reader import NonSeekingReader, make_reader
from mcap.records import Chunk, ChunkIndex, Message, MessageIndex
from mcap.stream_reader import CRCValidationError, StreamReader, get_chunk_data_stream
from mcap.writer import CompressionType, Writer
from pyarrow import parquet

from elea.model import limits
from elea.model.encoding import Encoding
from elea.model.errors import CaptureDamaged
from elea.model.timestamp import ntp64_from_ns
from elea.recorder import Rotation, mcapreader, mcapwriter, open_capture, open_captures
from elea.recorder.arrowfile import END, journal_of
from elea.recorder.mcapformat import DETAILS
from elea.recorder.mcapreader import McapCapture
from elea.recorder.rotation import CaptureFiles
from elea.store import Range, memory_log
from elea.store.transfer import export_arrow
from tests.unit.recorder.samples import FORMATS, JSON, NOON, batch_of, row, sample_rows, table_of, written
from tests.unit.store.samples import sample


@pytest.mark.parametrize("suffix", FORMATS)
@settings(max_examples=25)
@given(data=st.data())
def test_what_is_written_is_read(suffix: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("captures") / f"some{suffix}"
    batches = [batch_of(rows) for rows in data.draw(st.lists(st.lists(sample_rows(), min_size=1), max_size=3))]

    written(path, batches)

    capture = open_capture(path)
    assert table_of(capture).equals(table_of(batches))
    assert not capture.is_cut
    assert capture.done == capture.size


@pytest.mark.parametrize("compression", ["zstd", "lz4", "none"])
def test_library_reads_mcap_with_all_its_indexes(tmp_path: Path, compression: str) -> None:
    rows = [row(number, key=f"home/{number % 5}/temp", schema=b"Temp") for number in range(100)]
    rows.append(row(100, key="home/1/temp", kind=1, payload=b"", encoding=0))
    (path,) = written(tmp_path / "a.mcap", [batch_of(rows[:60]), batch_of(rows[60:])], compression=compression)

    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        found = list(reader.iter_messages(topics=[f"home/{n}/temp" for n in range(5)]))
        metadata = {each.name: each.metadata for each in reader.iter_metadata()}

    assert summary is not None
    assert summary.statistics is not None
    assert (summary.statistics.message_count, summary.statistics.chunk_count) == (103, 2)
    assert [message.data for _, _, message in found] == [each["payload"] for each in rows]
    assert [message.log_time for _, _, message in found] == [each["arrival"] for each in rows]
    schema, channel, message = found[7]
    assert (channel.topic, channel.message_encoding) == ("home/2/temp", "json")
    assert schema is not None
    assert (schema.name, schema.encoding, schema.data) == ("Temp", "", b"")
    assert channel.metadata["zenoh.encoding"] == "application/json;Temp"
    assert message.publish_time == NOON + 2
    assert found[-1][1].metadata["zenoh.kind"] == "delete"
    assert metadata["elea.capture"]["key_expr"] == "home/**"
    assert metadata["elea.end"] == {"samples": "101", "dropped": "0"}


def test_indexes_lead_to_their_messages(tmp_path: Path) -> None:
    rows = [row(n, key=f"home/{n % 3}", arrival=NOON + 7 * n) for n in range(20)]
    (path,) = written(tmp_path / "a.mcap", [batch_of(rows[:12]), batch_of(rows[12:])])
    with path.open("rb") as file:
        records = list(StreamReader(file, emit_chunks=True).records)

    data, found = b"", []
    for record in records:
        if isinstance(record, Chunk):
            stream, size = get_chunk_data_stream(record, validate_crc=True)
            data = stream.read(size)
        elif isinstance(record, MessageIndex):
            for time, offset in record.records:
                stream = ReadDataStream(io.BytesIO(data[offset:]))
                assert stream.read1() == Opcode.MESSAGE
                message = Message.read(stream, stream.read8())
                assert (message.log_time, message.channel_id) == (time, record.channel_id)
                found.append(message.data)
    channels = [record for record in records if isinstance(record, ChunkIndex)]
    assert sorted(each for each in found if b"speed" in each) == sorted(each["payload"] for each in rows)
    assert [len(each.message_index_offsets) for each in channels] == [4, 4]


def test_chunk_that_is_gone_is_noticed(tmp_path: Path) -> None:
    (path,) = written(tmp_path / "a.mcap", [batch_of([row(n)]) for n in range(3)])
    data = bytearray(path.read_bytes())
    with path.open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary is not None
    data[summary.chunk_indexes[1].chunk_start_offset] = 0x80  # a record that nobody knows is passed over
    path.write_bytes(data)

    with pytest.raises(CaptureDamaged, match="should have 6 messages, and 4 were found"):
        list(open_capture(path))


def test_details_are_an_arrow_stream_that_anybody_can_read(tmp_path: Path) -> None:
    (path,) = written(tmp_path / "a.mcap", [batch_of([row(1, attachment=b"x", qos=29), row(2)])])

    with path.open("rb") as file:
        ((_, channel, message),) = list(make_reader(file).iter_messages(topics=[DETAILS]))
    details = pa.ipc.open_stream(message.data).read_all().to_pylist()

    assert message.sequence == 0
    assert channel.message_encoding == DETAILS
    assert details == [
        {"ntp64": row(1)["ntp64"], "stamp_id": b"\x07", "attachment": b"x", "qos": 29},
        {"ntp64": row(2)["ntp64"], "stamp_id": b"\x07", "attachment": None, "qos": 5},
    ]


@pytest.mark.parametrize("suffix", [".mcap", ".arrows"])
def test_file_that_was_cut_is_read_up_to_its_last_whole_batch(tmp_path: Path, suffix: str) -> None:
    batches = [batch_of([row(10 * part + n) for n in range(10)]) for part in range(3)]
    (path,) = written(tmp_path / f"a{suffix}", batches)
    whole = path.read_bytes()
    counts = []
    for size in [*range(9, len(whole), 17), len(whole) - 1]:
        path.write_bytes(whole[:size])
        capture = open_capture(path)
        found = table_of(capture)
        counts.append(found.num_rows)
        assert found.equals(table_of(batches).slice(0, found.num_rows))
        assert capture.is_cut or found.num_rows == 30

    assert sorted(counts) == counts
    assert set(counts) == {0, 10, 20, 30}


def test_library_reads_a_cut_file_as_far_as_we_do(tmp_path: Path) -> None:
    (path,) = written(tmp_path / "a.mcap", [batch_of([row(n)]) for n in range(3)])
    cut = path.read_bytes()[: path.read_bytes().rindex(b"elea.end") - 20]
    found = []
    try:
        for _, channel, message in NonSeekingReader(io.BytesIO(cut)).iter_messages(log_time_order=False):
            found += [message.data] if channel.topic != DETAILS else []
    except Exception:  # noqa: BLE001, S110 - what it says at the end of such a file is its own affair
        pass
    path.write_bytes(cut)

    assert found == table_of(open_capture(path)).column("payload").to_pylist() == [row(n)["payload"] for n in range(3)]


@pytest.mark.parametrize("suffix", [".mcap", ".arrows"])
def test_damage_is_an_error_of_its_own(tmp_path: Path, suffix: str) -> None:
    chance = random.Random(20)
    batch = batch_of([row(n, attachment=b"more", schema=b"s") for n in range(20)])
    (path,) = written(tmp_path / f"a{suffix}", [batch])
    whole = path.read_bytes()
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        capture = open_capture(path)
        try:
            found = table_of(capture)
        except CaptureDamaged:
            refused += 1
        else:  # Arrow has no checksums
            assert suffix != ".mcap" or capture.is_cut or found.equals(table_of([batch]))

    assert refused > 30


def test_damaged_page_of_a_parquet_file_is_an_error(tmp_path: Path) -> None:
    (path,) = written(tmp_path / "a.parquet", [batch_of([row(n) for n in range(20)])])
    data = bytearray(path.read_bytes())
    at = data.index(b"\x28\xb5\x2f\xfd") + 12  # inside the first page that zstd has made
    data[at] ^= 1
    path.write_bytes(data)

    with pytest.raises(CaptureDamaged, match=r"(?i)checksum|crc"):
        list(open_capture(path))


@pytest.mark.parametrize("suffix", FORMATS)
def test_file_that_is_something_else_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"this is no capture, and never was one" * 10)

    with pytest.raises(CaptureDamaged, match="no capture that can be read, at byte 0"):
        list(open_capture(path))


def test_chunk_that_promises_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = written(tmp_path / "a.mcap", [batch_of([row(payload=bytes(100_000))])])
    monkeypatch.setattr("elea.recorder.mcapreader.MCAP_CHUNK_BYTES", 10_000)

    with pytest.raises(CaptureDamaged, match=r"a chunk of \d+ bytes, the limit is 10000 \(MCAP_CHUNK_BYTES\)"):
        list(open_capture(path))


def test_name_says_the_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'a\.bag' ends with none of \.mcap, \.parquet, \.arrows"):
        open_capture(tmp_path / "a.bag")


def test_parquet_that_was_not_finished_tells_where_its_samples_are(tmp_path: Path) -> None:
    (path,) = written(tmp_path / "a.parquet.arrows", [batch_of([row()])])

    with pytest.raises(CaptureDamaged, match=f"what was recorded is in {path}"):
        open_capture(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("instead", "problem"),
    [(END, "3 samples were written to it, and 2 were found"), (bytes(8), "no Arrow message is where one should begin")],
    ids=["ends-early", "broken"],
)
def test_journal_that_has_not_what_was_written_stays_and_nothing_else(
    tmp_path: Path, instead: bytes, problem: str
) -> None:
    path = tmp_path / "a.parquet"
    journal = journal_of(path)
    files = CaptureFiles(path, {}, Rotation(), now=0.0)
    whole = 0
    for number in range(3):
        whole = journal.stat().st_size
        files.write(batch_of([row(number)]), 0.0)
    data = journal.read_bytes()
    journal.write_bytes(data[:whole] + instead + data[whole + len(instead) :])

    with pytest.raises(CaptureDamaged, match=problem):
        files.finish({})

    assert list(tmp_path.iterdir()) == [journal]


@pytest.mark.parametrize("suffix", FORMATS)
def test_files_are_read_in_the_order_of_their_samples(tmp_path: Path, suffix: str) -> None:
    paths = written(tmp_path / f"a{suffix}", [batch_of([row(n)]) for n in range(3)], rotation=Rotation(max_bytes=1))

    captures = open_captures(paths[::-1])

    assert [path.name for path in paths] == [f"a-000{n}{suffix}" for n in (1, 2, 3)]
    assert [capture.path for capture in captures] == paths


# -- files of a store --------------------------------------------------------------------------------------------------


def test_export_of_a_log_is_read(tmp_path: Path) -> None:
    log = memory_log()
    log.append([sample(n, payload=b"%d" % n) for n in range(5)])
    with (tmp_path / "log.arrows").open("wb") as file:
        export_arrow(log, Range(), file)
    table = pa.Table.from_batches(list(log.read_arrow(Range())))
    parquet.write_table(table, tmp_path / "log.parquet")

    exported, read = (table_of(open_capture(tmp_path / f"log.{suffix}")) for suffix in ("arrows", "parquet"))

    assert exported.column("payload").to_pylist() == [b"%d" % n for n in range(5)]
    assert exported.equals(read)
    assert exported.column("ntp64").to_pylist() == table.column("ntp64").to_pylist()


# -- files of other recorders ------------------------------------------------------------------------------------------


def foreign(path: Path, **options: Any) -> None:
    with path.open("wb") as file:
        writer: Any = Writer(file, **options)
        writer.start(profile="ros2")
        schema = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data")
        chatter = writer.register_channel("/chatter", "cdr", schema)
        state = writer.register_channel("robot/state", "json", 0)
        odd = writer.register_channel("robot/odd", "text/plain;utf-8", 0)
        for number in range(3):
            writer.add_message(chatter, NOON + number, b"\0\1\0\0%d" % number, NOON + number - 5, number)
            writer.add_message(state, NOON + number, b"{}", NOON + number)
            writer.add_message(odd, NOON + number, b"text", 0)
        writer.finish()


@pytest.mark.parametrize(
    "options",
    [{}, {"use_chunking": False}, {"compression": CompressionType.LZ4}, {"compression": CompressionType.NONE}],
    ids=["zstd", "plain", "lz4", "none"],
)
def test_file_of_another_recorder_is_read(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "foreign.mcap"
    foreign(path, **options)

    found = table_of(McapCapture(path)).to_pylist()

    assert len(found) == 9
    chatter = next(each for each in found if each["key"] == "chatter")
    assert (chatter["encoding"], chatter["schema"]) == (Encoding.APPLICATION_CDR.id, b"std_msgs/msg/String")
    assert (chatter["ntp64"], chatter["stamp_id"]) == (ntp64_from_ns(NOON - 5), b"mcap")
    assert chatter["payload"] == b"\0\1\0\x000"
    state = next(each for each in found if each["key"] == "robot/state")
    assert (state["encoding"], state["schema"], state["qos"], state["kind"]) == (JSON, None, 5, 0)
    odd = next(each for each in found if each["key"] == "robot/odd")
    assert (odd["encoding"], odd["schema"]) == (Encoding.TEXT_PLAIN.id, b"utf-8")


@pytest.mark.parametrize("stored", [False, True], ids=["no-size", "size"])
@pytest.mark.parametrize(("size", "found"), [(100, "more"), (100_001, "100000")])
def test_chunk_of_lz4_is_as_large_as_it_says(size: int, found: str, stored: bool) -> None:
    data = lz4.frame.compress(bytes(100_000), store_size=stored)
    chunk = partial(Chunk, compression="lz4", data=data, message_start_time=0, message_end_time=0)

    assert mcapreader._decompressed(chunk(uncompressed_crc=0, uncompressed_size=100_000)) == bytes(100_000)
    with pytest.raises(ValueError, match=f"a chunk should have {size} bytes, and has {found}"):
        mcapreader._decompressed(chunk(uncompressed_crc=0, uncompressed_size=size))
    with pytest.raises(ValueError, match="its frame has no end"):
        mcapreader._decompressed(chunk(uncompressed_crc=0, uncompressed_size=100_000, data=data[:-4]))
    with pytest.raises(CRCValidationError):
        mcapreader._decompressed(chunk(uncompressed_crc=1, uncompressed_size=100_000))


def test_chunk_of_too_many_records_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "foreign.mcap"
    foreign(path)
    records = 1 + 3 + 9  # the schema, the channels and the messages

    monkeypatch.setattr(mcapreader, "MCAP_CHUNK_RECORDS", records)
    assert len(table_of(McapCapture(path))) == 9
    monkeypatch.setattr(mcapreader, "MCAP_CHUNK_RECORDS", records - 1)
    with pytest.raises(CaptureDamaged, match=f"a chunk of more than {records - 1} records"):
        list(McapCapture(path))


def test_details_that_another_tool_has_lost_are_counted(tmp_path: Path) -> None:
    (path,) = written(tmp_path / "a.mcap", [batch_of([row(n) for n in range(5)])])
    with path.open("rb") as file, (tmp_path / "b.mcap").open("wb") as out:
        writer: Any = Writer(out)
        writer.start()
        for _, channel, message in make_reader(file).iter_messages(topics=["home/1/temp"]):
            number = writer.register_channel(channel.topic, channel.message_encoding, 0, channel.metadata)
            writer.add_message(number, message.log_time, message.data, message.publish_time, message.sequence)
        writer.finish()
    capture = McapCapture(tmp_path / "b.mcap")

    found = table_of(capture)

    assert found.column("payload").to_pylist() == [row(n)["payload"] for n in range(5)]
    assert found.column("ntp64").null_count == 5
    assert capture.without_details == 5


def merged(paths: list[Path], out: Path) -> None:
    """As a tool does it that knows nothing of us."""
    with out.open("wb") as target:
        writer: Any = Writer(target)
        writer.start()
        for path in paths:
            numbers: dict[int, int] = {}
            with path.open("rb") as file:
                for _, channel, message in make_reader(file).iter_messages(log_time_order=False):
                    if channel.id not in numbers:
                        numbers[channel.id] = writer.register_channel(
                            channel.topic, channel.message_encoding, 0, channel.metadata
                        )
                    writer.add_message(
                        numbers[channel.id], message.log_time, message.data, message.publish_time, message.sequence
                    )
        writer.finish()


def test_merged_captures_keep_their_details_apart(tmp_path: Path) -> None:
    first = batch_of([row(n, key="a", attachment=b"a") for n in range(3)])
    second = batch_of([row(n, key="b", attachment=b"b") for n in range(3)])
    paths = written(tmp_path / "x.mcap", [first, second], rotation=Rotation(max_bytes=1))
    paths += written(tmp_path / "y.mcap", [second])

    merged(paths, tmp_path / "merged.mcap")

    found = table_of(McapCapture(tmp_path / "merged.mcap")).to_pylist()
    assert len(paths) == 3
    assert [each["attachment"] for each in found] == [b"a"] * 3 + [b"b"] * 6


# -- what the format has no numbers for --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "limit", "files"),
    [("MCAP_CHANNELS", 12, 4), ("MCAP_SAMPLES", 20, 2), ("MCAP_SUMMARY_BYTES", 1, 4), ("MCAP_CHANNELS", 65_535, 1)],
)
def test_another_file_begins_when_one_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int, files: int
) -> None:
    monkeypatch.setattr(mcapwriter, name, limit)
    batches = [batch_of([row(10 * part + n, key=f"k/{part}/{n}") for n in range(10)]) for part in range(4)]

    paths = written(tmp_path / "a.mcap", batches)

    assert len(paths) == files
    assert table_of(each for path in paths for each in open_capture(path)).equals(table_of(batches))


def test_every_sample_of_a_chunk_may_have_a_channel_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.MCAP_CHUNK_ROWS < limits.MCAP_CHANNELS
    monkeypatch.setattr(mcapwriter, "MCAP_CHUNK_ROWS", 100)
    monkeypatch.setattr(mcapwriter, "MCAP_CHANNELS", 101)
    batch = batch_of([row(n, key=f"k/{n}") for n in range(250)])

    paths = written(tmp_path / "a.mcap", [batch])

    assert len(paths) == 3
    assert table_of(each for path in paths for each in open_capture(path)).equals(table_of([batch]))
