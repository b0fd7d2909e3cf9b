"""Times, identifiers, modes and other small values, against those of eclipse-zenoh."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elea.api import apitimestamp, identity, info, instrumentation, queryoptions, whatami
from elea.api.apierrors import InvalidValue
from elea.model.errors import EleaError
from elea.model.node_id import NodeId
from elea.model.qos import ConsolidationMode, Reliability, Role
from elea.model.timestamp import Timestamp as ModelTimestamp

zenoh = pytest.importorskip("zenoh")

SECONDS = st.integers(0, (1 << 32) - 1)
NANOS = st.integers(0, 999_999_999)
IDS = st.binary(min_size=1, max_size=16).filter(lambda data: any(data))
ORDERS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]

# -- times -----------------------------------------------------------------------------------------------------------


@given(SECONDS, NANOS)
def test_a_time_is_the_same(seconds: int, nanos: int) -> None:
    mine, real = apitimestamp.NTP64(seconds, nanos), zenoh.NTP64(seconds, nanos)

    assert (str(mine), repr(mine)) == (str(real), repr(real))
    assert mine.as_secs() == real.as_secs()
    assert mine.as_nanos() == real.as_nanos()
    assert mine.subsec_nanos() == real.subsec_nanos()
    assert mine.as_secs_f64() == pytest.approx(real.as_secs_f64(), abs=1e-9)
    assert mine.to_datetime() == real.to_datetime()
    assert mine.to_string_rfc3339_lossy() == real.to_string_rfc3339_lossy()
    assert apitimestamp.NTP64.parse_rfc3339(mine.to_string_rfc3339_lossy()) == mine


@given(SECONDS, NANOS, SECONDS, NANOS, st.sampled_from(ORDERS))
def test_times_are_ordered_the_same(
    s1: int, n1: int, s2: int, n2: int, order: Callable[[object, object], bool]
) -> None:
    mine = order(apitimestamp.NTP64(s1, n1), apitimestamp.NTP64(s2, n2))

    assert mine is order(zenoh.NTP64(s1, n1), zenoh.NTP64(s2, n2))


def test_equal_times_have_one_hash() -> None:
    assert hash(apitimestamp.NTP64(1, 5)) == hash(apitimestamp.NTP64(1, 5))
    assert apitimestamp.NTP64(1, 5) != 4_294_967_317
    assert int(apitimestamp.NTP64(1, 0)) == 1 << 32


@pytest.mark.parametrize("text", ["foo", "123", "", "2024-07-01T13:51:12+02:00", "2024-13-01T00:00:00Z"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(zenoh.ZError):
        zenoh.NTP64.parse_rfc3339(text)
    with pytest.raises(EleaError):
        apitimestamp.NTP64.parse_rfc3339(text)


@pytest.mark.parametrize(("seconds", "nanos"), [(-1, 0), (0, -1), (0, 1 << 32)])
def test_parts_of_a_time_outside_of_their_range_are_refused(seconds: int, nanos: int) -> None:
    with pytest.raises(OverflowError):
        zenoh.NTP64(seconds, nanos)
    with pytest.raises(OverflowError):
        apitimestamp.NTP64(seconds, nanos)


def test_a_time_after_2106_is_refused() -> None:
    with pytest.raises(InvalidValue):
        apitimestamp.NTP64(1 << 32, 0)
    with pytest.raises(TypeError):
        apitimestamp.NTP64(1.5, 0)  # type: ignore[arg-type]


@given(IDS)
def test_an_id_is_the_same(data: bytes) -> None:
    mine, real = apitimestamp.TimestampId(data), zenoh.TimestampId(data)

    assert (str(mine), repr(mine), bytes(mine)) == (str(real), repr(real), bytes(real))
    assert mine == apitimestamp.TimestampId(bytearray(data + b"\0")[:16]) or len(data) == 16
    assert hash(mine) == hash(apitimestamp.TimestampId(data))


@given(IDS, IDS, st.sampled_from(ORDERS))
def test_ids_are_ordered_the_same(one: bytes, two: bytes, order: Callable[[object, object], bool]) -> None:
    mine = order(apitimestamp.TimestampId(one), apitimestamp.TimestampId(two))

    assert mine is order(zenoh.TimestampId(one), zenoh.TimestampId(two))


@pytest.mark.parametrize("data", [b"", b"\0", b"\0" * 16, b"a" * 17])
def test_what_is_no_id_is_refused(data: bytes) -> None:
    with pytest.raises(zenoh.ZError):
        zenoh.TimestampId(data)
    with pytest.raises(EleaError):
        apitimestamp.TimestampId(data)


@given(SECONDS, NANOS, IDS)
def test_a_timestamp_is_the_same(seconds: int, nanos: int, id: bytes) -> None:
    mine = apitimestamp.Timestamp(apitimestamp.NTP64(seconds, nanos), id)
    real = zenoh.Timestamp(zenoh.NTP64(seconds, nanos), id)

    assert (str(mine), repr(mine)) == (str(real), repr(real))
    assert mine.get_time() == real.get_time()
    assert str(mine.get_time_as_ntp64()) == str(real.get_time_as_ntp64())
    assert str(mine.get_id()) == str(real.get_id())
    assert mine.to_string_rfc3339_lossy() == real.to_string_rfc3339_lossy()
    assert apitimestamp.Timestamp.parse_rfc3339(mine.to_string_rfc3339_lossy()) == mine


@given(st.datetimes(datetime(1970, 1, 2), datetime(2106, 1, 1)), st.integers(-12, 12))
def test_a_timestamp_of_a_date_is_the_same(date: datetime, hours: int) -> None:
    zoned = date.replace(tzinfo=timezone(timedelta(hours=hours)))

    assert str(apitimestamp.Timestamp(zoned, b"3")) == str(zenoh.Timestamp(zoned, b"3"))


@given(SECONDS, IDS, SECONDS, IDS, st.sampled_from(ORDERS))
def test_timestamps_are_ordered_the_same(
    s1: int, i1: bytes, s2: int, i2: bytes, order: Callable[[object, object], bool]
) -> None:
    mine = order(
        apitimestamp.Timestamp(apitimestamp.NTP64(s1, 0), i1), apitimestamp.Timestamp(apitimestamp.NTP64(s2, 0), i2)
    )

    assert mine is order(zenoh.Timestamp(zenoh.NTP64(s1, 0), i1), zenoh.Timestamp(zenoh.NTP64(s2, 0), i2))


def test_a_timestamp_needs_a_time_with_a_zone_and_an_id() -> None:
    for make, now in ((apitimestamp.Timestamp, apitimestamp.NTP64(1, 5)), (zenoh.Timestamp, zenoh.NTP64(1, 5))):
        with pytest.raises(TypeError):
            make(datetime(2024, 1, 1), b"3")
        with pytest.raises(TypeError):
            make(5, b"3")  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            make(now, "33")  # type: ignore[arg-type]
        with pytest.raises(ValueError):
            make(datetime(1960, 1, 1, tzinfo=UTC), b"3")


def test_the_difference_of_timestamps_has_a_sign() -> None:
    early = apitimestamp.Timestamp(apitimestamp.NTP64(1, 0), apitimestamp.TimestampId(b"3"))
    late = apitimestamp.Timestamp(apitimestamp.NTP64(3, 0), b"3")

    assert late.get_diff_duration(early) == timedelta(seconds=2)
    assert early.get_diff_duration(late) == timedelta(seconds=-2)
    assert hash(early) != hash(late)


def test_a_timestamp_wraps_that_of_the_model() -> None:
    inner = ModelTimestamp.parse("7386664595088445305/33")

    assert apitimestamp.Timestamp.of(inner).value is inner
    with pytest.raises(InvalidValue):
        apitimestamp.Timestamp.parse_rfc3339(str(inner))


# -- identifiers -----------------------------------------------------------------------------------------------------


def test_a_zenoh_id_equals_the_node_id() -> None:
    node = NodeId.parse("1234")
    shown = identity.ZenohId.of(node)

    assert (str(shown), repr(shown), bytes(shown)) == ("1234", "1234", b"\x34\x12")
    assert shown == node
    assert hash(shown) == hash(node)
    assert {node: 1}[shown] == 1
    assert shown != "1234"
    assert identity.ZenohId.of(b"\x77") > shown
    assert sorted([identity.ZenohId.of(b"\x77"), shown]) == [shown, identity.ZenohId(b"\x77")]
    assert shown <= node
    assert shown >= node
    with pytest.raises(TypeError):
        _ = shown < 5


def test_the_source_of_a_sample() -> None:
    entity = identity.EntityGlobalId(identity.ZenohId(b"\x34\x12"), 6)
    source = identity.SourceInfo(entity, 7)

    assert (entity.zid, entity.eid) == (identity.ZenohId(b"\x34\x12"), 6)
    assert (source.source_id, source.source_sn) == (entity, 7)
    assert source == identity.SourceInfo(source_id=entity, source_sn=7)
    assert len({source, identity.SourceInfo(entity, 7), entity}) == 2
    assert repr(entity) == "EntityGlobalId { zid: 1234, eid: 6 }"
    assert "source_sn: 7" in repr(source)
    assert entity != 6
    assert source != 7
    for number in (-1, 1 << 32):
        with pytest.raises(OverflowError):
            identity.SourceInfo(entity, number)
    with pytest.raises(TypeError):
        identity.SourceInfo(1, 2)  # type: ignore[arg-type]


# -- modes -----------------------------------------------------------------------------------------------------------


def test_modes_read_the_same() -> None:
    for name in ("router", "peer", "client"):
        mine, real = whatami.WhatAmI(name), zenoh.WhatAmI(name)
        assert (str(mine), repr(mine), int(mine)) == (str(real), repr(real), int(real))
        assert whatami.WhatAmI.of(mine.role) is mine
    assert whatami.WhatAmI.PEER.role is Role.PEER


def test_what_is_no_mode_is_refused() -> None:
    with pytest.raises(InvalidValue):
        whatami.WhatAmI("Peer")
    with pytest.raises(TypeError):
        whatami.WhatAmI(8)


@pytest.mark.parametrize(
    "text", ["", "peer", "peer|router", "client|router|peer", "peer|", "peer | router", "peer|peer"]
)
def test_matchers_read_the_same(text: str) -> None:
    mine, real = whatami.WhatAmIMatcher(text), zenoh.WhatAmIMatcher(text)

    assert str(mine) == str(real)
    assert mine.is_empty() is real.is_empty()
    for name in ("router", "peer", "client"):
        assert mine.matches(name) is real.matches(name)
        assert (name in mine) is (name in real)
        assert mine.matches(whatami.WhatAmI(name)) is real.matches(zenoh.WhatAmI(name))


def test_matchers_are_built() -> None:
    built = whatami.WhatAmIMatcher.empty().client().peer().router()

    assert str(built) == "router|peer|client"
    assert whatami.WhatAmIMatcher("router|peer") == whatami.WhatAmI.PEER | "router"
    assert len({built, whatami.WhatAmIMatcher("client|peer|router")}) == 1
    assert built != 7
    assert int(built) == 7
    assert repr(built) == "WhatAmIMatcher('router|peer|client')"
    assert whatami.into_matcher(built) is built
    assert whatami.into_matcher("peer") == whatami.into_matcher(whatami.WhatAmI.PEER)


@pytest.mark.parametrize("text", ["foo", "Peer", "peer|foo"])
def test_what_is_no_matcher_is_refused(text: str) -> None:
    with pytest.raises(zenoh.ZError):
        zenoh.WhatAmIMatcher(text)
    with pytest.raises(EleaError):
        whatami.WhatAmIMatcher(text)
    with pytest.raises(TypeError):
        whatami.WhatAmIMatcher(5)  # type: ignore[arg-type]


# -- instrumentation -------------------------------------------------------------------------------------------------


@given(st.booleans(), st.booleans(), st.booleans())
def test_instrumentation_is_built_the_same(send: bool, route: bool, receive: bool) -> None:
    mine = instrumentation.TimestampInstrumentationBuilder().set_send(send).set_route(route).set_receive(receive)
    real = zenoh.TimestampInstrumentationBuilder().set_send(send).set_route(route).set_receive(receive)
    if not (send or route or receive):
        with pytest.raises(EleaError):
            mine.build()
        return

    assert repr(mine.build()) == repr(real.build())
    for name in ("SEND", "ROUTE", "RECEIVE"):
        point = getattr(instrumentation.InterceptionPoint, name)
        assert mine.build().is_instrumented(point) is real.build().is_instrumented(
            getattr(zenoh.InterceptionPoint, name)
        )


def test_a_setter_leaves_its_builder_as_it_was() -> None:
    builder = instrumentation.TimestampInstrumentationBuilder()

    builder.set_send(True)

    with pytest.raises(InvalidValue):
        builder.build()


def test_a_stack_of_timestamps() -> None:
    stamp = apitimestamp.Timestamp(apitimestamp.NTP64(1, 0), b"3")
    records = (
        instrumentation.TimestampStackRecord(instrumentation.InterceptionPoint.SEND, stamp),
        instrumentation.TimestampStackRecord(instrumentation.InterceptionPoint.ROUTE, b"own"),
    )
    stack = instrumentation.TimestampStack(instrumentation.TimestampInstrumentation(3), records)

    assert [record.point for record in stack.records] == [
        instrumentation.InterceptionPoint.SEND,
        instrumentation.InterceptionPoint.ROUTE,
    ]
    assert [record.is_custom for record in stack.records] == [False, True]
    assert [record.timestamp() for record in stack.records] == [stamp, b"own"]
    assert stack.instrumentation.flags == 3
    assert repr(stack).startswith(
        "TimestampStack { instrumentation: TimestampInstrumentation { conf_flags: 3 }, "
        "records: [TimestampStackRecord { point: Send, timestamp: UHLC(4294967296/33) }"
    )


def test_the_context_of_a_timestamp() -> None:
    context = instrumentation.TimestampContext(identity.ZenohId(b"1"), whatami.WhatAmI.PEER)

    assert (context.zid, context.whatami) == (identity.ZenohId(b"1"), whatami.WhatAmI.PEER)
    assert repr(context) == "TimestampContext { zid: 31, whatami: Peer }"


# -- surroundings ----------------------------------------------------------------------------------------------------

ZID = identity.ZenohId(b"\x34\x12")


def test_surroundings_print_as_in_eclipse_zenoh() -> None:
    hello = info.Hello(whatami.WhatAmI.PEER, ZID, ("tcp/a:1", "udp/b:2"))
    transport = info.Transport(ZID, whatami.WhatAmI.CLIENT, True, False)
    link = info.Link(ZID, "tcp/a:1", "tcp/b:2", None, 49152, True, ("lo",), None, (0, 7), Reliability.RELIABLE)
    other = info.Link(ZID, "tcp/a:1", "tcp/b:2", "g", 1, False, (), "me", None, None)

    assert str(hello) == "Hello { zid: 1234, whatami: Peer, locators: [tcp/a:1, udp/b:2] }"
    assert repr(transport) == (
        "Transport { zid: 1234, whatami: Client, is_qos: true, is_multicast: false, is_shm: false }"
    )
    assert repr(link) == (
        'Link { zid: 1234, src: tcp/a:1, dst: tcp/b:2, group: None, mtu: 49152, is_streamed: true, interfaces: ["lo"], '
        "auth_identifier: None, priorities: Some((0, 7)), reliability: Some(Reliable) }"
    )
    assert 'group: Some(g), mtu: 1, is_streamed: false, interfaces: [], auth_identifier: Some("me")' in repr(other)
    assert repr(info.MatchingStatus(True)) == "MatchingStatus { matching: true }"


def test_surroundings_are_compared_by_value() -> None:
    hello = info.Hello(whatami.WhatAmI.PEER, ZID, ("tcp/a:1",))
    transport = info.Transport(ZID, whatami.WhatAmI.CLIENT, True, False)

    assert transport == info.Transport(ZID, whatami.WhatAmI.CLIENT, True, False)
    assert transport != object()
    assert hello.locators == ["tcp/a:1"]
    assert info.Link(ZID, "a", "b", None, 1, True, ("lo",), None, None, None).interfaces == ["lo"]


# -- options of queries ----------------------------------------------------------------------------------------------


def test_consolidations() -> None:
    latest = queryoptions.QueryConsolidation(ConsolidationMode.LATEST)

    assert queryoptions.into_consolidation(None) is ConsolidationMode.AUTO
    assert queryoptions.into_consolidation(latest) is latest.mode() is ConsolidationMode.LATEST
    assert queryoptions.into_consolidation(ConsolidationMode.NONE) is ConsolidationMode.NONE
    assert queryoptions.QueryConsolidation.AUTO == queryoptions.QueryConsolidation.DEFAULT != latest
    assert len({latest, queryoptions.QueryConsolidation(ConsolidationMode.LATEST)}) == 1
    assert latest != ConsolidationMode.LATEST
    assert repr(latest) == "QueryConsolidation(ConsolidationMode.LATEST)"
    with pytest.raises(TypeError):
        queryoptions.QueryConsolidation(1)  # type: ignore[arg-type]


def test_which_keys_replies_may_have() -> None:
    assert queryoptions.ReplyKeyExpr["DEFAULT"] is queryoptions.ReplyKeyExpr.MATCHING_QUERY
    assert repr(queryoptions.ReplyKeyExpr.ANY) == repr(zenoh.ReplyKeyExpr.ANY)
