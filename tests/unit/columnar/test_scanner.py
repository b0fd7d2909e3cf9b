"""The names of a scanner: what is remembered, when it is forgotten, and where a run ends."""

from __future__ import annotations

import sys
from typing import Any

import pytest

pytest.importorskip("numba")

from elea.columnar import compiled
from elea.columnar.scanner import ROWS, Scanner
from elea.model.limits import CACHED_KEY_CHARS, CACHED_ROUTES
from elea.wire.zenoh1.codec import write_network_message
from elea.wire.zenoh1.messages import Encoding, Push, Put, Timestamp, WireExpr
from tests.unit.columnar.reading import scan_all, scanner


def push(scope: int, suffix: str | None = None, payload: bytes = b"payload") -> bytes:
    out = bytearray()
    write_network_message(out, Push(WireExpr(scope, True, suffix), Put(payload)))
    return bytes(out)


class Finder:
    """Resolves names and counts how often it was asked."""

    def __init__(self, takers: dict[str, Any] | None = None) -> None:
        self.asked: list[str] = []
        self._takers = takers or {}

    def __call__(self, header: int, scope: int, suffix: bytes) -> tuple[str, Any] | None:
        key = f"{scope}:{suffix.decode()}"
        self.asked.append(key)
        taker = self._takers.get(key, "one")
        return None if taker is None else (key, taker)


def keys_read(reader: Scanner, buf: bytes, find: Finder, generation: int = 1) -> list[str]:
    at = 0
    found: list[Any] = []
    while True:
        at, block, _, _ = reader.scan(buf, at, generation, find)
        if block is None:
            assert at == len(buf)
            return found
        found += [block.keys[code] for code in block.rows[:, 0].tolist()]


def test_a_name_is_looked_up_once() -> None:
    find, reader = Finder(), scanner()
    frame = b"".join(push(number % 3, f"s{number % 5}") for number in range(60))

    wanted = [f"{number % 3}:s{number % 5}" for number in range(60)]

    assert keys_read(reader, frame, find) == wanted
    assert keys_read(reader, frame, find) == wanted
    assert sorted(find.asked) == sorted(set(wanted))


def test_names_are_looked_up_anew_when_routes_have_changed_or_a_resource_has() -> None:
    find, reader = Finder(), scanner()
    keys_read(reader, push(1), find)

    keys_read(reader, push(1), find, generation=2)
    reader.forget()
    keys_read(reader, push(1), find, generation=2)

    assert find.asked == ["1:"] * 3


def test_blocks_made_before_keep_their_keys() -> None:
    find, reader = Finder(), scanner()
    _, block, _, _ = reader.scan(push(1), 0, 1, find)
    assert block is not None

    reader.forget()
    keys_read(reader, push(2), find)

    assert block.keys == ["1:"]


def test_more_names_than_fit_are_read_all_the_same() -> None:
    find, reader = Finder(), scanner()
    count = CACHED_ROUTES + 100
    frames = [
        b"".join(push(0, f"key/{number}", b"") for number in range(start, min(start + 1000, count)))
        for start in range(0, count, 1000)
    ]

    found = [key for frame in frames for key in keys_read(reader, frame, find)]

    assert found == [f"0:key/{number}" for number in range(count)]


def test_a_run_ends_where_samples_go_elsewhere() -> None:
    find, reader = Finder({"2:": "other"}), scanner()
    frame = push(1) + push(1) + push(2) + push(1)

    at, takers = 0, []
    while at < len(frame):
        at, block, taker, _ = reader.scan(frame, at, 1, find)
        assert block is not None
        takers.append((taker, len(block)))

    assert takers == [("one", 2), ("other", 1), ("one", 1)]


def test_what_is_not_for_blocks_is_left_where_it_is() -> None:
    find, reader = Finder({"2:": None}), scanner()
    frame = push(1) + push(2) + push(1)

    at, block, _, _ = reader.scan(frame, 0, 1, find)
    assert block is not None
    assert reader.scan(frame, at, 1, find)[:2] == (at, None)

    assert at == len(push(1))


def test_long_names_are_left_to_the_other_reader() -> None:
    longest = "k" * CACHED_KEY_CHARS

    assert scan_all(push(0, longest))[1] == len(push(0, longest))
    assert scan_all(push(0, longest + "k"))[1] == 0


def test_all_messages_of_the_fullest_batch_are_read() -> None:
    frame = push(1, None, b"") * (ROWS + 10)

    assert len(scan_all(frame)[0]) == ROWS + 10


def test_qos_of_all_samples_is_told_together() -> None:
    out = bytearray()
    for qos in (1, 8):
        write_network_message(out, Push(WireExpr(1, True, None), Put(b""), qos=qos))

    assert scanner().scan(bytes(out), 0, 1, Finder())[3] == 9


def test_without_numba_there_are_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "elea.columnar.kernels", None)

    assert compiled.kernels.__wrapped__() is None


def test_a_plain_sample_has_no_details_of_others() -> None:
    """Rows are written where those of the run before were."""
    out = bytearray()
    stamped = Push(WireExpr(1, True, None), Put(b"", Timestamp(1, b"\1"), Encoding(3, b"s"), attachment=b"a"), qos=5)
    plain = Push(WireExpr(1, True, None), Put(b""), qos=5)
    for message in (stamped, stamped, stamped):
        write_network_message(out, message)
    reader = scanner()
    scan_all(bytes(out), reader)

    del out[:]
    for message in (stamped, plain, plain):
        write_network_message(out, message)

    assert scan_all(bytes(out), reader)[0] == [stamped, plain, plain]
