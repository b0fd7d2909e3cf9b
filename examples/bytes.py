"""What payloads are made of: octets, text, and the serialisation of `ext`.

python examples/bytes.py
"""

from __future__ import annotations

import importlib

from common import arguments, library, say


def main() -> None:
    args = arguments(__doc__, count=1)
    zenoh = library(args)
    ext = importlib.import_module(f"{args.library}.ext")

    for value in (b"\x00\x01", bytearray(b"abc"), "grün"):
        payload = zenoh.ZBytes(value)
        say(f"{value!r}: {payload.to_bytes()!r}, {len(payload)} octets")
    say(f"as text: {zenoh.ZBytes('grün').to_string()}")
    say(f"equal: {zenoh.ZBytes(b'a') == zenoh.ZBytes('a')}, empty is false: {bool(zenoh.ZBytes(b''))}")

    for value, kind in (
        (42, int),
        (ext.UInt16(513), ext.UInt16),
        (2.5, float),
        (ext.Float32(0.5), ext.Float32),
        (True, bool),
        ("text", str),
        (b"octets", bytes),
        ([1, 2, 3], list[int]),
        (("a", 1.0), tuple[str, float]),
        ({"one": 1, "two": 2}, dict[str, int]),
        ([("x", [b"y"])], list[tuple[str, list[bytes]]]),
    ):
        octets = ext.z_serialize(value)
        back = ext.z_deserialize(kind, octets)
        say(f"{value!r}: {octets.to_bytes().hex()} and back {back!r} {back == value}")

    try:
        ext.z_deserialize(list[int], zenoh.ZBytes(b"\x05\x01"))
    except ext.ZDeserializeError:
        say("a list that is cut short is refused")


if __name__ == "__main__":
    main()
