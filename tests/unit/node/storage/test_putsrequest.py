"""`@store/puts` as a broker answers it, to clients that behave and to those that do not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from elea.api.session import Session
from elea.model.timestamp import ntp64_from_ns
from elea.store import Range
from elea.wire.puts import Given, write_puts
from tests.unit.node.storage.serving import Broker, broker, failure, told

NODE = b"\x0a"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    directory = tmp_path_factory.mktemp("store")
    storages = {"home": {"key_expr": "home/**", "volume": "log"}, "now": {"key_expr": "now/**", "volume": "memory"}}
    with broker(directory, **storages) as made:
        yield made


@pytest.fixture
def client(shared: Broker) -> Iterator[Session]:
    with shared.client() as session:
        yield session


def sample(key: str | bytes, number: int, payload: bytes | None = b"x", entity: int = 1) -> Given:
    octets = key.encode() if isinstance(key, str) else key
    return octets, payload, 0, None, None, 0, None, NODE, entity, number


def test_each_sample_has_its_place(shared: Broker, client: Session) -> None:
    log = shared.storage("home").log
    end = log.end
    payload = write_puts([sample("home/1", 0), sample("home/2", 1, None), sample("home/1", 2)])
    answer = told(client, "@store/puts/home/**", payload=payload)

    assert answer == {
        "log": "home", "epoch": log.epoch, "keys": "home/**",
        "positions": [end, end + 1, end + 2], "repeated": [], "refused": {},
    }  # fmt: skip
    again = told(client, "@store/puts/home/**", payload=payload)
    assert (again["positions"], again["repeated"]) == ([end, end + 1, end + 2], [0, 1, 2])
    half = told(client, "@store/puts/home/**", payload=write_puts([sample("home/3", 3), sample("home/1", 2)]))
    assert (half["positions"], half["repeated"]) == ([end + 3, end + 2], [1])
    assert log.end == end + 4


def test_the_same_number_twice_in_a_request_is_one_sample(client: Session) -> None:
    payload = write_puts([sample("home/a", 7, entity=2), sample("home/b", 8, entity=2), sample("home/a", 7, entity=2)])
    answer = told(client, "@store/puts/home/**", payload=payload)

    assert answer["positions"][0] == answer["positions"][2]
    assert answer["repeated"] == [2]


def test_what_cannot_be_stored_is_refused_and_the_rest_is_stored(shared: Broker, client: Session) -> None:
    wrong: list[str | bytes] = ["now/1", "home/*", "home//1", "", b"\xff\xfe", "elsewhere/1", "home/$*", "/home"]
    given = [sample(key, 100 + at, entity=3) for at, key in enumerate(wrong)]
    given = [sample("home/good", 98, entity=3), *given, sample("home/good", 99, entity=3)]
    answer = told(client, "@store/puts/home/**", payload=write_puts(given))
    refused = {int(at): form["error"] for at, form in answer["refused"].items()}

    assert sorted(refused) == list(range(1, len(wrong) + 1))
    assert (refused[1], refused[2], refused[6]) == ("KeptElsewhere", "InvalidKeyExpr", "KeptElsewhere")
    assert answer["positions"][1:-1] == [None] * len(wrong)
    first, last = answer["positions"][0], answer["positions"][-1]
    assert last == first + 1
    assert shared.storage("home").log.end == last + 1


def test_nothing_to_store_is_answered_all_the_same(client: Session) -> None:
    answer = told(client, "@store/puts/home/**", payload=write_puts([sample("now/1", 0), sample("home/*", 1)]))

    assert answer["positions"] == [None, None]
    assert len(answer["refused"]) == 2


def test_what_must_persist_is_not_left_to_memory(client: Session) -> None:
    payload = write_puts([sample("now/1", 0)])
    assert told(client, "@store/puts/now/**", payload=payload)["log"] == "now"
    assert told(client, "@store/puts/now/**?durability=persistent", payload=payload)["log"] == "default"


def test_time_that_cannot_be_is_replaced(shared: Broker, client: Session) -> None:
    ahead = ntp64_from_ns(4_000_000_000 * 10**9)
    past = ntp64_from_ns(1_700_000_000 * 10**9)
    given = [
        (*sample("home/time/1", 0, entity=5)[:5], ahead, NODE, NODE, 5, 0),
        (*sample("home/time/2", 1, entity=5)[:5], past, NODE, NODE, 5, 1),
    ]
    assert told(client, "@store/puts/home/**", payload=write_puts(given))["restamped"] == [0]
    log = shared.storage("home").log
    first, second = log.latest("home/time/1"), log.latest("home/time/2")

    assert first is not None
    assert second is not None
    assert first.record.stamp_id != NODE
    assert first.record.ntp64 < ahead
    assert (second.record.ntp64, second.record.stamp_id) == (past, NODE)


def test_samples_of_a_group_are_newer_than_those_before_them(shared: Broker, client: Session) -> None:
    ahead = ntp64_from_ns(time.time_ns() + 400_000_000)
    given = [
        sample("home/order", 0, b"first", entity=6),
        (*sample("home/order", 1, b"ahead", entity=6)[:5], ahead, NODE, NODE, 6, 1),
        sample("home/order", 2, b"last", entity=6),
    ]
    told(client, "@store/puts/home/**", payload=write_puts(given))
    log = shared.storage("home").log
    newest = log.latest("home/order")

    assert newest is not None
    assert newest.record.payload == b"last"
    times = [one.record.ntp64 for one in log.read(Range(keys="home/order"))]
    assert times == sorted(set(times))
    assert times[1] == ahead


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (None, "Truncated"),
        (b"\1", "Truncated"),
        (b"\2\0\1\0", "Malformed"),
        (b"\1\0\0\0", "Malformed"),
        (b"\1\0\xff\xff", "Oversize"),
        (b"\1\xff\1\0", "Truncated"),
        (write_puts([sample("home/1", 0)]) + b"x", "TrailingBytes"),
        (bytes(100_000), "Malformed"),
    ],
)
def test_other_octets_are_refused_by_class(shared: Broker, client: Session, payload: bytes, error: str) -> None:
    end = shared.storage("home").log.end
    form = failure(client, "@store/puts/home/**", payload=payload)

    assert form["error"] == error
    assert "puts:" in form["text"]
    assert shared.storage("home").log.end == end


def test_more_keys_than_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.node.storage.putsrequest.KNOWN", 3)
    with broker(None, home={"key_expr": "home/**", "volume": "memory"}) as made, made.client() as session:
        for start in (0, 10):
            given = [sample(f"home/{at % 7}", start + at) for at in range(10)]
            answer = told(session, "@store/puts/home/**", payload=write_puts(given))
            assert answer["positions"] == list(range(start, start + 10))
