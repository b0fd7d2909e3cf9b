"""JSON payloads to typed rows: what `payloadFormat=json` makes of whatever somebody has put."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from elea.spark.payload.registry import decoder
from tests.fuzz.arrowtarget import ROW
from tests.fuzz.laws import require
from tests.fuzz.target import Target

__all__ = ["json_payload_target"]

GOOD: Final = b'{"a":1,"b":"x","c":[1,null],"d":{"x":"aGk="},"e":{"k":1.5},"f":"2026-01-31T10:00:00Z","g":true}'
SEEDS: Final = (
    GOOD, b"{}", b'{"a":-0}', b'{"b":{"x":[1,true,"}"]}}', b'{"f":1e3,"g":null}',
    b'{"a":2147483648}', b'{"a":1}{"a":2}',
    b'{"c":[[1]]}', b' {"b":"\\ud83d\\ude00\\u0000"}\n', b'{"a":1,"a":2}', b'{"e":{"k":NaN,"l":Infinity}}', b"null",
    b'{"f":"2026-02-30"}', b'{"f":"0000-01-01T00:00:00Z"}', b'{"d":[1]}', b'{"x":' + b"[" * 200 + b"]" * 200 + b"}",
)  # fmt: skip
TOKENS: Final = tuple(
    text.encode()
    for text in ("{", "}", "[", "]", ",", ":", '"', "null", "true", "NaN", "Infinity", "-", "1e400", "9" * 20, "\\u",
                 "\\ud800", "}{", "} null", "\n", "\0", '"a":', '"b":', '"c":', '"d":', '"e":', '"f":', "é", "[[[[")
)  # fmt: skip


def json_payload_target() -> Target:
    """A payload between two good ones, which it must not spoil; alone it is read the same."""
    decode_all = decoder("json", ROW)

    def decode(data: bytes) -> list[Any]:
        values, corrupt = decode_all(pa.array([GOOD, data, GOOD], pa.binary()))
        alone, _ = decode_all(pa.array([data], pa.binary()))
        return [values, corrupt, alone]

    def law(data: bytes, found: list[Any]) -> None:
        values, corrupt, alone = found
        for array in found:
            array.validate(full=True)
        require(values.is_valid().to_pylist()[::2] == [True, True], "good payloads stay good", data)
        require(corrupt[1].is_valid is not values[1].is_valid, "a payload is read or corrupt", data)
        require(repr(alone[0]) == repr(values[1]), "neighbours do not matter", alone[0], values[1])

    return Target("json-payload", decode, law, (), lambda: SEEDS, lambda: TOKENS, 8_192)
