"""Samples that leave together: whoever gets them gets all, in order, whatever way they were joined."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elea.io.loop import Loop
from elea.model.node_id import NodeId
from elea.model.timestamp import Hlc
from elea.node.outboxface import OutboxFace
from elea.node.route import Route
from elea.node.stamper import Stamper
from elea.node.zenoh1.fanout import ALONE, JOINED, Fanout, Zenoh1Way
from elea.node.zenoh1.namedroutes import NamedRoutes
from elea.node.zenoh1.pushes import OutgoingKey
from elea.protocol.zenoh1.sender import count_messages
from elea.space.way import NOWHERE
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.codec import read_network_message
from elea.wire.zenoh1.samples import Pushed

NOW = 1_700_000_000_000_000_000
OWN = NodeId(b"\xe1\xea")
LOOP = Loop("test")  # it is given nothing, so it starts no thread


class Keeper:
    """A store that wants samples; here it is only known to be there."""

    durability = "transient"

    def keep(self, pieces: Sequence[tuple[str, Sequence[Pushed]]], arrival_ns: int) -> None:
        raise AssertionError("bundles have nothing to do with stores")


class Neighbour(OutboxFace):
    """Keeps what it is sent."""

    def __init__(self, room: int = 60_000) -> None:
        self.room = room
        self.got: list[tuple[int, bool, bytes]] = []
        self.parts: list[bytes] = []
        self.samples = 0
        self.largest = 0

    def forward(
        self, parts: Sequence[bytes], size: int, conduit: int, droppable: bool, samples: int, led: bool
    ) -> None:
        assert size == sum(map(len, parts))
        assert not len(parts) & 1
        self.got.append((conduit, droppable, b"".join(parts)))
        self.parts += parts
        self.samples += samples
        self.largest = max(self.largest, *(len(parts[at]) + len(parts[at + 1]) for at in range(0, len(parts), 2)))


def way_to(key: str, number: int, faces: tuple[OutboxFace, ...]) -> Zenoh1Way:
    return Zenoh1Way(key, faces, NOWHERE, OutgoingKey(key, number))


def passing(way: Zenoh1Way) -> Route:
    return Route(way.key, 0, (), (way,))


def run(qos: int, *payloads: bytes) -> list[Pushed]:
    return [(0x5D, 1, b"", qos, None, payload) for payload in payloads]


payloads = st.lists(st.binary(max_size=40) | st.integers(0, 30_000).map(bytes), min_size=1, max_size=8)


@given(st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.sampled_from([5, 13, 3]), payloads), max_size=12))
def test_every_neighbour_gets_every_sample_in_order(runs: list[tuple[int, int, list[bytes]]]) -> None:
    alone, first, second = Neighbour(), Neighbour(), Neighbour(20_000)
    groups: dict[int, tuple[OutboxFace, ...]] = {1: (alone,), 2: (first, second), 3: (second,)}
    bundle = Fanout(LOOP, None)
    expected: dict[Neighbour, list[bytes]] = {alone: [], first: [], second: []}

    for number, qos, values in runs:
        way = way_to(f"key/{number}", number, groups[number])
        bundle.add(way, run(qos, *values), True, 0)
        parts: list[bytes] = []
        way.outgoing.rewrite(run(qos, *values), parts)
        for face in groups[number]:
            assert isinstance(face, Neighbour)
            expected[face].append(b"".join(parts))
    bundle.flush()

    for neighbour, octets in expected.items():
        assert b"".join(data for _, _, data in neighbour.got) == b"".join(octets)
    assert sum(each.samples for each in expected) == sum(len(v) * len(groups[n]) for n, _, v in runs)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 5), st.sampled_from([5, 5, 5, 13]), st.none() | st.just(b"\x02"), st.binary(max_size=200)
        ),
        max_size=300,
    )
)
def test_samples_of_many_keys_are_what_they_are_one_by_one(samples: list[tuple[int, int, bytes | None, bytes]]) -> None:
    """Keys 0 to 3 pass to two groups of neighbours, key 4 is kept here too, key 5 is unknown."""
    mixed, single = Neighbour(), Neighbour()
    stamper, twin = Stamper(Hlc(OWN)), Stamper(Hlc(OWN))
    one, other = Fanout(LOOP, stamper), Fanout(LOOP, twin)
    groups: list[list[tuple[OutboxFace, ...]]] = [[(mixed,), (mixed,)], [(single,), (single,)]]
    ways = [
        [Route(f"key/{n}", 0, (), (way_to(f"key/{n}", n, g[n & 1]),), (Keeper(),) if n == 4 else ()) for n in range(5)]
        for g in groups
    ]
    routes = NamedRoutes(lambda header, scope, suffix: ways[0][scope] if scope < 5 else None)
    for number in range(5):
        routes.of(0x5D, number, b"", 0)
    run: list[Pushed] = [(0x5D, n, b"", qos, meta, b"" if meta else payload) for n, qos, meta, payload in samples]

    at = 0
    while at < len(run):
        end = one.add_mixed(run, at, routes, 0, True, NOW)
        assert all(sample[1] < 4 and sample[4] is None and sample[3] == run[at][3] for sample in run[at:end])
        if end == at:
            if run[at][1] < 5:
                one.add(ways[0][run[at][1]].ways[0], [run[at]], True, NOW)
            end += 1
        at = end
    one.flush()
    for sample in run:
        if sample[1] < 5:
            other.add(ways[1][sample[1]].ways[0], [sample], True, NOW)
    other.flush()

    assert [told[:2] for told in mixed.got] == [told[:2] for told in single.got]
    found, expected = (plain(b"".join(octets for _, _, octets in each.got)) for each in (mixed, single))
    assert [sample for sample, _ in found] == [sample for sample, _ in expected]
    given_ones = [stamp for _, stamp in found if stamp is not None]
    assert given_ones == sorted(set(given_ones))
    assert mixed.samples == single.samples == len(found)


@pytest.mark.parametrize("largest", [1, 250])
@pytest.mark.parametrize("rooms", [(60_000,), (1_000,), (0,), (1_000, 60_000), (60_000, 0)])
def test_samples_of_many_keys_are_joined_as_far_as_every_neighbour_can_take_it(
    rooms: tuple[int, ...], largest: int
) -> None:
    neighbours = [Neighbour(room) for room in rooms]
    faces: tuple[OutboxFace, ...] = tuple(neighbours)
    ways = [way_to(f"key/{number}", number, faces) for number in range(300)]
    routes = NamedRoutes(lambda header, scope, suffix: passing(ways[scope]))
    for number in range(300):
        routes.of(0x5D, number, b"", 0)
    run: list[Pushed] = [(0x5D, n * 7 % 300, b"", 5, None, bytes(n % largest)) for n in range(1_000)]
    bundle = Fanout(LOOP, Stamper(Hlc(OWN)))

    assert bundle.add_mixed(run, 0, routes, 0, True, NOW) == len(run)
    bundle.flush()

    for each in neighbours:
        found = plain(b"".join(octets for *_, octets in each.got))
        assert [(push.wire_expr.scope, push.body) for push, _ in found] == [(n[1], m.Put(n[5])) for n in run]
        stamps = [stamp for _, stamp in found if stamp is not None]
        assert stamps == sorted(set(stamps))
        assert each.samples == count_messages(each.parts) == len(run)
        assert all(
            len(part) <= min(JOINED, *rooms, 60_000) or count_messages([part, b""]) == 1 for part in each.parts[::2]
        )
        assert len(each.parts) < 50 or min(rooms) <= 1_000


def test_large_payloads_of_many_keys_are_not_copied() -> None:
    neighbour = Neighbour()
    faces: tuple[OutboxFace, ...] = (neighbour,)
    ways = [way_to(f"key/{number}", number, faces) for number in range(4)]
    routes = NamedRoutes(lambda header, scope, suffix: passing(ways[scope]))
    for number in range(4):
        routes.of(0x5D, number, b"", 0)
    run: list[Pushed] = [(0x5D, n, b"", 5, None, bytes(ALONE + (n == 2))) for n in range(4)]
    bundle = Fanout(LOOP, Stamper(Hlc(OWN)))

    assert bundle.add_mixed(run, 0, routes, 0, True, NOW) == 2
    assert bundle.add_mixed(run, 2, routes, 0, True, NOW) == 2
    bundle.add(ways[2], run[2:3], True, NOW)
    assert bundle.add_mixed(run, 3, routes, 0, True, NOW) == 4
    bundle.flush()

    assert [push.wire_expr.scope for push, _ in plain(b"".join(neighbour.parts))] == [0, 1, 2, 3]
    assert any(part is run[2][5] for part in neighbour.parts)
    assert neighbour.samples == 4


def plain(octets: bytes) -> list[tuple[m.Push, int | None]]:
    """Messages without their timestamps, and these."""
    at, found = 0, []
    while at < len(octets):
        message, at = read_network_message(octets, at)
        assert isinstance(message, m.Push)
        stamp = message.body.timestamp
        found.append((message._replace(body=message.body._replace(timestamp=None)), stamp and stamp.ntp64))
    return found


def test_runs_of_many_keys_are_handed_over_once() -> None:
    neighbour = Neighbour()
    faces: tuple[OutboxFace, ...] = (neighbour,)
    bundle = Fanout(LOOP, None)

    for number in range(1, 100):
        bundle.add(way_to(f"key/{number}", number, faces), run(5, b"value"), True, 0)
    bundle.flush()
    bundle.flush()

    assert len(neighbour.got) == 1
    assert neighbour.samples == 99


@pytest.mark.parametrize("other", [(3, True), (5, False)])
def test_another_quality_of_service_is_handed_over_apart(other: tuple[int, bool]) -> None:
    neighbour = Neighbour()
    faces: tuple[OutboxFace, ...] = (neighbour,)
    bundle = Fanout(LOOP, None)

    bundle.add(way_to("a", 1, faces), run(5, b"x"), True, 0)
    bundle.add(way_to("a", 1, faces), run(other[0], b"x"), other[1], 0)
    bundle.flush()

    assert [(conduit, droppable) for conduit, droppable, _ in neighbour.got] == [
        (5 << 1 | 1, True),
        (other[0] << 1 | other[1], True),
    ]


def test_what_is_joined_fits_a_batch_of_every_neighbour() -> None:
    small, large = Neighbour(1_000), Neighbour()
    bundle = Fanout(LOOP, None)

    bundle.add(way_to("a", 1, (small, large)), run(5, *[bytes(100)] * 400), True, 0)
    bundle.flush()

    assert small.largest < 1_000
    assert b"".join(data for *_, data in small.got) == b"".join(data for *_, data in large.got)


def test_joining_leaves_large_samples_alone() -> None:
    one, other = Neighbour(), Neighbour()
    bundle = Fanout(LOOP, None)

    bundle.add(way_to("a", 1, (one, other)), run(5, bytes(50_000), bytes(50_000)), True, 0)
    bundle.flush()

    assert one.samples == 2
    assert one.largest < 50_000 + JOINED
