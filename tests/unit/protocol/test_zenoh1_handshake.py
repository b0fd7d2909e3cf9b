"""Both ends of the handshake: against eclipse-zenoh 1.10.2 as recorded, against each other, and step by step."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from elea.model.errors import (
    AuthenticationFailed,
    BadEnum,
    DecodeError,
    EleaError,
    LocalProtocolError,
    OperationTimeout,
    RemoteProtocolError,
    RuleBroken,
    SessionRefused,
    TrailingBytes,
    Truncated,
    UnknownMandatoryExtension,
)
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.protocol.zenoh1 import NEXT, Acceptor, Agreement, CloseReason, Initiator, Input, Offer, State
from elea.protocol.zenoh1.handshake import Handshake
from elea.wire.zenoh1.batch import decode_batch, encode_batch
from elea.wire.zenoh1.messages import Auth, Close, Frame, Init, KeepAlive, Open, Sizes, TransportMessage
from elea.wire.zenoh1.messages import Role as WireRole

VECTORS = Path(__file__).parents[2] / "vectors" / "zenoh1"
STEPS = ("INIT_SYN", "INIT_ACK", "OPEN_SYN", "OPEN_ACK")
ROLES = {"client": Role.CLIENT, "peer": Role.PEER, "router": Role.ROUTER}

Recording = dict[str, Any]


class Fixed:
    """A source of chance that gives what it is told to."""

    def __init__(self, value: int = 7) -> None:
        self.value = value

    def randrange(self, start: int, stop: int, /) -> int:
        assert start <= self.value < stop
        return self.value


def recordings() -> Iterator[tuple[str, Recording]]:
    """Of every recorded handshake its records by step; a CLOSE stands at the step it answers."""
    for path in sorted(VECTORS.glob("*.json")):
        records = json.loads(path.read_text())
        groups: dict[str, Recording] = {}
        for record in records if isinstance(records, list) else []:
            group, _, step = record.get("name", "").partition("/open/")
            if not step or not isinstance(record["decoded"], dict):
                continue
            kind = record["decoded"]["_"]
            if kind == "CLOSE":
                kind = {"s2c1": "INIT_ACK", "s2c2": "OPEN_ACK"}[step]
            if kind in STEPS:
                groups.setdefault(group, {"what": record["what"]})[kind] = record
        for group, steps in groups.items():
            yield f"{path.stem}:{group}", steps


RECORDED = {name: steps for name, steps in recordings() if "INIT_SYN" in steps and "INIT_ACK" in steps}
OURS_TO_INITIATE = {name for name in RECORDED if name.partition(":")[2] not in ("qos_link", "multilink", "pubkey")}


def message(record: Recording) -> Any:
    (found,) = decode_batch(bytes.fromhex(record["hex"]))
    return found


def offer_of(init: Init, opened: Open | None, *, qos: bool | None = None) -> Offer:
    """The offer of a node that said these two."""
    sizes = init.sizes or Sizes(0x0A, 65535)
    lease = 10_000
    if opened:
        lease = opened.lease * 1000 if opened.seconds else opened.lease
    return Offer(
        init.zid,
        Role.from_code(init.whatami),
        batch_size=sizes.batch_size,
        sn_bits=8 << (sizes.resolution & 3),
        qos=(init.qos or init.qos_link is not None) if qos is None else qos,
        lowlatency=init.lowlatency,
        compression=init.compression,
        patch=init.patch or 0,
        lease_ms=lease,
        region_name=init.region_name,
    )


def credentials_of(steps: Recording) -> tuple[bytes, bytes] | None:
    """User and password; of the recorded refusal only the right ones are known."""
    match = re.search(r"user '(.*?)', password '(.*?)'", steps["what"])
    return (match[1].encode(), match[2].encode()) if match else None


def recorded_initiator(steps: Recording) -> Initiator:
    opened = message(steps["OPEN_SYN"]) if "OPEN_SYN" in steps else None
    offer = offer_of(message(steps["INIT_SYN"]), opened)
    machine = Initiator(replace(offer, credentials=credentials_of(steps)), now=0.0)
    machine.start()
    return machine


def without_shm(batch: str) -> str:
    """What a node with shared memory switched off would have sent."""
    found = decode_batch(bytes.fromhex(batch))[0]
    assert isinstance(found, Init | Open)
    return encode_batch((found._replace(shm=None),)).hex()


@pytest.mark.parametrize("name", sorted(OURS_TO_INITIATE - {"handshake:usrpwd_bad"}))
def test_initiator_says_what_eclipse_zenoh_says(name: str) -> None:
    steps = RECORDED[name]
    machine = recorded_initiator(steps)

    assert [batch.hex() for batch in machine.to_send(0.0)] == [without_shm(steps["INIT_SYN"]["hex"])]

    if steps["INIT_ACK"]["decoded"]["_"] == "CLOSE":
        with pytest.raises(SessionRefused):
            machine.receive(bytes.fromhex(steps["INIT_ACK"]["hex"]), 0.0)
        return
    assert machine.receive(bytes.fromhex(steps["INIT_ACK"]["hex"]), 0.0) is None
    assert [batch.hex() for batch in machine.to_send(0.0)] == [without_shm(steps["OPEN_SYN"]["hex"])]

    answer = message(steps["OPEN_ACK"])
    if isinstance(answer, Close):
        with pytest.raises(SessionRefused) as caught:
            machine.receive(bytes.fromhex(steps["OPEN_ACK"]["hex"]), 0.0)
        assert caught.value.reason == answer.reason
        return
    agreement = machine.receive(bytes.fromhex(steps["OPEN_ACK"]["hex"]), 0.0)
    ack = message(steps["INIT_ACK"])
    assert agreement == Agreement(
        peer_id=ack.zid,
        peer_role=Role.from_code(ack.whatami),
        batch_size=ack.sizes.batch_size,
        sn_mask={0: 0x7F, 1: 0x3FFF, 2: 0xFFFFFFF}[ack.sizes.resolution & 3],
        qos=ack.qos,
        lowlatency=ack.lowlatency,
        compression=ack.compression,
        patch=1,
        own_sn=message(steps["OPEN_SYN"]).initial_sn,
        peer_sn=answer.initial_sn,
        own_lease=machine.offer.lease_ms / 1000,
        peer_lease=10.0,
    )
    assert machine.state is State.OPEN
    assert machine.next_deadline() is None


@pytest.mark.parametrize("name", sorted(set(RECORDED) - {"extra:pubkey"}))
def test_acceptor_answers_as_eclipse_zenoh_does(name: str) -> None:
    steps = RECORDED[name]
    recorded = message(steps["INIT_ACK"])
    syn = message(steps["INIT_SYN"])
    nonce = 0
    users = None
    if "usrpwd" in name:
        users = {b"alice": b"secret"}
    if isinstance(recorded, Close):
        offer = Offer(b"\xa1", Role.ROUTER)
    else:
        answered = message(steps["OPEN_ACK"])
        offer = offer_of(recorded, answered if isinstance(answered, Open) else None)
        nonce = recorded.auth.usrpwd_nonce if recorded.auth and recorded.auth.usrpwd_nonce else 0
    machine = Acceptor(offer, 0.0, cookie_key=b"key", random=Fixed(nonce), users=users)

    if isinstance(recorded, Close):
        with pytest.raises(AuthenticationFailed):
            machine.receive(encode_batch((syn,)), 0.0)
        assert [batch.hex() for batch in machine.to_send(0.0)] == [steps["INIT_ACK"]["hex"]]
        return
    assert machine.receive(encode_batch((syn,)), 0.0) is None
    (batch,) = machine.to_send(0.0)
    (ack,) = decode_batch(batch)
    assert isinstance(ack, Init)
    assert ack._replace(cookie=b"") == recorded._replace(cookie=b"", shm=None, multilink=None)

    opened = message(steps["OPEN_SYN"])._replace(cookie=ack.cookie)
    answer = message(steps["OPEN_ACK"])
    if isinstance(answer, Close):
        with pytest.raises((AuthenticationFailed, SessionRefused)):
            machine.receive(encode_batch((opened,)), 0.0)
        assert [batch.hex() for batch in machine.to_send(0.0)] == [steps["OPEN_ACK"]["hex"]]
        return
    agreement = machine.receive(encode_batch((opened,)), 0.0)
    expected = answer._replace(shm=None, multilink_ack=False, remote_bound=None)
    assert machine.to_send(0.0) == [encode_batch((expected,))]
    assert agreement is not None
    assert agreement.peer_id == syn.zid
    assert agreement.peer_sn == opened.initial_sn


def test_default_offer_is_the_example_of_the_spec() -> None:
    machine = Initiator(Offer(b"\xc1", Role.CLIENT, batch_size=65480), 0.0)
    machine.start()

    assert machine.to_send(0.0) == [bytes.fromhex("c10902c10ac8ff812701")]
    assert machine.to_send(0.0) == []


def test_sizes_that_are_the_default_are_left_out() -> None:
    machine = Initiator(Offer(b"\xc1", Role.CLIENT), 0.0)
    machine.start()

    assert machine.to_send(0.0) == [bytes.fromhex("810902c1812701")]


# -- the two machines with each other --------------------------------------------------------------------------------


def acceptor(offer: Offer | None = None, **options: Any) -> Acceptor:
    return Acceptor(offer or Offer(b"\xa1", Role.ROUTER), 0.0, **{"cookie_key": b"key", "random": Fixed(), **options})


def initiator(offer: Offer | None = None) -> Initiator:
    machine = Initiator(offer or Offer(b"\xc1", Role.CLIENT), 0.0)
    machine.start()
    return machine


def shake(one: Initiator, other: Acceptor) -> tuple[Agreement | None, Agreement | None]:
    """Carry batches to and fro until nobody has one."""
    agreements: dict[int, Agreement | None] = {}
    machines: list[Handshake] = [one, other]
    for turn in range(4):
        sender, receiver = machines[turn % 2], machines[1 - turn % 2]
        for batch in sender.to_send(0.0):
            found = receiver.receive(batch, 0.0)
            if found:
                agreements[1 - turn % 2] = found
    assert not one.to_send(0.0)
    assert not other.to_send(0.0)
    return agreements.get(0), agreements.get(1)


MODES = [(True, False), (False, True), (False, False)]


@pytest.mark.parametrize("one", list(product(MODES, (False, True), (0, 1))))
@pytest.mark.parametrize("other", list(product(MODES, (False, True), (0, 1))))
def test_both_ends_agree_on_what_both_want(one: Any, other: Any) -> None:
    (qos, low), compression, patch = one
    (qos2, low2), compression2, patch2 = other
    first = Offer(b"\xc1", Role.PEER, qos=qos, lowlatency=low, compression=compression, patch=patch, lease_ms=2500)
    second = Offer(b"\xa1", Role.ROUTER, qos=qos2, lowlatency=low2, compression=compression2, patch=patch2)

    seen, seen_back = shake(initiator(first), acceptor(second))

    assert seen is not None
    assert seen_back is not None
    for agreement in (seen, seen_back):
        assert agreement.qos == (qos and qos2)
        assert agreement.lowlatency == (low and low2)
        assert agreement.compression == (compression and compression2 and not (low and low2))
        assert agreement.patch == min(patch, patch2)
    assert (seen.own_sn, seen.peer_sn) == (seen_back.peer_sn, seen_back.own_sn)
    assert (seen.own_lease, seen.peer_lease) == (2.5, 10.0)
    assert (seen_back.own_lease, seen_back.peer_lease) == (10.0, 2.5)
    assert (seen.peer_id, seen.peer_role) == (b"\xa1", Role.ROUTER)
    assert (seen_back.peer_id, seen_back.peer_role) == (b"\xc1", Role.PEER)


@pytest.mark.parametrize("bits", list(product((8, 16, 32), repeat=2)))
@pytest.mark.parametrize("sizes", [(65535, 65535), (512, 49152), (65480, 4096)])
def test_sizes_are_the_smaller_of_both(bits: tuple[int, int], sizes: tuple[int, int]) -> None:
    first = Offer(b"\xc1", Role.PEER, sn_bits=bits[0], batch_size=sizes[0])
    second = Offer(b"\xa1", Role.PEER, sn_bits=bits[1], batch_size=sizes[1])

    seen, seen_back = shake(initiator(first), acceptor(second))

    assert seen is not None
    assert seen_back is not None
    assert seen.batch_size == seen_back.batch_size == min(sizes)
    assert seen.sn_mask == seen_back.sn_mask == {8: 0x7F, 16: 0x3FFF, 32: 0xFFFFFFF}[min(bits)]


USERS = {b"alice": b"secret", b"nobody": b""}


@pytest.mark.parametrize("credentials", [(b"alice", b"secret"), (b"nobody", b"")])
def test_right_password_opens(credentials: tuple[bytes, bytes]) -> None:
    offer = Offer(b"\xc1", Role.CLIENT, credentials=credentials)

    seen, seen_back = shake(initiator(offer), acceptor(users=USERS))

    assert seen is not None
    assert seen_back is not None


@pytest.mark.parametrize("credentials", [(b"alice", b"Secret"), (b"bob", b"secret"), (b"bob", b""), (b"", b"")])
def test_wrong_password_is_refused_with_reason_0(credentials: tuple[bytes, bytes]) -> None:
    one, other = initiator(Offer(b"\xc1", Role.CLIENT, credentials=credentials)), acceptor(users=USERS)

    with pytest.raises(AuthenticationFailed):
        shake(one, other)

    assert other.state is State.FAILED
    (close,) = other.to_send(0.0)
    assert close == b"\x03\x00"
    with pytest.raises(SessionRefused) as caught:
        one.receive(close, 0.0)
    assert caught.value.reason == 0
    assert one.to_send(0.0) == []


def test_acceptor_with_users_refuses_who_gives_no_password() -> None:
    other = acceptor(users=USERS)

    with pytest.raises(AuthenticationFailed):
        shake(initiator(), other)

    assert other.to_send(0.0) == [b"\x03\x00"]


def test_acceptor_refuses_who_keeps_the_proof_back() -> None:
    one, other = initiator(Offer(b"\xc1", Role.CLIENT, credentials=(b"alice", b"secret"))), acceptor(users=USERS)
    other.receive(one.to_send(0.0)[0], 0.0)
    one.receive(other.to_send(0.0)[0], 0.0)
    (opened,) = decode_batch(one.to_send(0.0)[0])
    assert isinstance(opened, Open)

    with pytest.raises(AuthenticationFailed):
        other.receive(encode_batch((opened._replace(auth=None),)), 0.0)

    assert other.to_send(0.0) == [b"\x03\x00"]


def test_initiator_with_password_insists_on_being_asked() -> None:
    one = initiator(Offer(b"\xc1", Role.CLIENT, credentials=(b"alice", b"secret")))

    with pytest.raises(AuthenticationFailed):
        shake(one, acceptor())

    assert one.to_send(0.0) == [b"\x03\x00"]


@pytest.mark.parametrize("auth", [None, Auth(), Auth(usrpwd_nonce=1)])
def test_initiator_with_password_insists_on_being_confirmed(auth: Auth | None) -> None:
    one, other = initiator(Offer(b"\xc1", Role.CLIENT, credentials=(b"alice", b"secret"))), acceptor(users=USERS)
    other.receive(one.to_send(0.0)[0], 0.0)
    one.receive(other.to_send(0.0)[0], 0.0)

    with pytest.raises(AuthenticationFailed):
        one.receive(encode_batch((Open(10, 1, ack=True, auth=auth),)), 0.0)


def test_acceptor_refuses_itself() -> None:
    other = acceptor(Offer(b"\xc1", Role.ROUTER), accept=lambda *_: pytest.fail("asked about itself"))

    with pytest.raises(SessionRefused) as caught:
        shake(initiator(), other)

    assert caught.value.reason == CloseReason.CONNECTION_TO_SELF
    assert other.to_send(0.0) == [b"\x03\x07"]


@pytest.mark.parametrize("reason", [2, 4])
def test_acceptor_refuses_whom_its_owner_refuses(reason: int) -> None:
    asked: list[tuple[bytes, Role]] = []

    def accept(node_id: bytes, role: Role) -> int:
        asked.append((node_id, role))
        return reason

    other = acceptor(accept=accept)

    with pytest.raises(SessionRefused) as caught:
        shake(initiator(), other)

    assert asked == [(b"\xc1", Role.CLIENT)]
    assert caught.value.reason == reason
    assert other.to_send(0.0) == [bytes((3, reason))]


def test_acceptor_takes_whom_its_owner_takes() -> None:
    seen, _ = shake(initiator(), acceptor(accept=lambda *_: None))

    assert seen is not None


def test_region_name_is_stated_by_each_side() -> None:
    one = initiator(Offer(b"\xc1", Role.CLIENT, region_name=b"north"))
    other = acceptor(Offer(b"\xa1", Role.ROUTER, region_name=b"south"))

    (syn,) = one.to_send(0.0)
    other.receive(syn, 0.0)

    assert syn.endswith(b"\x48\x05north")
    assert other.to_send(0.0)[0].endswith(b"\x48\x05south")


# -- checks of the acceptor ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        ("810802c1812701", RuleBroken),  # version 8
        ("810903c1812701", BadEnum),  # role 3
        ("81090200812701", RuleBroken),  # node id 0
        ("810902c11f", UnknownMandatoryExtension),
        ("0525", RuleBroken),  # a FRAME
        ("04", RuleBroken),
        ("", Truncated),
        ("81", Truncated),
        ("08", DecodeError),
        ("810902c181270104", TrailingBytes),
        ("410902c10a1f00", RuleBroken),  # batches of 31 octets
    ],
)
def test_acceptor_refuses_a_bad_init_with_reason_2(batch: str, error: type[EleaError]) -> None:
    machine = acceptor()

    with pytest.raises(error) as caught:
        machine.receive(bytes.fromhex(batch), 0.0)

    assert isinstance(caught.value, RemoteProtocolError)
    assert machine.to_send(0.0) == [b"\x03\x02"]
    assert machine.state is State.FAILED


def init(**fields: Any) -> Init:
    return Init(**{"version": 9, "whatami": WireRole.client, "zid": b"\xc1", **fields})


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (0, (False, None)),
        (1, (True, None)),
        (0x8280E, (False, 0x8280E)),
        (0x04, (False, 0x04)),
        (0x02, (False, 0x02)),
    ],
)
def test_acceptor_adopts_settings_of_the_link(value: int, answer: tuple[bool, int | None]) -> None:
    machine = acceptor()

    machine.receive(encode_batch((init(qos_link=value),)), 0.0)

    (ack,) = decode_batch(machine.to_send(0.0)[0])
    assert isinstance(ack, Init)
    assert (ack.qos, ack.qos_link) == answer


@pytest.mark.parametrize("value", [0x08, 1 << 20 | 6, 0x2 | 5 << 3 | 4 << 11, 0x2 | 8 << 11])
def test_acceptor_refuses_settings_that_make_no_sense(value: int) -> None:
    machine = acceptor()

    with pytest.raises(RuleBroken):
        machine.receive(encode_batch((init(qos_link=value),)), 0.0)

    assert machine.to_send(0.0) == [b"\x03\x00"]


def test_acceptor_refuses_two_words_on_qos() -> None:
    machine = acceptor()

    with pytest.raises(RuleBroken):
        machine.receive(encode_batch((init(qos=True, qos_link=6),)), 0.0)

    assert machine.to_send(0.0) == [b"\x03\x00"]


def test_acceptor_without_qos_looks_at_no_settings() -> None:
    machine = acceptor(Offer(b"\xa1", Role.ROUTER, qos=False))

    machine.receive(encode_batch((init(qos_link=0x08),)), 0.0)

    (ack,) = decode_batch(machine.to_send(0.0)[0])
    assert isinstance(ack, Init)
    assert ack.qos_link is None


@pytest.mark.parametrize(("offered", "answered"), [(None, None), (0, None), (1, 1), (5, 1)])
def test_acceptor_answers_the_smaller_patch(offered: int | None, answered: int | None) -> None:
    machine = acceptor()

    machine.receive(encode_batch((init(patch=offered),)), 0.0)

    (ack,) = decode_batch(machine.to_send(0.0)[0])
    assert isinstance(ack, Init)
    assert ack.patch == answered


def test_acceptor_answers_64_bits_with_32() -> None:
    machine = acceptor()

    machine.receive(encode_batch((init(sizes=Sizes(0x0F, 65535)),)), 0.0)

    (ack,) = decode_batch(machine.to_send(0.0)[0])
    assert isinstance(ack, Init)
    assert ack.sizes is None  # which means 32 bits and 65535 octets


@pytest.mark.parametrize("cookie", [b"", b"other", bytes(32)])
def test_acceptor_refuses_a_foreign_cookie(cookie: bytes) -> None:
    machine = acceptor()
    machine.receive(encode_batch((init(),)), 0.0)
    machine.to_send(0.0)

    with pytest.raises(RuleBroken):
        machine.receive(encode_batch((Open(10, 1, seconds=True, cookie=cookie),)), 0.0)

    assert machine.to_send(0.0) == [b"\x03\x02"]


def test_cookie_differs_by_key_chance_and_offer() -> None:
    cookies = set()
    for machine, syn in [
        (acceptor(), init()),
        (acceptor(cookie_key=b"another"), init()),
        (acceptor(random=Fixed(8)), init()),
        (acceptor(), init(qos=True)),
    ]:
        machine.receive(encode_batch((syn,)), 0.0)
        (ack,) = decode_batch(machine.to_send(0.0)[0])
        assert isinstance(ack, Init)
        cookies.add(ack.cookie)

    assert len(cookies) == 4


def test_acceptor_refuses_a_first_number_above_the_mask() -> None:
    machine = acceptor(Offer(b"\xa1", Role.ROUTER, sn_bits=8))
    machine.receive(encode_batch((init(),)), 0.0)
    (ack,) = decode_batch(machine.to_send(0.0)[0])
    assert isinstance(ack, Init)

    with pytest.raises(RuleBroken):
        machine.receive(encode_batch((Open(10, 128, seconds=True, cookie=ack.cookie),)), 0.0)

    assert machine.to_send(0.0) == [b"\x03\x02"]


# -- checks of the initiator -----------------------------------------------------------------------------------------


def answer(**fields: Any) -> bytes:
    fields = {"version": 9, "whatami": WireRole.router, "zid": b"\xa1", "cookie": b"c", **fields}
    return encode_batch((Init(ack=True, **fields),))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"sizes": Sizes(0x0A, 65535)}, 2),  # 32 bits where we offered 16
        ({"sizes": Sizes(0x0D, 65535)}, 2),  # request ids of 64 bits
        ({"sizes": Sizes(0x09, 31)}, 2),
        ({"sizes": Sizes(0x09, 512), "zid": b"\0"}, 2),
        ({"sizes": Sizes(0x09, 512), "patch": 2}, 0),
        ({"sizes": Sizes(0x09, 512), "qos_link": 8}, 0),
    ],
)
def test_initiator_refuses_a_bad_answer(fields: dict[str, Any], reason: int) -> None:
    machine = initiator(Offer(b"\xc1", Role.CLIENT, sn_bits=16))
    machine.to_send(0.0)

    with pytest.raises(RuleBroken):
        machine.receive(answer(**fields), 0.0)

    assert machine.to_send(0.0) == [bytes((3, reason))]


def test_initiator_takes_an_answer_that_says_nothing() -> None:
    machine = initiator()

    machine.receive(answer(version=77), 0.0)  # the version of an answer is not looked at
    agreement = machine.receive(encode_batch((Open(2500, 7, ack=True),)), 0.0)

    assert agreement is not None
    assert (agreement.qos, agreement.patch, agreement.batch_size, agreement.peer_lease) == (False, 0, 65535, 2.5)


def test_trailing_zeros_of_a_node_id_are_not_part_of_it() -> None:
    machine = initiator()

    machine.receive(answer(zid=b"\xa1\0"), 0.0)
    agreement = machine.receive(encode_batch((Open(10, 7, ack=True, seconds=True),)), 0.0)

    assert agreement is not None
    assert agreement.peer_id == b"\xa1"


def test_initiator_does_not_get_what_it_did_not_offer() -> None:
    machine = initiator(Offer(b"\xc1", Role.CLIENT, qos=False, batch_size=512))

    machine.receive(answer(qos=True, compression=True, lowlatency=True, patch=1), 0.0)
    agreement = machine.receive(encode_batch((Open(10, 7, ack=True, seconds=True),)), 0.0)

    assert agreement is not None
    assert (agreement.qos, agreement.compression, agreement.lowlatency) == (False, False, False)
    assert agreement.batch_size == 512


# -- states ----------------------------------------------------------------------------------------------------------

SAMPLES: dict[Input, TransportMessage] = {
    Input.INIT_SYN: init(),
    Input.INIT_ACK: init(ack=True, cookie=b"c"),
    Input.OPEN_SYN: Open(10, 1, cookie=b"c"),
    Input.OPEN_ACK: Open(10, 1, ack=True),
    Input.CLOSE: Close(4),
    Input.OTHER: KeepAlive(),
}


def machine_in(state: State) -> Handshake:
    """A handshake that came to `state` by the way that leads there."""
    if state in (State.AWAIT_INIT_SYN, State.AWAIT_OPEN_SYN):
        other = acceptor()
        if state is State.AWAIT_OPEN_SYN:
            other.receive(encode_batch((init(),)), 0.0)
            other.to_send(0.0)
        return other
    one = Initiator(Offer(b"\xc1", Role.CLIENT), 0.0)
    if state is not State.IDLE:
        one.start()
    if state in (State.AWAIT_OPEN_ACK, State.OPEN):
        one.receive(answer(), 0.0)
    if state is State.OPEN:
        one.receive(encode_batch((Open(10, 1, ack=True),)), 0.0)
    if state is State.FAILED:
        with pytest.raises(SessionRefused):
            one.receive(b"\x03\x00", 0.0)
    one.to_send(0.0)
    assert one.state is state
    return one


@pytest.mark.parametrize(("state", "event"), list(product(State, SAMPLES)), ids=lambda each: each.name)
def test_every_message_in_every_state(state: State, event: Input) -> None:
    machine = machine_in(state)
    batch = encode_batch((SAMPLES[event],))
    follows = NEXT.get((state, event))

    if state in (State.IDLE, State.OPEN, State.FAILED):
        with pytest.raises(LocalProtocolError):
            machine.receive(batch, 0.0)
        assert machine.state is state
    elif event is Input.CLOSE:
        with pytest.raises(SessionRefused) as caught:
            machine.receive(batch, 0.0)
        assert caught.value.reason == 4
        assert machine.to_send(0.0) == []
        assert machine.state is State.FAILED
    elif follows is None or event is Input.OPEN_SYN:  # the sample's cookie is not ours
        with pytest.raises(RuleBroken):
            machine.receive(batch, 0.0)
        assert machine.to_send(0.0) == [b"\x03\x02"]
        assert machine.state is State.FAILED
    else:
        machine.receive(batch, 0.0)
        assert machine.state is follows


@pytest.mark.parametrize("state", State, ids=lambda each: each.name)
def test_timeout_in_every_state(state: State) -> None:
    machine = machine_in(state)

    machine.on_deadline(9.9)
    assert machine.state is state
    if state in (State.OPEN, State.FAILED):
        assert machine.next_deadline() is None
        machine.on_deadline(10.0)
        assert machine.state is state
    else:
        assert machine.next_deadline() == 10.0
        with pytest.raises(OperationTimeout):
            machine.on_deadline(10.0)
        assert machine.to_send(10.0) == []
        assert machine.state is State.FAILED


def test_start_twice_is_our_own_mistake() -> None:
    machine = initiator()

    with pytest.raises(LocalProtocolError):
        machine.start()


def test_table_reaches_every_state_and_ends() -> None:
    assert set(NEXT.values()) | {State.IDLE, State.AWAIT_INIT_SYN} == set(State)
    assert not {state for state, _ in NEXT} & {State.OPEN, State.FAILED}


def test_frame_in_the_handshake_is_the_wrong_message() -> None:
    machine = acceptor()

    with pytest.raises(RuleBroken):
        machine.receive(encode_batch((Frame(1, ()),)), 0.0)


# -- offers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"node_id": b""},
        {"node_id": b"\0"},
        {"batch_size": 31},
        {"batch_size": 65536},
        {"sn_bits": 64},
        {"sn_bits": 12},
        {"lowlatency": True},
        {"patch": 2},
        {"lease_ms": 0},
        {"region_name": b""},
        {"region_name": bytes(33)},
    ],
)
def test_offer_that_cannot_be_kept(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Offer(**{"node_id": b"\xc1", "role": Role.PEER, **fields})


def test_offer_trims_the_node_id() -> None:
    assert Offer(b"\xc1\0", Role.PEER).node_id == NodeId(b"\xc1").data


def test_close_reasons_for_people() -> None:
    assert CloseReason.describe(7) == "connection to self (reason 7)"
    assert CloseReason.describe(200) == "unknown (reason 200)"
