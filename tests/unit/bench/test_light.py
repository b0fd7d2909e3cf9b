"""The light client of `bench.scale` beside the machines of a real session."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest
from bench.scale.crowd import Client, Crowd, CrowdFailed
from bench.scale.light import KEEP_ALIVE, LightSession, key, put, subscriber

from elea.model.errors import SessionRefused
from elea.model.qos import Role
from elea.protocol.zenoh1.opening import Acceptor, Agreement, Offer
from elea.protocol.zenoh1.terms import CloseReason
from elea.wire.zenoh1.batch import BatchStream, decode_batch, encode_batch
from elea.wire.zenoh1.messages import Close, Frame, KeepAlive


def prefixed(*batches: bytes) -> bytes:
    return b"".join(len(batch).to_bytes(2, "little") + batch for batch in batches)


def acceptor(refuse: int | None = None) -> Acceptor:
    offer = Offer(b"\x01", Role.ROUTER)
    return Acceptor(offer, 0.0, cookie_key=b"k", random=random.Random(7), accept=lambda *_: refuse)


def opened(router: Acceptor, step: int = 1 << 16) -> tuple[LightSession, Agreement]:
    """A session and what the router thinks of it; bytes come to it `step` at a time."""
    session, stream = LightSession(0, 0.0), BatchStream()
    octets, agreement = session.begin(0.0), None
    while octets:
        for batch in stream.feed(octets):
            agreement = router.receive(batch, 0.0) or agreement
        answers = prefixed(*router.to_send(0.0))
        octets = b"".join(session.receive(part, 0.0) for part in parts(answers, step))
    assert agreement is not None
    return session, agreement


def parts(octets: bytes, step: int) -> Iterator[bytes]:
    for at in range(0, len(octets), step):
        yield octets[at : at + step]


@pytest.mark.parametrize("step", [1, 7, 1 << 16])
def test_session_opens_as_a_client_with_the_default_lease(step: int) -> None:
    session, agreement = opened(acceptor(), step)

    assert session.opened
    assert (agreement.peer_role, agreement.peer_lease) == (Role.CLIENT, 10.0)


def test_refused_session_says_so() -> None:
    router = acceptor(CloseReason.MAX_SESSIONS)
    session = LightSession(0, 0.0)
    [syn] = BatchStream().feed(session.begin(0.0))
    router.receive(syn, 0.0)
    [opening] = BatchStream().feed(session.receive(prefixed(*router.to_send(0.0)), 0.0))
    with pytest.raises(SessionRefused):
        router.receive(opening, 0.0)

    with pytest.raises(SessionRefused, match="max sessions"):
        session.receive(prefixed(*router.to_send(0.0)), 0.0)


def test_frames_count_on_from_the_agreed_number() -> None:
    session, agreement = opened(acceptor())

    octets = session.frame(subscriber(1, "a")) + session.frame(put(1)) + KEEP_ALIVE

    messages = [message for batch in BatchStream().feed(octets) for message in decode_batch(batch)]
    first, second, last = messages
    assert isinstance(first, Frame)
    assert isinstance(second, Frame)
    assert isinstance(last, KeepAlive)
    assert (first.sn, second.sn) == (agreement.peer_sn, agreement.peer_sn + 1 & agreement.sn_mask)


@pytest.mark.parametrize("step", [1, 1 << 16])
def test_samples_are_counted_among_other_messages(step: int) -> None:
    session, agreement = opened(acceptor())
    sender = LightSession(1, 0.0)
    sender._run(agreement, 0.0)  # speaks as the router would

    octets = (
        sender.frame(key(1, "a") + put(1) + put(1) + subscriber(1, "b") + put(1)) + KEEP_ALIVE + sender.frame(put(1))
    )
    for part in parts(octets, step):
        session.receive(part, 1.0)

    assert session.samples == 4
    assert session.expires_at == 1.0 + 10.0


def test_close_is_remembered() -> None:
    session, _ = opened(acceptor())

    session.receive(prefixed(encode_batch((Close(CloseReason.EXPIRED),))), 0.0)

    assert session.ended == "the router closed it: expired (reason 5)"


def test_crowd_notices_a_router_that_lets_its_lease_run_out() -> None:
    async def check(heard: float) -> None:
        crowd = Crowd(0)
        client = Client(crowd, 0)
        client.session, _ = opened(acceptor())
        client.session.receive(KEEP_ALIVE, asyncio.get_running_loop().time() + heard)
        crowd.clients.append(client)
        crowd.check()

    asyncio.run(check(-9.0))
    with pytest.raises(CrowdFailed, match="silent for its whole lease with 1 of 1 clients"):
        asyncio.run(check(-11.0))
