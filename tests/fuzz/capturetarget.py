"""Captures as Spark reads them: packets to units of any dialect, units to rows."""

from __future__ import annotations

import io
import json
from typing import Any

from elea.model.errors import DecodeError
from elea.spark.capture_messages import Messages
from elea.wire import DIALECTS, dialect_named
from elea.wire.detecting import MixedTraffic
from elea.wire.traffic import Ports
from tests.fuzz import corpus
from tests.fuzz.laws import require
from tests.fuzz.target import Target

__all__ = ["capture_target"]


def capture_target() -> Target:
    """All rows of a capture; those of what cannot be read say why."""

    def decode(data: bytes) -> list[Any]:
        traffic = MixedTraffic([dialect_named(name) for name in DIALECTS], Ports(frozenset({7447}), every=True))
        messages = Messages(frozenset({7447}))
        return [row for unit in traffic.units(io.BytesIO(data)) for row in messages.rows(unit)]

    def law(data: bytes, rows: list[Any]) -> None:
        for row in rows:
            # Fragments have been shown one by one, before what they are together turned out to be nothing.
            shown = row.octets is not None or (row.error is not None and ": fragments of " in row.error)
            require(row.error is None or shown, "what is wrong is shown", row)
            require(row.json is None or json.loads(row.json) is not None, "a form is JSON", row)

    def seeds() -> list[bytes]:
        from tests.unit.wire import frames

        found = [frames.pcap(frames.conversation(bytes(range(40)), size=9))]
        for dialect in DIALECTS:
            for data in corpus.octets(dialect)[::40]:
                if len(data) < 400:
                    framed = len(data).to_bytes(2, "little") + data
                    found += [frames.pcap(frames.conversation(framed, size=50)), frames.pcap([frames.datagram(data)])]
        return found

    def tokens() -> list[bytes]:
        return [*corpus.tokens("zenoh1")[:200], b"\x17\x1d", b"\xd4\xc3\xb2\xa1", b"\x45\x00"]

    return Target("capture-rows", decode, law, (DecodeError,), seeds, tokens, 16_384, repeats=False)
