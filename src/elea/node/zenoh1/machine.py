"""A link of Zenoh 1.x: the handshake, then a session that is kept alive. Spec: zenoh-1 §5, §6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from elea.io.batchreader import LARGE
from elea.io.link import peer_name
from elea.io.linkerrors import LinkError
from elea.io.outbox import Outbox
from elea.io.sharedmemory import SharedOut
from elea.model.errors import (
    AuthenticationFailed,
    EleaError,
    LeaseExpired,
    ProtocolError,
    SessionClosed,
    SessionRefused,
)
from elea.model.logger import logger
from elea.model.node_id import NodeId
from elea.node.dialect import Machine, Refusal
from elea.node.zenoh1.face import Zenoh1Face
from elea.node.zenoh1.pushes import key_of
from elea.protocol.zenoh1.keepalive import lease_ends, next_keep_alive, phase_of
from elea.protocol.zenoh1.opening import Acceptor, Initiator
from elea.protocol.zenoh1.sender import Sender, count_messages
from elea.protocol.zenoh1.terms import Agreement, CloseReason
from elea.protocol.zenoh1.transport import Receiver
from elea.space.face import Subject

if TYPE_CHECKING:
    from elea.io.memorybudget import Share
    from elea.node.connection import Connection
    from elea.node.zenoh1.dialect import Zenoh1Dialect
    from elea.protocol.zenoh1.sender import Octets

__all__ = ["Zenoh1Machine"]

_log = logger("elea.node")

REASONS: Final = {
    Refusal.SELF: CloseReason.CONNECTION_TO_SELF,
    Refusal.DUPLICATE: CloseReason.MAX_LINKS,
    Refusal.FULL: CloseReason.INVALID,
}
"""The reason with which a session is refused, as eclipse-zenoh gives it."""

SHORTEST: Final = 0.001
"""Seconds between two looks at the lease, at least."""


class Zenoh1Machine(Machine):
    """One end of a link."""

    def __init__(self, dialect: Zenoh1Dialect, connection: Connection, handshake: Initiator | Acceptor) -> None:
        super().__init__(connection.batches())
        self.session: Zenoh1Face | None = None
        self.receiver: Receiver | None = None
        self.memory: SharedOut | None = None
        self._dialect = dialect
        self._connection = connection
        self._handshake = handshake
        self._streamed = connection.link.streamed
        self._sender: Sender | None = None
        self._phase = 0.0  # of the keep-alives
        self._due: float | None = None  # for the next look at the lease
        self._told_of_size = False
        self._has_waited = False  # because of wrong passwords from its address
        self._memory: Share | None = None  # of the messages in the making

    # -- the handshake ------------------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        if isinstance(self._handshake, Initiator):
            self._handshake.start()

    def to_send(self, now: float) -> list[bytes]:
        if not self._streamed:
            return self._handshake.to_send(now)
        return [len(batch).to_bytes(2, "little") + batch for batch in self._handshake.to_send(now)]

    def _shake(self, batch: bytes, now: float) -> None:
        handshake = self._handshake
        links, remote = self._dialect.links, self._connection.link.remote
        if isinstance(handshake, Acceptor) and handshake.awaits_password and not self._has_waited:
            delay = links.guesses.delay(remote)
            if delay:
                self._has_waited = True
                self._connection.receive_later(batch, delay)
                return
        try:
            agreement = handshake.receive(batch, now)
        except AuthenticationFailed:
            if isinstance(handshake, Acceptor):
                links.guesses.wrong(remote)
            raise
        if agreement is not None:
            self._open(agreement, now)
        elif isinstance(handshake, Initiator):
            self._recognise(handshake, now)

    def _recognise(self, handshake: Initiator, now: float) -> None:
        """INIT_ACK says whom we have connected to; this may be somebody we know, or ourselves."""
        refusal = self._connection.recognise(handshake.peer_id)
        if refusal is not None:
            handshake.to_send(now)  # not our OPEN_SYN: the link ends here
            reason = REASONS[refusal]
            why = CloseReason.describe(reason)
            raise SessionRefused(reason, f"node {NodeId(handshake.peer_id)} needs no further session: {why}")

    def _open(self, agreement: Agreement, now: float) -> None:
        connection, settings = self._connection, self._dialect.links.settings
        sender = self._sender = Sender(agreement, prefix=self._streamed)

        def take(key: int, queue: list[bytes], queued: int, most: int) -> tuple[list[list[Octets]], int, int]:
            before = sender.oversized
            taken = sender.take(key, queue, queued, most)
            if sender.oversized > before:
                outbox.losses.add("oversized", sender.oversized - before)
                if sender.oversized.bit_length() > before.bit_length():  # said the 1st, 2nd, 4th … time
                    self._tell_of_oversized(sender.oversized, agreement.batch_size)
            return taken

        outbox = self.outbox = connection.make_outbox(
            take if agreement.lowlatency else sender.take, room=sender.room, count=count_messages, name=self._key_of
        )
        share = self._memory = self._dialect.links.node.memory.share(self._give_up)
        self.receiver = receiver = Receiver(
            agreement, now, max_message=settings.max_message, more=share.take, back=share.give
        )
        self.reader.settle = receiver.settle
        handover = self._dialect.handover_for(connection.link)
        if handover is not None:
            receiver.on_memory = handover.take
            self._share(agreement.peer_id, sender, outbox)
        if agreement.lowlatency:
            self.reader.prefix = 4
        link = connection.link
        user = self._handshake.user if isinstance(self._handshake, Acceptor) else None
        subject = Subject(
            agreement.peer_id,
            agreement.peer_role,
            user=None if user is None else user.decode("utf-8", "replace"),
            certificate=peer_name(link),
            link=link.remote,
            local=link.local,
        )
        dialect = self._dialect
        session = Zenoh1Face(dialect.links.node, agreement, subject, outbox, dialect.encoder, dialect.names)
        stalled = SessionClosed(CloseReason.UNRESPONSIVE, "the other node takes no more messages")
        session.on_stalled = lambda: connection.end(stalled)
        session.on_oam = self._dialect.on_oam
        session.received = self._received
        self.session = self.face = session
        self._phase = phase_of(agreement.peer_id, agreement.own_lease)
        self._due = self._next_look(now)

    def _share(self, node_id: bytes, sender: Sender, outbox: Outbox) -> None:
        """Lay large payloads in memory, if the other node turns out to be one that can take them from there."""
        worth = self._dialect.links.settings.shared_from

        def announce(token: bytes) -> None:
            outbox.large = min(outbox.room, worth - 1)
            outbox.control(sender.announcement(token))

        self.memory = SharedOut(node_id, self._dialect.pool, announce)
        sender.share(self.memory, worth)

    def on_joining(self) -> None:
        if self._dialect.on_joining is not None and self.session is not None:
            self._dialect.on_joining(self.session)

    # -- the session --------------------------------------------------------------------------------------------------

    def receive(self, batch: bytes | memoryview, now: float) -> None:
        receiver, session = self.receiver, self.session
        if receiver is None or session is None:
            self._shake(bytes(batch), now)
            return
        receiver.receive(batch, now, session)
        if session.node.scanner is not None:
            self._take_frames(receiver, session, now)
        if receiver.oversized and not self._told_of_size:
            self._told_of_size = True
            node_id = NodeId(session.subject.node_id)
            _log.warning("message too large, dropped: node=%s limit=%d", node_id, receiver.max_message)
        if receiver.closed:
            self.closed = True

    def _take_frames(self, receiver: Receiver, session: Zenoh1Face, now: float) -> None:
        """Take the frames that have arrived behind a batch, all at once: somebody makes columns of them."""
        waiting = self.reader.waiting
        size = receiver.frames_in(waiting)
        if size >= LARGE:
            octets = bytes(waiting[:size])
            self.reader.pass_over(size)
            receiver.receive_frames(octets, now, session)

    def _received(self) -> Mapping[str, int]:
        receiver, memory = self.receiver, self.memory
        found: dict[str, int] = {}
        if memory is not None:
            found = {
                "memory_payloads": memory.payloads,
                "memory_bytes": memory.octets,
                "memory_full": memory.full,
            }
        if receiver is not None:
            found |= {
                "received_batches": receiver.batches,
                "received_bytes": receiver.octets,
                "received_frames": receiver.frames,
                "received_fragments": receiver.fragments,
                "duplicates": receiver.duplicates,
                "missing_numbers": receiver.missing,
                "lost_fragments": receiver.fragments_lost,
                "ignored_batches": receiver.ignored,
            }
        return found

    def _key_of(self, parts: Sequence[bytes]) -> str:
        return "" if self.session is None else key_of(parts, self.session.resources.ours)

    def _tell_of_oversized(self, count: int, limit: int) -> None:
        _log.warning(
            "messages dropped: remote=%s oversized=%d limit=%d hint=a low-latency session has no fragments, make them "
            "smaller or leave transport/unicast/lowlatency out",
            self._connection.link.remote, count, limit,
        )  # fmt: skip

    # -- time ---------------------------------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        return self._handshake.next_deadline() if self.session is None else self._due

    def on_deadline(self, now: float) -> None:
        """Keep the session alive, and notice when the other end does not."""
        session, receiver, sender = self.session, self.receiver, self._sender
        if session is None or receiver is None or sender is None:
            self._handshake.on_deadline(now)
            return
        agreement = session.agreement
        if self._connection.is_paused:
            receiver.last_heard = now  # it may say what it likes, nobody reads it
        if now >= lease_ends(receiver.last_heard, agreement.peer_lease):
            self._connection.read_late()
        if now >= lease_ends(receiver.last_heard, agreement.peer_lease):
            silence = f"silent for {now - receiver.last_heard:.3f} s, its whole lease is {agreement.peer_lease:.3f} s"
            raise LeaseExpired(CloseReason.EXPIRED, f"the other node was {silence}")
        if now >= self._keep_alive_due(session):
            session.outbox.control(sender.keep_alive())
        self._due = self._next_look(now)

    def _keep_alive_due(self, session: Zenoh1Face) -> float:
        keep_alives = self._dialect.links.settings.keep_alives
        return next_keep_alive(
            session.outbox.last_sent, session.agreement.own_lease, per_lease=keep_alives, phase=self._phase
        )

    def _next_look(self, now: float) -> float:
        session, receiver = self.session, self.receiver
        if session is None or receiver is None:
            return now
        agreement = session.agreement
        due = self._keep_alive_due(session)
        if due <= now:  # it has been said just now, and not been written yet
            due += agreement.own_lease / self._dialect.links.settings.keep_alives
        return max(min(due, lease_ends(receiver.last_heard, agreement.peer_lease)), now + SHORTEST)

    # -- the end ------------------------------------------------------------------------------------------------------

    def refuse(self, error: EleaError) -> None:
        # The CLOSE of a session whose other node broke a limit; a broken rule ends it without a word (zenoh-1 §22).
        if self.session is not None and not isinstance(error, LinkError | ProtocolError | SessionClosed):
            self.say_goodbye()

    def say_goodbye(self) -> None:
        if self.session is not None and self._sender is not None:
            self.session.outbox.control(self._sender.close(CloseReason.GENERIC))

    def _give_up(self) -> None:
        if self.receiver is not None:
            self.receiver.give_up()

    def on_end(self) -> None:
        if self.receiver is not None:
            self.receiver.memory = None
            self.receiver.give_up()
        if self._memory is not None:
            self._memory.close()
        if self.session is not None:
            self.session.routes.end()
        if self.memory is not None:
            self.memory.close()
