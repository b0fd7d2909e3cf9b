"""Keys in a namespace and out of it; what a session does with them beside eclipse-zenoh is in `tests/interop`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import elea
from elea.api.namespace import Namespace
from elea.model.errors import ConfigError

QUIET = "scouting: {multicast: {enabled: false}}, listen: {endpoints: ['tcp/127.0.0.1:0']}"


@pytest.mark.parametrize(
    ("key", "own"),
    [
        ("a/b/c", "c"),
        ("a/b/c/d", "c/d"),
        ("a/b/**", "**"),
        ("a/**", "**"),
        ("**", "**"),
        ("**/c", "**/c"),
        ("*/b/c", "c"),
        ("a/*/c/*", "c/*"),
        ("$*/b/c", "c"),
        ("a/b/@c", "@c"),
        ("a/**/b/c", "**/b/c"),
        ("a/b", None),
        ("a/*", None),
        ("*", None),
        ("a", None),
        ("a/bc/d", None),
        ("a/c/b", None),
        ("*/c/**", None),
        ("a/b$*x/c", None),
    ],
)
def test_keys_of_others_lose_the_namespace_or_are_outside(key: str, own: str | None) -> None:
    assert Namespace("a/b").own(key) == own


def test_a_key_of_the_session_is_itself_again() -> None:
    space = Namespace("a/@b")

    for key in ("x", "x/y", "**", "*/x", "@x/**"):
        assert space.own(space.whole(key)) == key


@pytest.fixture
def session() -> Iterator[elea.Session]:
    with elea.open(elea.Config.from_json5(f"{{mode: 'peer', namespace: 'fleet/7', {QUIET}}}")) as opened:
        yield opened


def test_subscribers_that_pull_know_no_namespace_either(session: elea.Session) -> None:
    subscriber = session.declare_subscriber("temp/*", mode=elea.Pull())
    session.put("temp/in", "21")

    got: list[elea.Sample] = []
    while not got:
        got = subscriber.pull()

    assert [str(sample.key_expr) for sample in got] == ["temp/in"]


def test_stores_are_not_called_from_a_namespace(session: elea.Session) -> None:
    with pytest.raises(ConfigError) as caught:
        session.put("temp/in", "21", ack=True)

    assert caught.value.path == "namespace"
