"""A session of an early dialect: opened, kept alive, its conduits and channels, and its end. No declarations, no data.

Bytes and the time go in; events, packets and the next deadline come out. What channels bring in order is handed out as
`Arrived`; what is to be sent on them is taken from queues of entries (`numbered`), the session's own or an outbox's.
Spec: zenoh-2018 §5.2 to §5.6, §5.8 to §5.10, §5.15.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from elea.model.errors import ConstraintViolated, DecodeError, EleaError, RuleBroken, SessionClosed, SessionRefused
from elea.protocol.early.automata import ACCEPTOR, INITIATOR, Automaton, Input, State
from elea.protocol.early.conduit import Arrived, Conduit
from elea.protocol.early.generation import Generation
from elea.protocol.early.numbered import Entry, conduit_marker
from elea.protocol.early.roundtrip import PING_SECONDS, RoundTrip
from elea.protocol.early.rules import Terms, check_packet
from elea.protocol.early.sending import UNASKED_SECONDS
from elea.protocol.early.terms import Agreement, Offer, Reason
from elea.wire.early_dialect import lenient_codec

__all__ = ["Arrived", "Ended", "Event", "Opened", "Session", "reason_of"]

FAREWELL_SECONDS: Final = 1.0
SYNCH_SECONDS: Final = 0.1
KEEP_ALIVES: Final = 3
PATIENT_SYNCHS: Final = 20
"""How often a node is asked, at least, before it is given up because it acknowledges nothing."""

STUBBORN: Final = 6
"""How many times as long one may acknowledge without anything getting on: a store may be slow."""

PINGS: Final = 4
SHORTEST_PING: Final = 0.002

MOST_WAITING: Final = 256
"""Packets that may wait to be sent when more are made again: one packet may bring thousands of AckNacks."""

ASCII_ZERO: Final = 0x30
TALKING: Final = (State.OPEN, State.CLOSING)
NUMBERED: Final = frozenset({"Declare", "WriteData", "StreamData", "BatchedData", "Pull"})
BROKER_BIT: Final = 0b0001
DURABILITY_BIT: Final = 0b0010
PEER_BIT: Final = 0b0100
CLIENT_BIT: Final = 0b1000


class Opened(NamedTuple):
    """The session is open."""

    agreement: Agreement


class Ended(NamedTuple):
    """The session is over; without an error it was closed in good order."""

    reason: int
    error: EleaError | None


Event = Opened | Ended | Arrived


class Session:
    """One end of a session.

    Args:
        initiates: whether it opens the session, with `open`; otherwise it waits to be asked.
        locators: what a Hello tells.
    """

    def __init__(
        self,
        generation: Generation,
        offer: Offer,
        *,
        initiates: bool,
        locators: Callable[[], tuple[bytes, ...]] = tuple,
    ) -> None:
        self.generation = generation
        self.offer = offer
        self.profile = offer.profile
        self._codec = lenient_codec(generation.name) if offer.profile.is_lenient else generation.codec
        self.automaton = Automaton(INITIATOR if initiates else ACCEPTOR)
        self.agreement: Agreement | None = None
        self.round_trip = RoundTrip()
        self.conduits: dict[int, Conduit] = {}
        self.failure: EleaError | None = None
        """Why it ended, if the other node is to blame."""
        self.dropped = 0
        """Packets and messages that came when there was no session for them, or were ignored as prescribed."""
        self.last_heard = 0.0
        self.last_sent = 0.0
        self.watched: set[int] = set()
        """Second parts of entries, by identity, that somebody keeps and wants to see leave their queue."""
        self._initiates = initiates
        self._locators = locators
        self._terms = Terms()
        self._control: list[bytes] = []
        self._packets: list[bytes] = []
        self._opens = 0
        self._accepts = 0
        self._last_open = b""
        self._timer: float | None = None  # of Open, or of Close
        self._next_ping = 0.0
        self._talked: float | None = None  # when the first message of a channel came

    # -- what the owner does ------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self.automaton.state

    @property
    def is_open(self) -> bool:
        return self.automaton.state is State.OPEN

    @property
    def prefix(self) -> str:
        """What names begin with."""
        return self.generation.scheme if self.profile.prefix is None else self.profile.prefix

    def open(self, now: float) -> None:
        """Begin."""
        self.automaton.step(Input.SEND_OPEN)
        self._send_open(now)

    def close(self, now: float, reason: int = Reason.SUCCESS) -> None:
        """End in good order: say so, and wait a moment for the answer."""
        if self.automaton.takes(Input.SEND_CLOSE):
            self._say(self.generation.messages.Close(self.offer.pid, reason))
            if self.automaton.step(Input.SEND_CLOSE) is State.CLOSING:
                self._timer = now + FAREWELL_SECONDS

    def refuse(self, reason: int) -> None:
        """Say Close and nothing more, whatever the state: what came cannot be taken."""
        self._say(self.generation.messages.Close(self.offer.pid, reason))
        self.automaton.state = State.CLOSED

    def fail(self, error: EleaError) -> Ended:
        """End because of what the other node did: say Close, with the reason for it."""
        if self.failure is None:  # else the rest of the same packet has ended it already
            self.refuse(reason_of(error))
            self.failure = error
        return Ended(reason_of(self.failure), self.failure)

    def conduit(self, id: int = 0) -> Conduit:
        """A conduit, which comes into being with its first use (Z18-CON-04)."""
        found = self.conduits.get(id)
        if found is None:
            assert self.agreement is not None
            found = self.conduits[id] = Conduit(self.agreement, self.offer, id)
        return found

    def limit_packets(self, mtu: int) -> None:
        """Make no larger packets from now on: a link has come that takes no more."""
        self.offer = replace(self.offer, mtu=min(self.offer.mtu, mtu))
        for conduit in self.conduits.values():
            conduit.reliable.limit(mtu)
            conduit.best_effort.limit(mtu)

    def send(self, entry: Entry, *, reliable: bool = True, conduit: int = 0) -> None:
        """Queue a message here; a node with an outbox calls `take` instead."""
        self.conduit(conduit).queue(reliable).extend(entry)

    def take(
        self, key: int, queue: list[bytes], most: int, now: float, limit: int = 1 << 30
    ) -> tuple[list[bytes], int, int]:
        """Packets of a queue of entries, as `Sender.take`: those of conduit `key >> 1`, reliable if `key & 1`."""
        if not self.is_open:
            return [], 0, 0
        conduit = self.conduit(key >> 1)
        taken = conduit.sender(bool(key & 1)).take(queue, most, now, limit)
        if taken[0]:
            self.last_sent = now
            conduit.sent(key & 1, now)
        if self.watched:
            self.watched.difference_update(map(id, queue[1 : taken[1] : 2]))
        return taken

    def migrate(self, old: int, new: int, id: int | None = None) -> None:
        """All traffic of a conduit, or that of one resource, goes over another one from now on (Z18-CON-07).

        What waits in the old conduit's queue must have been taken.
        """
        one, other = self.conduit(old), self.conduit(new)
        message = self.generation.messages.Migrate(old, one.reliable.last, one.best_effort.last, id)
        other.reliable.before += conduit_marker(new) + self.generation.encode(message)

    @property
    def is_settled(self) -> bool:
        """Whether everything that was sent reliably is acknowledged."""
        return not any(one.reliable.held or one.queues[0] or one.queues[1] for one in self.conduits.values())

    # -- packets in ---------------------------------------------------------------------------------------------------

    def receive(self, packet: bytes, now: float) -> list[Event]:
        """Take one packet. If it ends the session by what is wrong with it, `failure` says so."""
        events: list[Event] = []
        try:
            for decorated in self._codec.messages(packet):
                if events and isinstance(events[-1], Ended):
                    self.dropped += 1  # what stands behind the end of a session is for nobody
                    break
                self._message(decorated, now, events)
                self.last_heard = now
        except RuleBroken as error:
            self._broken(error, events)
        except DecodeError as error:
            self._undecodable(error, packet, events)
        return events

    def _message(self, decorated: Any, now: float, events: list[Event]) -> None:
        message, markers = decorated
        kind = type(message).__name__
        if self.profile.prefix is not None:
            message = self.profile.received(message)
        if kind in NUMBERED or kind in ("Synch", "AckNack", "Migrate"):
            if self.automaton.state not in TALKING:
                self.dropped += 1
                return
            if self._talked is None:
                self._talked = now
            self._channel_message(kind, message, markers, decorated, now, events)
            return
        handle = _HANDLERS.get(kind)
        if handle is not None:
            handle(self, message, now, events)

    def _channel_message(
        self, kind: str, message: Any, markers: Any, decorated: Any, now: float, events: list[Event]
    ) -> None:
        space = id = 0
        frag = None
        if markers:
            for marker in markers:
                name = type(marker).__name__
                if name == "Conduit":
                    id = marker.id
                elif name == "Frag":
                    frag = marker
                else:
                    space = marker.id
            if space == 1 and self.offer.is_broker and not self._initiates:
                raise RuleBroken("BROKER_SPACE", "close-255", "resource space 1 is for brokers")
        if markers or kind not in ("StreamData", "BatchedData", "WriteData") or message.sn >> self._terms.snsize:
            check_packet(decorated, self._terms)
        conduit = self.conduits.get(id) or self.conduit(id)
        if kind == "AckNack":
            self._acknowledged(conduit, message, now)
        elif kind == "Synch":
            conduit.synch(message)
            events += conduit.ready()
        elif kind == "Migrate":
            conduit.migrating = (message, self.conduit(message.ocid))
        else:
            events += conduit.arrive(message, frag, space)
            if conduit.has_followers:
                for other in self.conduits.values():
                    if other is not conduit:
                        events += other.ready()

    def _acknowledged(self, conduit: Conduit, message: Any, now: float) -> None:
        conduit.heard = now
        conduit.probes = 0
        again = conduit.reliable.acknowledged(message.sn, message.mask, now, self.round_trip.patience)
        if conduit.reliable.is_recovering:
            self._next_ping = min(self._next_ping, now + self._ping_period(True))
        if again is None:
            # At most one for each round trip: an AckNack that others have overtaken is no reason for a storm.
            if now >= conduit.synched + self.round_trip.estimate:
                self._synch(conduit, now)
        elif again and len(self._packets) < MOST_WAITING:  # else it will be asked for again
            self._packets += again
            conduit.sent(1, now)

    def acknowledge(self) -> None:
        """Say what has become safe meanwhile (`Receiver.release`)."""
        if self.automaton.state in TALKING:
            for conduit in self.conduits.values():
                self._answer(conduit)

    def _answer(self, conduit: Conduit) -> None:
        if conduit.receiver.is_answering and self.profile.acknowledges:
            fields = conduit.receiver.answer()
            self._say(self.generation.messages.AckNack(*fields), conduit.marker)

    def _broken(self, error: RuleBroken, events: list[Event]) -> None:
        verb, _, number = error.reaction.partition("-")
        if verb == "ignore":
            self.dropped += 1
            return
        self._fail(error, int(number), events)

    def _undecodable(self, error: DecodeError, packet: bytes, events: list[Event]) -> None:
        if self.automaton.state is State.CLOSED or self.automaton.state is State.OPENING:
            self.dropped += 1
            if packet[0] & 0x1F == 3 and isinstance(error, ConstraintViolated):  # an Open without a pid (Z18-ERR-02)
                self._say(self.generation.messages.Close(self.offer.pid, Reason.UNSUPPORTED_PARAMETER))
            return
        self._fail(error, Reason.GENERIC, events)

    def _fail(self, error: EleaError, reason: int, events: list[Event]) -> None:
        self.refuse(reason)
        self.failure = error
        events.append(Ended(reason, error))

    # -- opening and closing ------------------------------------------------------------------------------------------

    def _on_open(self, message: Any, now: float, events: list[Event]) -> None:
        if message.pid == self.offer.pid or not self.automaton.takes(Input.RECEIVE_OPEN):
            self.dropped += 1
            return
        octets = self.generation.encode(message)
        if self.automaton.state is State.OPEN:
            self._open_again(octets, message, now, events)
            return
        self.automaton.step(Input.RECEIVE_OPEN)
        try:
            agreement = Agreement.of_open(message, self.offer)
        except RuleBroken as error:
            self.automaton.step(Input.REFUSE)
            self._say(self.generation.messages.Close(self.offer.pid, int(error.reaction.rpartition("-")[2])))
            self.failure = error
            events.append(Ended(int(error.reaction.rpartition("-")[2]), error))
            return
        self.automaton.step(Input.SEND_ACCEPT)
        self._last_open = octets
        self._send_accept(agreement.peer)
        self._opened(agreement, now, events)

    def _open_again(self, octets: bytes, message: Any, now: float, events: list[Event]) -> None:
        agreement = self.agreement
        assert agreement is not None
        is_restart = octets != self._last_open
        if not is_restart and agreement.nonce is None and self._talked is not None:
            # Who has heard Accept and talks opens no more, so a copy of its Open is late by a lifetime at most. Until
            # then a restart cannot be told from it; a node that did restart asks again.
            if now < self._talked + self.offer.lifetime:
                self.dropped += 1
                return
            is_restart = True
        if is_restart:
            # Z18-SES-03: the other node has started anew, and so does the session, with its next Open.
            error = SessionClosed(Reason.SUCCESS, "the other node opens a new session")
            self.automaton.step(Input.RECEIVE_CLOSE)
            self.failure = error
            events.append(Ended(Reason.SUCCESS, error))
            return
        self._accepts += 1
        if self._accepts > self.offer.accept_resends:
            self.automaton.step(Input.RESENDS_SPENT)
            self.failure = SessionClosed(Reason.GENERIC, "the other node does not hear Accept")
            events.append(Ended(Reason.GENERIC, self.failure))
        else:
            self._send_accept(agreement.peer)

    def _on_accept(self, message: Any, now: float, events: list[Event]) -> None:
        if message.openPid != self.offer.pid or not self.automaton.takes(Input.RECEIVE_ACCEPT):
            self.dropped += 1
            return
        try:
            agreement = Agreement.of_accept(message, self.offer)
        except RuleBroken as error:
            self._fail(error, int(error.reaction.rpartition("-")[2]), events)
            return
        self.automaton.step(Input.RECEIVE_ACCEPT)
        self._opened(agreement, now, events)

    def _opened(self, agreement: Agreement, now: float, events: list[Event]) -> None:
        self.agreement = agreement
        self._terms = Terms(agreement.sn_bits, self.offer.conduits)
        self._timer = None
        self.last_heard = self._next_ping = now
        self.conduits = {}
        self.conduit(0)
        if self.profile.synch_first:
            self._say(self.generation.messages.Synch(0, True, True))
        events.append(Opened(agreement))

    def _on_close(self, message: Any, now: float, events: list[Event]) -> None:
        if not self.automaton.takes(Input.RECEIVE_CLOSE):
            self.dropped += 1  # and not answered (Z18-SES-08)
            return
        was = self.automaton.state
        self.automaton.step(Input.RECEIVE_CLOSE)
        reason = message.reason - ASCII_ZERO if self.profile.ascii_reasons else message.reason
        if was is State.OPENING:
            events.append(Ended(reason, SessionRefused(reason)))
            return
        if was is State.OPEN:
            self._say(self.generation.messages.Close(self.offer.pid, Reason.SUCCESS))
        error = None if reason == Reason.SUCCESS else SessionClosed(reason)
        events.append(Ended(reason, error))

    def _send_open(self, now: float) -> None:
        self._opens += 1
        self._timer = now + self.offer.open_timeout
        self._control.append(self.offer.open(self.generation))

    def _send_accept(self, to: bytes) -> None:
        self._control.append(self.offer.accept(self.generation, to))

    # -- the small messages -------------------------------------------------------------------------------------------

    def _on_keep_alive(self, message: Any, now: float, events: list[Event]) -> None:
        """That it came is all it says."""

    def _on_scout(self, message: Any, now: float, events: list[Event]) -> None:
        own = BROKER_BIT if self.offer.is_broker else PEER_BIT if self.offer.is_peer else CLIENT_BIT
        if self.offer.is_durable:
            own |= DURABILITY_BIT
        if self.is_open and self.offer.profile.opens_at_hello:
            self.dropped += 1  # it would begin anew
        elif message.mask & own:
            self._say(self.generation.messages.Hello(own, self._locators(), None))

    def _on_ping(self, message: Any, now: float, events: list[Event]) -> None:
        if not getattr(message, "ispong", False):
            self._say(self.generation.pong(message.hash))
        else:
            self._on_pong(message, now, events)

    def _on_pong(self, message: Any, now: float, events: list[Event]) -> None:
        since = self.round_trip.answered(message.hash, now)
        if since is None:
            self.dropped += 1
            return
        for conduit in self.conduits.values():
            conduit.reliable.landed(since)

    def _on_hello(self, message: Any, now: float, events: list[Event]) -> None:
        self.dropped += 1  # nobody here has asked: scouting has sockets of its own

    # -- packets out --------------------------------------------------------------------------------------------------

    def _say(self, message: Any, marker: bytes = b"") -> None:
        self._control.append(marker + self.generation.encode(message))

    def control(self, now: float) -> list[bytes]:
        """Packets of what has to be said besides the queues: acknowledgements, repetitions, the opening and the end."""
        self.acknowledge()  # not before: who takes what arrived may hold it back
        packets, self._packets = self._packets, []
        control, self._control = self._control, []
        packet = bytearray()
        for octets in control:
            if packet and (self.profile.one_message or len(packet) + len(octets) > self.offer.mtu):
                packets.append(bytes(packet))
                packet.clear()
            packet += octets
        if packet:
            packets.append(bytes(packet))
        if packets:
            self.last_sent = now
        return packets

    def to_send(self, now: float) -> list[bytes]:
        """All packets that may leave now, those of the session's own queues too."""
        packets = self.control(now)
        for id, conduit in list(self.conduits.items()):
            for reliable, queue in enumerate(conduit.queues):
                if queue:
                    taken, used, _ = self.take(id << 1 | reliable, queue, len(queue), now)
                    del queue[:used]
                    packets += taken
        return packets

    # -- time ---------------------------------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """When `on_deadline` has something to do."""
        if self._timer is not None:
            return self._timer
        if not self.is_open or self.agreement is None:
            return None
        dues: list[float] = []
        if self.offer.lease:
            dues.append(self.last_sent + self.offer.lease / KEEP_ALIVES)
        if self.agreement.peer_lease:
            dues.append(self.last_heard + self.agreement.peer_lease)
        for conduit in self.conduits.values():
            if conduit.reliable.held:
                dues += (self._synch_at(conduit), self._next_ping)
                again = conduit.reliable.repeats_at(self.round_trip.patience)
                if again is not None:
                    dues.append(again)
            for sender, queue in ((conduit.best_effort, conduit.queues[0]), (conduit.reliable, conduit.queues[1])):
                ready = sender.paced_until if queue else None
                if ready is not None:
                    dues.append(ready)
        return min(dues, default=None)

    def on_deadline(self, now: float) -> list[Event]:
        """Time has passed."""
        if self._timer is not None:
            return self._on_timer(now) if now >= self._timer else []
        agreement = self.agreement
        if not self.is_open or agreement is None:
            return []
        if self.is_silent(now):
            self._say(self.generation.messages.Close(self.offer.pid, Reason.SUCCESS))
            self.automaton.step(Input.LEASE_EXPIRED)
            self.failure = SessionClosed(
                Reason.SUCCESS, f"the other node was silent for its lease, {agreement.peer_lease:g} s"
            )
            return [Ended(Reason.SUCCESS, self.failure)]
        for conduit in self.conduits.values():
            if conduit.reliable.held:
                if self._is_hopeless(conduit, now):
                    return self._give_up()
                again = conduit.reliable.repeat(now, self.round_trip.patience)
                if again:
                    self._packets += again
                    conduit.sent(1, now)
                if now >= self._synch_at(conduit):
                    conduit.probes += 1
                    self._synch(conduit, now)
                if now >= self._next_ping:
                    self._next_ping = now + self._ping_period(conduit.reliable.is_recovering)
                    self._say(self.generation.ping(self.round_trip.asked(now)))
        if self.offer.lease and now >= self.last_sent + self.offer.lease / KEEP_ALIVES and not self._control:
            self._say(self.generation.messages.KeepAlive(self.offer.pid))
        return []

    def is_silent(self, now: float) -> bool:
        """Whether nothing was heard for the whole lease of the other node."""
        agreement = self.agreement
        if agreement is None or not self.is_open or not agreement.peer_lease:
            return False
        return now >= self.last_heard + agreement.peer_lease

    def _on_timer(self, now: float) -> list[Event]:
        if self.automaton.state is State.CLOSING:
            self.automaton.step(Input.TIMEOUT)
            self._timer = None
            return [Ended(Reason.SUCCESS, None)]
        if self._opens > self.offer.open_retries:
            self.automaton.step(Input.RETRIES_SPENT)
            self._timer = None
            self.failure = SessionRefused(Reason.GENERIC, f"no answer to {self._opens} Opens")
            return [Ended(Reason.GENERIC, self.failure)]
        self.automaton.step(Input.TIMEOUT)
        self._send_open(now)
        return []

    def _ping_period(self, recovering: bool) -> float:
        """Seconds between two pings: several a round trip while messages are lost, since pongs say what has landed."""
        if not self.round_trip.measured:
            return 2 * self.round_trip.timeout
        return max(self.round_trip.estimate / PINGS, SHORTEST_PING) if recovering else PING_SECONDS

    @property
    def synch_period(self) -> float:
        """Seconds between two Synchs while something is not acknowledged (Z18-REL-10)."""
        return max(2 * self.round_trip.timeout, SYNCH_SECONDS)

    def _synch_at(self, conduit: Conduit) -> float:
        """When the next one is due: soon if an answer should have come, then less and less often.

        At once, nearly, if something was sent since the last answer, which nobody has asked about.
        """
        if not conduit.reliable.is_asking:
            return max(conduit.synched, conduit.heard) + UNASKED_SECONDS
        return conduit.synched + min(self.round_trip.timeout * (1 << min(conduit.probes, 8)), self.synch_period)

    def _synch(self, conduit: Conduit, now: float) -> None:
        """Say what is under way, so that the loss of the last message is noticed (Z18-REL-10)."""
        conduit.synched = now
        sender = conduit.reliable
        sender.is_asking = True
        count = len(sender) or None
        self._say(self.generation.messages.Synch(sender.next, True, count is not None, count), conduit.marker)

    def _is_hopeless(self, conduit: Conduit, now: float) -> bool:
        """Whether the other node holds up everybody: it acknowledges nothing, or nothing new, for too long."""
        patience = max(self.offer.patience, PATIENT_SYNCHS * self.synch_period)
        since = conduit.reliable.progress
        return now - max(conduit.heard, since) > patience or now - since > STUBBORN * patience

    def _give_up(self) -> list[Event]:
        self.refuse(Reason.GENERIC)
        self.failure = SessionClosed(Reason.GENERIC, "the other node acknowledges nothing")
        return [Ended(Reason.GENERIC, self.failure)]


_HANDLERS: Final = {
    "Open": Session._on_open,
    "Accept": Session._on_accept,
    "Close": Session._on_close,
    "KeepAlive": Session._on_keep_alive,
    "Scout": Session._on_scout,
    "Hello": Session._on_hello,
    "PingPong": Session._on_ping,
    "Ping": Session._on_ping,
    "Pong": Session._on_pong,
}


def reason_of(error: EleaError) -> int:
    """With which reason a session ends because of an error."""
    if isinstance(error, RuleBroken) and error.reaction.startswith("close-"):
        return int(error.reaction.removeprefix("close-"))
    return Reason.GENERIC
