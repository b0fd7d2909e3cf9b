"""Vectors of behaviour: what a raw client says to a router, what it is answered, and what others hear of it.

The records of one file are one conversation, in order: each builds on what those before it have declared. Three raw
clients take part: the one that the records are about, a holder of what exists from the start, and another that acts
where a record has no octets to send.
"""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from elea.model.errors import DecodeError
from elea.wire import dialect_named
from tests.vectors.answers import FENCE, Reading
from tests.vectors.cases import Case, Json, Mismatch, Record, check_equal
from tests.vectors.rawclient import DATA, PATIENCE, LinkEnded, RawClient
from tests.vectors.remote import Actor, set_up

__all__ = ["Conversation", "behaviour_cases", "router_at"]

LAST = 7
"""The priority of fences: below all others, so that nothing said before is heard after them."""


_Heard = list[tuple[int, Json]]


class _Place:
    """Where the router under test listens; without a locator each conversation starts a router of ours."""

    locator = ""


router_at = _Place()


def behaviour_cases(records: list[Record]) -> Iterator[Case]:
    """The records of one file; the first case that is run holds the conversation."""
    conversation = Conversation(records)
    for index, record in enumerate(records):
        yield Case(str(record.get("name", f"record {index}")), partial(conversation.check, index))


@dataclass
class _Step:
    """What one record led to."""

    answers: list[tuple[int, Json]] = field(default_factory=list)
    delivered: list[tuple[str, str, str]] = field(default_factory=list)
    closed: bool = False
    closes: list[Json] = field(default_factory=list)


class Conversation:
    """All records of a file against one router."""

    def __init__(self, records: list[Record]) -> None:
        self._records = records
        self._steps: list[_Step] | None = None
        self._problem: Exception | None = None
        self._locator = ""

    def check(self, index: int) -> None:
        """Raises Mismatch if the router did not do what the record says."""
        if self._steps is None:
            self.hold(router_at.locator)
        assert self._steps is not None
        if index >= len(self._steps):
            raise Mismatch(f"not reached: {self._problem!r}") from self._problem
        # Numbers mean something only in what came before them: both sides are read from the start.
        recorded, heard = Reading(), Reading()
        expected: Json = {}
        found: Json = {}
        for record, step in zip(self._records[: index + 1], self._steps, strict=False):
            _hear(recorded, record)
            _hear(heard, record)
            expected = recorded.answers(_flat(record["router_answers"]))
            found = heard.answers(step.answers)
        record, step = self._records[index], self._steps[index]
        check_equal("answers", found, expected)
        wanted = record.get("delivered_to_subscriber") or []
        widths = [len(entry) for entry in wanted] + [2] * len(step.delivered)
        check_equal("delivered", [list(one[:w]) for one, w in zip(step.delivered, widths, strict=False)], wanted)
        check_equal("closed", step.closed, record.get("transport_closed", False))
        check_equal("CLOSE", step.closes, [one for _, one in _flat(record["router_answers"]) if one["_"] == "CLOSE"])

    def heard(self) -> list[Json]:
        """What each record led to, in comparable form; raises what ended the conversation early."""
        assert self._steps is not None
        if self._problem is not None:
            raise self._problem
        reading = Reading()
        found: list[Json] = []
        for record, step in zip(self._records, self._steps, strict=True):
            _hear(reading, record)
            answers = reading.answers(step.answers)
            found.append({"answers": answers, "delivered": step.delivered, "closed": step.closed})
        return found

    def hold(self, locator: str = "") -> None:
        """Go through all records, with the router at `locator` or one of ours."""
        self._steps = []
        self._problem = None
        with contextlib.ExitStack() as stack:
            try:
                self._locator = locator or stack.enter_context(_own_router())
                holder = Actor(self._connect(stack))
                other = Actor(self._connect(stack))
                set_up(holder, self._records)
                holder.declare("SUBSCRIBER", f"{FENCE}/holder/**")
                holder.settle()
                raw = self._raw(stack)
                for number, record in enumerate(self._records):
                    step = self._step(record, number, raw, holder, other)
                    self._steps.append(step)
                    if step.closed:
                        raw = self._raw(stack)
            except Exception as error:  # noqa: BLE001 - told by every case that was not reached
                self._problem = error

    def _connect(self, stack: contextlib.ExitStack) -> RawClient:
        client = RawClient(self._locator)
        stack.callback(client.close)
        return client

    def _raw(self, stack: contextlib.ExitStack) -> RawClient:
        client = self._connect(stack)
        actor = Actor(client)
        actor.declare("SUBSCRIBER", f"{FENCE}/raw/**", number=(1 << 32) - 1)
        actor.settle()
        return client

    def _step(self, record: Record, number: int, raw: RawClient, holder: Actor, other: Actor) -> _Step:
        """Say what the record says and a fence behind it, which the holder passes on to the raw client: what they
        hear before it is what the record led to, and nothing needs to be waited for.
        """
        step = _Step()
        octets = record["sent_network_message_hex"]
        fence = f"{FENCE}/holder/{number}"
        if octets:
            raw.send(bytes.fromhex(octets), int(record.get("frame_priority", DATA)))
        else:
            other.act(record, holder)
        with contextlib.suppress(LinkEnded):
            _push(raw if octets else other.client, fence)
        said, step.closed = _until(holder.client, fence, holder.reading, raw)
        if step.closed:
            _push(other.client, fence)
            said += _until(holder.client, fence, holder.reading)[0]
        for _, message in said:
            if message["_"] == "REQUEST":
                holder.answer(message, record)
            elif message["_"] == "PUSH":
                step.delivered.append(_sample(message, holder.reading))
        fence = f"{FENCE}/raw/{number}"
        if not step.closed:
            _push(holder.client, fence)
        step.answers, step.closed = _until(raw, fence, Reading(), raw)
        step.closes, raw.closes = raw.closes, []
        return step


def _until(client: RawClient, fence: str, reading: Reading, raw: RawClient | None = None) -> tuple[_Heard, bool]:
    """The messages a client hears before the sample on key `fence`, and whether the raw one's link ended instead."""
    found: _Heard = []
    links = list({one.socket: one for one in (client, raw) if one is not None}.values())
    deadline = time.monotonic() + PATIENCE
    while True:
        for priority, message in client.heard_so_far():
            if message["_"] == "DECLARE" and message["body"]["_"] in ("D_KEYEXPR", "U_KEYEXPR"):
                reading.answers([(priority, message)])
            if message["_"] == "PUSH" and reading.key(message["wire_expr"]) == fence:
                return found, False
            found.append((priority, message))
        if raw is not None and raw.ended:
            return found, True
        ready, _, _ = select.select([one.socket for one in links], [], [], PATIENCE)
        if not ready or time.monotonic() > deadline:  # keep-alives come for ever
            raise Mismatch(f"the router did not pass {fence} on within {PATIENCE} s")
        for one in links:
            if one.socket in ready:
                one.fill()


def _push(client: RawClient, key: str) -> None:
    expr = {"scope": 0, "suffix": key, "mapping": "sender"}
    qos = {"raw": 8 | LAST, "priority": LAST, "congestion": "block", "express": False}
    client.say({"_": "PUSH", "wire_expr": expr, "ext": {"qos": qos}, "body": {"_": "PUT", "payload": ""}}, LAST)


def _sample(message: Json, reading: Reading) -> tuple[str, str, str]:
    body = message["body"]
    return reading.key(message["wire_expr"]), str(body.get("payload", "")), str(body["_"])


def _hear(reading: Reading, record: Record) -> None:
    octets = record["sent_network_message_hex"]
    if octets:
        with contextlib.suppress(DecodeError):  # a record may well hold what is no message
            reading.said(_message(octets))


def _flat(frames: Json) -> Iterator[tuple[int, Json]]:
    for frame in frames:
        for message in frame["msgs"]:
            yield frame.get("priority", DATA), message


def _message(octets: str) -> Json:
    dialect = dialect_named("zenoh1")
    return dialect.to_json("message", dialect.decode("message", bytes.fromhex(octets)))


@contextlib.contextmanager
def _own_router() -> Iterator[str]:
    import elea

    config = elea.Config()
    config.insert_json5("mode", '"router"')
    config.insert_json5("listen/endpoints", '["tcp/127.0.0.1:0"]')
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("scouting/delay", "0")
    with elea.open(config) as session:
        yield session._runtime.links.locators()[0]
