"""Places of links that are opening: who has to make place for whom."""

from __future__ import annotations

from elea.io.addresses import source_of
from elea.io.halfopen import HalfOpen, Place
from elea.model.errors import LimitReached
from elea.model.limits import ACCEPT_CROWD


class Door:
    """Places of a node, a clock, and the links that were closed."""

    def __init__(self, most: int) -> None:
        self.now = 0.0
        self.places = HalfOpen(most, grace=1.0, now=lambda: self.now)
        self.closed: list[str] = []
        self.reasons: list[LimitReached] = []

    def come(self, source: str, port: int, steps: int = 0) -> Place:
        remote = f"tcp/{source}:{port}"

        def close(reason: LimitReached) -> None:
            self.closed.append(remote)
            self.reasons.append(reason)

        return self.places.take(remote, close, steps=steps)


def test_heaviest_source_makes_place() -> None:
    door = Door(10)
    door.come("10.0.0.1", 1)
    for port in range(9):
        door.come("10.0.0.2", port)
    door.now = 2.0

    door.come("10.0.0.3", 1)

    assert door.closed == ["tcp/10.0.0.2:0"]
    assert (door.reasons[0].name, door.reasons[0].limit) == ("accept_pending", 10)


def test_link_that_goes_on_stays_among_silent_ones_of_its_address() -> None:
    door = Door(10)
    honest = door.come("10.0.0.1", 99)
    for port in range(9):
        door.come("10.0.0.1", port)
    honest.advance()
    door.now = 2.0

    for port in range(9, 100):
        door.come("10.0.0.1", port)

    assert door.closed
    assert "tcp/10.0.0.1:99" not in door.closed


def test_newcomer_stays_among_those_that_stopped_at_the_next_step() -> None:
    door = Door(10)
    for port in range(10):
        door.come("10.0.0.1", port).advance()
    door.now = 2.0
    door.come("10.0.0.1", 99)

    for port in range(10, 19):
        door.come("10.0.0.1", port).advance()

    assert "tcp/10.0.0.1:99" not in door.closed


def test_young_links_stay_until_there_is_a_crowd() -> None:
    door = Door(10)

    for port in range(10 * ACCEPT_CROWD):
        door.come("10.0.0.1", port)
    assert (door.closed, len(door.places)) == ([], 10 * ACCEPT_CROWD)
    door.come("10.0.0.1", 999)

    assert door.closed[0] == "tcp/10.0.0.1:0"
    assert len(door.places) <= 10 * ACCEPT_CROWD


def test_places_come_back_and_are_few_again_after_a_flood() -> None:
    door = Door(10)
    for port in range(10 * ACCEPT_CROWD):
        door.come("10.0.0.1", port)
    door.now = 2.0

    for port in range(100):
        door.come("10.0.0.2", port).leave()

    assert len(door.places) <= 10
    place = door.come("10.0.0.2", 1)
    place.leave()
    place.leave()
    place.advance()
    assert len(door.places) <= 10


def test_room_is_made_when_descriptors_are_gone() -> None:
    door = Door(10)
    for port in range(5):
        door.come("10.0.0.1", port)

    door.places.make_room(16)

    assert (len(door.places), len(door.closed)) == (0, 5)


def test_sources_are_addresses_and_networks() -> None:
    assert source_of("udp/192.168.1.7:1") == source_of("tcp/192.168.1.7:2") == "192.168.1.7"
    assert source_of("tcp/[2001:db8::1]:1") == source_of("tls/[2001:db8::ffff:2]:2")
    assert source_of("tcp/[2001:db8::1]:1") != source_of("tcp/[2001:db8:0:1::1]:1")
    assert source_of("tcp/[fe80::1%eth0]:1") == "fe80000000000000/64"
    assert source_of("unixsock-stream//run/elea-1") == source_of("unixsock-stream//run/elea-2")
    assert source_of("sim/a") == "a"
