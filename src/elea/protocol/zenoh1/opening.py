"""Opening a session of Zenoh 1.x, from either end.

    initiator  INIT_SYN  →            acceptor
               ←  INIT_ACK (cookie)
               OPEN_SYN (cookie)  →
               ←  OPEN_ACK

Both machines take whole batches without their length prefix and give such batches. A handshake that fails leaves
the CLOSE to send in `to_send` and raises why. Spec: zenoh-1 §5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from elea.model.errors import AuthenticationFailed, SessionRefused
from elea.model.node_id import NodeId, RandomSource
from elea.model.qos import Role
from elea.protocol.zenoh1.handshake import Handshake, Input, State, broken
from elea.protocol.zenoh1.password import password_proof, proof_matches
from elea.protocol.zenoh1.terms import (
    MIN_BATCH,
    QOS_PLAIN,
    VERSION,
    Agreement,
    CloseReason,
    Offer,
    agree,
    announced_qos,
    first_sn,
    init_message,
    lease_fields,
    least_sizes,
    sizes_of,
)
from elea.wire.zenoh1.batch import encode_batch
from elea.wire.zenoh1.messages import Auth, Init, Open, UserProof

__all__ = ["OPENING_TIMEOUT", "Acceptor", "Agreement", "Initiator", "Offer"]

OPENING_TIMEOUT: Final = 10.0
"""Seconds a handshake may take, on either side (`open_timeout`, `accept_timeout`)."""

RANDOM_BITS: Final = 64


class Initiator(Handshake):
    """The end that opens the link.

    >>> machine = Initiator(Offer(b"\\xc1", Role.CLIENT, batch_size=65480), now=0.0)
    >>> machine.start()
    >>> [batch.hex(" ") for batch in machine.to_send(0.0)]
    ['c1 09 02 c1 0a c8 ff 81 27 01']
    """

    def __init__(self, offer: Offer, now: float, timeout: float = OPENING_TIMEOUT) -> None:
        super().__init__(offer, now, timeout, State.IDLE)
        self._ack: Init  # from AWAIT_OPEN_ACK on

    @property
    def peer_id(self) -> bytes:
        """Whom we have reached, as INIT_ACK says; to be asked from AWAIT_OPEN_ACK on."""
        return NodeId(self._ack.zid).data

    def start(self) -> None:
        """Say INIT_SYN."""
        self._move(Input.START)
        message = init_message(self.offer)
        if self.offer.credentials:
            message = message._replace(auth=Auth(usrpwd=True))
        self._send(message)

    def _on_init(self, message: Init) -> None:
        _check_id(message)
        offered, answered = self.offer.resolution, sizes_of(message)
        if answered.resolution & 3 > offered & 3 or answered.resolution >> 2 & 3 > offered >> 2 & 3:
            raise broken("resolution", f"resolution {answered.resolution:#04x} answers our {offered:#04x}")
        _check_batch(min(self.offer.batch_size, answered.batch_size))
        if (message.patch or 0) > self.offer.patch:
            problem = f"patch {message.patch} answers our {self.offer.patch}"
            raise broken("patch", problem, CloseReason.GENERIC)
        announced_qos(message)
        proof = self._proof(message)
        lease, seconds = lease_fields(self.offer.lease_ms)
        self._ack = message
        self._send(
            Open(
                lease,
                first_sn(self.offer, message, message),
                seconds=seconds,
                cookie=message.cookie,
                auth=Auth(usrpwd_proof=proof) if proof else None,
            )
        )

    def _on_open(self, message: Open) -> Agreement:
        if self.offer.credentials and not (message.auth and message.auth.usrpwd):
            raise AuthenticationFailed("the acceptor did not confirm user and password")
        return agree(self.offer, self._ack, ack=self._ack, opened=message)

    def _proof(self, message: Init) -> UserProof | None:
        if not self.offer.credentials:
            return None
        nonce = message.auth.usrpwd_nonce if message.auth else None
        if nonce is None:
            raise AuthenticationFailed("the acceptor does not ask for user and password, and we insist on giving them")
        user, password = self.offer.credentials
        return UserProof(user, password_proof(nonce, password), b"")


class Acceptor(Handshake):
    """The end that was connected to.

    `users` are passwords by user, demanded of everyone if given; `random` should be one that cannot be guessed;
    `cookie_key` is a secret of this node. `accept` is asked last, with the id and role of the other node, and
    gives the close reason to refuse it with, or None. Connections to self are refused without asking.
    """

    def __init__(
        self,
        offer: Offer,
        now: float,
        *,
        cookie_key: bytes,
        random: RandomSource,
        users: Mapping[bytes, bytes] | None = None,
        accept: Callable[[bytes, Role], int | None] | None = None,
        timeout: float = OPENING_TIMEOUT,
    ) -> None:
        super().__init__(offer, now, timeout, State.AWAIT_INIT_SYN)
        self._cookie_key = cookie_key
        self._random = random
        self._users = users
        self._accept = accept
        self._nonce = 0
        self.user: bytes | None = None
        """Who has proved his password."""
        self._syn: Init  # from AWAIT_OPEN_SYN on, as is our answer
        self._ack: Init

    @property
    def awaits_password(self) -> bool:
        """Whether the next message is to prove a password."""
        return self._users is not None and self.state is State.AWAIT_OPEN_SYN

    def _on_init(self, message: Init) -> None:
        if message.version != VERSION:
            raise broken("version", f"protocol version {message.version}, we speak {VERSION}")
        _check_id(message)
        sizes = least_sizes(self.offer, sizes_of(message))
        _check_batch(sizes.batch_size)
        qos = announced_qos(message) if self.offer.qos else None
        auth = None
        if self._users is not None:
            if not (message.auth and message.auth.usrpwd):
                raise AuthenticationFailed("the initiator gives no user and password")
            self._nonce = self._random.randrange(0, 1 << RANDOM_BITS)
            auth = Auth(usrpwd_nonce=self._nonce)
        ack = init_message(self.offer, sizes)._replace(
            ack=True,
            cookie=b"",
            qos=qos == QOS_PLAIN,
            # Our links have no settings of their own, so those of the initiator are adopted as they are.
            qos_link=qos if qos != QOS_PLAIN else None,
            auth=auth,
            lowlatency=self.offer.lowlatency and message.lowlatency,
            compression=self.offer.compression and message.compression,
            patch=min(self.offer.patch, message.patch or 0) or None,
        )
        self._syn = message
        self._ack = ack._replace(cookie=self._cookie(message, ack))
        self._send(self._ack)

    def _on_open(self, message: Open) -> Agreement:
        import hmac  # loads OpenSSL, which an initiator has no use for

        if not hmac.compare_digest(message.cookie or b"", self._ack.cookie or b""):
            raise broken("cookie", "the cookie is not the one we gave")
        if self._users is not None:
            self._authenticate(self._users, message)
        agreement = agree(self.offer, self._syn, ack=self._ack, opened=message)
        self._admit(agreement)
        lease, seconds = lease_fields(self.offer.lease_ms)
        confirmed = Auth(usrpwd=True) if self._users is not None else None
        self._send(Open(lease, agreement.own_sn, ack=True, seconds=seconds, auth=confirmed))
        return agreement

    def _cookie(self, syn: Init, ack: Init) -> bytes:
        """A seal on everything negotiated, different in every handshake so that none can be replayed."""
        # The negotiated state itself stays here: a machine lives as long as its link, so it need not travel.
        salt = self._random.randrange(0, 1 << RANDOM_BITS).to_bytes(RANDOM_BITS // 8, "little")
        import hmac

        return hmac.digest(self._cookie_key, salt + encode_batch((syn, ack)), "sha256")

    def _authenticate(self, users: Mapping[bytes, bytes], message: Open) -> None:
        proof = message.auth.usrpwd_proof if message.auth else None
        if proof is None:
            raise AuthenticationFailed("the initiator does not prove its password")
        password = users.get(proof.user)
        # An unknown user costs the same time as a wrong password, so that names cannot be found out.
        matches = proof_matches(self._nonce, password or b"", proof.hmac)
        if password is None or not matches:
            raise AuthenticationFailed("user or password is wrong")
        self.user = proof.user

    def _admit(self, agreement: Agreement) -> None:
        reason: int | None = None
        if agreement.peer_id == self.offer.node_id:
            reason = CloseReason.CONNECTION_TO_SELF
        elif self._accept:
            reason = self._accept(agreement.peer_id, agreement.peer_role)
        if reason is not None:
            node = NodeId(agreement.peer_id)
            raise SessionRefused(reason, f"we refused node {node}: {CloseReason.describe(reason)}")


def _check_id(message: Init) -> None:
    if not any(message.zid):
        raise broken("zid", "a node id of zero")


def _check_batch(size: int) -> None:
    if size < MIN_BATCH:
        raise broken("batch-size", f"batches of {size} bytes, we need {MIN_BATCH}")
