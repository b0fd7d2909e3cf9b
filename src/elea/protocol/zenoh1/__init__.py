"""Sessions of Zenoh 1.x as machines without sockets, clocks or chance.

`Initiator` and `Acceptor` open a session, `Receiver` and `Sender` run it, `keeping` tells when to show life,
`Scouter` and `ScoutAnswerer` find nodes, `Backoff` says when to try again.
"""

from elea.protocol.backoff import Backoff
from elea.protocol.zenoh1.handshake import NEXT, Input, State
from elea.protocol.zenoh1.keepalive import lease_ends, next_keep_alive
from elea.protocol.zenoh1.opening import OPENING_TIMEOUT, Acceptor, Initiator
from elea.protocol.zenoh1.password import password_proof, proof_matches
from elea.protocol.zenoh1.scouting import ScoutAnswerer, Scouter
from elea.protocol.zenoh1.sender import Sender
from elea.protocol.zenoh1.sn import SN_MASKS, initial_sn
from elea.protocol.zenoh1.terms import Agreement, CloseReason, Offer
from elea.protocol.zenoh1.transport import Receiver, Sink

__all__ = [
    "NEXT",
    "OPENING_TIMEOUT",
    "SN_MASKS",
    "Acceptor",
    "Agreement",
    "Backoff",
    "CloseReason",
    "Initiator",
    "Input",
    "Offer",
    "Receiver",
    "ScoutAnswerer",
    "Scouter",
    "Sender",
    "Sink",
    "State",
    "initial_sn",
    "lease_ends",
    "next_keep_alive",
    "password_proof",
    "proof_matches",
]
