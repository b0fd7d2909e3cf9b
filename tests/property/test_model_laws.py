"""Laws of node ids, timestamps, clocks, encodings and quality of service."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from elea.model.encoding import CUSTOM_ENCODING, ENCODING_NAMES, Encoding
from elea.model.node_id import NodeId
from elea.model.qos import CongestionControl, Priority, Qos
from elea.model.timestamp import Hlc, HlcUpdate, Timestamp, ns_from_ntp64, ntp64_from_ns

# Ids that share octets and end in zeros are where orders and trimmings differ: hence the small alphabet.
octets = st.one_of(st.binary(min_size=1, max_size=16), st.lists(st.sampled_from([0, 1, 255]), max_size=16).map(bytes))
node_ids = octets.filter(any).map(NodeId)
ntp64s = st.integers(0, (1 << 64) - 1)
nanoseconds = st.integers(0, (1 << 32) * 10**9 - 1)
timestamps = st.builds(Timestamp, ntp64s, node_ids)
texts = st.text(st.characters(codec="utf-8"), max_size=60)


@given(node_ids)
def test_node_id_survives_its_text(id: NodeId) -> None:
    assert NodeId.parse(str(id)) == id
    assert NodeId(id.padded) == id


@given(node_ids, node_ids)
def test_node_ids_are_ordered_as_their_padded_octets(a: NodeId, b: NodeId) -> None:
    assert (a < b) == (a.padded < b.padded)
    assert (a == b) == (a.padded == b.padded)


@given(nanoseconds)
def test_nanoseconds_survive_the_time_format(ns: int) -> None:
    assert ns_from_ntp64(ntp64_from_ns(ns)) == ns


@given(ntp64s)
def test_time_format_is_within_a_nanosecond(ntp64: int) -> None:
    ns = ns_from_ntp64(ntp64)

    assert ns * (1 << 32) >= ntp64 * 10**9 > (ns - 1) * (1 << 32)


@given(timestamps)
def test_timestamp_survives_its_text(stamp: Timestamp) -> None:
    assert Timestamp.parse(str(stamp)) == stamp


@given(nanoseconds, node_ids)
def test_rfc3339_text_keeps_nanoseconds(ns: int, id: NodeId) -> None:
    stamp = Timestamp.from_ns(ns, id)

    assert Timestamp.parse_rfc3339(stamp.to_string_rfc3339_lossy()) == stamp


@given(st.lists(timestamps, min_size=2, max_size=2))
def test_timestamps_are_ordered_by_time_then_id(pair: list[Timestamp]) -> None:
    a, b = pair

    assert (a < b) == ((a.ntp64, a.id.padded) < (b.ntp64, b.id.padded))


BASE = 1_719_841_872 * 10**9
steps = st.lists(st.tuples(st.booleans(), st.integers(-(10**9), 10**9), st.integers(-(1 << 33), 1 << 33)), max_size=40)


@given(steps)
def test_clock_is_monotonic_and_follows_accepted_timestamps(steps: list[tuple[bool, int, int]]) -> None:
    clock = Hlc(NodeId.parse("a1"))
    other = NodeId.parse("b2")
    floor = 0
    for is_update, offset, ahead in steps:
        now = BASE + offset
        if is_update:
            remote = Timestamp(ntp64_from_ns(now) + ahead, other)
            if clock.update(remote, now) is HlcUpdate.ACCEPTED:
                floor = max(floor, remote.ntp64)
                assert remote.ntp64 - ntp64_from_ns(now) <= 1 << 31
        else:
            stamp = clock.tick(now)
            assert stamp.ntp64 > floor
            floor = stamp.ntp64


@given(st.sampled_from(ENCODING_NAMES), texts)
def test_known_encoding_survives_its_text(name: str, schema: str) -> None:
    encoding = Encoding(f"{name};{schema}" if schema else name)

    assert Encoding(str(encoding)) == encoding
    assert encoding == str(encoding)
    assert hash(encoding) == hash(str(encoding))
    assert encoding.id == ENCODING_NAMES.index(name)


@given(texts.filter(lambda text: bool(text) and text.partition(";")[0] not in ENCODING_NAMES))
def test_custom_encoding_is_its_text(text: str) -> None:
    encoding = Encoding(text)

    assert encoding.id == CUSTOM_ENCODING
    assert str(encoding) == text


@given(st.builds(Qos, st.sampled_from(Priority), st.sampled_from(CongestionControl), st.booleans()))
def test_qos_survives_packing(qos: Qos) -> None:
    assert Qos.from_raw(qos.raw) == qos


@given(st.integers(0, 63).filter(lambda raw: raw & 0x28 != 0x28))
def test_packed_qos_survives_unpacking(raw: int) -> None:
    assert Qos.from_raw(raw).raw == raw
