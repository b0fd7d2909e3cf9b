"""Queries on one session: what is remembered, what goes the long way, and which answers leave together."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from elea.io.dispatch import DispatchQueue
from elea.model.details import Details
from elea.model.encoding import Encoding
from elea.model.limits import HELD_OCTETS, MAX_REMEMBERED
from elea.model.node_id import NodeId
from elea.model.qos import ConsolidationMode, QueryTarget, SampleKind
from elea.model.timestamp import Timestamp
from elea.node.zenoh1.controlcodec import ResourceTable, to_wire
from elea.node.zenoh1.sessionqueries import SessionQueries
from elea.space.face import Request, Response, ResponseFinal
from elea.space.questions import AnswerBody, ErrorBody, QueryBody, ReplyBody
from elea.wire import compiled
from elea.wire.details import pack
from elea.wire.primitives import Unknown
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.codec import read_network_message, write_network_message

pytestmark = pytest.mark.skipif(
    compiled(),
    reason="plain only: machine code takes no stand-ins for session, node and outbox, which show here what is written "
    "and when; tests/unit/api/test_answerer.py asks and answers through the real ones",
)

QOS = 13
CONDUIT = (QOS & 7) << 1 | 1


class Outbox:
    room = 60_000

    def __init__(self) -> None:
        self.puts: list[tuple[int, bytes]] = []
        self.full = False

    def is_full(self, conduit: int) -> bool:
        return False

    def push(self, conduit: int, parts: tuple[bytes, ...], size: int) -> bool:
        assert size == sum(map(len, parts))
        assert not len(parts) & 1
        self.puts.append((conduit, b"".join(parts)))
        return not self.full


class Node:
    def __init__(self) -> None:
        self.dispatch = DispatchQueue()
        self.collecting: set[int] = set()
        self.heard: list[object] = []
        self.works: list[Any] = []

    def ask(self, face: object, message: object) -> None:
        self.heard.append(message)

    answer = ask

    def delivers(self) -> bool:
        return threading.get_ident() in self.collecting

    def later(self, work: Any) -> None:
        self.works.append(work)

    def settle(self) -> None:
        while self.works:
            self.works.pop()()


class Session:
    def __init__(self) -> None:
        self.node = Node()
        self.outbox = Outbox()
        self.stalls = 0

    def on_stalled(self) -> None:
        self.stalls += 1

    @property
    def written(self) -> list[list[m.NetworkMessage]]:
        """The messages of each put."""
        found = []
        for _, octets in self.outbox.puts:
            at, several = 0, []
            while at < len(octets):
                message, at = read_network_message(octets, at)
                several.append(message)
            found.append(several)
        return found


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def exchange(session: Session) -> SessionQueries:
    return SessionQueries(cast(Any, session), ResourceTable())


def octets_of(message: m.NetworkMessage) -> bytes:
    out = bytearray()
    write_network_message(out, message)
    return bytes(out)


def reply(number: int, payload: bytes = b"x", key: str = "a") -> Response:
    return Response(number, key, payload, QOS, (b"\x01", 2))


STAMPED = pack(Details(timestamp=Timestamp(1 << 60, NodeId(b"\x01"))))
MORE = (Unknown(0x4A, b"later"),)
MESSAGES = [
    Request(7, "a/b", QueryTarget.ALL, QueryBody("x=1", ConsolidationMode.LATEST), 10_000, QOS),
    Request(300, "a/**", QueryTarget.BEST_MATCHING, QueryBody(), None, 5, 3),
    Response(7, "a", b"value", QOS, (b"\x01\x02", 99)),
    Response(7, "a", ReplyBody(STAMPED, b"value"), QOS, (b"\x01\x02", 99)),
    Response(7, "a", ReplyBody(pack(Details(encoding=Encoding("x;y"))), b"value" * 99), 5),
    Response(7, "a", b"value", 5),
    ResponseFinal(7, QOS),
    ResponseFinal(70_000, 5),
]


@pytest.mark.parametrize("message", MESSAGES, ids=str)
def test_what_is_sent_is_what_the_long_way_says_and_is_heard_again(
    message: Any, exchange: SessionQueries, session: Session
) -> None:
    assert exchange.send(message)
    assert exchange.send(message)  # from the template

    ((_, octets), again) = session.outbox.puts
    assert octets == again[1] == octets_of(to_wire(message))
    assert exchange.take(octets, 0) == exchange.take(octets, 0) == len(octets)
    assert session.node.heard == [message] * 2


@pytest.mark.parametrize(
    "body",
    [ReplyBody(pack(Details(SampleKind.DELETE)), b""), ReplyBody(pack(Details(attachment=b"2")), b"1")],
    ids=str,
)
def test_other_samples_are_sent_from_the_template_and_read_by_the_codec(
    body: AnswerBody, exchange: SessionQueries, session: Session
) -> None:
    message = Response(1, "a", body, QOS)

    assert exchange.send(message)

    ((_, octets),) = session.outbox.puts
    assert octets == octets_of(to_wire(message))
    assert exchange.take(octets, 0) == 0


def test_a_template_serves_only_queries_that_say_the_same(exchange: SessionQueries, session: Session) -> None:
    first = Request(1, "a", QueryTarget.ALL, QueryBody(), 10_000, QOS)
    others = [
        Request(2, "a", QueryTarget.ALL, QueryBody("x"), 10_000, QOS),
        Request(3, "a", QueryTarget.ALL, first.body, 5_000, QOS),
        Request(4, "a", QueryTarget.ALL, first.body, 10_000, 5),
        Request(5, "a", QueryTarget.ALL_COMPLETE, first.body, 10_000, QOS),
        Request(6, "a", QueryTarget.ALL, first.body, 10_000, QOS, 2),
    ]
    sent = [first, *(message for other in others for message in (other, first))]

    for message in sent:
        exchange.send(message)

    assert [octets for _, octets in session.outbox.puts] == [octets_of(to_wire(message)) for message in sent]


def test_a_response_template_serves_only_its_responder(exchange: SessionQueries, session: Session) -> None:
    sent = [Response(1, "a", b"1", QOS, who) for who in ((b"\x01", 1), (b"\x01", 2), None, (b"\x01", 1))]

    for message in sent:
        exchange.send(message)

    assert [octets for _, octets in session.outbox.puts] == [octets_of(to_wire(message)) for message in sent]


@pytest.mark.parametrize(
    "body",
    [ErrorBody(b"no"), ReplyBody(None, b"1", ConsolidationMode.NONE), ReplyBody(STAMPED, b"1", extensions=MORE)],
    ids=str,
)
def test_other_answers_go_the_long_way(body: AnswerBody, exchange: SessionQueries, session: Session) -> None:
    message = Response(1, "a", body, QOS)

    assert not exchange.send(message)
    octets = octets_of(to_wire(message))
    assert exchange.take(octets, 0) == 0
    assert (session.outbox.puts, session.node.heard) == ([], [])


@pytest.mark.parametrize(
    "message",
    [
        m.Request(1, m.WireExpr(9, True, "/b"), m.Query()),
        m.Request(1, m.WireExpr(0, True, "a//b"), m.Query()),
        m.Response(1, m.WireExpr(9, True), m.Reply(m.Put(b"1"))),
        m.Request(1, m.WireExpr(0, True, "a"), m.Query(attachment=b"x")),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_left_to_the_long_way(
    message: m.NetworkMessage, exchange: SessionQueries, session: Session
) -> None:
    assert exchange.take(octets_of(message), 0) == 0
    assert session.node.heard == []


def test_text_that_is_no_utf8_is_left_to_the_long_way(exchange: SessionQueries, session: Session) -> None:
    octets = octets_of(m.Request(1, m.WireExpr(0, True, "kk"), m.Query(None, "pp")))

    assert exchange.take(octets.replace(b"kk", b"\xff\xff"), 0) == 0
    assert exchange.take(octets.replace(b"pp", b"\xff\xff"), 0) == 0
    assert exchange.take(octets, 0) == len(octets)


def test_a_resource_that_changes_its_meaning_is_looked_up_again(session: Session) -> None:
    keys = ResourceTable()
    exchange = SessionQueries(cast(Any, session), keys)
    octets = octets_of(m.Request(1, m.WireExpr(4, True, "/x"), m.Query()))

    for name in ("a", "b"):
        keys.theirs[4] = name
        exchange.forget()
        exchange.take(octets, 0)

    assert [cast(Request, message).key for message in session.node.heard] == ["a/x", "b/x"]


def test_what_is_remembered_has_a_bound(exchange: SessionQueries, session: Session) -> None:
    for number in range(3 * MAX_REMEMBERED):
        key = f"key/{number}"
        exchange.send(Request(1, key, QueryTarget.ALL, QueryBody(), 1, QOS))
        exchange.send(Response(1, key, b"1", QOS, (number.to_bytes(2, "little"), 1)))
        for _, octets in session.outbox.puts:
            exchange.take(octets, 0)
        session.outbox.puts.clear()

    stores = (exchange._names, exchange._bodies, exchange._responders, exchange._requests, exchange._responses)
    assert all(len(store) <= MAX_REMEMBERED for store in stores)


def test_answers_of_the_reading_thread_leave_in_one_write(exchange: SessionQueries, session: Session) -> None:
    session.node.collecting.add(threading.get_ident())

    for number in range(3):
        exchange.send(reply(number))
        exchange.answer(CONDUIT, octets_of(to_wire(Response(number, "a", ErrorBody(b"no"), QOS))), b"")
        exchange.send(ResponseFinal(number, QOS))
    before = list(session.outbox.puts)
    session.node.dispatch.make()

    assert before == []
    assert [conduit for conduit, _ in session.outbox.puts] == [CONDUIT]
    (written,) = session.written
    assert [type(message) for message in written] == [m.Response, m.Response, m.ResponseFinal] * 3
    assert [cast(m.Response, message).id for message in written] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_answers_of_other_threads_leave_at_once_behind_those_held_back(
    exchange: SessionQueries, session: Session
) -> None:
    session.node.collecting.add(threading.get_ident())
    exchange.send(reply(1))

    thread = threading.Thread(target=exchange.send, args=(ResponseFinal(1, QOS),))
    thread.start()
    thread.join()

    assert [[type(message) for message in put] for put in session.written] == [[m.Response, m.ResponseFinal]]


def test_conduits_are_kept_apart_and_batches_not_overfilled(exchange: SessionQueries, session: Session) -> None:
    session.node.collecting.add(threading.get_ident())
    session.outbox.room = 1_000

    for number in range(4):
        exchange.send(reply(number, bytes(400)))
    exchange.send(ResponseFinal(1, 2))
    session.node.dispatch.make()

    assert [conduit for conduit, _ in session.outbox.puts] == [CONDUIT, CONDUIT, 2 << 1 | 1]
    assert max(len(octets) for _, octets in session.outbox.puts) <= 1_000


def test_not_more_is_held_back_than_fits(exchange: SessionQueries, session: Session) -> None:
    session.node.collecting.add(threading.get_ident())

    for number in range(4):
        exchange.send(reply(number, bytes(HELD_OCTETS // 2)))

    assert len(session.outbox.puts) >= 2


def test_a_neighbour_without_room_is_given_up_for_what_was_held(exchange: SessionQueries, session: Session) -> None:
    session.node.collecting.add(threading.get_ident())
    session.outbox.full = True

    exchange.send(reply(1))
    session.node.dispatch.make()

    assert session.stalls == 1


def test_threads_that_answer_at_once_lose_nothing_and_keep_the_end_behind_the_reply(
    exchange: SessionQueries, session: Session
) -> None:
    count = 300

    def answer(first: int, reads: bool) -> None:
        if reads:
            session.node.collecting.add(threading.get_ident())
        for number in range(first, first + count):
            exchange.send(reply(number))
            exchange.send(ResponseFinal(number, QOS))
            if reads and not number % 7:
                session.node.dispatch.make()

    threads = [threading.Thread(target=answer, args=(1000 * n, n % 2 == 0)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.node.dispatch.make()

    seen: dict[int, list[type]] = {}
    for put in session.written:
        for message in put:
            seen.setdefault(cast(m.Response, message).id, []).append(type(message))
    assert len(seen) == 4 * count
    assert all(kinds == [m.Response, m.ResponseFinal] for kinds in seen.values())
