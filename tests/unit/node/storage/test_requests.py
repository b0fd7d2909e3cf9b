"""What clients ask of a store by name: `@store/put`, `batch`, `read`, `cursor`, `info`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import elea
from elea.api.session import Session
from tests.unit.node.storage.serving import (
    WAIT,
    Broker,
    batch,
    broker,
    eventually,
    failure,
    samples,
    table,
    told,
    values,
)

BLOCK = elea.CongestionControl.BLOCK


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    home = {"key_expr": "home/**", "volume": "log", "complete": True}
    with broker(tmp_path_factory.mktemp("store"), home=home, now={"key_expr": "now/**", "volume": "memory"}) as made:
        yield made


@pytest.fixture(scope="module")
def client(shared: Broker) -> Iterator[Session]:
    with shared.client() as session:
        yield session


# -- puts


def test_put_is_acknowledged_with_its_place(shared: Broker, client: Session) -> None:
    log = shared.storage("home").log
    end = log.end
    receipt = told(client, "@store/put/home/ack?src=a1.1.1", payload="x", encoding="text/plain", attachment="more")
    stored = log.latest("home/ack")

    assert receipt == {"log": "home", "epoch": log.epoch, "keys": "home/**", "position": end, "repeated": False}
    assert stored is not None
    assert (stored.record.payload, stored.record.attachment) == (b"x", b"more")
    assert stored.record.source_sn == 1
    assert str(samples(client, "home/ack")[0].encoding) == "text/plain"


def test_put_with_a_known_number_is_stored_and_published_once(shared: Broker, client: Session) -> None:
    with client.declare_subscriber("home/twice") as subscriber:
        samples(client, "home/none")  # the declaration has arrived
        receipts = [told(client, "@store/put/home/twice?src=a1.1.2", payload="x") for _ in range(2)]
        told(client, "@store/put/home/twice?src=a1.1.3", payload="y")
        seen = [subscriber.recv() for _ in range(2)]

    assert [receipt["repeated"] for receipt in receipts] == [False, True]
    assert receipts[0]["position"] == receipts[1]["position"]
    assert [sample.payload.to_string() for sample in seen] == ["x", "y"]
    stored = samples(client, "home/twice?_history")
    assert [sample.timestamp for sample in seen] == [sample.timestamp for sample in stored]
    assert seen[0].source_info is not None
    assert seen[0].source_info.source_sn == 2


def test_put_can_have_a_time_of_its_own_and_can_delete(client: Session) -> None:
    told(client, "@store/put/home/timed?src=a1.2.1;time=6680000000000000.ab", payload="x")
    (sample,) = samples(client, "home/timed")
    told(client, "@store/put/home/timed?kind=del;src=a1.2.2")

    assert str(sample.timestamp) == f"{0x6680000000000000}/ab"
    assert values(client, "home/timed") == []


def test_put_to_an_expression_reaches_every_key_of_it(client: Session) -> None:
    for number in range(3):
        told(client, f"@store/put/home/every/{number}?src=a1.5.{number}", payload="x")
    told(client, "@store/put/home/every/*?src=a1.5.3;kind=del")
    refused = failure(client, "@store/put/home/every/*?src=a1.5.4", payload="y")

    assert values(client, "home/every/*") == []
    assert refused["error"] == "StoreError"


def test_time_too_far_ahead_is_replaced(client: Session) -> None:
    told(client, "@store/put/home/future?src=a1.2.3;time=ffff000000000000.ab", payload="x")
    (sample,) = samples(client, "home/future")

    assert not str(sample.timestamp).endswith("/ab")


@pytest.mark.parametrize("parameters", ["", "src=a1.1", "src=xyz.1.1", "src=a1.1.9;kind=move", "src=a1.1.9;time=1"])
def test_put_without_sense_is_refused(client: Session, parameters: str) -> None:
    assert failure(client, f"@store/put/home/x?{parameters}", payload="x")["error"] == "InvalidSelector"


def test_put_to_keys_of_no_storage_goes_to_the_default_log(shared: Broker, client: Session) -> None:
    receipt = told(client, "@store/put/other/x?src=a1.3.1;durability=persistent", payload="x")

    assert receipt["log"] == "default"
    assert values(client, "other/x") == [("other/x", "x")]


def test_put_that_must_persist_is_not_left_to_memory(client: Session) -> None:
    assert told(client, "@store/put/now/x?src=a1.4.1;durability=persistent", payload="x")["log"] == "default"
    assert told(client, "@store/put/now/x?src=a1.4.2;durability=transient", payload="x")["log"] == "now"


def test_memory_alone_does_not_claim_to_persist() -> None:
    with broker(now={"key_expr": "now/**", "volume": "memory"}) as made, made.client() as session:
        refused = failure(session, "@store/put/now/x?src=a1.1.1;durability=persistent", payload="x")
        unkept = list(session.get("@store/put/else/x?src=a1.1.1", payload="x"))

    assert refused["error"] == "StoreError"
    assert "memory" in refused["text"]
    assert unkept == []


def test_other_storages_get_an_acknowledged_put_as_well(tmp_path: Path) -> None:
    logs = {name: {"key_expr": key, "volume": "log"} for name, key in (("part", "a/b/**"), ("whole", "a/**"))}
    with broker(tmp_path, **logs) as made, made.client() as session:
        assert told(session, "@store/put/a/b/c?src=a1.1.1", payload="x")["log"] == "part"
        eventually(lambda: made.storage("whole").log.latest("a/b/c"), "the copy")
        assert made.storage("part").log.end == made.storage("whole").log.end == 1


# -- batches


def test_batch_is_stored_in_its_order_and_known_again(shared: Broker, client: Session) -> None:
    log = shared.storage("home").log
    end = log.end
    data = batch([("home/b/1", b"x"), ("home/b/2", b"y"), ("home/b/1", b"z")], kind=pa.array([0, 0, 1], pa.uint8()))
    first, again = (told(client, "@store/batch/home/b/*?src=b1.1.0", payload=data) for _ in range(2))

    assert first == {
        "log": "home",
        "epoch": log.epoch,
        "first": end,
        "rows": 3,
        "in_turn": True,
        "repeated": 0,
        "restamped": 0,
    }
    assert (again["rows"], again["repeated"]) == (0, 3)
    assert values(client, "home/b/*?_history") == [("home/b/1", "x"), ("home/b/2", "y"), ("home/b/1", "-")]


def test_half_known_batch_is_stored_by_half(client: Session) -> None:
    told(client, "@store/batch/home/h/*?src=b1.2.0", payload=batch([("home/h/1", b"a"), ("home/h/2", b"b")]))
    half = told(client, "@store/batch/home/h/*?src=b1.2.1", payload=batch([("home/h/2", b"b"), ("home/h/3", b"c")]))

    assert (half["rows"], half["repeated"]) == (1, 1)
    assert len(values(client, "home/h/*?_history")) == 3


def test_batch_is_published_to_who_wants_it(client: Session) -> None:
    with client.declare_subscriber("home/p/1") as subscriber:
        samples(client, "home/none")
        told(client, "@store/batch/home/p/*?src=b1.3.0", payload=batch([("home/p/1", b"a"), ("home/p/2", b"b")]))
        assert subscriber.recv().payload.to_string() == "a"


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([("now/x", b"x")], "does not belong"),
        ([("home/*", b"x")], "does not belong"),
        ([("home//x", b"x")], "is no key"),
    ],
)
def test_batch_with_a_wrong_key_is_refused_whole(
    shared: Broker, client: Session, rows: list[tuple[str, bytes]], what: str
) -> None:
    end = shared.storage("home").log.end
    refused = failure(client, "@store/batch/home/**?src=b1.4.0", payload=batch([("home/ok", b"x"), *rows]))

    assert refused["error"] == "StoreError"
    assert what in refused["text"]
    assert shared.storage("home").log.end == end


def test_batch_that_is_no_arrow_stream_is_refused(client: Session) -> None:
    assert failure(client, "@store/batch/home/**?src=b1.5.0", payload=b"what?")["error"] == "ArrowRefused"


# -- reading


def test_range_is_read_as_one_arrow_stream(shared: Broker, client: Session) -> None:
    start = shared.storage("home").log.end
    told(client, "@store/batch/home/r/*?src=c1.1.0", payload=batch([(f"home/r/{n}", b"x" * n) for n in range(10)]))
    rows, last = table(client, f"@store/read/home/**?from={start}")

    assert [row["position"] for row in rows] == list(range(start, start + 10))
    assert [len(row["payload"]) for row in rows] == list(range(10))
    log = shared.storage("home").log
    assert last == {"log": "home", "epoch": log.epoch, "first": 0, "next": log.end, "end": log.end}


def test_range_by_key_limit_order_and_rows(shared: Broker, client: Session) -> None:
    start = shared.storage("home").log.end
    rows = [(f"home/l/{n % 2}", str(n).encode()) for n in range(10)]
    told(client, "@store/batch/home/l/*?src=c1.2.0", payload=batch(rows))

    def read(parameters: str, key: str = "home/l/1") -> tuple[str, int]:
        found, last = table(client, f"@store/read/{key}?from={start};{parameters}")
        return "".join(row["payload"].decode() for row in found), last["next"] - start

    assert read("") == ("13579", 10)
    assert read("limit=2") == ("13", 4)
    assert read("limit=2;order=newest") == ("97", 10)
    assert read(f"to={start + 4}") == ("13", 4)
    assert read("rows=3", "home/l/*") == ("0123456789", 10)
    assert read("by=time;order=newest", "home/l/*") == ("9876543210", 10)
    assert read("time=[now(-1h)..]") == ("13579", 10)


def test_reading_goes_on_where_it_ended(shared: Broker, client: Session) -> None:
    end = shared.storage("home").log.end
    rows, last = table(client, f"@store/read/home/**?from={end}")
    assert (rows, last["next"]) == ([], end)

    client.put("home/next", "x", congestion_control=BLOCK)
    rows, last = table(client, f"@store/read/home/**?from={end}")
    assert [row["key"] for row in rows] == ["home/next"]
    assert last["next"] == end + 1


def test_large_range_comes_in_pieces(client: Session) -> None:
    told(client, "@store/batch/home/big?src=c1.3.0", payload=batch([("home/big", b"x" * 100_000)] * 30))
    pieces = samples(client, "@store/read/home/big")

    assert len(pieces) > 5
    assert max(len(piece.payload.to_bytes()) for piece in pieces) <= 1 << 20


def test_range_of_so_many_octets_goes_on_where_it_ended(shared: Broker, client: Session) -> None:
    start = shared.storage("home").log.end
    for number, count in enumerate((1, 1200, 3, 1100)):
        pairs = [(f"home/octets/{row}", bytes(50)) for row in range(count)]
        told(client, f"@store/batch/home/octets/*?src=c1.4.{number * 10_000}", payload=batch(pairs))
    found: list[int] = []
    place, answers, more = start, 0, True
    while more:
        rows, last = table(client, f"@store/read/home/**?from={place};bytes=1000")
        found += [row["position"] for row in rows]
        assert last["next"] == found[-1] + 1
        place, answers, more = last["next"], answers + 1, last["more"]

    assert found == list(range(start, start + 2304))
    assert answers == 4


def test_range_of_several_storages_is_refused() -> None:
    logs = {name: {"key_expr": f"{name}/**", "volume": "memory"} for name in "ab"}
    with broker(**logs) as made, made.client() as session:
        refused = failure(session, "@store/read/**")

    assert refused["error"] == "StoreError"
    assert "a/**, b/**" in refused["text"]


def test_range_of_damaged_samples_says_so(tmp_path: Path) -> None:
    logs = {"home": {"key_expr": "home/**", "volume": "log"}}
    with broker(tmp_path, **logs) as made, made.client() as session:
        told(session, "@store/put/home/x?src=a1.1.1", payload="x" * 5000)
        told(session, "@store/put/home/y?src=a1.1.2", payload="y" * 5000)
    (segment,) = (tmp_path / "home").glob("*.arrows")
    data = bytearray(segment.read_bytes())
    data[data.index(b"x" * 5000) + 100] ^= 1
    segment.write_bytes(bytes(data))
    with broker(tmp_path, **logs) as made, made.client() as session:
        replies = list(session.get("@store/read/home/**", consolidation=elea.ConsolidationMode.NONE))
        errors = [json.loads(reply.err.payload.to_string()) for reply in replies if reply.err is not None]
        rows, _ = table(session, "@store/read/home/**?skip_damaged")
        info = told(session, f"@store/info/{made.session.zid()}/home")

    assert [error["error"] for error in errors] == ["StoreCorrupt"]
    assert [row["key"] for row in rows] == ["home/y"]
    assert len(info["damage"]) == 1


# -- what nobody expects


@pytest.mark.parametrize(
    ("selector", "error"),
    [("@store/read/home/**", "InvalidSelector"), ("@store/commit/home/**?src=b9.1.0", "StoreError")],
)
def test_json_nested_without_end_is_no_json(client: Session, selector: str, error: str) -> None:
    refused = failure(client, selector, payload=b"[" * 100_000)

    assert refused["error"] == error
    assert "nested too deep" in refused["text"]


def test_what_went_wrong_inside_is_told_at_home_only(
    shared: Broker, client: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(name: str) -> int:
        raise LookupError("the memory of this process")

    monkeypatch.setattr(shared.storage("home").log, "cursor", broken)

    refused = failure(client, "@store/cursor/home/**?name=c")

    assert refused["error"] == "StoreError"
    assert refused["text"] == "the broker has failed, an internal LookupError; see its log"
    assert "the memory of this process" in caplog.text


# -- cursors and facts


def test_cursor_is_moved_told_and_dropped(shared: Broker, client: Session) -> None:
    end = shared.storage("home").log.end
    assert told(client, "@store/cursor/home/**?name=c")["position"] is None
    assert told(client, f"@store/cursor/home/**?name=c;move={end}")["position"] == end
    assert told(client, "@store/cursor/home/**?name=c")["end"] == end
    assert told(client, "@store/cursor/home/**?name=c;drop")["position"] is None
    assert failure(client, f"@store/cursor/home/**?name=c;move={end + 1}")["error"] == "StoreError"
    assert failure(client, "@store/cursor/home/**")["error"] == "InvalidSelector"


def test_storages_tell_of_themselves(shared: Broker, client: Session) -> None:
    found = {
        str(sample.key_expr).rpartition("/")[2]: json.loads(sample.payload.to_string())
        for sample in samples(client, f"@store/info/{shared.session.zid()}/**")
    }

    assert set(found) == {"home", "now", "default"}
    assert found["home"]["state"] == "open"
    assert found["home"]["durability"] == "persistent"
    assert found["now"]["durability"] == "transient"
    assert found["home"]["not_kept"] == {}
    assert found["home"]["end"] == shared.storage("home").log.end


def test_wildcards_of_users_do_not_meet_the_services(client: Session) -> None:
    assert not [sample for sample in samples(client, "**") if str(sample.key_expr).startswith("@")]


def test_acknowledged_put_of_many_fragments_costs_no_more_than_its_size() -> None:
    """A request is one piece: to cut fragments off its beginning took longer than a lease from 50 MB on."""
    payload = bytes(range(256)) * 352_000  # 90 MB
    with broker(home={"key_expr": "home/**", "volume": "memory"}) as made, made.client() as session:
        receipt = session.put("home/large", payload, ack=True, timeout=WAIT)
        (sample,) = samples(session, "home/large")

    assert receipt is not None
    assert sample.payload.to_bytes() == payload
