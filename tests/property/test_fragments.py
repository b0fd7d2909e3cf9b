"""The heads of fragments, read by hand, against the generated codec; and messages in fragments, however cut."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from elea.model.errors import DecodeError, Truncated
from elea.model.qos import Role
from elea.protocol.zenoh1 import Agreement, Receiver
from elea.protocol.zenoh1.sender import Sender
from elea.protocol.zenoh1.transport import DEFAULT_PRIORITY, _fragment_head
from elea.wire.zenoh1.codec import read_transport_message, write_transport_message
from elea.wire.zenoh1.messages import Fragment, WireExpr
from elea.wire.zenoh1.samples import Pushed, PutTemplate, read_pushes
from tests.strategies import corrupted, messages

FRAGMENT = 0x06
AGREEMENT = Agreement(
    peer_id=b"\xa1",
    peer_role=Role.ROUTER,
    batch_size=65_535,
    sn_mask=0xFFF_FFFF,
    qos=True,
    lowlatency=False,
    compression=False,
    patch=1,
    own_sn=0x1F_FFFE,
    peer_sn=0x1F_FFFE,
    own_lease=10.0,
    peer_lease=10.0,
)


@st.composite
def encoded(draw: st.DrawFn) -> bytes:
    out = bytearray()
    write_transport_message(out, draw(messages("zenoh1", "Fragment")))  # type: ignore[arg-type]
    return bytes(out)


def by_hand(buf: bytes) -> object:
    try:
        sn, priority, first, drop, _, at = _fragment_head(buf, 0)
    except DecodeError as error:
        return type(error), error.at
    return sn, priority, first, drop, buf[at:]


def by_codec(buf: bytes) -> object:
    try:
        message, _ = read_transport_message(buf, 0)
    except IndexError:
        return Truncated, len(buf)
    except DecodeError as error:
        return type(error), error.at
    assert isinstance(message, Fragment)
    priority = DEFAULT_PRIORITY if message.qos is None else message.qos & 7
    return message.sn, priority, message.first, message.drop, message.chunk


@given(encoded())
def test_head_of_a_fragment_is_read_as_the_codec_reads_it(buf: bytes) -> None:
    assert by_hand(buf) == by_codec(buf)


@given(corrupted(encoded()))
def test_broken_head_of_a_fragment_is_refused_as_the_codec_refuses_it(buf: bytes) -> None:
    if buf and buf[0] & 0x1F == FRAGMENT:
        assert by_hand(buf) == by_codec(buf)


class Taken:
    """A sink that keeps the payloads of samples, in how many pieces they ever came."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    def network(self, buf: bytes, at: int, priority: int, reliable: bool) -> int:
        run: list[Pushed] = []
        at = read_pushes(buf, at, run)
        self.payloads += [sample[5] for sample in run]
        return at

    def sample(self, sample: Pushed, priority: int, reliable: bool) -> None:
        self.payloads.append(sample[5])

    def closed(self, reason: int, whole_session: bool) -> None:
        raise AssertionError("nobody closed")


@given(
    st.lists(st.integers(16_300, 70_000), min_size=1, max_size=5),
    st.sampled_from([16_380, 30_000, 65_482]),
    st.booleans(),
)
def test_large_samples_arrive_whether_their_fragments_are_views_or_octets(
    sizes: list[int], batch_size: int, marked: bool
) -> None:
    agreement = replace(AGREEMENT, batch_size=batch_size, patch=int(marked))
    sender, receiver, sink = Sender(agreement, prefix=False), Receiver(agreement, 0.0), Taken()
    payloads = [bytes([number]) * size for number, size in enumerate(sizes)]

    for payload in payloads:
        head = PutTemplate(WireExpr(7)).header(len(payload))
        for batch in sender.batches(5, True, [head, payload]):
            buffer = bytearray(batch)
            receiver.receive(memoryview(buffer) if len(batch) > 1_000 else batch, 0.0, sink)
            receiver.settle()
            buffer[:] = bytes(len(buffer))

    assert sink.payloads == payloads
    assert receiver.fragments_lost == receiver.missing == 0
