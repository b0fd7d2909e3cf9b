"""The automata of a session, as the papers draw them: one table for who opens, one for who accepts.

A pair that a table does not have is something that may not happen (`step` raises) or, where another node causes it,
something to be ignored (`takes` is asked first). Spec: zenoh-2018 §5.5, figures on session establishment.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from elea.model.errors import LocalProtocolError

__all__ = ["ACCEPTOR", "INITIATOR", "Automaton", "Input", "State"]


class State(Enum):
    CLOSED = "closed"
    OPENING = "opening"
    OPEN = "open"
    CLOSING = "closing"
    """We have said Close and wait for the other's. Not drawn: the papers only say that one should."""
    TERMINATED = "terminated"


class Input(Enum):
    SEND_OPEN = "send Open"
    TIMEOUT = "no answer in time"
    RETRIES_SPENT = "Open was sent often enough"
    RECEIVE_ACCEPT = "receive Accept"
    RECEIVE_OPEN = "receive Open"
    SEND_ACCEPT = "send Accept"
    REFUSE = "send Close to who asked"
    RESENDS_SPENT = "Accept was sent often enough"
    SEND_CLOSE = "send Close"
    RECEIVE_CLOSE = "receive Close"
    LEASE_EXPIRED = "silence for a whole lease"
    DISPOSE = "runtime disposed"


Table = Mapping[tuple[State, Input], State]

_ENDS: Final[Table] = {
    (State.OPEN, Input.SEND_CLOSE): State.CLOSING,
    (State.OPEN, Input.RECEIVE_CLOSE): State.CLOSED,
    (State.OPEN, Input.LEASE_EXPIRED): State.CLOSED,
    (State.CLOSING, Input.RECEIVE_CLOSE): State.CLOSED,
    (State.CLOSING, Input.TIMEOUT): State.CLOSED,
    (State.CLOSED, Input.DISPOSE): State.TERMINATED,
}

INITIATOR: Final[Table] = {
    (State.CLOSED, Input.SEND_OPEN): State.OPENING,
    (State.OPENING, Input.TIMEOUT): State.OPENING,
    (State.OPENING, Input.RETRIES_SPENT): State.CLOSED,
    (State.OPENING, Input.RECEIVE_CLOSE): State.CLOSED,
    (State.OPENING, Input.SEND_CLOSE): State.CLOSED,
    (State.OPENING, Input.RECEIVE_ACCEPT): State.OPEN,
    **_ENDS,
}

ACCEPTOR: Final[Table] = {
    (State.CLOSED, Input.RECEIVE_OPEN): State.OPENING,
    (State.OPENING, Input.SEND_ACCEPT): State.OPEN,
    (State.OPENING, Input.REFUSE): State.CLOSED,
    (State.OPEN, Input.RECEIVE_OPEN): State.OPEN,
    (State.OPEN, Input.RESENDS_SPENT): State.CLOSED,
    **_ENDS,
}


class Automaton:
    """Where a session stands.

    >>> one = Automaton(INITIATOR)
    >>> one.step(Input.SEND_OPEN), one.takes(Input.RECEIVE_OPEN)
    (<State.OPENING: 'opening'>, False)
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.state = State.CLOSED

    def takes(self, given: Input) -> bool:
        """Whether this may happen now."""
        return (self.state, given) in self.table

    def step(self, given: Input) -> State:
        """It has happened.

        Raises:
            LocalProtocolError: it may not.
        """
        try:
            self.state = self.table[self.state, given]
        except KeyError:
            raise LocalProtocolError(f"{given.value}: not while a session is {self.state.value}") from None
        return self.state
