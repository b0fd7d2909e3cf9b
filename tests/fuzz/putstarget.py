"""Requests of many acknowledged samples, `@store/puts`."""

from __future__ import annotations

from elea.model.errors import DecodeError
from elea.wire.puts import Given, read_puts, write_puts
from tests.fuzz.laws import require
from tests.fuzz.target import Target

__all__ = ["puts_target"]

NODE = bytes(range(1, 17))
PLAIN: Given = (b"home/1/temp", b"21.5", 0, None, None, 0, None, NODE, 1, 0)
FULL: Given = (b"home/2", b"", 6, b"x", b"more", 1 << 62, b"\x0a", NODE, 2, 1 << 40)


def puts_target() -> Target:
    """Reading them; what is read takes no more room than what came, and is the same when it is written again."""

    def decode(data: bytes) -> list[Given]:
        return read_puts(data)

    def law(data: bytes, found: list[Given]) -> None:
        octets = sum(len(key) + len(payload or b"") + len(extra or b"") for key, payload, _, _, extra, *_ in found)
        require(octets <= len(data), "samples have no octets that did not come", octets)
        require(read_puts(write_puts(found)) == found, "decode(encode(decode(x))) is decode(x)", found)

    gone = (*PLAIN[:1], None, *PLAIN[2:])
    seeds = tuple(write_puts(many) for many in ([PLAIN], [FULL], [gone], [gone, FULL], [PLAIN] * 3, [PLAIN, FULL] * 20))
    return Target(
        "puts", decode, law, (DecodeError,), lambda: seeds, lambda: (NODE, b"\1\1\1\0", bytes(8), b"\xff" * 4)
    )
