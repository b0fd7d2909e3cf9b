"""Kernels against the codec: every message they take is the one the codec reads, and they take all ordinary ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

pytest.importorskip("numba")

from elea.model.limits import CACHED_KEY_CHARS
from elea.wire.zenoh1.codec import read_network_message, write_network_message
from elea.wire.zenoh1.messages import Encoding, Push, Put
from tests.strategies import corrupted, messages
from tests.unit.columnar.reading import scan_all, scanner

SCANNER = scanner()


@st.composite
def ordinary(draw: DrawFn) -> Push:
    """A PUSH that a kernel must take: nothing unknown in it."""
    body = draw(messages("zenoh1", "Put") | messages("zenoh1", "Del"))._replace(unknown=())  # type: ignore[attr-defined]
    if isinstance(body, Put):
        body = body._replace(shm=False)
    expr = draw(messages("zenoh1", "WireExpr"))
    return Push(expr, body, qos=draw(st.none() | st.integers(0, 127)))  # type: ignore[arg-type]


def encoded(*found: object) -> bytes:
    out = bytearray()
    for item in found:
        write_network_message(out, item)  # type: ignore[arg-type]
    return bytes(out)


def plain(push: Push) -> Push:
    """What a row keeps of a message: an encoding that says nothing, and who knows extensions, are left out."""
    body = push.body._replace(unknown=())
    if isinstance(body, Put) and body.encoding == Encoding(0):
        body = body._replace(encoding=None)
    return Push(push.wire_expr, body, qos=5 if push.qos is None else push.qos)


def is_short(push: Push) -> bool:
    return len((push.wire_expr.suffix or "").encode()) <= CACHED_KEY_CHARS


@settings(max_examples=60)
@given(st.lists(ordinary().filter(is_short), max_size=6))
def test_kernel_takes_every_ordinary_push(pushes: list[Push]) -> None:
    octets = encoded(*pushes)

    found, end = scan_all(octets, SCANNER)

    assert end == len(octets)
    assert found == [plain(push) for push in pushes]


frames = st.lists(ordinary() | messages("zenoh1", "NetworkMessage"), min_size=1, max_size=5)


@settings(max_examples=60)
@given(corrupted(frames.map(lambda found: encoded(*found))))
def test_kernel_takes_nothing_that_the_codec_does_not(octets: bytes) -> None:
    found, end = scan_all(octets, SCANNER)

    at = 0
    for push in found:
        read, at = read_network_message(octets, at)
        assert isinstance(read, Push)
        assert push == plain(read)
    assert at == end


@given(st.binary(max_size=64))
def test_kernel_reads_no_octet_beyond_the_end(octets: bytes) -> None:
    """Octets behind the view, which a kernel must not see, would make these messages whole."""
    message = b"\x1d\x05\x01" + bytes([len(octets) + 1]) + octets

    found, end = scan_all(message, SCANNER)

    assert (found, end) == ([], 0)
