"""Every codec of every dialect: round trips, agreement with the walker, the JSON form, the dissection."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elea.model.errors import DecodeError, MarkerOrder, MarkerTarget
from elea.notation.plan import snake
from elea.notation.walk import Walker
from elea.wire import DIALECTS, dialect_named
from elea.wire.early import Decorated, Packet
from elea.wire.primitives import Unknown, whole
from tests.strategies import (
    FRAGMENTABLE,
    MARKERS,
    SPACED,
    batches,
    corrupted,
    low_latency,
    messages,
    packets,
    roots,
    streams,
    values_of,
)

EARLY = ("xrce2017", "zenoh2018")
ROOTS = [pytest.param(dialect, root, id=f"{dialect}-{root}") for dialect in DIALECTS for root in roots(dialect)]
UNIONS = [
    pytest.param(dialect, union, id=f"{dialect}-{union}")
    for dialect in DIALECTS
    for union in values_of(dialect).plan.unions
]
JSON_UNITS = [
    *(
        (dialect, unit, root)
        for dialect in EARLY
        for unit, root in (("message", "Message"), ("declaration", "Declaration"))
    ),
    ("zenoh1", "message", "NetworkMessage"),
    ("zenoh1", "scouting", "ScoutingMessage"),
    ("zenoh1", "declaration", "Declaration"),
]


def read(dialect: str, name: str, data: bytes) -> object:
    codec = import_module(f"elea.wire.{dialect}.codec")
    return whole(data, getattr(codec, f"read_{snake(name)}"), dialect)


def write(dialect: str, name: str, value: object) -> bytes:
    out = bytearray()
    getattr(import_module(f"elea.wire.{dialect}.codec"), f"write_{snake(name)}")(out, value)
    return bytes(out)


def walker(dialect: str, data: bytes) -> Walker:
    found: Any = dialect_named(dialect)
    return Walker(found.plan, data, found.build if dialect == "zenoh1" else found._build)


def outcome(act: Callable[[], object]) -> tuple[object, ...]:
    """What a decoder did, in a form to compare: a value, or the class and place of an error."""
    try:
        return "value", act()
    except DecodeError as error:
        return "error", error.code, error.at


def encoded(dialect: str, name: str) -> st.SearchStrategy[bytes]:
    return messages(dialect, name).map(lambda value: write(dialect, name, value))


# -- round trips ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dialect", "root"), ROOTS)
@given(data=st.data())
@settings(max_examples=60)
def test_decoder_undoes_encoder(dialect: str, root: str, data: st.DataObject) -> None:
    value = data.draw(messages(dialect, root))

    again = read(dialect, root, write(dialect, root, value))

    assert again == value
    assert repr(again) == repr(value)  # True is not 1, and a symbol is not its number


@pytest.mark.parametrize(("dialect", "root"), UNIONS)
@given(data=st.data())
@settings(max_examples=60)
def test_encoder_repeats_canonical_octets(dialect: str, root: str, data: st.DataObject) -> None:
    octets = data.draw(encoded(dialect, root))

    assert write(dialect, root, read(dialect, root, octets)) == octets


@pytest.mark.parametrize(("dialect", "root"), UNIONS)
@given(data=st.data())
@settings(max_examples=60)
def test_whatever_decodes_encodes_to_the_same_value(dialect: str, root: str, data: st.DataObject) -> None:
    octets = data.draw(corrupted(encoded(dialect, root)))
    found = outcome(lambda: read(dialect, root, octets))

    if found[0] == "value":
        assert read(dialect, root, write(dialect, root, found[1])) == found[1]


@pytest.mark.parametrize("dialect", EARLY)
@given(data=st.data())
def test_early_message_cut_short_is_truncated(dialect: str, data: st.DataObject) -> None:
    octets = data.draw(encoded(dialect, "Message"))
    cut = data.draw(st.integers(0, len(octets) - 1))

    assert outcome(lambda: read(dialect, "Message", octets[:cut])) == ("error", "TRUNCATED", cut)


# -- the walker as an oracle ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dialect", "root"), ROOTS)
@given(data=st.data())
@settings(max_examples=25)
def test_walker_reads_what_decoder_reads(dialect: str, root: str, data: st.DataObject) -> None:
    value = data.draw(messages(dialect, root))

    assert walker(dialect, write(dialect, root, value)).whole(root) == value


@pytest.mark.parametrize(("dialect", "root"), ROOTS)
@given(data=st.data())
@settings(max_examples=60)
def test_walker_and_decoder_agree_on_corrupted_octets(dialect: str, root: str, data: st.DataObject) -> None:
    octets = data.draw(corrupted(encoded(dialect, root)))

    assert outcome(lambda: walker(dialect, octets).whole(root)) == outcome(lambda: read(dialect, root, octets))


@pytest.mark.parametrize(("dialect", "root"), UNIONS)
@given(octets=st.binary(max_size=40))
@settings(max_examples=60)
def test_walker_and_decoder_agree_on_any_octets(dialect: str, root: str, octets: bytes) -> None:
    assert outcome(lambda: walker(dialect, octets).whole(root)) == outcome(lambda: read(dialect, root, octets))


def walk_packet(dialect: str, data: bytes) -> Packet:
    """A packet by the walker, with the rules of markers told a second time."""
    walk = walker(dialect, data)
    plan = values_of(dialect).plan
    kinds = {number: name for name, number in plan.kinds.items() if name in plan.unions["Message"].arms.values()}
    found: list[Decorated] = []
    while walk.at < walk.end:
        markers: list[object] = []
        ranks = [-1]
        while kinds.get(data[walk.at] & 31) in MARKERS:
            rank = MARKERS.index(kinds[data[walk.at] & 31])
            if rank <= ranks[-1]:
                raise MarkerOrder(dialect, walk.at, "")
            ranks.append(rank)
            markers.append(walk.named("Message", "Message"))
            if walk.at == walk.end:
                walk.octet()  # raises Truncated
        name = kinds.get(data[walk.at] & 31)
        if name is not None and ((1 in ranks and name not in FRAGMENTABLE) or (2 in ranks and name not in SPACED)):
            raise MarkerTarget(dialect, walk.at, "")
        found.append(Decorated(walk.named("Message", "Message"), tuple(markers)))
    return Packet(tuple(found))


@pytest.mark.parametrize("dialect", EARLY)
@given(data=st.data())
def test_packet_comes_back(dialect: str, data: st.DataObject) -> None:
    packet = data.draw(packets(dialect))
    octets = dialect_named(dialect).encode("packet", packet)

    assert dialect_named(dialect).decode("packet", octets) == packet == walk_packet(dialect, octets)


@pytest.mark.parametrize("dialect", EARLY)
@given(data=st.data())
@settings(max_examples=300)
def test_walker_and_decoder_agree_on_corrupted_packets(dialect: str, data: st.DataObject) -> None:
    found = dialect_named(dialect)
    octets = data.draw(corrupted(packets(dialect).map(lambda packet: found.encode("packet", packet))))

    assert outcome(lambda: found.decode("packet", octets)) == outcome(lambda: walk_packet(dialect, octets))


@given(batch=batches())
def test_batch_comes_back(batch: tuple[object, ...]) -> None:
    zenoh1 = dialect_named("zenoh1")

    assert zenoh1.decode("batch", zenoh1.encode("batch", batch)) == batch
    assert zenoh1.decode("compressed", zenoh1.encode("compressed", batch)) == batch


@given(batch=low_latency())
def test_low_latency_batch_comes_back(batch: tuple[object, ...]) -> None:
    zenoh1 = dialect_named("zenoh1")

    assert zenoh1.decode("lowlatency", zenoh1.encode("lowlatency", batch)) == batch


# -- JSON -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dialect", "unit", "root"), JSON_UNITS)
@given(data=st.data())
@settings(max_examples=150)
def test_json_comes_back(dialect: str, unit: str, root: str, data: st.DataObject) -> None:
    value = data.draw(messages(dialect, root, for_json=True))

    assert through_json(dialect, unit, value) == value


@given(batch=batches(for_json=True, least=1))
@settings(max_examples=200)
def test_json_of_batch_comes_back(batch: tuple[object, ...]) -> None:
    assert through_json("zenoh1", "batch", batch) == batch


@pytest.mark.parametrize("dialect", EARLY)
@given(data=st.data())
@settings(max_examples=50)
def test_json_of_packet_and_stream_comes_back(dialect: str, data: st.DataObject) -> None:
    packet = data.draw(packets(dialect))
    stream = data.draw(streams(dialect))

    assert through_json(dialect, "packet", packet) == packet
    assert through_json(dialect, "stream", stream) == stream


def through_json(dialect: str, unit: str, value: object) -> object:
    found = dialect_named(dialect)
    return found.from_json(unit, json.loads(json.dumps(found.to_json(unit, value, full=True))))


# -- dissection -------------------------------------------------------------------------------------------------------

BYTES_OF_UNIT: dict[tuple[str, str], st.SearchStrategy[bytes]] = {
    **{(d, "packet"): packets(d).map(lambda p, d=d: dialect_named(d).encode("packet", p)) for d in EARLY},  # type: ignore[misc]
    **{(d, "stream"): streams(d).map(lambda p, d=d: dialect_named(d).encode("stream", p)) for d in DIALECTS},  # type: ignore[misc]
    **{(d, unit): encoded(d, root) for d, unit, root in JSON_UNITS},
    ("zenoh1", "batch"): batches().map(lambda batch: dialect_named("zenoh1").encode("batch", batch)),
    ("zenoh1", "lowlatency"): low_latency().map(lambda batch: dialect_named("zenoh1").encode("lowlatency", batch)),
    ("zenoh1", "compressed"): batches().map(lambda batch: dialect_named("zenoh1").encode("compressed", batch)),
    **{(d, "vle"): st.binary(max_size=12) for d in DIALECTS},
}


@pytest.mark.parametrize(("dialect", "unit"), BYTES_OF_UNIT)
@given(data=st.data())
@settings(max_examples=30)
def test_dissection_covers_every_octet(dialect: str, unit: str, data: st.DataObject) -> None:
    octets = data.draw(BYTES_OF_UNIT[dialect, unit])

    lines = dialect_named(dialect).dissect(unit, octets)

    if any(line.error for line in lines) or unit == "compressed":
        return
    at = 0
    for line in lines:
        assert 0 <= line.start <= line.end <= len(octets)
        if line.depth == 0:
            assert line.start == at
            at = line.end
    assert at == len(octets)


@pytest.mark.parametrize(("dialect", "unit"), BYTES_OF_UNIT)
@given(data=st.data())
@settings(max_examples=60)
def test_dissection_tells_the_error_of_the_decoder(dialect: str, unit: str, data: st.DataObject) -> None:
    octets = data.draw(corrupted(BYTES_OF_UNIT[dialect, unit]) | st.binary(max_size=20))
    found = dialect_named(dialect)

    lines = found.dissect(unit, octets)

    expected = outcome(lambda: found.decode(unit, octets))
    error = lines[-1].error if lines else None
    assert (error and ("error", error.code, error.at)) == (expected if expected[0] == "error" else None)


# -- values -----------------------------------------------------------------------------------------------------------


def parts(value: object) -> Iterator[tuple[object, ...]]:
    """Every message value inside a value, itself included."""
    if isinstance(value, tuple):
        if hasattr(value, "_fields") and not isinstance(value, Unknown):
            yield value
        for item in value:
            yield from parts(item)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_strategies_reach_every_record(dialect: str) -> None:
    seen: set[str] = set()

    @given(st.one_of([messages(dialect, root) for root in roots(dialect)]))
    @settings(max_examples=1000, derandomize=True, database=None)
    def collect(value: object) -> None:
        seen.update(type(part).__name__ for part in parts(value))

    collect()
    # The id of a marker is a record of the definitions only.
    assert seen == set(values_of(dialect).plan.records) - {"ConduitId", "RSpaceId"}


@pytest.mark.parametrize(("dialect", "root"), UNIONS)
@given(data=st.data())
@settings(max_examples=20)
def test_values_are_immutable_and_hashable(dialect: str, root: str, data: st.DataObject) -> None:
    value = data.draw(messages(dialect, root))

    assert hash(value) == hash(read(dialect, root, write(dialect, root, value)))
    for part in parts(value):
        for field in part._fields:  # type: ignore[attr-defined]
            with pytest.raises(AttributeError):
                setattr(part, field, None)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_values_of_different_classes_differ(dialect: str) -> None:
    plan, classes = values_of(dialect).plan, values_of(dialect).classes
    empty = [classes[name](*(None for _ in record.fields)) for name, record in plan.records.items() if name in classes]

    for one in empty:
        for other in empty:
            assert (one == other) is (one is other)
            assert (one != other) is (one is not other)
