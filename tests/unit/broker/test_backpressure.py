"""A subscriber slower than its publisher, with a router between them: BLOCK loses nothing, DROP loses and counts."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import elea

COUNT = 3_000
ANSWERS = 16_000  # 128 MB: more than the kernel holds on two connections
PAYLOAD = bytes(8_000)
PATIENCE = 60.0


def config(mode: str, side: str, locator: str) -> elea.Config:
    rest = "scouting: {multicast: {enabled: false}}"
    return elea.Config.from_json5(f"{{mode: '{mode}', {side}: {{endpoints: ['{locator}']}}, {rest}}}")


@pytest.fixture
def sessions() -> Iterator[tuple[elea.Session, elea.Session, elea.Session]]:
    with elea.open(config("router", "listen", "tcp/127.0.0.1:0")) as router:
        locator = router._runtime.links.locators()[0]
        with (
            elea.open(config("client", "connect", locator)) as publisher,
            elea.open(config("client", "connect", locator)) as subscriber,
        ):
            deadline = time.monotonic() + PATIENCE
            while len(router._runtime.links.connections) < 2:  # a client may be ready a moment before
                assert time.monotonic() < deadline
                time.sleep(0.01)
            yield router, publisher, subscriber


def publish(
    sessions: tuple[elea.Session, elea.Session, elea.Session], control: elea.CongestionControl
) -> tuple[list[int], int]:
    """What arrived, and what the publisher and the router say they lost."""
    router, publisher, subscriber = sessions
    got: list[int] = []

    def take(sample: elea.Sample) -> None:
        got.append(int.from_bytes(sample.payload.to_bytes()[:4], "little"))
        time.sleep(0.0002)

    with subscriber.declare_subscriber("slow", take):
        made = publisher.declare_publisher("slow", congestion_control=control)
        deadline = time.monotonic() + PATIENCE
        while not made.matching_status.matching and time.monotonic() < deadline:
            time.sleep(0.01)
        for number in range(COUNT):
            made.put(number.to_bytes(4, "little") + PAYLOAD)
        last = -1
        while len(got) != last and len(got) < COUNT and time.monotonic() < deadline:
            last = len(got)
            time.sleep(1.0)
    return got, sum(publisher.info.dropped().values()) + sum(router.info.dropped().values())


def test_samples_that_must_not_be_dropped_all_arrive(
    sessions: tuple[elea.Session, elea.Session, elea.Session],
) -> None:
    got, lost = publish(sessions, elea.CongestionControl.BLOCK)

    assert got == list(range(COUNT))
    assert lost == 0


def test_every_sample_arrives_or_is_counted_as_lost(
    sessions: tuple[elea.Session, elea.Session, elea.Session],
) -> None:
    got, lost = publish(sessions, elea.CongestionControl.DROP)

    assert got == sorted(set(got))
    assert len(got) + lost == COUNT


def test_a_slow_asker_gets_all_answers_and_slows_the_answerer(
    sessions: tuple[elea.Session, elea.Session, elea.Session],
) -> None:
    """128 MB of replies, where 1 MiB may wait on a link: whoever answers waits, and no link is given up."""
    router, answerer, asker = sessions
    links = set(router._runtime.links.connections)

    def answer(query: elea.Query) -> None:
        for number in range(ANSWERS):
            query.reply("many", number.to_bytes(4, "little") + PAYLOAD)

    got: list[int] = []
    with answerer.declare_queryable("many", answer):
        querier = asker.declare_querier("many", consolidation=elea.ConsolidationMode.NONE, timeout=PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while not querier.matching_status.matching and time.monotonic() < deadline:
            time.sleep(0.01)
        for reply in querier.get():
            assert reply.ok is not None
            got.append(int.from_bytes(reply.ok.payload.to_bytes()[:4], "little"))
            if len(got) == 1:
                time.sleep(1.5)  # long enough to fill every buffer on the way

    assert got == list(range(ANSWERS))
    assert set(router._runtime.links.connections) == links
