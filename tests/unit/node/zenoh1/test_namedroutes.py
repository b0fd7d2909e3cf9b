"""Names of keys that sessions remember: bounded for all of them together, and whoever has most forgets."""

from __future__ import annotations

from elea.node.route import Route
from elea.node.zenoh1.namedroutes import NamedRoutes, RememberedNames


def made(together: RememberedNames) -> tuple[NamedRoutes, list[bytes]]:
    looked: list[bytes] = []

    def find(header: int, scope: int, suffix: bytes) -> Route | None:
        looked.append(suffix)
        return Route(suffix.decode() or "k", 1, (), ())

    return NamedRoutes(find, together), looked


def test_session_that_remembers_most_forgets_for_all() -> None:
    together = RememberedNames(100)
    (large, of_large), (small, of_small) = made(together), made(together)
    for number in range(10):
        small.of(0x20, 0, b"s/%d" % number, 1)
    for number in range(90):
        large.of(0x20, 0, b"l/%d" % number, 1)
    assert (len(large), len(small), together.count) == (90, 10, 100)

    small.of(0x20, 0, b"one more", 1)

    assert (len(large), len(small), together.count) == (0, 11, 11)
    small.of(0x20, 0, b"s/3", 1)
    large.of(0x20, 0, b"l/3", 1)
    assert (len(of_small), len(of_large)) == (11, 91)


def test_name_that_is_found_again_counts_once() -> None:
    together = RememberedNames(10)
    routes, looked = made(together)
    for generation in range(1, 50):
        routes.of(0x20, 0, b"a", generation)
        routes.of(0, 7, b"", generation)

    assert together.count == len(routes) == 2
    assert len(looked) == 98


def test_session_that_ends_gives_its_room_back() -> None:
    together = RememberedNames(10)
    routes, _ = made(together)
    for number in range(25):
        routes.of(0x20, 0, b"a/%d" % number, 1)
    assert together.count == len(routes) <= 10

    routes.end()

    assert together.count == 0
