"""Large batches are given by head, length and digest; their payload follows a rule stated in `what`."""

from __future__ import annotations

import re
from hashlib import sha256

from tests.vectors.cases import Mismatch, Record

__all__ = ["is_summarised", "octets_of", "rebuilt"]

# "put of 200000 bytes, byte i = (i*7+3)&0xff": the only rule in use.
RULE = re.compile(r"(?P<size>\d+) bytes\b.*byte i = \(i\*(?P<factor>\d+)\+(?P<offset>\d+)\)&0xff")


def is_summarised(record: Record) -> bool:
    """Whether the octets of a record have to be rebuilt."""
    return "hex" not in record and "hex_head" in record


def octets_of(records: list[Record], index: int) -> bytes | None:
    """The octets of a record, None when they can only be guessed."""
    record = records[index]
    return rebuilt(records, index) if is_summarised(record) else bytes.fromhex(record["hex"])


def rebuilt(records: list[Record], index: int) -> bytes | None:
    """The octets of a summarised record; None when no record nearby states a rule that gives them.

    Raises:
        Mismatch: the rule is there but gives other octets.
    """
    record = records[index]
    if "chunk_len" not in record["decoded"]:
        return _checked(record, _whole(records, record))
    run = _run(records, index)
    message = _message_of(records, run)
    if message is None:
        return None
    start = sum(records[i]["decoded"]["chunk_len"] for i in run if i < index)
    size = record["decoded"]["chunk_len"]
    header = bytes.fromhex(record["hex_head"])[: record["len"] - size]
    return _checked(record, header + message[start : start + size])


def _whole(records: list[Record], record: Record) -> bytes | None:
    """A message or batch that ends with its payload: by its own rule, or by any with the right length."""
    for text in (record["what"], *(other["what"] for other in records)):
        payload = _payload(text)
        if payload is None or len(payload) >= record["len"]:
            continue
        octets = bytes.fromhex(record["hex_head"])[: record["len"] - len(payload)] + payload
        if sha256(octets).hexdigest() == record["sha256"]:
            return octets
    return None


def _run(records: list[Record], index: int) -> list[int]:
    """The fragments of the same message, in order: back to the first, on to the one without more."""
    fragments = [i for i, record in enumerate(records) if _fragment(record)]
    at = start = end = fragments.index(index)
    while start > 0 and not _fragment(records[fragments[start]]).get("ext", {}).get("first"):
        start -= 1
    while end < len(fragments) - 1 and _fragment(records[fragments[end]])["more"]:
        end += 1
    return fragments[start : max(end, at) + 1]


def _fragment(record: Record) -> Record:
    """The decoded form if it is a fragment, else an empty one."""
    decoded = record.get("decoded")
    return decoded if isinstance(decoded, dict) and decoded.get("_") == "FRAGMENT" else {}


def _message_of(records: list[Record], run: list[int]) -> bytes | None:
    first = records[run[0]]
    payload = _payload(first["what"])
    if payload is None:
        return None
    size = sum(records[i]["decoded"]["chunk_len"] for i in run)
    octets = bytes.fromhex(first.get("hex_head") or first["hex"])
    before = first.get("len", len(octets)) - first["decoded"]["chunk_len"]
    return octets[before : before + size - len(payload)] + payload


def _payload(what: str) -> bytes | None:
    rule = RULE.search(what)
    if rule is None:
        return None
    factor, offset = int(rule["factor"]), int(rule["offset"])
    return bytes((i * factor + offset) & 0xFF for i in range(int(rule["size"])))


def _checked(record: Record, octets: bytes | None) -> bytes | None:
    if octets is None:
        return None
    head = bytes.fromhex(record["hex_head"])
    if len(octets) != record["len"] or octets[: len(head)] != head:
        raise Mismatch("the octets rebuilt by the rule have another length or head")
    if sha256(octets).hexdigest() != record["sha256"]:
        raise Mismatch("the octets rebuilt by the rule have another digest")
    return octets
