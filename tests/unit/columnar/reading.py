"""Blocks back to messages, to hold them against what the codec reads."""

from __future__ import annotations

from typing import Any

from elea.columnar import rows as k
from elea.columnar.blocks import Block
from elea.columnar.compiled import kernels
from elea.columnar.scanner import Scanner
from elea.wire.zenoh1.messages import Del, Encoding, Push, Put, SourceInfo, Timestamp
from elea.wire.zenoh1.samples import wire_expr_of

__all__ = ["messages_of", "scan_all", "scanner"]


def scanner() -> Scanner:
    compiled = kernels()
    assert compiled is not None
    return Scanner(compiled)


def scan_all(buf: bytes, reader: Scanner | None = None, at: int = 0) -> tuple[list[Push], int]:
    """Every message that a scanner takes from `at` on, and where it stops."""
    names: dict[str, tuple[int, int, bytes]] = {}

    def find(header: int, scope: int, suffix: bytes) -> tuple[str, Any] | None:
        try:
            suffix.decode()
        except UnicodeDecodeError:
            return None  # as a session does with what is no key
        name = f"{header & 0x60} {scope} {suffix.hex()}"
        names[name] = header, scope, suffix
        return name, "taker"

    reader = reader or scanner()
    reader.forget()
    found: list[Push] = []
    while True:
        at, block, taker, _ = reader.scan(buf, at, 1, find)
        if block is None:
            return found, at
        assert taker == "taker"
        found += messages_of(block, names)


def messages_of(block: Block, names: dict[str, tuple[int, int, bytes]]) -> list[Push]:
    octets = block.octets.tobytes()
    found = []
    for row in block.rows.tolist():
        row += [-1] * (k.WIDTH - len(row))

        def region(column: int, row: list[int] = row) -> bytes | None:
            return None if row[column] < 0 else octets[row[column] : row[column] + row[column + 1]]

        flags = row[k.FLAGS]
        stamp_id, source_id = region(k.STAMP), region(k.SOURCE)
        stamp = None if stamp_id is None else Timestamp(row[k.NTP64] & (1 << 64) - 1, stamp_id)
        source = None if source_id is None else SourceInfo(source_id, row[k.SOURCE_EID], row[k.SOURCE_SN])
        body: Put | Del
        if flags & k.KIND:
            body = Del(stamp, source, region(k.ATTACHMENT))
        else:
            schema = region(k.SCHEMA)
            encoded = flags & k.MORE and (row[k.ENCODING] or schema is not None)
            encoding = Encoding(row[k.ENCODING], schema) if encoded else None
            body = Put(region(k.PAYLOAD) or b"", stamp, encoding, source, attachment=region(k.ATTACHMENT))
        found.append(Push(wire_expr_of(*names[block.keys[row[k.CODE]]]), body, qos=flags & 0xFF))
    return found
