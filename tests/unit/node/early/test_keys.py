"""Resources as keys and back, and that nodes of all kinds agree on them."""

from __future__ import annotations

import pytest

import elea
from elea.model import keytext
from elea.model.keytext import EARLY
from elea.model.qos import Durability
from elea.model.resource import Resource, Selection
from elea.node.early.catalogue import Catalogue, serialised
from elea.node.early.keys import key_of, paths_of, pattern_of, place_of
from elea.protocol.early.generation import ZENOH2018
from elea.protocol.early.numbered import plain_entry, stream_entry
from tests.unit.node.early.client import WAIT, EarlyClient
from tests.unit.node.early.conftest import counters_of, locator_of
from tests.unit.node.storage.serving import eventually
from tests.unit.node.test_dialect import await_subscriber

m = ZENOH2018.messages
BLOCK = elea.CongestionControl.BLOCK


@pytest.mark.parametrize(
    ("space", "name", "key"),
    [
        (0, "zenoh://a/b", "a/b"),
        (0, "xrce://a/b#transient", "a/b"),
        (1, "zenoh://a/b", "a/b"),
        (7, "zenoh://a/b", "@early/space/7/a/b"),
        (0, "zenoh:///T", "@empty/T"),
        (7, "zenoh:///T", "@early/space/7/@empty/T"),
    ],
)
def test_resources_and_keys(space: int, name: str, key: str) -> None:
    resource = Resource.parse(name)

    assert key_of(space, resource) == pattern_of(space, resource) == key
    place = place_of(key)
    assert place is not None
    assert isinstance(place[1], Resource)
    assert (place[0], place[1].path) == (0 if space == 1 else space, resource.path)


def test_patterns_and_ids() -> None:
    assert pattern_of(0, Resource.parse("zenoh://a/b?")) == "zenoh://a/b?"
    assert pattern_of(7, Selection.parse("zenoh://a/**?{x>1}")) == "zenoh://@early/space/7/a/**"
    assert (key_of(3, 6), place_of("@early/id/3/6")) == ("@early/id/3/6", (3, 6))
    for key in ("a b", "ä", "@early/id/x/6", "@early/id/0/x", "@early/space/7", "@early/other/7/a", "a#b"):
        assert place_of(key) is None


EXPRESSIONS = ["a/b", "a/*", "a/**", "**", "**/b", "a/**/b", "a$*/b", "a/**/b/**", "**/a/**/b/**/c/**/d/**/e"]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_is_covered_by_its_paths(expression: str) -> None:
    paths = paths_of(expression)

    assert paths
    for key in ("a", "a/b", "a/x", "a/x/b", "b", "ab", "a/x/y/b/c", "a/b/c/d/e", "x/a/b/c/y/d/e", "ax/b"):
        if keytext.intersects(expression, key):
            assert any(keytext.intersects(EARLY + path, key) for path in paths), key
        elif expression.count("**") <= 1:
            assert not any(keytext.intersects(EARLY + path, key) for path in paths), key


def test_a_catalogue_forgets_what_was_spoken_of_least_recently(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Catalogue(limit=2)
    known.written("a", ("x",), Durability.VOLATILE)
    known.declared("b", (), Durability.TRANSIENT, (m.Property(6, b"\1"),))
    known.written("a", ("y",), Durability.VOLATILE)
    known.written("c", (), Durability.VOLATILE)

    assert (known.names(), known.forgotten, len(known)) == (["a", "c"], 1, 2)
    found = known.get("a")
    assert found is not None
    assert (found.tags, found.properties) == (("y",), serialised(None))
    monkeypatch.setattr("elea.node.early.catalogue.EARLY_TAGS_OCTETS", 50)
    known.declared("d", (), Durability.VOLATILE, (m.Property(1, bytes(45)),))
    assert known.names() == ["d"]


def test_spaces_are_tenants(router: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as one, EarlyClient(locator_of(router), b"two") as two:
        for device in (one, two):
            declared = (m.ResourceDecl(2, b"zenoh://a/b"), m.SubscriberDecl(2, 1), m.CommitDecl(1))
            device.session.send(plain_entry(ZENOH2018, m.Declare(0, declared), space=7))
            device.subscribe(2, "zenoh://**")
        await_subscriber(router, "@early/space/7/a/b")

        one.session.send(stream_entry(2, b"of tenant 7", reliable=True, space=7))
        one.write_data("zenoh://a/b", b"of nobody")
        one.step(0.0)

        assert two.await_samples(2) == [b"of tenant 7", b"of nobody"]
        assert [type(message).__name__ for message in two.seen] == ["StreamData", "WriteData"]


def test_a_resource_without_a_name_is_the_same_for_all(router: elea.Session, robot: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as one, EarlyClient(locator_of(router, "xrce2017", "udp"), b"two") as two:
        assert two.subscribe(6) == 0
        assert one.publish(6) == 0
        one.until(lambda: one.announced)
        with robot.declare_subscriber("**") as subscriber:
            one.stream(6, b"x")
            one.write_data("zenoh://last", b"y")
            one.step(0.0)
            assert two.await_samples(1) == [b"x"]
            assert subscriber.handler.recv(timeout=WAIT).payload.to_bytes() == b"y", "1.x wildcards do not see it"


def test_an_empty_first_name_meets_wildcards_that_have_it(router: elea.Session) -> None:
    """DEC-32: the default partition of DDS."""
    with EarlyClient(locator_of(router)) as one, EarlyClient(locator_of(router), b"two") as two:
        two.subscribe(2, "zenoh://**/T")
        await_subscriber(router, "@empty/T")
        one.write_data("zenoh:///T", b"x")
        one.write_data("zenoh://T", b"not of it")
        one.write_data("zenoh://a/T", b"y")
        one.step(0.0)

        assert two.await_samples(2) == [b"x", b"y"]
        assert two.seen[0].resource == b"zenoh:///T"


def test_keys_that_no_resource_can_have_are_counted(router: elea.Session, robot: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as device:
        device.subscribe(2, "zenoh://**")
        await_subscriber(router, "x")
        robot.put("räume/1", "x", congestion_control=BLOCK)
        robot.put("rooms/1", "y", congestion_control=BLOCK)
        assert device.await_samples(1) == [b"y"]
        eventually(lambda: counters_of(router)["unnamed_samples"] == 1, "the other one")


def test_names_that_mean_nothing_are_counted(router: elea.Session) -> None:
    with EarlyClient(locator_of(router)) as device:
        device.write_data("no scheme", b"x")
        device.write_data("zenoh://a/*", b"x")
        device.stream(8, b"nobody has said what that is")
        device.until(lambda: device.session.is_settled)
        assert counters_of(router)["unroutable_samples"] == 3
