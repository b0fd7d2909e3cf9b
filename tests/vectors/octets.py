"""Byte vectors of the three dialects: decode, encode, both ways through JSON, dissection, refusals."""

from __future__ import annotations

import re
from functools import partial

from elea.model.errors import DecodeError, RuleBroken
from elea.wire import dialect_named
from tests.vectors.cases import Case, Json, Mismatch, Record, check_equal
from tests.vectors.patterns import is_summarised, octets_of

__all__ = ["malformed_case", "valid_case", "zenoh1_case"]

NETWORK = frozenset({"PUSH", "DECLARE", "REQUEST", "RESPONSE", "RESPONSE_FINAL", "INTEREST"})
SCOUTING = frozenset({"SCOUT", "HELLO"})
NETWORK_OAM = 0x1F

ENCODING = re.compile(r"Encoding\('(?P<text>[^']*)'\)")


# -- early dialects ----------------------------------------------------------------------------------------


def valid_case(records: list[Record], index: int) -> Case:
    """A record with unit, octets and value, of an early dialect."""
    record = records[index]
    return Case(record["name"], partial(_check_valid, record))


def _check_valid(record: Record) -> None:
    data = bytes.fromhex(record["hex"])
    unit, canonical = record["unit"], record.get("canonical", True)
    expected = data if canonical else bytes.fromhex(record["reencoded"])
    _check_both_ways(record["dialect"], unit, data, record["decoded"], expected)


def malformed_case(records: list[Record], index: int) -> Case:
    """A record with octets and an error, of the codec or of the rules above it."""
    record = records[index]
    check = _check_rule if record.get("layer") == "semantic" else _check_refused
    return Case(record["name"], partial(check, record))


def _check_refused(record: Record) -> None:
    dialect = dialect_named(record.get("dialect", "zenoh1"))
    unit = record.get("unit", dialect.units[0])
    data = bytes.fromhex(record["hex"])
    try:
        value = dialect.decode(unit, data)
    except DecodeError as error:
        check_equal("error", error.code, record["error"])
    else:
        raise Mismatch(f"decoded as {value!r}, expected {record['error']}")
    last = dialect.dissect(unit, data)[-1:]
    check_equal("error of the dissection", [field.error and field.error.code for field in last], [record["error"]])


def _check_rule(record: Record) -> None:
    from elea.protocol import early

    value = dialect_named(record["dialect"]).decode(record["unit"], bytes.fromhex(record["hex"]))
    context = record.get("context", {})
    terms = early.Terms(context.get("snsize", 14), context.get("max_conduits", 1))
    try:
        if record["unit"] == "declaration":
            early.check_declaration(value)
        elif record["unit"] == "message":
            early.check_message(value, terms)
        else:
            for decorated in value.messages:  # type: ignore[attr-defined]
                early.check_packet(decorated, terms)
    except RuleBroken as broken:
        check_equal("rule", broken.rule, record["error"])
        check_equal("reaction", broken.reaction, record["reaction"])
    else:
        raise Mismatch(f"accepted, expected {record['error']}")


# -- zenoh1 ------------------------------------------------------------------------------------------------


def zenoh1_case(records: list[Record], index: int) -> Case:
    """A record of a Zenoh 1.x exchange: a batch, datagram, message or compressed batch."""
    record = records[index]
    try:
        data = octets_of(records, index)
    except Mismatch as mismatch:
        problem = str(mismatch)

        def fail() -> None:
            raise Mismatch(problem)

        return Case(record["name"], fail)
    if data is None:
        return Case(record["name"], reason="octets given by a rule that is not understood")
    return Case(record["name"], partial(_check_zenoh1, record, data))


def zenoh1_units(record: Record, data: bytes) -> tuple[str, ...]:
    """What the octets of a record are; a bare network message is met alone and on low-latency links."""
    decoded = record["decoded"]
    if "decompressed_hex" in record:
        return ("compressed",)
    name = decoded["_"] if isinstance(decoded, dict) else ""
    if name in SCOUTING:
        return ("scouting",)
    if name in NETWORK or (name == "OAM" and data[0] & 0x1F == NETWORK_OAM):
        return ("message",) if is_summarised(record) else ("message", "lowlatency")
    return ("batch",)


def _check_zenoh1(record: Record, data: bytes) -> None:
    decoded = record["decoded"]
    for unit in zenoh1_units(record, data):
        if unit == "compressed":
            _check_compressed(record, data)
        else:
            _check_both_ways("zenoh1", unit, data, decoded, data)
    _check_encoding(record)


def _check_compressed(record: Record, data: bytes) -> None:
    dialect = dialect_named("zenoh1")
    plain = bytes.fromhex(record["decompressed_hex"])
    value = dialect.decode("compressed", data)
    check_equal("decoded", dialect.to_json("compressed", value), record["decoded"])
    check_equal("batch header", data[0], record.get("batch_header", data[0]))
    _check_both_ways("zenoh1", "batch", plain, record["decoded"], plain)
    again = dialect.encode("compressed", value)
    # Two compressors need not find the same matches: what counts is that the result reads the same.
    check_equal(
        "compressed again",
        dialect.to_json("compressed", dialect.decode("compressed", again)),
        record["decoded"],
    )
    if not data[0] & 1:
        check_equal("encoded", again.hex(), data.hex())


def _check_encoding(record: Record) -> None:
    """Where `what` gives an encoding's text, the table of encodings must give its number."""
    quoted = ENCODING.search(record.get("what", ""))
    if quoted is None or not isinstance(record["decoded"], dict):
        return
    from elea.model.encoding import Encoding

    encoding = Encoding(quoted["text"])
    for message in record["decoded"].get("msgs", []):
        sent = message.get("body", {}).get("encoding")
        if sent is not None:
            check_equal("encoding id", encoding.id, sent["id"])


# -- all dialects ------------------------------------------------------------------------------------------


def _check_both_ways(name: str, unit: str, data: bytes, form: Json, expected: bytes) -> None:
    dialect = dialect_named(name)
    value = dialect.decode(unit, data)
    check_equal(f"{unit} decoded", dialect.to_json(unit, value), form)
    check_equal(f"{unit} encoded", dialect.encode(unit, value).hex(), expected.hex())
    full = dialect.to_json(unit, value, full=True)
    check_equal(f"{unit} from full JSON", dialect.encode(unit, dialect.from_json(unit, full)).hex(), expected.hex())
    if _complete(form):
        again = dialect.from_json(unit, form)
        check_equal(f"{unit} from JSON", dialect.encode(unit, again).hex(), expected.hex())
    errors = [field.error.code for field in dialect.dissect(unit, data) if field.error is not None]
    check_equal(f"{unit} errors of the dissection", errors, [])


def _complete(form: Json) -> bool:
    """Whether a JSON form holds all octets: no fragment's digest, no summary of a payload."""
    if isinstance(form, list):
        return all(map(_complete, form))
    if not isinstance(form, dict):
        return True
    if "chunk_sha256" in form or {"len", "head", "tail"} <= form.keys():
        return False
    return all(map(_complete, form.values()))
