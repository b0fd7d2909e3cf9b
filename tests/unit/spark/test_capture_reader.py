"""Captures to rows without Spark: every dialect, keys, fragments, damage, options, files."""

from __future__ import annotations

import gzip
import json
import pickle
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from elea.model.errors import CaptureError, ConfigError
from elea.spark.capture import COLUMNS, ZenohCaptureSource, capture_options
from elea.spark.capture_messages import Message
from elea.spark.capture_reader import CapturePart, CaptureReader
from elea.wire import dialect_named
from elea.wire.early import Decorated, Packet
from elea.wire.zenoh1 import messages as m
from tests.unit.wire.frames import datagram, ethernet, ipv4, pcap, pcapng, segment, tcp

RECORDED = Path(__file__).parents[1] / "cli" / "recorded"


def schema_of(*names: str) -> Any:
    from pyspark.sql import types as t

    kinds: dict[str, Any] = {
        "timestamp": t.TimestampType(),
        "string": t.StringType(),
        "bigint": t.LongType(),
        "int": t.IntegerType(),
        "tinyint": t.ByteType(),
        "binary": t.BinaryType(),
    }
    return t.StructType([t.StructField(name, kinds[COLUMNS[name]]) for name in names or COLUMNS])


def rows(path: Path, *names: str, **options: str) -> list[dict[str, Any]]:
    """All rows, read by all parts one after the other."""
    reader = ZenohCaptureSource({"path": str(path), **options}).reader(schema_of(*names))
    parts: list[Any] = pickle.loads(pickle.dumps(reader.partitions()))
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def written(path: Path, frames: list[bytes]) -> Path:
    path.write_bytes(pcap(frames))
    return path


@pytest.mark.parametrize("name", ["plain", "compression", "lowlatency", "udp"])
def test_session_of_the_real_peer_has_its_samples_with_whole_keys(name: str) -> None:
    found = rows(RECORDED / f"{name}.pcap")

    puts = [row for row in found if row["kind"] == "PUT" and row["message"] == "PUSH PUT"]
    keys = ["demo/0", "demo/1", "demo/2"] + (["demo/big"] if name != "lowlatency" else [])
    # In from the publisher, and out again to the subscriber, where the keys travel as numbers.
    assert [row["key"] for row in puts if row["direction"] == "connecting"] == keys
    assert [row["key"] for row in puts if row["direction"] == "accepting"] == keys
    assert all(row["timestamp"] for row in puts if row["direction"] == "accepting")
    assert [row["error"] for row in found] == [None] * len(found)
    assert {row["dialect"] for row in found} == {"zenoh1"}
    assert {row["transport"] for row in found} == {"udp" if name == "udp" else "tcp"}
    assert {row["encoding"] for row in puts} == {"zenoh/bytes"}
    assert [json.loads(row["json"])["_"] for row in puts] == ["PUSH"] * len(puts)
    names = Counter(row["message"] for row in found)
    assert [names[each] for each in ("INIT_SYN", "INIT_ACK", "OPEN_SYN", "OPEN_ACK")] == [2, 2, 2, 2]
    assert names["RESPONSE REPLY PUT"] == 2
    assert len({(row["packet"], row["number"]) for row in found}) == len(found)


def test_rows_of_the_parts_are_the_rows_of_the_whole(tmp_path: Path) -> None:
    frames = []
    for port in range(1000, 1060):
        pieces = [tcp(b"", seq=0, flags="S", source=port), tcp(batch(put(0, f"k/{port}")), seq=1, source=port)]
        frames += [ethernet(ipv4(piece, 6)) for piece in pieces]
    path = written(tmp_path / "many.pcap", frames)
    parts = [CapturePart(str(path), part, 5) for part in range(5)]

    reader = ZenohCaptureSource({"path": str(path)}).reader(schema_of())
    split = [[row for batch in reader.read(part) for row in batch.to_pylist()] for part in parts]

    assert sorted((row for part in split for row in part), key=lambda row: row["packet"]) == rows(path)
    assert [len(part) > 3 for part in split] == [True] * 5
    large = ZenohCaptureSource({"path": str(path), "splitBytes": "4000"}).reader(schema_of())
    assert len(large.partitions()) == -(-path.stat().st_size // 4000)


def batch(*messages: Any, sn: int = 1) -> bytes:
    data = dialect_named("zenoh1").encode("batch", (m.Frame(sn, messages, reliable=True),))
    return len(data).to_bytes(2, "little") + data


def put(scope: int, suffix: str | None = None, sender: bool = True, payload: bytes = b"v") -> m.Push:
    return m.Push(m.WireExpr(scope, sender, suffix), m.Put(payload))


def test_key_that_was_not_declared_in_the_capture_is_null(tmp_path: Path) -> None:
    declared = m.Declare(m.DeclareKeyExpr(7, 0, "a"))
    data = batch(put(7, "/b"), declared, put(7, "/b"), put(7, "/b", sender=False), put(0, "c"))
    path = written(tmp_path / "one.pcap", [segment(b"", seq=0, flags="S"), segment(data, seq=1)])

    assert [row["key"] for row in rows(path)] == [None, "a", "a/b", None, "c"]


def test_message_in_fragments_is_a_row_with_its_last_piece(tmp_path: Path) -> None:
    dialect = dialect_named("zenoh1")
    whole = dialect.encode("message", put(0, "big", payload=bytes(1000)))
    pieces = [whole[:400], whole[400:800], whole[800:]]
    data = b""
    for i, piece in enumerate(pieces):
        fragment = dialect.encode("batch", (m.Fragment(i, piece, reliable=True, more=i < 2),))
        data += len(fragment).to_bytes(2, "little") + fragment
    path = written(tmp_path / "one.pcap", [segment(b"", seq=0, flags="S"), segment(data, seq=1)])

    found = rows(path)

    assert [row["message"] for row in found] == ["FRAGMENT", "FRAGMENT", "FRAGMENT", "PUSH PUT"]
    assert (found[-1]["key"], found[-1]["payload"], found[-1]["sn"]) == ("big", bytes(1000), 2)


def test_fragments_without_their_beginning_are_an_error(tmp_path: Path) -> None:
    fragment = dialect_named("zenoh1").encode("batch", (m.Fragment(3, b"\xff\xff", reliable=True),))
    frames = [segment(b"", seq=0, flags="S"), segment(len(fragment).to_bytes(2, "little") + fragment, seq=1)]

    found = rows(written(tmp_path / "one.pcap", frames))

    assert [row["message"] for row in found] == ["FRAGMENT", None]
    assert "fragments of 2 octets" in found[1]["error"]


def test_fragments_are_not_held_beyond_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.spark.capture_messages.CAPTURE_FRAGMENT_BYTES", 100)
    fragment = dialect_named("zenoh1").encode("batch", (m.Fragment(3, bytes(60), reliable=True, more=True),))
    data = (len(fragment).to_bytes(2, "little") + fragment) * 2
    path = written(tmp_path / "one.pcap", [segment(b"", seq=0, flags="S"), segment(data, seq=1)])

    assert "held fragments of 120 is above the limit of 100" in rows(path)[-1]["error"]


@pytest.mark.parametrize("name", ["zenoh2018", "xrce2017"])
def test_samples_of_early_dialects(tmp_path: Path, name: str) -> None:
    dialect = dialect_named(name)
    early: Any = import_module(f"elea.wire.{name}.messages")
    messages = [
        early.Declare(1, (early.ResourceDecl(5, b"/a/b"),)),
        early.StreamData(2, 5, b"one", reliable=True),
        early.WriteData(3, b"/c", b"two"),
        early.BatchedData(4, 5, (b"x", b"y")),
        early.StreamData(5, 6, b"?"),
    ]
    packet = dialect.encode("packet", Packet(tuple(Decorated(message) for message in messages)))
    path = written(tmp_path / "one.pcap", [datagram(packet)])

    found = rows(path, dialect=name)

    samples = [(row["key"], row["payload"], row["sn"], row["reliability"]) for row in found if row["kind"] == "PUT"]
    assert samples == [
        ("/a/b", b"one", 2, "reliable"),
        ("/c", b"two", 3, "best_effort"),
        ("/a/b", b"x", 4, "best_effort"),
        ("/a/b", b"y", 4, "best_effort"),
        (None, b"?", 5, "best_effort"),
    ]
    assert [row["message"] for row in found][:3] == ["Declare", "StreamData", "WriteData"]
    assert [row["json"] is None for row in found] == [False, False, False, False, True, False]
    assert {row["dialect"] for row in found} == {name}


def damaged(tmp_path: Path) -> Path:
    """A good sample, a batch that is none, and the file cut off."""
    bad = (3).to_bytes(2, "little") + b"\xff\xff\xff"
    frames = [segment(b"", seq=0, flags="S"), segment(batch(put(0, "good")) + bad, seq=1), segment(b"x", seq=900)]
    path = tmp_path / "bad.pcap"
    path.write_bytes(pcap(frames)[:-3])
    return path


def test_what_cannot_be_decoded_is_a_row_with_error_and_octets(tmp_path: Path) -> None:
    found = rows(damaged(tmp_path))

    assert [row["key"] for row in found] == ["good", None, None]
    assert found[1]["error"].startswith("UNKNOWN_MESSAGE: zenoh1: ")
    assert found[1]["octets"] == b"\xff\xff\xff"
    assert found[2]["error"].startswith("TRUNCATED: pcap: ")
    assert (found[2]["file"], found[2]["packet"]) == (str(tmp_path / "bad.pcap"), 2)


def test_what_cannot_be_decoded_ends_the_query_if_asked_to(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"bad\.pcap, packet 2: UNKNOWN_MESSAGE.*mode=PERMISSIVE") as caught:
        rows(damaged(tmp_path), mode="failfast")

    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    ("octets", "problem"),
    [(b"hello", "MALFORMED: pcap: magic number"), (b"", "TRUNCATED: pcap"), (b"\x1f\x8bxxx", "UNREADABLE: ")],
)
def test_file_that_is_no_capture_is_a_row_with_error(tmp_path: Path, octets: bytes, problem: str) -> None:
    (tmp_path / "x.pcap").write_bytes(octets)

    found = rows(tmp_path / "x.pcap")

    assert len(found) == 1
    assert found[0]["error"].startswith(problem)


def test_packets_that_cannot_be_used_are_counted_in_a_row(tmp_path: Path) -> None:
    frames = [ethernet(ipv4(b"x" * 30, 17, fragment=0x2000))] * 3 + [segment(b"", seq=0, flags="S")]
    path = written(tmp_path / "x.pcap", frames)

    assert [row["error"] for row in rows(path)] == ["PASSED_OVER: 3 IP fragments"]
    assert len(rows(path, mode="FAILFAST")) == 1


def test_compressed_and_pcapng_files_hold_the_same(tmp_path: Path) -> None:
    frames = [segment(b"", seq=0, flags="S"), segment(batch(put(0, "k")), seq=1)]
    (tmp_path / "a.pcapng.gz").write_bytes(gzip.compress(pcapng(frames)))

    assert [row["key"] for row in rows(tmp_path / "a.pcapng.gz")] == ["k"]


def test_rows_come_in_bounded_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.spark.capture_reader.BATCH_BYTES", 1000)
    data = b"".join(batch(put(0, "k", payload=bytes(300)), sn=i) for i in range(50))
    path = written(tmp_path / "x.pcap", [segment(b"", seq=0, flags="S"), segment(data, seq=1)])
    reader = ZenohCaptureSource({"path": str(path)}).reader(schema_of("key", "payload"))

    sizes = [found.num_rows for found in reader.read(CapturePart(str(path), 0, 1))]

    assert (sum(sizes), max(sizes)) == (50, 4)


def test_columns_not_asked_for_are_not_made() -> None:
    found = rows(RECORDED / "plain.pcap", "key", "kind")

    assert {tuple(row) for row in found} == {("key", "kind")}


def test_files_are_found_by_directory_glob_list_and_address(tmp_path: Path) -> None:
    names = [tmp_path / name for name in ("a.pcap", "b.PCAPNG", "sub/c.cap", "readme.md", "odd name")]
    for name in names:
        name.parent.mkdir(exist_ok=True)
        name.write_bytes(b"")

    def found(**options: str) -> list[str]:
        return [str(Path(file).relative_to(tmp_path)) for file in capture_options(options).files]

    assert found(path=str(tmp_path)) == ["a.pcap", "b.PCAPNG"]
    assert found(path=f"{tmp_path}/**/*.cap") == ["sub/c.cap"]
    assert found(path=f"{tmp_path}/*") == ["a.pcap", "b.PCAPNG", "odd name", "readme.md", "sub/c.cap"]
    assert found(path=f"file://{tmp_path}/odd%20name") == ["odd name"]
    assert found(paths=json.dumps([str(names[0]), str(names[1]), str(tmp_path)])) == ["a.pcap", "b.PCAPNG"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"path": "/nowhere/at/all"}, "there is no capture at /nowhere/at/all"),
        ({"path": "s3://bucket/a.pcap"}, "local files only, not from s3"),
        ({}, "no capture is named"),
        ({"dialct": "auto"}, "option dialct: there is no such option; did you mean dialect"),
        ({"dialect": "zenoh3"}, "there is no dialect 'zenoh3'"),
        ({"port": "http"}, "'http' is no port"),
        ({"mode": "DROPMALFORMED"}, "there is no mode"),
        ({"split_bytes": "0"}, "'0' is no size"),
    ],
)
def test_wrong_option_says_what_to_do(options: dict[str, str], problem: str) -> None:
    given = options if "path" in options or not options else {"path": str(RECORDED), **options}

    with pytest.raises(ConfigError, match=problem):
        capture_options(given)


def test_unknown_column_names_the_nearest() -> None:
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    source = ZenohCaptureSource({"path": str(RECORDED)})
    with pytest.raises(ConfigError, match=r"column keys: there is no such column; did you mean key\?"):
        source.reader(StructType([StructField("keys", StringType())]))
    with pytest.raises(ConfigError, match="write key string"):
        source.reader(StructType([StructField("key", LongType())]))


def test_columns_are_the_members_of_a_message() -> None:
    assert set(COLUMNS) == {"file", *Message._fields}
    assert CaptureReader.MOST_PARTS > 1
