"""What both ends of a handshake of Zenoh 1.x share: states, deadline, and the CLOSE that a failure leaves behind.

Spec: zenoh-1 §5, §5.1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Final

from elea.model.errors import (
    DecodeError,
    EleaError,
    LocalProtocolError,
    OperationTimeout,
    RuleBroken,
    SessionRefused,
    TrailingBytes,
    Truncated,
)
from elea.protocol.zenoh1.terms import Agreement, CloseReason, Offer
from elea.wire.zenoh1.batch import encode_batch
from elea.wire.zenoh1.codec import DIALECT, read_transport_message
from elea.wire.zenoh1.messages import Close, Init, Open, TransportMessage

__all__ = ["NEXT", "Handshake", "Input", "State", "broken"]


class State(Enum):
    """Where a handshake is: what it waits for, or how it ended."""

    IDLE = "idle"
    AWAIT_INIT_SYN = "await INIT_SYN"
    AWAIT_INIT_ACK = "await INIT_ACK"
    AWAIT_OPEN_SYN = "await OPEN_SYN"
    AWAIT_OPEN_ACK = "await OPEN_ACK"
    OPEN = "open"
    FAILED = "failed"


class Input(Enum):
    """What can happen to a handshake."""

    START = "start"
    INIT_SYN = "INIT_SYN"
    INIT_ACK = "INIT_ACK"
    OPEN_SYN = "OPEN_SYN"
    OPEN_ACK = "OPEN_ACK"
    CLOSE = "CLOSE"
    OTHER = "another message"
    FAILURE = "a failed check"
    TIMEOUT = "timeout"


NEXT: Final = {
    # initiator
    (State.IDLE, Input.START): State.AWAIT_INIT_ACK,
    (State.IDLE, Input.TIMEOUT): State.FAILED,
    (State.AWAIT_INIT_ACK, Input.INIT_ACK): State.AWAIT_OPEN_ACK,
    (State.AWAIT_INIT_ACK, Input.CLOSE): State.FAILED,
    (State.AWAIT_INIT_ACK, Input.FAILURE): State.FAILED,
    (State.AWAIT_INIT_ACK, Input.TIMEOUT): State.FAILED,
    (State.AWAIT_OPEN_ACK, Input.OPEN_ACK): State.OPEN,
    (State.AWAIT_OPEN_ACK, Input.CLOSE): State.FAILED,
    (State.AWAIT_OPEN_ACK, Input.FAILURE): State.FAILED,
    (State.AWAIT_OPEN_ACK, Input.TIMEOUT): State.FAILED,
    # acceptor
    (State.AWAIT_INIT_SYN, Input.INIT_SYN): State.AWAIT_OPEN_SYN,
    (State.AWAIT_INIT_SYN, Input.CLOSE): State.FAILED,
    (State.AWAIT_INIT_SYN, Input.FAILURE): State.FAILED,
    (State.AWAIT_INIT_SYN, Input.TIMEOUT): State.FAILED,
    (State.AWAIT_OPEN_SYN, Input.OPEN_SYN): State.OPEN,
    (State.AWAIT_OPEN_SYN, Input.CLOSE): State.FAILED,
    (State.AWAIT_OPEN_SYN, Input.FAILURE): State.FAILED,
    (State.AWAIT_OPEN_SYN, Input.TIMEOUT): State.FAILED,
}
"""A message that has no entry in the state where it comes is answered with CLOSE 2."""

ENDED: Final = frozenset({State.OPEN, State.FAILED})
LISTENING: Final = frozenset({state for state, event in NEXT if event is Input.CLOSE})


def broken(rule: str, problem: str, reason: int = CloseReason.INVALID) -> RuleBroken:
    """The error of a peer that broke a rule of the handshake, with the reason of the CLOSE it gets."""
    return RuleBroken(f"zenoh1-{rule}", f"close-{int(reason)}", problem)


class Handshake(ABC):
    """One end of a handshake; `Initiator` and `Acceptor` say what its steps do."""

    def __init__(self, offer: Offer, now: float, timeout: float, state: State) -> None:
        self.offer = offer
        self.state = state
        self._deadline = now + timeout
        self._out: list[bytes] = []

    def receive(self, batch: bytes, now: float) -> Agreement | None:
        """Take one batch without its length prefix; returns the agreement when the session is open.

        Raises:
            SessionRefused: the other node said CLOSE, or an acceptor refused it.
            RemoteProtocolError: the other node broke the protocol; DecodeError if that was no message at all.
            AuthenticationFailed: user and password were not exchanged or not right.
        """
        if self.state not in LISTENING:
            raise LocalProtocolError(f"a handshake that is {self.state.value} takes no batch")
        event = Input.FAILURE
        try:
            message = _only(batch)
            event = _input_of(message)
            agreement = self._step(event, message)
        except EleaError as error:
            if event is Input.CLOSE:
                self._move(Input.CLOSE)
            else:
                self._send(Close(_close_reason(error)))
                self._move(Input.FAILURE)
            raise
        self._move(event)
        return agreement

    def to_send(self, now: float) -> list[bytes]:
        """The batches to write now, without their length prefix."""
        out, self._out = self._out, []
        return out

    def next_deadline(self) -> float | None:
        """When to call `on_deadline`; None once the handshake has ended."""
        return None if self.state in ENDED else self._deadline

    def on_deadline(self, now: float) -> None:
        """Give up if it is time to.

        Raises:
            OperationTimeout: it was. Nothing is sent, the link is just closed, as eclipse-zenoh does.
        """
        if self.state in ENDED or now < self._deadline:
            return
        waiting = self.state.value
        self._move(Input.TIMEOUT)
        raise OperationTimeout(f"the session did not open in time: still at {waiting!r}")

    def _step(self, event: Input, message: TransportMessage) -> Agreement | None:
        if isinstance(message, Close):
            why = CloseReason.describe(message.reason)
            raise SessionRefused(message.reason, f"the other node refused the session: {why}")
        timely = (self.state, event) in NEXT
        if timely and isinstance(message, Init):
            self._on_init(message)
            return None
        if timely and isinstance(message, Open):
            return self._on_open(message)
        raise broken("step", f"{event.value} came at {self.state.value!r}")

    @abstractmethod
    def _on_init(self, message: Init) -> None:
        """Check an INIT that comes at the right time, and answer it."""

    @abstractmethod
    def _on_open(self, message: Open) -> Agreement:
        """Check an OPEN that comes at the right time, and answer it if that is our turn."""

    def _send(self, message: TransportMessage) -> None:
        self._out.append(encode_batch((message,)))

    def _move(self, event: Input) -> None:
        follows = NEXT.get((self.state, event))
        if follows is None:
            raise LocalProtocolError(f"no {event.value} in a handshake that is {self.state.value!r}")
        self.state = follows


def _only(batch: bytes) -> TransportMessage:
    """The message a batch of the handshake is."""
    try:
        message, end = read_transport_message(batch, 0)
    except IndexError:
        raise Truncated(DIALECT, len(batch)) from None
    # Spec: each message is alone in its batch. What follows one would be lost, so it is refused, not passed over.
    if end != len(batch):
        raise TrailingBytes(DIALECT, end, f"{len(batch) - end} bytes after a message of the handshake")
    return message


def _input_of(message: TransportMessage) -> Input:
    if isinstance(message, Init):
        return Input.INIT_ACK if message.ack else Input.INIT_SYN
    if isinstance(message, Open):
        return Input.OPEN_ACK if message.ack else Input.OPEN_SYN
    return Input.CLOSE if isinstance(message, Close) else Input.OTHER


def _close_reason(error: EleaError) -> int:
    """What a CLOSE says of a failed step; failures of extensions and of authentication are generic."""
    if isinstance(error, DecodeError):
        return CloseReason.INVALID
    if isinstance(error, RuleBroken):
        return int(error.reaction.removeprefix("close-"))
    return error.reason if isinstance(error, SessionRefused) else CloseReason.GENERIC
