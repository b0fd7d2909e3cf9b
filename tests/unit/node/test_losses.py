"""What is lost is counted: every sample once, under its reason, in all places that tell of it."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

import elea
from elea.io.linkerrors import LinkStalled
from elea.io.loop import IN
from elea.io.losses import Losses
from elea.io.outbox import Outbox
from elea.model.errors import SessionClosed
from elea.model.limits import CACHED_KEY_CHARS
from elea.node.route import Route
from elea.node.zenoh1.namedroutes import NamedRoutes
from elea.node.zenoh1.pushes import Numbers
from elea.protocol.zenoh1.sender import count_messages
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.codec import write_network_message
from tests.vectors.rawclient import PATIENCE, RawClient

FEW = 100
"""Samples lost, after which nobody can say that there was room for all."""

PAYLOAD = bytes(2_000)


def config(mode: str, side: str, locator: str, more: str = "") -> elea.Config:
    rest = "scouting: {multicast: {enabled: false}}, adminspace: {enabled: true}"
    return elea.Config.from_json5(f"{{mode: '{mode}', {side}: {{endpoints: ['{locator}']}}, {rest}, {more}}}")


@pytest.fixture
def router() -> Iterator[elea.Session]:
    with elea.open(config("router", "listen", "tcp/127.0.0.1:0")) as session:
        yield session


@pytest.fixture
def client(router: elea.Session) -> Iterator[elea.Session]:
    with elea.open(config("client", "connect", router.info.locators()[0])) as session:
        yield session


def eventually(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def octets(message: m.NetworkMessage) -> bytes:
    out = bytearray()
    write_network_message(out, message)
    return bytes(out)


def subscribe(raw: RawClient, key: str) -> None:
    raw.send(octets(m.Declare(m.DeclareSubscriber(1, m.WireExpr(0, True, key)))))


def count_until(raw: RawClient, mark: bytes, counts: list[int]) -> None:
    """Read what a client has let lie, up to a sample that is marked."""
    count = 0
    while True:
        for _, message in raw.heard():
            if message["_"] == "PUSH":
                if message["body"]["payload"] == mark.hex():
                    counts.append(count)
                    return
                count += 1


def metric(session: elea.Session, name: str) -> int:
    (reply,) = [reply.ok for reply in session.get("@/*/router/metrics?compression=false") if reply.ok]
    found = re.findall(rf"^{name}\{{.*\}} (\d+)$", reply.payload.to_string(), re.MULTILINE)
    return sum(map(int, found))


def waiting(session: elea.Session) -> int:
    """Octets that wait in a node for its neighbours."""
    outboxes = [connection.machine.outbox for connection in list(session._runtime.links.connections)]
    return sum(found.queued(conduit) for found in outboxes if found is not None for conduit in range(16))


def test_relayed_samples_arrive_or_are_counted_once(
    router: elea.Session, client: elea.Session, caplog: pytest.LogCaptureFixture
) -> None:
    locator, counts = router.info.locators()[0], list[int]()
    with closing(RawClient(locator)) as one, closing(RawClient(locator)) as two:
        for raw in (one, two):
            raw.send(octets(m.Declare(m.DeclareSubscriber(1, m.WireExpr(0, True, "lost")))))
        publisher = client.declare_publisher("lost", congestion_control=elea.CongestionControl.DROP)
        eventually(lambda: len(router._node.space.targets(router._node.local, "lost")) == 2)
        eventually(lambda: publisher.matching_status.matching)

        count, deadline = 0, time.monotonic() + PATIENCE
        while router.info.dropped()["full"] < FEW and time.monotonic() < deadline:
            publisher.put(PAYLOAD)  # nobody reads: whatever the buffers on the way hold, they are full some time
            count += 1
        eventually(lambda: waiting(client) == 0)
        list(client.get("@/*/router/metrics"))  # behind the samples: when it is answered the router has had them all
        put = count - sum(client.info.dropped().values())
        lost = router.info.dropped()
        readers = [threading.Thread(target=count_until, args=(raw, b"last", counts)) for raw in (one, two)]
        for reader in readers:
            reader.start()
        eventually(lambda: waiting(router) == 0)
        publisher.put(b"last")
        for reader in readers:
            reader.join(PATIENCE)

        assert lost["full"] > 0
        assert sum(lost.values()) == lost["full"]
        assert sum(counts) + lost["full"] == 2 * put
        assert metric(client, "elea_dropped_messages_total") == lost["full"]
        assert metric(client, "elea_link_dropped_messages_total") == lost["full"]
        told = [line for line in caplog.messages if line.startswith("messages dropped: ")]
        assert all(" key=lost reason=full " in line for line in told)
        neighbours = {line.partition("neighbour=")[2].partition(" ")[0] for line in told}
        assert len(neighbours) >= 2  # both, and the router, if the client had no room either


@pytest.mark.parametrize(("size", "seen"), [(1_000, 6_000), (100_000, 0)])  # a raw client sees no fragments as samples
def test_droppable_samples_wait_at_a_router_before_they_are_dropped(size: int, seen: int) -> None:
    waits = "drop: {wait_before_drop: 2000000, max_wait_before_drop_fragments: 10000000}"
    patient = f"transport: {{link: {{tx: {{queue: {{congestion_control: {{{waits}}}}}}}}}}}"
    counts = list[int]()
    with (
        elea.open(config("router", "listen", "tcp/127.0.0.1:0#so_sndbuf=8192", patient)) as router,
        elea.open(config("client", "connect", router.info.locators()[0], patient)) as client,
        closing(RawClient(router.info.locators()[0])) as raw,
    ):
        subscribe(raw, "slow")
        publisher = client.declare_publisher("slow", congestion_control=elea.CongestionControl.DROP)
        eventually(lambda: publisher.matching_status.matching)
        reader = threading.Thread(target=count_until, args=(raw, b"last", counts))
        threading.Timer(0.2, reader.start).start()

        for _ in range(6_000_000 // size):  # six times what may wait in a queue
            publisher.put(bytes(size))
        publisher.put(b"last")
        eventually(lambda: bool(counts))

        assert counts == [seen]
        assert sum(router.info.dropped().values()) == 0


def test_joined_samples_of_a_link_that_ends_are_counted_each() -> None:
    push = octets(m.Push(m.WireExpr(0, True, "a"), m.Put(b"x")))
    final = octets(m.ResponseFinal(1))

    assert count_messages([push[:-1], b"x", push * 3, b"", final, b"", push, b""]) == 1 + 3 + 1 + 1


def test_losses_of_a_link_count_for_its_node_also_after_its_end() -> None:
    node = Losses()
    links = [Losses(node), Losses(node)]

    for link in links:
        link.add("closed", 2)
    links.clear()

    assert node.counts == {"full": 0, "closed": 4, "refused": 0, "oversized": 0}


def test_losses_of_one_reason_are_summed() -> None:
    node = Losses()
    link = Losses(node)

    link.add("full", 2)
    link.add("full", 3)
    link.add("closed", 1)

    assert link.counts == node.counts == {"full": 5, "closed": 1, "refused": 0, "oversized": 0}


# -- a put in the moment in which a link has ended and the space does not know -----------------------------------------


@pytest.fixture
def heard(router: elea.Session, client: elea.Session) -> Iterator[elea.Session]:
    """A client that somebody listens to."""
    publisher = client.declare_publisher("lost")
    with router.declare_subscriber("lost", lambda _: None):
        eventually(lambda: publisher.matching_status.matching)
        yield client


def outbox_of(session: elea.Session) -> Outbox:
    (connection,) = session._runtime.links.connections
    assert connection.machine.outbox is not None
    return connection.machine.outbox


@pytest.mark.parametrize("control", [elea.CongestionControl.DROP, elea.CongestionControl.BLOCK])
def test_put_on_a_link_that_has_just_ended_is_a_counted_loss(
    heard: elea.Session, control: elea.CongestionControl
) -> None:
    publisher = heard.declare_publisher("lost", congestion_control=control)
    publisher.put("before")
    outbox = outbox_of(heard)

    with heard._node.lock:  # the space cannot be told
        outbox.close()
        before = heard.info.dropped()["closed"]
        publisher.put("one")
        publisher.put("two", attachment="x")
        publisher.delete()
        heard.put("lost", "three", congestion_control=control)
        assert heard.info.dropped()["closed"] == before + 4


def test_put_that_must_not_be_lost_tells_of_a_stalled_link(heard: elea.Session) -> None:
    block = heard.declare_publisher("lost", congestion_control=elea.CongestionControl.BLOCK)
    drop = heard.declare_publisher("lost", congestion_control=elea.CongestionControl.DROP)
    for publisher in (block, drop):
        publisher.put("before")
    outbox = outbox_of(heard)

    with heard._node.lock:
        outbox._fail(LinkStalled("tcp/far", 5.0))
        with pytest.raises(LinkStalled):
            block.put("one")
        with pytest.raises(LinkStalled):
            heard.put("lost", "two", congestion_control=elea.CongestionControl.BLOCK)
        drop.put("three")


def test_reason_of_an_end_is_the_broken_write_although_the_end_is_read_first(heard: elea.Session) -> None:
    (connection,) = heard._runtime.links.connections
    stalled = LinkStalled("tcp/far", 5.0)

    def fail_and_read() -> None:
        outbox_of(heard)._fail(stalled)  # told in the next turn
        connection.on_ready(IN)

    connection.loop.soon(fail_and_read)

    assert connection.ended.wait(PATIENCE)
    assert connection.error is stalled


def test_put_of_a_closed_session_raises(heard: elea.Session) -> None:
    publisher = heard.declare_publisher("lost")
    publisher.put("before")

    heard.close()

    with pytest.raises(SessionClosed):
        publisher.put("after")
    with pytest.raises(SessionClosed):
        heard.put("lost", "after")


# -- what is not kept, and not said again and again -------------------------------------------------------------------


def test_long_names_are_found_anew_each_time() -> None:
    asked: list[bytes] = []

    def find(header: int, scope: int, suffix: bytes) -> Route:
        asked.append(suffix)
        return Route(suffix.decode(), 0, [], ())

    routes = NamedRoutes(find)
    short, long = b"k" * CACHED_KEY_CHARS, b"k" * (CACHED_KEY_CHARS + 1)
    for name in (short, long, short, long):
        routes.of(0x20, 0, name, 0)

    assert asked == [short, long, long]


def test_long_keys_get_no_numbers() -> None:
    numbers = Numbers()

    assert numbers.number("k" * (CACHED_KEY_CHARS + 1)) == 0
    assert numbers.number("k" * CACHED_KEY_CHARS) == 1


def test_senseless_messages_are_counted_and_said_now_and_then(
    router: elea.Session, caplog: pytest.LogCaptureFixture
) -> None:
    senseless = octets(m.Declare(m.DeclareSubscriber(1, m.WireExpr(0, True, "a//b"))))

    with caplog.at_level(logging.WARNING, "elea.node"), closing(RawClient(router.info.locators()[0])) as raw:
        for _ in range(25):
            raw.send(senseless * 100)
        eventually(
            lambda: any(
                c.face and c.face.counters()["ignored_messages"] == 2_500 for c in router._runtime.links.connections
            )
        )

    said = [record.getMessage() for record in caplog.records if record.getMessage().startswith("message ignored")]
    assert [line.rpartition(" ")[2] for line in said] == ["ignored=1", "ignored=1001", "ignored=2001"]
