"""A dialect in lines of text: the example of how one is added, and a way to talk to a node by hand.

    HELLO client 1f                  first of all, from both ends: role and node id
    PUT home/1/temp "21.5"           a sample; payloads are JSON texts
    DEL home/1/temp                  a deletion
    SUB 1 home/**       UNSUB 1      a subscriber comes and goes; also SUB 1 zenoh://home/?/t*
    ASK 1 home/**       UNASK 1      a queryable comes and goes
    GET 7 home/**?_history           a query; then its answers, and their end
    REPLY 7 home/1/temp "21.5"
    ERR 7 "no such thing"
    END 7

`register()` makes it known as `tcp/host:port?dialect=text`. It has no leases, no numbers for keys, no fragments and no
liveliness.
"""

from __future__ import annotations

import json
from typing import Final

from elea.io.batchreader import BatchReader
from elea.io.linkerrors import BatchTooLarge
from elea.io.outbox import Batch
from elea.model import keyexpr, keytext
from elea.model.details import Details
from elea.model.errors import Malformed, SessionClosed, SessionRefused
from elea.model.node_id import NodeId
from elea.model.qos import QueryTarget, Role, SampleKind
from elea.node import dialect
from elea.node.connection import Connection
from elea.node.links import Links
from elea.node.outboxface import OutboxFace
from elea.node.plainencoder import PlainEncoder
from elea.space.face import Control, Declare, Entity, Request, Response, ResponseFinal, Subject, Undeclare
from elea.space.questions import ErrorBody, QueryBody
from elea.wire.details import is_deletion, pack

__all__ = ["NAME", "TextDialect", "register"]

NAME: Final = "text"
QOS: Final = 13  # data, and wait for room
LONGEST: Final = 60_000
COMING: Final = {"SUB": Entity.SUBSCRIBER, "ASK": Entity.QUERYABLE}
GOING: Final = {"UNSUB": Entity.SUBSCRIBER, "UNASK": Entity.QUERYABLE}
WORDS: Final = {entity: word for word, entity in COMING.items()}


def register() -> None:
    """Make the dialect known to all nodes of this process."""
    dialect.register(NAME, TextDialect)


def text_of(payload: bytes) -> str:
    return json.dumps(payload.decode("utf-8", "surrogateescape"))


def bytes_of(text: str) -> bytes:
    return str(json.loads(text)).encode("utf-8", "surrogateescape")


def sample_line(key: str, meta: bytes | None, payload: bytes, qos: int) -> bytes:
    if len(key.split()) != 1:
        return b""  # a key that no line can carry: 1.x keys may have spaces, and even newlines
    return (f"DEL {key}\n" if is_deletion(meta) else f"PUT {key} {text_of(payload)}\n").encode()


class LineReader(BatchReader):
    """Cuts lines off what a link brings."""

    def cut(self) -> bytes | None:
        line, newline, _ = bytes(self.waiting[: LONGEST + 1]).partition(b"\n")
        if not newline:
            if len(line) > LONGEST:
                raise BatchTooLarge(self.link.remote, len(line), LONGEST)
            return None
        self.pass_over(len(line) + 1)
        return line


class TextFace(OutboxFace):
    """A neighbour that speaks in lines."""

    def send(self, message: Control) -> None:
        """Say what there is a word for; the rest is not for this dialect."""
        match message:
            case Declare(entity=entity) if entity in WORDS:
                self.say(f"{WORDS[entity]} {message.id} {message.key}")
            case Undeclare(entity=entity) if entity in WORDS:
                self.say(f"UN{WORDS[entity]} {message.id}")
            case Request():
                self.say(f"GET {message.id} {message.key}?{message.body.parameters}")
            case Response(body=ErrorBody(payload=payload)):
                self.say(f"ERR {message.id} {text_of(payload)}")
            case Response(body=body):
                payload = body if isinstance(body, bytes) else body.payload
                self.say(f"REPLY {message.id} {message.key} {text_of(payload)}")
            case ResponseFinal():
                self.say(f"END {message.id}")

    def say(self, line: str) -> None:
        if "\n" not in line and "\r" not in line:  # keys and parameters of 1.x may have them; lines may not
            self.push(self.conduit(QOS, True), f"{line}\n".encode())

    def hear(self, word: str, name: str, rest: str) -> None:
        """Take a line: its first word, its second, and the rest."""
        node = self.node
        if word == "PUT":
            self._sample(name, None, bytes_of(rest))
        elif word == "DEL":
            self._sample(name, pack(Details(SampleKind.DELETE)), b"")
        elif word in COMING:
            keytext.check(rest)  # of either grammar
            node.control(self, Declare(COMING[word], int(name), rest, complete=True))
        elif word in GOING:
            node.control(self, Undeclare(GOING[word], int(name)))
        elif word == "GET":
            key, _, parameters = rest.partition("?")
            body = QueryBody(parameters)
            node.ask(self, Request(int(name), str(keyexpr.KeyExpr(key)), QueryTarget.BEST_MATCHING, body, qos=QOS))
        elif word == "REPLY":
            key, _, text = rest.partition(" ")
            node.answer(self, Response(int(name), str(keyexpr.KeyExpr(key)), bytes_of(text), QOS))
        elif word == "ERR":
            node.answer(self, Response(int(name), "", ErrorBody(bytes_of(rest)), QOS))
        elif word == "END":
            node.answer(self, ResponseFinal(int(name), QOS))
        else:
            raise ValueError(f"unknown word {word!r}")

    def _sample(self, key: str, meta: bytes | None, payload: bytes) -> None:
        now_ns = self.node.loop.wall_ns()
        route = self.node.route(self, str(keyexpr.KeyExpr(key)), deletions=is_deletion(meta))
        self.outflow.add(route, [(0, 0, b"", QOS, meta, payload)], True, now_ns)
        self.outflow.flush(now_ns)


class TextMachine(dialect.Machine):
    """A link: one line from each end, and the session is open."""

    def __init__(self, home: TextDialect, connection: Connection) -> None:
        super().__init__(LineReader(connection.link))
        self._home = home
        self._connection = connection
        node = home.links.node
        self._hello = [f"HELLO {node.role} {NodeId(node.node_id)}\n".encode()]
        self._deadline = home.links.loop.now() + home.links.settings.open_timeout

    def to_send(self, now: float) -> list[bytes]:
        said, self._hello = self._hello, []
        return said

    def next_deadline(self) -> float | None:
        return None if self.face is not None else self._deadline

    def on_deadline(self, now: float) -> None:
        raise SessionClosed(text="the other end did not say HELLO in time")

    def receive(self, batch: bytes | memoryview, now: float) -> None:
        try:
            word, name, rest = f"{str(bytes(batch), 'utf-8').strip()}  ".split(" ", 2)
            if isinstance(self.face, TextFace):
                self.face.hear(word, name, rest.strip())
            elif word == "HELLO":
                self._open(Role[name.upper()], NodeId.parse(rest.strip()).data)
            else:
                raise ValueError("the first word is HELLO")
        except (ValueError, KeyError, RecursionError) as error:  # of numbers, JSON, UTF-8, keys
            raise Malformed(NAME, 0, f"no line of this dialect: {error}") from error

    def _open(self, role: Role, node_id: bytes) -> None:
        connection = self._connection
        refusal = connection.admit(node_id) if connection.accepted else connection.recognise(node_id)
        if refusal is not None:
            raise SessionRefused(0, f"no session with {NodeId(node_id)}: {refusal.value}")
        self.outbox = connection.make_outbox(one_write, room=LONGEST)
        subject = Subject(node_id, role, link=connection.link.remote, local=connection.link.local)
        self.face = face = TextFace(self._home.links.node, subject, self.outbox, self._home.encoder)
        face.on_stalled = connection.close


def one_write(lane: int, queue: list[bytes], queued: int, most: int) -> tuple[list[Batch], int, int]:
    """Everything that waits leaves as one write."""
    octets = b"".join(queue[:most])
    return [[octets]], min(most, len(queue)), len(octets)


class TextDialect(dialect.Dialect):
    """The dialect of one node."""

    def __init__(self, links: Links) -> None:
        super().__init__(NAME, links)
        self.encoder = PlainEncoder(sample_line)

    def initiate(self, connection: Connection, timeout: float) -> dialect.Machine:
        return TextMachine(self, connection)

    def accept(self, connection: Connection) -> dialect.Machine:
        return TextMachine(self, connection)
