"""What one session may make a node remember: limits refuse the next, count it and say why, and the session lives.

The clients are of eclipse-zenoh: one of ours has the same limits, and would refuse by itself.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import zenoh

import elea
from elea.model.errors import LimitReached
from elea.model.qos import Role
from elea.space.face import Declare, Entity, Interest, InterestMode, Kinds, Region, Subject, Undeclare
from elea.space.neighbour import Neighbour
from elea.space.space import Space
from elea.wire import compiled
from tests.robust.children import config, entries, eventually

PLAIN = pytest.mark.skipif(compiled(), reason="plain only: this limit is written into the machine code")


@pytest.fixture
def router() -> Iterator[elea.Session]:
    with elea.open(config("router", "listen", "tcp/127.0.0.1:0", adminspace__enabled=True)) as session:
        yield session


@pytest.fixture
def client(router: elea.Session) -> Iterator[zenoh.Session]:
    made = zenoh.Config()
    for path, value in entries("client", "connect", router.info.locators()[0]).items():
        made.insert_json5(path, json.dumps(value))
    with zenoh.open(made) as session:
        yield session


def metric(session: zenoh.Session, reason: str) -> int:
    (reply,) = [reply.ok for reply in session.get("@/*/router/metrics?compression=false") if reply.ok]
    wanted = f'elea_ignored_messages_total{{reason="{reason}"}} '
    (found,) = [line for line in reply.payload.to_string().splitlines() if line.startswith(wanted)]
    return int(found.rpartition(" ")[2])


def test_declarations_above_the_limit_are_refused_and_counted(
    router: elea.Session, client: zenoh.Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("elea.space.entities.MAX_DECLARATIONS", 10)
    got: list[str] = []

    with caplog.at_level(logging.WARNING, "elea"):
        kept = [client.declare_subscriber(f"robust/{n}", lambda s: got.append(str(s.key_expr))) for n in range(12)]
        eventually(lambda: router.info.refused()["declarations"] == 2, "two are refused")
    assert "limit MAX_DECLARATIONS of 10 reached" in caplog.text
    assert metric(client, "too_many_declarations") == 2
    for number in range(12):
        router.put(f"robust/{number}", "x")
    wanted = [f"robust/{number}" for number in range(10)]
    eventually(lambda: sorted(got) == wanted, "the first ten are there")

    # Room that is given back can be used again, by sessions that live as by new ones.
    kept[0].undeclare()  # type: ignore[no-untyped-call]
    client.declare_subscriber("robust/new", lambda sample: got.append("new"))

    def new() -> bool:
        router.put("robust/new", "x")
        return "new" in got

    eventually(new, "the place of the first is free")


def test_program_is_told_of_the_limit_by_an_error(router: elea.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elea.api.sessionbase.MAX_DECLARATIONS", 2)
    kept = [router.declare_publisher("robust/1"), router.declare_publisher("robust/2")]

    with pytest.raises(LimitReached, match="MAX_DECLARATIONS of 2") as caught:
        router.declare_subscriber("robust/3")

    assert (caught.value.name, caught.value.limit) == ("MAX_DECLARATIONS", 2)
    kept[0].undeclare()
    router.declare_subscriber("robust/3")


def test_publisher_whose_interest_is_refused_still_reaches_subscribers(
    router: elea.Session, client: zenoh.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: list[str] = []
    router.declare_subscriber("robust/**", lambda sample: got.append(sample.payload.to_string()))
    monkeypatch.setattr("elea.space.interests.MAX_INTERESTS", 1)

    publishers = [client.declare_publisher(f"robust/{number}") for number in range(3)]
    eventually(lambda: router.info.refused()["interests"] == 2, "two are refused")
    for number, publisher in enumerate(publishers):
        publisher.put(str(number))

    eventually(lambda: got == ["0", "1", "2"], "all samples arrive")


def test_question_about_now_ends_although_it_is_refused(
    router: elea.Session, client: zenoh.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    _token = router.liveliness().declare_token("robust/token")
    monkeypatch.setattr("elea.space.interests.MAX_INTERESTS", 0)

    assert list(client.liveliness().get("robust/**", timeout=600)) == []

    assert router.info.refused()["interests"] == 1


@PLAIN
def test_query_above_the_limit_is_answered_with_the_reason(
    router: elea.Session, client: zenoh.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elea.space.space.MAX_QUERIES", 2)
    asked: list[elea.Query] = []
    router.declare_queryable("robust/slow", asked.append)
    waiting = [client.get("robust/slow", timeout=600) for _ in range(2)]
    eventually(lambda: len(asked) == 2, "two queries wait")

    (reply,) = client.get("robust/slow", timeout=600)

    assert reply.err is not None
    assert reply.err.payload.to_string() == "limit MAX_QUERIES of 2 reached"
    assert router.info.refused()["queries"] == 1
    for query in asked:
        query.reply("robust/slow", "late")
        query.drop()
    assert [[r.ok.payload.to_string() for r in replies if r.ok] for replies in waiting] == [["late"], ["late"]]


def test_session_that_numbers_too_much_text_is_closed(
    router: elea.Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    router.declare_subscriber("robust/**", lambda sample: None)
    monkeypatch.setattr("elea.node.zenoh1.controlcodec.MAX_RESOURCE_OCTETS", 20)

    with (
        caplog.at_level(logging.INFO, "elea"),
        elea.open(config("client", "connect", router.info.locators()[0])) as client,
    ):
        publisher = client.declare_publisher("robust/a/key/of/more/than/twenty")
        eventually(lambda: publisher.matching_status.matching, "the subscriber is known")
        publisher.put("x")
        eventually(lambda: "reason=limit MAX_RESOURCE_OCTETS of 20 reached" in caplog.text, "the router refuses it")
        eventually(lambda: "reason=the other node closed the session" in caplog.text, "the client is told")


# -- the same without sockets ------------------------------------------------------------------------------------------


class Silent:
    """A client that says much and hears nothing."""

    region = Region.CLIENTS
    subject = Subject(b"\x01", Role.CLIENT)

    def send(self, message: object) -> None: ...


@pytest.fixture
def space() -> Space:
    return Space(Role.ROUTER, b"\x02")


@PLAIN
def test_long_keys_are_bounded_by_their_octets(
    space: Space, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    face = Silent()
    space.add_face(face)  # type: ignore[arg-type]
    size, fitting = 10_000, 20
    monkeypatch.setattr("elea.space.neighbour.MAX_KEY_OCTETS", size * fitting)

    for number in range(fitting + 5):
        key = f"{number:05}" + "x" * (size - 5)
        space.receive(face, Declare(Entity.TOKEN, number + 1, key), 0.0)  # type: ignore[arg-type]
        space.receive(face, Undeclare(Entity.TOKEN, number + 1), 0.0)  # type: ignore[arg-type]
    assert space.ignored.too_many_declarations == 0

    for number in range(fitting + 5):
        key = f"{number:05}" + "x" * (size - 5)
        space.receive(face, Declare(Entity.TOKEN, number + 1, key), 0.0)  # type: ignore[arg-type]
    assert space.ignored.too_many_declarations == 5
    assert "MAX_KEY_OCTETS" in caplog.text


@PLAIN
def test_wildcards_of_one_session_are_bounded_and_given_back(
    space: Space, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("elea.space.neighbour.MAX_WILDCARDS", 40)
    face, other = Silent(), Silent()
    space.add_face(face)  # type: ignore[arg-type]
    space.add_face(other)  # type: ignore[arg-type]

    for _ in range(3):
        for number, key in enumerate(("a/**/*", "b/$*c", "d/$*e$*")):  # 2, 16 and 32 by weight
            space.receive(face, Declare(Entity.TOKEN, number + 1, key), 0.0)  # type: ignore[arg-type]
        space.receive(face, Declare(Entity.TOKEN, 9, "plain"), 0.0)  # type: ignore[arg-type]
        for number in (1, 2, 9):
            space.receive(face, Undeclare(Entity.TOKEN, number), 0.0)  # type: ignore[arg-type]
    assert space.ignored.too_many_declarations == 3
    assert "MAX_WILDCARDS" in caplog.text

    # What one may not, another still may.
    space.receive(other, Declare(Entity.TOKEN, 3, "d/$*e$*"), 0.0)  # type: ignore[arg-type]
    wanted = Interest(1, InterestMode.FUTURE, Kinds.TOKENS, "d/$*f")
    space.receive(other, wanted, 0.0)  # type: ignore[arg-type]
    assert space.ignored.too_many_declarations == 3
    assert space.ignored.too_many_interests == 1


def test_ended_interests_that_are_still_summed_up_count(space: Space, monkeypatch: pytest.MonkeyPatch) -> None:
    from elea.space.face import InterestDone

    monkeypatch.setattr("elea.space.interests.MAX_INTERESTS", 3)
    face, other = Silent(), Silent()
    space.add_face(face)  # type: ignore[arg-type]
    space.add_face(other)  # type: ignore[arg-type]
    space.receive(other, Declare(Entity.SUBSCRIBER, 1, "a/b"), 0.0)  # type: ignore[arg-type]

    for number in range(1, 6):
        wanted = Interest(number, InterestMode.CURRENT_FUTURE, Kinds.SUBSCRIBERS, "a/**", True)
        space.receive(face, wanted, 0.0)  # type: ignore[arg-type]
        space.receive(face, InterestDone(number), 0.0)  # type: ignore[arg-type]
    assert space.ignored.too_many_interests == 2

    space.receive(other, Undeclare(Entity.SUBSCRIBER, 1), 0.0)  # type: ignore[arg-type]
    space.receive(face, Interest(9, InterestMode.FUTURE, Kinds.SUBSCRIBERS, "a/**"), 0.0)  # type: ignore[arg-type]
    assert space.ignored.too_many_interests == 2


def test_neighbour_counts_back_to_nothing(space: Space) -> None:
    face = Silent()
    space.add_face(face)  # type: ignore[arg-type]
    (neighbour,) = [one for one in space._neighbours.values() if isinstance(one, Neighbour)]
    space.receive(face, Declare(Entity.SUBSCRIBER, 1, "a/b"), 0.0)  # type: ignore[arg-type]
    space.receive(face, Declare(Entity.SUBSCRIBER, 1, "a/c"), 0.0)  # type: ignore[arg-type]
    space.receive(face, Interest(1, InterestMode.FUTURE, Kinds.TOKENS, "a/**"), 0.0)  # type: ignore[arg-type]
    assert (neighbour.interests, neighbour.key_octets) == (1, 10)

    space.remove_face(face, 0.0)  # type: ignore[arg-type]

    assert (neighbour.interests, neighbour.key_octets) == (0, 0)
