"""Samples that leave together: whoever gets them gets all, in order, whatever way they were joined."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elea.broker.bundle import JOINED, Bundle
from elea.broker.relay import OutgoingKey
from elea.broker.routes import Forwarder, Route
from elea.wire.zenoh1.samples import Pushed


class Neighbour:
    """Keeps what it is sent."""

    def __init__(self, room: int = 60_000) -> None:
        self.room = room
        self.got: list[tuple[int, bool, bytes]] = []
        self.samples = 0
        self.largest = 0

    def forward(self, parts: Sequence[bytes], size: int, conduit: int, droppable: bool, samples: int) -> None:
        assert size == sum(map(len, parts))
        assert not len(parts) & 1
        self.got.append((conduit, droppable, b"".join(parts)))
        self.samples += samples
        self.largest = max(self.largest, *(len(parts[at]) + len(parts[at + 1]) for at in range(0, len(parts), 2)))

    def takes_number(self, key: str) -> bool:
        return True

    def tell(self, number: int, key: str) -> None:
        pass


def route(key: str, number: int, faces: tuple[Forwarder, ...]) -> Route:
    return Route(key, 0, (), faces, OutgoingKey(key, number))


def run(qos: int, *payloads: bytes) -> list[Pushed]:
    return [(0x5D, 1, b"", qos, None, payload) for payload in payloads]


payloads = st.lists(st.binary(max_size=40) | st.integers(0, 30_000).map(bytes), min_size=1, max_size=8)


@given(st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.sampled_from([5, 13, 3]), payloads), max_size=12))
def test_every_neighbour_gets_every_sample_in_order(runs: list[tuple[int, int, list[bytes]]]) -> None:
    alone, first, second = Neighbour(), Neighbour(), Neighbour(20_000)
    groups: dict[int, tuple[Forwarder, ...]] = {1: (alone,), 2: (first, second), 3: (second,)}
    bundle = Bundle(None)
    expected: dict[Neighbour, list[bytes]] = {alone: [], first: [], second: []}

    for number, qos, values in runs:
        way = route(f"key/{number}", number, groups[number])
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


def test_runs_of_many_keys_are_handed_over_once() -> None:
    neighbour = Neighbour()
    faces: tuple[Forwarder, ...] = (neighbour,)
    bundle = Bundle(None)

    for number in range(1, 100):
        bundle.add(route(f"key/{number}", number, faces), run(5, b"value"), True, 0)
    bundle.flush()
    bundle.flush()

    assert len(neighbour.got) == 1
    assert neighbour.samples == 99


@pytest.mark.parametrize("other", [(3, True), (5, False)])
def test_another_quality_of_service_is_handed_over_apart(other: tuple[int, bool]) -> None:
    neighbour = Neighbour()
    faces: tuple[Forwarder, ...] = (neighbour,)
    bundle = Bundle(None)

    bundle.add(route("a", 1, faces), run(5, b"x"), True, 0)
    bundle.add(route("a", 1, faces), run(other[0], b"x"), other[1], 0)
    bundle.flush()

    assert [(conduit, droppable) for conduit, droppable, _ in neighbour.got] == [
        (5 << 1 | 1, True),
        (other[0] << 1 | other[1], True),
    ]


def test_what_is_joined_fits_a_batch_of_every_neighbour() -> None:
    small, large = Neighbour(1_000), Neighbour()
    bundle = Bundle(None)

    bundle.add(route("a", 1, (small, large)), run(5, *[bytes(100)] * 400), True, 0)
    bundle.flush()

    assert small.largest < 1_000
    assert b"".join(data for *_, data in small.got) == b"".join(data for *_, data in large.got)


def test_joining_leaves_large_samples_alone() -> None:
    one, other = Neighbour(), Neighbour()
    bundle = Bundle(None)

    bundle.add(route("a", 1, (one, other)), run(5, bytes(50_000), bytes(50_000)), True, 0)
    bundle.flush()

    assert one.samples == 2
    assert one.largest < 50_000 + JOINED
