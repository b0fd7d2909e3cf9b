"""Rewriting and stamping runs of samples: the result must be what the generated codec reads."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elea.model.node_id import NodeId
from elea.model.timestamp import Hlc, ntp64_from_ns
from elea.node.stamper import Stamper, stamped
from elea.node.zenoh1.pushes import Numbers, OutgoingKey
from elea.wire.zenoh1 import messages as m
from elea.wire.zenoh1.codec import read_network_message, read_timestamp
from elea.wire.zenoh1.samples import Pushed, split_body

Times = Callable[[list[m.Put], Stamper], list[int]]

NOW = 1_700_000_000_000_000_000
OWN = NodeId(b"\xe1\xea")

stamps = st.integers(1 << 56, ntp64_from_ns(NOW)).map(lambda ntp64: m.Timestamp(ntp64, b"\xc1"))
payloads = st.binary(max_size=300)
attachments = st.none() | st.binary(max_size=9)
bodies: st.SearchStrategy[m.Put | m.Del] = st.one_of(
    payloads.map(m.Put),
    st.tuples(payloads, st.none() | stamps, attachments).map(lambda x: m.Put(x[0], timestamp=x[1], attachment=x[2])),
    (st.none() | stamps).map(m.Del),
)
runs = st.lists(st.tuples(bodies, st.sampled_from([5, 1, 13, 24])), min_size=1, max_size=20)


def entry(body: m.Put | m.Del, qos: int) -> Pushed:
    if isinstance(body, m.Put) and body == m.Put(body.payload):
        return (0x5D, 1, b"", qos, None, body.payload)
    return (0x5D, 1, b"", qos, *split_body(body))


def read_all(parts: list[bytes]) -> list[m.Push]:
    buf, at, found = b"".join(parts), 0, []
    while at < len(buf):
        message, at = read_network_message(buf, at)
        assert isinstance(message, m.Push)
        found.append(message)
    return found


@given(
    st.lists(st.tuples(bodies, st.sampled_from([5, 1, 13, 24])), min_size=1, max_size=40), st.sampled_from([0, 7, 300])
)
def test_rewritten_samples_keep_everything_but_their_name(run: list[tuple[m.Put | m.Del, int]], number: int) -> None:
    key = OutgoingKey("a/b", number)

    parts: list[bytes] = []
    key.rewrite([entry(body, qos) for body, qos in run], parts)

    found = read_all(parts)

    expr = m.WireExpr(number, True) if number else m.WireExpr(0, True, "a/b")
    assert [(p.wire_expr, p.body, 5 if p.qos is None else p.qos) for p in found] == [(expr, *each) for each in run]


@given(st.lists(bodies, min_size=1, max_size=40))
def test_stamping_gives_puts_without_a_timestamp_one_in_order_and_leaves_the_rest(run: list[m.Put | m.Del]) -> None:
    clock = Hlc(OWN)

    parts: list[bytes] = []
    OutgoingKey("a/b", 7).stamp([entry(body, 5) for body in run], parts, Stamper(clock), NOW)

    found = read_all(parts)

    given_ones: list[int] = []
    for before, push in zip(run, found, strict=True):
        after = push.body
        if isinstance(before, m.Del) or before.timestamp is not None:
            assert after == before
        else:
            assert isinstance(after, m.Put)
            assert after.timestamp is not None
            assert after.timestamp.id == OWN.data
            given_ones.append(after.timestamp.ntp64)
            assert after._replace(timestamp=None) == before
    assert given_ones == sorted(set(given_ones))
    assert all(stamp < clock.tick(NOW).ntp64 for stamp in given_ones)


def test_a_timestamp_too_far_ahead_is_replaced_and_counted() -> None:
    stamper = Stamper(Hlc(OWN))
    ahead = m.Put(b"x", timestamp=m.Timestamp(ntp64_from_ns(NOW + 600_000_000), b"\xc1"))
    near = m.Put(b"x", timestamp=m.Timestamp(ntp64_from_ns(NOW + 400_000_000), b"\xc1"))

    parts: list[bytes] = []
    OutgoingKey("a/b", 7).stamp([entry(ahead, 5), entry(near, 5)], parts, stamper, NOW)

    found = read_all(parts)

    assert [push.body.timestamp and push.body.timestamp.id for push in found] == [OWN.data, b"\xc1"]
    assert stamper.replaced == 1


def test_numbers_are_given_once_and_end() -> None:
    numbers = Numbers()

    assert [numbers.number(key) for key in ("a", "b", "a")] == [1, 2, 1]
    numbers._by_key.update((f"k{number}", number) for number in range(60_000))
    assert numbers.number("one more") == 0


def test_numbers_from_a_block_are_above_all_given_and_all_accepted() -> None:
    clock = Hlc(OWN)
    stamper = Stamper(clock)
    given_ones: list[int] = []

    for wanted in (1, 1, 5, 200, 1, 1):
        low, count, stamps = stamper.take(NOW, wanted)
        assert 0 < count <= wanted
        first = stamps.high << 7 | low
        given_ones += range(first, first + count)
    before = clock.tick(NOW).ntp64
    ahead = given_ones[-1] + 100_000
    meta, _ = split_body(m.Put(b"", timestamp=m.Timestamp(ahead, b"\xc1")))
    assert stamper.acceptable(meta, NOW)
    low, _, stamps = stamper.take(NOW, 1)
    after = stamps.high << 7 | low

    assert given_ones == sorted(set(given_ones))
    assert before > given_ones[-1]
    assert after > ahead


class InterruptedClock(Hlc):
    """A clock whose callers lose the interpreter after a number was reserved: `meanwhile` is what others do then."""

    meanwhile: Callable[[], object] | None = None

    def reserve(self, now_ns: int, count: int) -> int:
        first = super().reserve(now_ns, count)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return first


def test_numbers_are_above_one_that_another_thread_accepts_while_a_block_is_reserved() -> None:
    clock = InterruptedClock(OWN)
    stamper = Stamper(clock)
    ahead = ntp64_from_ns(NOW + 400_000_000)
    meta, _ = split_body(m.Put(b"", timestamp=m.Timestamp(ahead, b"\xc1")))
    clock.meanwhile = lambda: stamper.acceptable(meta, NOW)

    stamper.take(NOW, 1)
    low, _, stamps = stamper.take(NOW, 1)

    assert stamps.high << 7 | low > ahead


def sent(run: list[m.Put], stamper: Stamper) -> list[int]:
    """The times of a run that is stamped for neighbours."""
    parts: list[bytes] = []
    OutgoingKey("a/b", 7).stamp([entry(body, 5) for body in run], parts, stamper, NOW)
    found = [push.body.timestamp for push in read_all(parts)]
    return [one.ntp64 for one in found if one is not None]


def kept(run: list[m.Put], stamper: Stamper) -> list[int]:
    """The times of a run that is stamped for stores."""
    found = stamped([entry(body, 5) for body in run], stamper, NOW)
    return [read_timestamp(meta or b"", 1)[0].ntp64 for _, _, _, _, meta, _ in found]


@pytest.mark.parametrize("times", [sent, kept])
@pytest.mark.parametrize("count", [127, 128, 129, 1000])
def test_more_stamps_in_one_tick_than_share_an_octet_stay_in_order(times: Times, count: int) -> None:
    """A block of timestamps differs in one octet, so 128 of them end it; the time stands still meanwhile."""
    clock = Hlc(OWN)
    stamper = Stamper(clock)
    found: list[int] = []

    for _ in range(3):
        found += times([m.Put(b"x")] * count, stamper)

    assert len(found) == 3 * count
    assert all(before < after for before, after in pairwise(found))
    assert clock.tick(NOW).ntp64 > found[-1]


@pytest.mark.parametrize("times", [sent, kept])
def test_a_sample_without_a_timestamp_is_newer_than_one_ahead_before_it(times: Times) -> None:
    """Both are of one key and came in one batch: the second was put later, so it is the value of the key."""
    ahead = m.Put(b"x", timestamp=m.Timestamp(ntp64_from_ns(NOW + 400_000_000), b"\xc1"))

    found = times([m.Put(b"x"), ahead, m.Put(b"x"), m.Put(b"x")], Stamper(Hlc(OWN)))

    assert all(before < after for before, after in pairwise(found))


def test_a_timestamp_of_no_node_is_replaced() -> None:
    stamper = Stamper(Hlc(OWN))
    nobody = m.Put(b"x", timestamp=m.Timestamp(ntp64_from_ns(NOW), b"\0\0"))
    ((_, _, _, _, meta, _),) = stamped([entry(nobody, 5)], stamper, NOW)

    assert read_timestamp(meta or b"", 1)[0].id == OWN.data
    assert stamper.replaced == 1
