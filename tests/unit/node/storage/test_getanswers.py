"""Plain gets on stored keys."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import elea
from elea.api.session import Session
from elea.model.timestamp import ns_from_ntp64
from elea.store.memoryshelf import MemoryShelf
from tests.unit.node.storage.serving import WAIT, Broker, broker, eventually, failure, samples, values

HOME = {"key_expr": "home/**", "volume": "memory", "complete": True}


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with broker(home=HOME) as made:
        yield made


@pytest.fixture(scope="module")
def client(shared: Broker) -> Iterator[Session]:
    with shared.client() as session:
        yield session


def stamp(seconds: float) -> elea.Timestamp:
    """So many seconds after a time in the past."""
    return elea.Timestamp(datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds), elea.TimestampId(b"\x01"))


def put(session: Session, key: str, *values: str, at: float | None = None) -> None:
    for value in values:
        session.put(
            key,
            value,
            congestion_control=elea.CongestionControl.BLOCK,
            timestamp=None if at is None else stamp(at),
        )


def test_get_brings_the_latest_value_of_each_key(client: Session) -> None:
    put(client, "home/latest/1", "a", "b")
    put(client, "home/latest/2", "c")

    assert values(client, "home/latest/1") == [("home/latest/1", "b")]
    assert values(client, "home/latest/*") == [("home/latest/1", "b"), ("home/latest/2", "c")]
    assert values(client, "home/latest/3") == []


def test_what_was_put_comes_back_whole(client: Session) -> None:
    client.put(
        "home/whole",
        b"\x00\xff",
        encoding="application/cbor;v=1",
        attachment=b"more",
        timestamp=stamp(1),
        congestion_control=elea.CongestionControl.BLOCK,
    )
    (sample,) = samples(client, "home/whole")

    assert sample.payload.to_bytes() == b"\x00\xff"
    assert str(sample.encoding) == "application/cbor;v=1"
    assert sample.attachment is not None
    assert sample.attachment.to_bytes() == b"more"
    assert sample.timestamp == stamp(1)


def test_samples_without_a_time_have_the_time_that_subscribers_see(shared: Broker, client: Session) -> None:
    got: list[elea.Sample] = []
    with shared.client() as other, other.declare_subscriber("home/stamped") as subscriber:
        samples(other, "home/none")  # the declaration has arrived
        put(client, "home/stamped", "x")
        got.append(subscriber.recv())
        client.delete("home/stamped", congestion_control=elea.CongestionControl.BLOCK)
        got.append(subscriber.recv())
    stored = samples(client, "home/stamped?_history")

    assert [sample.timestamp for sample in got] == [sample.timestamp for sample in stored]
    assert got[0].timestamp is not None


def test_deleted_keys_have_no_value_and_a_history(client: Session) -> None:
    put(client, "home/gone", "a")
    client.delete("home/gone", congestion_control=elea.CongestionControl.BLOCK)

    assert values(client, "home/gone") == []
    assert values(client, "home/gone?_history") == [("home/gone", "a"), ("home/gone", "-")]


def test_newest_by_time_is_the_latest_not_the_last_that_came(client: Session) -> None:
    put(client, "home/late", "new", at=10)
    put(client, "home/late", "old", at=5)

    assert values(client, "home/late") == [("home/late", "new")]


def test_time_range_is_by_timestamp_oldest_first(client: Session) -> None:
    for at in (3, 1, 2, 4):
        put(client, "home/time", str(at), at=at)
    key = "home/time"
    text = [f"2024-01-01T00:00:0{at}Z" for at in range(5)]

    assert values(client, f"{key}?_time=[{text[1]}..{text[3]}]") == [(key, "1"), (key, "2"), (key, "3")]
    assert values(client, f"{key}?_time=]{text[1]}..{text[3]}[") == [(key, "2")]
    assert values(client, f"{key}?_time=[{text[2]}..];_order=newest;_limit=2") == [(key, "4"), (key, "3")]
    assert values(client, f"{key}?_time=[now(-1h)..]") == []


def test_state_as_of_a_time(client: Session) -> None:
    put(client, "home/asof/1", "a", at=100)
    put(client, "home/asof/1", "b", at=102)
    put(client, "home/asof/2", "c", at=103)

    def as_of(text: str) -> list[str]:
        return [value for _, value in values(client, f"home/asof/*?_as_of={text}")]

    assert as_of("2024-01-01T00:01:39Z") == []
    assert as_of("2024-01-01T00:01:41Z") == ["a"]
    assert sorted(as_of("now()")) == ["b", "c"]
    assert as_of(str(stamp(102))) == ["b"]


def test_history_limit_order_and_positions(shared: Broker, client: Session) -> None:
    first = shared.storage("home").log.end
    put(client, "home/many", *"abcde")
    key = "home/many"

    def letters(parameters: str) -> str:
        return "".join(value for _, value in values(client, f"{key}?{parameters}"))

    assert letters("_history") == "abcde"
    assert letters("_history;_limit=2") == "ab"
    assert letters("_history;_limit=2;_order=newest") == "ed"
    assert letters(f"_from={first + 1};_to={first + 3}") == "bc"
    assert letters(f"_from={first + 3}") == "de"


def test_latest_with_limit_and_order(client: Session) -> None:
    for name in "abc":
        put(client, f"home/cut/{name}", name)

    assert values(client, "home/cut/*?_limit=1") == [("home/cut/a", "a")]
    assert values(client, "home/cut/*?_limit=2;_order=newest") == [("home/cut/c", "c"), ("home/cut/b", "b")]


def test_parameters_of_others_are_ignored(client: Session) -> None:
    put(client, "home/other", "x")

    assert values(client, "home/other?unit=C") == [("home/other", "x")]
    assert values(client, "home/other?_anyke") == [("home/other", "x")]


@pytest.mark.parametrize("key", ["home/x", "home/*"])
def test_a_parameter_that_no_store_knows_is_an_error_with_a_suggestion(client: Session, key: str) -> None:
    told = failure(client, f"{key}?_hist")

    assert told["error"] == "InvalidSelector"
    assert told["problem"] == "_hist is no parameter of a store; did you mean '_history'"


@pytest.mark.parametrize(
    "parameters", ["_time=yesterday", "_limit=-1", "_from=x", "_order=up", "_as_of=then", "_as_of=1/xyz"]
)
def test_parameters_without_sense_are_an_error(client: Session, parameters: str) -> None:
    told = failure(client, f"home/x?{parameters}")

    assert told["error"] == "InvalidSelector"
    assert told["problem"]


def test_position_that_is_gone_is_an_error(shared: Broker, client: Session) -> None:
    shelf = shared.storage("home").log.shelf
    assert isinstance(shelf, MemoryShelf)
    put(client, "home/x", "x")
    samples(client, "home/x")
    view = shelf.view
    shelf.view = view._replace(first=1)
    try:
        told = failure(client, "home/**?_from=0")
    finally:
        shelf.view = view

    assert (told["error"], told["position"], told["first"]) == ("StoreTrimmed", 0, 1)


def test_deleting_an_expression_deletes_every_key_of_it(client: Session) -> None:
    for name in ("wild/a", "wild/b", "wild/b/c"):
        put(client, f"home/{name}", "x")
    client.delete("home/wild/*", congestion_control=elea.CongestionControl.BLOCK)

    assert values(client, "home/wild/**") == [("home/wild/b/c", "x")]


def test_putting_to_an_expression_puts_to_every_key_that_has_a_value(client: Session) -> None:
    for name in ("a", "b"):
        put(client, f"home/each/{name}", "x")
    client.delete("home/each/b", congestion_control=elea.CongestionControl.BLOCK)
    put(client, "home/each/*", "y")

    assert values(client, "home/each/*") == [("home/each/a", "y")]


def test_older_samples_that_come_after_a_deletion_of_their_expression_stay_deleted(client: Session) -> None:
    client.delete("home/bulk/**", timestamp=stamp(20), congestion_control=elea.CongestionControl.BLOCK)
    put(client, "home/bulk/old", "x", at=19)
    put(client, "home/bulk/new", "y", at=21)

    assert values(client, "home/bulk/**") == [("home/bulk/new", "y")]


def test_the_broker_itself_can_put_and_get(shared: Broker) -> None:
    put(shared.session, "home/own", "a", "b")

    def seen() -> list[tuple[str, str]]:
        return values(shared.session, "home/own")

    eventually(lambda: seen() == [("home/own", "b")], "own puts")


def test_large_values_come_in_fragments_and_are_kept(client: Session) -> None:
    put(client, "home/large", "x" * 300_000)

    (sample,) = samples(client, "home/large")
    assert len(sample.payload.to_bytes()) == 300_000


def test_keys_of_no_storage_are_not_kept(client: Session) -> None:
    put(client, "elsewhere/x", "x")

    assert values(client, "elsewhere/x") == []


def test_a_storage_is_complete_only_if_told_so() -> None:
    with broker(home={**HOME, "complete": False}, all=HOME | {"key_expr": "all/**"}) as made, made.client() as session:
        put(session, "home/x", "x")
        put(session, "all/x", "x")
        found = [
            len(list(session.get(key, target=elea.QueryTarget.ALL_COMPLETE, timeout=WAIT)))
            for key in ("home/x", "all/x")
        ]

    assert found == [0, 1]


def test_persistent_values_are_there_after_a_restart(tmp_path: Path) -> None:
    home = {"home": {"key_expr": "home/**", "volume": "log", "complete": True}}
    with broker(tmp_path, **home) as made, made.client() as session:
        put(session, "home/x", "kept")
        before = samples(session, "home/x")[0].timestamp
        epoch = made.storage("home").log.epoch
    with broker(tmp_path, **home) as made, made.client() as session:
        (sample,) = samples(session, "home/x")
        assert made.storage("home").log.epoch == epoch
    assert (sample.payload.to_string(), sample.timestamp) == ("kept", before)
    assert before is not None
    assert ns_from_ntp64(int(str(before).partition("/")[0])) > 0


@pytest.mark.parametrize("selector", ["home/*", "home/**?_as_of=now()", "@store/info/**"])
def test_broker_that_is_ending_does_not_say_that_there_is_nothing(selector: str) -> None:
    with broker(home=HOME) as ending, ending.client() as session:
        put(session, "home/1", "a")
        eventually(lambda: values(session, "home/1"), "it is stored")
        ending.storages.close()  # its links end after that

        assert failure(session, selector)["error"] == "StoreClosing"
