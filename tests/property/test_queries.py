"""The hot path of queries against the generated codec: the same messages, the same octets, the same refusals.

The hot path leaves one thing until somebody looks: that a suffix, and the parameters of a query, are UTF-8.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elea.model.errors import BadText, DecodeError
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.codec import (
    read_entity_id,
    read_network_message,
    read_request_body,
    write_network_message,
)
from elea.wire.zenoh1.queries import (
    final_octets,
    read_final,
    read_request,
    read_response,
    reply_head,
    request_octets,
    request_tail,
    response_head,
    response_middle,
)
from elea.wire.zenoh1.samples import details, split_body
from tests.strategies import corrupted, messages

KINDS = ("Request", "Response", "ResponseFinal")
DEFAULT_QOS = 5

keys = st.text(st.characters(codec="utf-8"), max_size=200)
ids = st.integers(0, (1 << 32) - 1)
qualities = st.integers(0, 127)
texts = st.text(st.characters(codec="utf-8"), max_size=40)
queries = st.tuples(st.none() | st.sampled_from(m.Consolidation), st.none() | texts).map(lambda said: m.Query(*said))


def encoded(message: object) -> bytes:
    out = bytearray()
    write_network_message(out, message)  # type: ignore[arg-type]
    return bytes(out)


def wire_expr(header: int, scope: int, suffix: bytes) -> m.WireExpr:
    return m.WireExpr(scope, bool(header & 0x40), suffix.decode() if header & 0x20 else None)


def read_fast(buf: bytes, at: int) -> tuple[m.NetworkMessage, int] | None:
    """What the hot path makes of a message, as the codec's value, with everything looked at."""
    request = read_request(buf, at)
    if request is not None:
        end, header, number, scope, suffix, qos, target, budget, timeout, octets = request
        body, size = read_request_body(octets, 0)
        assert size == len(octets)
        expr = wire_expr(header, scope, suffix)
        return m.Request(
            number,
            expr,
            body,
            qos=qos,
            target=m.Target(target),
            budget=None if budget < 0 else budget,
            timeout=None if timeout < 0 else timeout,
        ), end
    response = read_response(buf, at)
    if response is not None:
        end, header, number, scope, suffix, qos, octets, meta, payload = response
        expr = wire_expr(header, scope, suffix)
        who = read_entity_id(octets, 0)[0] if octets else None
        return m.Response(number, expr, m.Reply(details(meta, payload)), qos=qos, responder=who), end
    final = read_final(buf, at)
    return None if final is None else (m.ResponseFinal(final[1], qos=final[2]), final[0])


def explicit(message: object) -> object:
    """A message whose defaults are written out, as the hot path gives them."""
    assert isinstance(message, m.Request | m.Response | m.ResponseFinal)
    if isinstance(message, m.Request):
        message = message._replace(target=m.Target(0) if message.target is None else message.target)
    return message._replace(qos=DEFAULT_QOS if message.qos is None else message.qos)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), before=st.binary(max_size=3), behind=st.binary(max_size=3))
def test_what_the_hot_path_reads_the_codec_reads_too(
    kind: str, data: st.DataObject, before: bytes, behind: bytes
) -> None:
    message = data.draw(messages("zenoh1", kind))
    octets = before + encoded(message) + behind

    found = read_fast(octets, len(before))

    if found is not None:
        assert found == (explicit(message), len(octets) - len(behind))


@given(ids, keys, qualities, st.sampled_from(m.Target), ids, st.none() | st.integers(0, (1 << 64) - 1), queries)
def test_an_ordinary_request_is_written_as_the_codec_does_and_read_again(
    number: int, key: str, qos: int, target: m.Target, budget: int, timeout: int | None, body: m.Query
) -> None:
    message = m.Request(
        number,
        m.WireExpr(0, True, key or None),
        body,
        qos=None if qos == DEFAULT_QOS else qos,
        target=target or None,
        budget=budget,
        timeout=timeout,
    )

    octets = request_octets(request_tail(key, qos, target, budget, timeout, body), number)

    assert octets == encoded(message)
    assert read_fast(octets, 0) == (explicit(message), len(octets))


@given(ids, keys, qualities, st.none() | st.tuples(st.binary(min_size=1, max_size=16), ids), st.binary(max_size=300))
def test_an_ordinary_response_is_written_as_the_codec_does_and_read_again(
    number: int, key: str, qos: int, who: tuple[bytes, int] | None, payload: bytes
) -> None:
    responder = None if who is None else m.EntityId(*who)
    reply = m.Reply(m.Put(payload))
    message = m.Response(
        number,
        m.WireExpr(0, True, key or None),
        reply,
        qos=None if qos == DEFAULT_QOS else qos,
        responder=responder,
    )

    octets = response_head(response_middle(key, qos, who), number, len(payload)) + payload

    assert octets == encoded(message)
    assert read_fast(octets, 0) == (explicit(message), len(octets))


@given(ids, qualities)
def test_a_final_is_written_as_the_codec_does_and_read_again(number: int, qos: int) -> None:
    message = m.ResponseFinal(number, qos=None if qos == DEFAULT_QOS else qos)

    octets = final_octets(number, qos)

    assert octets == encoded(message)
    assert read_fast(octets, 0) == (explicit(message), len(octets))


@given(ids, keys, qualities, st.one_of(messages("zenoh1", "Put"), messages("zenoh1", "Del")))
def test_a_reply_with_details_is_written_as_the_codec_does(number: int, key: str, qos: int, body: object) -> None:
    assert isinstance(body, m.Put | m.Del)
    said = None if qos == DEFAULT_QOS else qos
    message = m.Response(number, m.WireExpr(0, True, key or None), m.Reply(body), qos=said)
    meta, payload = split_body(body)

    octets = reply_head(response_middle(key, qos, None), number, meta, len(payload)) + payload

    assert octets == encoded(message)
    assert (read_response(octets, 0) is not None) == (meta[0] & 0x9F == 0x01)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_damage_is_left_to_the_codec(kind: str, data: st.DataObject) -> None:
    octets = data.draw(corrupted(messages("zenoh1", kind).map(encoded)))

    readable = [read(octets, 0) for read in (read_request, read_response, read_final)]

    if any(found is not None for found in readable):
        try:
            message, end = read_network_message(octets, 0)
        except BadText:
            return  # looked at later
        assert read_fast(octets, 0) == (explicit(message), end)
    # Where it reads nothing the codec has the word, whatever that is: the reading itself has not failed.


def test_text_that_is_none_is_found_when_it_is_looked_at() -> None:
    good = request_octets(request_tail("k", 13, 0, None, None, m.Query(None, "pq")), 1)
    bad = good.replace(b"pq", b"\xff\xff")

    found = read_request(bad, 0)

    assert found is not None
    with pytest.raises(DecodeError):
        read_request_body(found[-1], 0)


def test_a_consolidation_that_does_not_exist_is_left_to_the_codec() -> None:
    octets = request_octets(request_tail("k", 13, 0, None, None, m.Query(m.Consolidation.latest)), 1)

    assert octets.endswith(b"\x03")
    assert read_request(octets, 0) is not None
    assert read_request(octets[:-1] + b"\x04", 0) is None


def test_a_responder_of_no_known_size_is_left_to_the_codec() -> None:
    octets = response_head(response_middle("k", 13, (b"\x01", 1)), 1, 0)
    who = octets.index(b"\x43")

    assert read_response(octets, 0) is not None
    assert read_response(octets[: who + 1] + b"\x80\x01" + octets[who + 2 :], 0) is None
    assert read_response(octets[: who + 1] + b"\x00" + octets[who + 2 :], 0) is None


def test_a_request_without_extensions_is_written_and_read() -> None:
    octets = request_octets(request_tail("k", DEFAULT_QOS, 0, None, None, m.Query()), 1)

    assert octets == encoded(m.Request(1, m.WireExpr(0, True, "k"), m.Query()))
    assert read_fast(octets, 0) == (explicit(m.Request(1, m.WireExpr(0, True, "k"), m.Query())), len(octets))


def test_what_is_cut_short_is_left_to_the_codec() -> None:
    request = request_octets(request_tail("key", 13, 1, 300, 300, m.Query(None, "pp")), 300)
    response = response_head(response_middle("key", 13, (b"\x01\x02", 300)), 300, 200) + bytes(200)
    final = final_octets(300, 13)

    assert [read_request(request[:size], 0) for size in range(len(request))] == [None] * len(request)
    assert [read_response(response[:size], 0) for size in range(len(response))] == [None] * len(response)
    assert [read_final(final[:size], 0) for size in range(len(final))] == [None] * len(final)
