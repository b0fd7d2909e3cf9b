"""The JSON form of Zenoh 1.x: the names of the wire (`PUSH`, `D_TOKEN`), extensions under `ext`, absent is absent.

Most members follow from the definitions; the tables below hold what is said differently in JSON than in bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

from elea.model.errors import DecodeError, EncodeError
from elea.model.limits import MAX_BATCH
from elea.notation import syntax as s
from elea.notation.jsonform import Json, JsonForm
from elea.notation.plan import UNKNOWN, FieldPlan
from elea.wire.primitives import Unknown, whole
from elea.wire.zenoh1 import codec
from elea.wire.zenoh1 import messages as m

__all__ = ["TAGS", "Zenoh1Json"]

TAGS: Final = {
    "Scout": "SCOUT", "Hello": "HELLO", "Init": "INIT", "Open": "OPEN", "Close": "CLOSE",
    "KeepAlive": "KEEP_ALIVE", "Frame": "FRAME", "Fragment": "FRAGMENT", "Join": "JOIN", "TransportOam": "OAM",
    "Interest": "INTEREST", "ResponseFinal": "RESPONSE_FINAL", "Response": "RESPONSE", "Request": "REQUEST",
    "Push": "PUSH", "Declare": "DECLARE", "Oam": "OAM",
    "DeclareKeyExpr": "D_KEYEXPR", "UndeclareKeyExpr": "U_KEYEXPR", "DeclareSubscriber": "D_SUBSCRIBER",
    "UndeclareSubscriber": "U_SUBSCRIBER", "DeclareQueryable": "D_QUERYABLE", "UndeclareQueryable": "U_QUERYABLE",
    "DeclareToken": "D_TOKEN", "UndeclareToken": "U_TOKEN", "DeclareFinal": "D_FINAL",
    "Put": "PUT", "Del": "DEL", "Query": "QUERY", "Reply": "REPLY", "Err": "ERR",
}  # fmt: skip

RENAMED: Final = {
    ("Frame", "messages"): "msgs",
    ("Request", "timeout"): "timeout_ms",
    ("DeclareQueryable", "info"): "queryable_info",
    # The recorded vectors call it so: 1.10.2 offers shared memory here under a header of its own.
    ("Open", "shm"): "unknown_42",
    ("UserProof", "hmac"): "hmac_sha3_256",
}

LONG: Final = 512
"""Payloads longer than this are summarised, unless the whole is asked for."""

SHOWN: Final = 16
KINDS: Final = "KSQT"
LINKSTATE: Final = 1
CONGESTION: Final = {"drop": 0, "block": 8, "block_first": 32}
ROLE_BITS: Final = {1: "router", 2: "peer", 4: "client"}
BOUNDS: Final = ("north", "south")


class Zenoh1Json(JsonForm):
    """To JSON with `record`, back with `parse_record`."""

    full = False

    # -- values to JSON -----------------------------------------------------------------------------------------------

    def record(self, value: tuple[object, ...]) -> dict[str, Json]:
        """A message value as an object."""
        name = type(value).__name__
        form: dict[str, Json] = {}
        if name in self.plan.kinds:
            form["_"] = self.tag(name, value)
        extensions: dict[str, Json] = {}
        for field in self.plan.records[name].fields:
            member: Any = getattr(value, field.attribute)
            target = form if field.extension is None else extensions
            if field.name == UNKNOWN:
                for header, body in member:
                    extensions[f"unknown_{header:02x}"] = _extension_body(body)
                if extensions:
                    form["ext"] = extensions
            elif member is not None and not (field.extension is not None and member is False):
                target[RENAMED.get((name, field.name), field.name)] = self.field(name, field, member)
        special = _TO_JSON.get(name)
        if special is not None:
            special(self, value, form)
        return form

    def tag(self, name: str, value: Any) -> str:
        if name in ("Init", "Open"):
            return f"{TAGS[name]}_{'ACK' if value.ack else 'SYN'}"
        return TAGS[name]

    def field(self, record: str, field: FieldPlan, value: Any) -> Json:
        """One member; a few mean more than their bytes."""
        match record, field.name:
            case _, "zid":
                return _id_text(value)
            case "Timestamp", "id":
                return _id_text(value)
            case (("Frame" | "Fragment" | "TransportOam"), "qos"):
                return {"priority": value & 7}
            case _, "qos" if isinstance(value, int) and not isinstance(value, bool):
                return _qos(value)
            case "Open", "remote_bound":
                return BOUNDS[value] if value < 2 else int(value)
            case "DeclareQueryable", "info":
                return {"complete": value & 1 == 1, "distance": int(value >> 8 & 0xFFFF)}
            case (("Put" | "Value" | "Err"), "payload"):
                return _summary(value) if len(value) > LONG and not self.full else str(value.hex())
            case "Encoding", "schema":
                return str(value.decode("utf-8", "surrogateescape"))
            case "UserProof", "user":
                return str(value.decode("utf-8", "surrogateescape"))
            case "UserProof", "left":
                return len(value)
            case "LinkState", "whatami":
                return ROLE_BITS.get(value, str(value))
            case _:
                return self.value(field.type, value)

    # -- JSON to values -----------------------------------------------------------------------------------------------

    def parse_record(self, name: str, form: Json) -> object:
        """The message value of an object; `name` is a record or a union."""
        if not isinstance(form, dict):
            self.fail(name, "an object is needed")
        if name in self.plan.unions:
            name = self.arm(name, form)
        form = dict(form)
        special = _FROM_JSON.get(name)
        if special is not None:
            form = special(self, form)
        extensions = form.pop("ext", {})
        if not isinstance(extensions, dict):
            self.fail(f"{name}.ext", "an object is needed")
        fields: dict[str, object] = {}
        used = {"_"}
        for field in self.plan.records[name].fields:
            key = RENAMED.get((name, field.name), field.name)
            source = form if field.extension is None else extensions
            if field.name == UNKNOWN:
                fields[UNKNOWN] = self.unknown(name, extensions)
            elif key in source:
                used.add(key)
                fields[field.attribute] = self.parse_field(name, field, source[key])
            elif field.default is not None:
                fields[field.attribute] = self.default(field)
            else:
                self.fail(f"{name}.{key}", "missing")
        strange = next((key for key in (*form, *extensions) if key not in used and key[:8] != "unknown_"), None)
        if strange is not None:
            self.fail(f"{TAGS.get(name, name)}.{strange}", "no such member")
        return self.build(name, fields)

    def arm(self, union: str, form: dict[str, Json]) -> str:
        tag = form.get("_")
        plain = tag.removesuffix("_SYN").removesuffix("_ACK") if isinstance(tag, str) else tag
        for arm in self.plan.unions[union].arms.values():
            if TAGS[arm] == plain:
                return arm
        self.fail("_", f"{tag!r} is none of {', '.join(TAGS[a] for a in self.plan.unions[union].arms.values())}")

    def unknown(self, record: str, extensions: dict[str, Json]) -> tuple[Unknown, ...]:
        named = {key for (owner, _), key in RENAMED.items() if owner == record}
        found = []
        for key, body in extensions.items():
            if key.startswith("unknown_") and key not in named:
                try:
                    header = int(key[8:], 16)
                    found.append(Unknown(header, bytes.fromhex(body) if isinstance(body, str) else body))  # type: ignore[arg-type]
                except ValueError:
                    self.fail(f"ext.{key}", "a header and a body in hexadecimal are needed")
        return tuple(Unknown(header, None if body is True else body) for header, body in found)

    def parse_field(self, record: str, field: FieldPlan, form: Any) -> object:
        what = f"{TAGS.get(record, record)}.{field.name}"
        try:
            match record, field.name:
                case _, "zid":
                    return _id_bytes(form)
                case "Timestamp", "id":
                    return _id_bytes(form)
                case (("Frame" | "Fragment" | "TransportOam"), "qos"):
                    return int(form["priority"])
                case _, "qos" if isinstance(form, dict) and record != "Join":
                    return int(form.get("raw", _qos_bits(form)))
                case "Open", "remote_bound":
                    return BOUNDS.index(form) if form in BOUNDS else int(form)
                case "DeclareQueryable", "info":
                    return int(form["complete"]) | int(form["distance"]) << 8
                case (("Put" | "Value" | "Err"), "payload") if isinstance(form, dict):
                    self.fail(what, "a summary is not a payload; decode with --full")
                case ("Encoding", "schema") | ("UserProof", "user"):
                    return str(form).encode("utf-8", "surrogateescape")
                case "UserProof", "left":
                    if int(form) > MAX_BATCH:
                        raise ValueError(f"above the {MAX_BATCH} octets of a batch")
                    return bytes(int(form))
                case "LinkState", "whatami":
                    return next((bit for bit, role in ROLE_BITS.items() if role == form), form)
                case _ if field.extension is not None and isinstance(field.type, s.Unit):
                    return bool(form)
                case _:
                    return self.parse(field.type, form, what)
        except (TypeError, KeyError, ValueError, AttributeError, OverflowError) as error:
            raise EncodeError(what, f"{form!r} does not fit ({error})") from None


# -- members that are said differently --------------------------------------------------------------------------------


def _wire_expr_to(_: Zenoh1Json, value: Any, form: dict[str, Json]) -> None:
    form.clear()
    sides = {True: "sender", False: "receiver"}
    form.update(scope=value.scope, suffix=value.suffix or "", mapping=sides[value.sender])


def _wire_expr_from(form_: Zenoh1Json, form: dict[str, Json]) -> dict[str, Json]:
    suffix: Json = form.get("suffix") or None
    return {"scope": form.get("scope"), "sender": form.get("mapping") == "sender", "suffix": suffix}


def _key_expr_to(_: Zenoh1Json, value: m.DeclareKeyExpr, form: dict[str, Json]) -> None:
    del form["scope"]
    form.pop("suffix", None)
    form["wire_expr"] = {"scope": value.scope, "suffix": value.suffix or ""}


def _key_expr_from(_: Zenoh1Json, form: dict[str, Json]) -> dict[str, Json]:
    inner = form.pop("wire_expr", None)
    if isinstance(inner, dict):
        form.update(scope=inner.get("scope"), suffix=inner.get("suffix") or None)
    return form


def _sizes_to(form_: Zenoh1Json, value: Any, form: dict[str, Json]) -> None:
    form.pop("sizes", None)
    if value.sizes is not None:
        raw = value.sizes.resolution
        form["resolution"] = {"fsn": raw & 3, "rid": raw >> 2 & 3, "raw": raw}
        form["batch_size"] = value.sizes.batch_size


def _sizes_from(form: dict[str, Json]) -> None:
    resolution = form.pop("resolution", None)
    batch_size = form.pop("batch_size", None)
    if isinstance(resolution, dict):
        form["sizes"] = {"resolution": resolution.get("raw"), "batch_size": batch_size}


def _init_to(form_: Zenoh1Json, value: m.Init, form: dict[str, Json]) -> None:
    del form["ack"]
    form["zid_len"] = len(value.zid)
    _sizes_to(form_, value, form)


def _init_from(_: Zenoh1Json, form: dict[str, Json]) -> dict[str, Json]:
    form["ack"] = str(form.get("_")).endswith("_ACK")
    form.pop("zid_len", None)
    _sizes_from(form)
    return form


def _open_to(_: Zenoh1Json, value: m.Open, form: dict[str, Json]) -> None:
    del form["ack"], form["seconds"]
    form["lease_unit"] = "s" if value.seconds else "ms"


def _open_from(_: Zenoh1Json, form: dict[str, Json]) -> dict[str, Json]:
    form["ack"] = str(form.get("_")).endswith("_ACK")
    form["seconds"] = form.pop("lease_unit", "s") == "s"
    return form


def _join_to(form_: Zenoh1Json, value: m.Join, form: dict[str, Json]) -> None:
    del form["seconds"]
    form["lease_unit"] = "s" if value.seconds else "ms"
    extensions = form.get("ext")
    if isinstance(extensions, dict) and "qos" in extensions:
        extensions["qos"] = _pairs_to(form_, value)
    _sizes_to(form_, value, form)


def _join_from(_: Zenoh1Json, form: dict[str, Json]) -> dict[str, Json]:
    form["seconds"] = form.pop("lease_unit", "s") == "s"
    extensions = form.get("ext")
    if isinstance(extensions, dict) and "qos" in extensions:
        form["ext"] = extensions | {"qos": {"priorities": extensions["qos"]}}
    _sizes_from(form)
    return form


def _pairs_to(form_: Zenoh1Json, value: m.Join) -> Json:
    """The sequence numbers of a group with priorities, as a list in priority order."""
    return [] if value.qos is None else [form_.record(pair) for pair in value.qos.priorities]


def _fragment_to(form_: Zenoh1Json, value: m.Fragment, form: dict[str, Json]) -> None:
    chunk = value.chunk
    if not form_.full:
        del form["chunk"]
    form["chunk_len"] = len(chunk)
    form["chunk_sha256"] = hashlib.sha256(chunk).hexdigest()


def _fragment_from(form_: Zenoh1Json, form: dict[str, Json]) -> dict[str, Json]:
    if "chunk" not in form:
        form_.fail("FRAGMENT.chunk", "missing; decode with --full to keep it")
    form.pop("chunk_len", None)
    form.pop("chunk_sha256", None)
    return form


def _interest_to(form_: Zenoh1Json, value: m.Interest, form: dict[str, Json]) -> None:
    form.pop("options", None)
    options = value.options
    if options is None:
        return
    letters = "".join(letter for bit, letter in enumerate(KINDS) if options.kinds >> bit & 1)
    if options.wire_expr is not None:
        letters += "R"
        letters += "N" if options.wire_expr.suffix is not None else ""
        letters += "M" if options.wire_expr.sender else ""
        form["wire_expr"] = form_.record(options.wire_expr)
    form["options"] = letters + ("A" if options.aggregate else "")


def _interest_from(_: Zenoh1Json, form: dict[str, Json]) -> dict[str, Json]:
    letters = form.pop("options", None)
    if isinstance(letters, str):
        kinds = sum(1 << bit for bit, letter in enumerate(KINDS) if letter in letters)
        wire_expr = form.pop("wire_expr", None)
        form["options"] = {"kinds": kinds, "aggregate": "A" in letters, "wire_expr": wire_expr}
    return form


def _oam_to(form_: Zenoh1Json, value: m.Oam, form: dict[str, Json]) -> None:
    form["enc"] = value.enc.name.removesuffix("Form").lower()
    body = value.body
    if not isinstance(body, bytes):
        return
    form["body_hex"] = body.hex()
    del form["body"]
    if value.id == LINKSTATE:
        try:
            states = whole(body, codec.read_link_states, codec.DIALECT)
        except DecodeError:
            return  # not ours to judge: the octets above are the truth
        form["linkstates"] = [form_.record(entry) for entry in states.entries]


def _oam_from(_: Zenoh1Json, form: dict[str, Json]) -> dict[str, Json]:
    names = {"unit": "UnitForm", "z64": "Z64Form", "zbuf": "ZBufForm"}
    form["enc"] = names.get(str(form.get("enc")))
    form.pop("linkstates", None)
    if "body_hex" in form:
        form["body"] = form.pop("body_hex")
    return form


def _link_state_to(_: Zenoh1Json, value: m.LinkState, form: dict[str, Json]) -> None:
    flags = (value.zid, value.whatami, value.locators, value.weights)
    options = sum(1 << bit for bit, member in enumerate(flags) if member is not None)
    del form["spare"], form["gateway"]
    form["options"] = value.spare << 5 | value.gateway << 4 | options


def _auth_to(form_: Zenoh1Json, value: m.Auth, form: dict[str, Json]) -> None:
    inner = form.pop("ext", {})
    assert isinstance(inner, dict)
    for key, member in inner.items():
        form[key.removesuffix("_nonce").removesuffix("_proof").removesuffix("_done")] = member


def _auth_from(_: Zenoh1Json, form: dict[str, Json]) -> dict[str, Json]:
    extensions: dict[str, Json] = {}
    for key, member in form.items():
        if key == "usrpwd" and member is not True:
            key = "usrpwd_proof" if isinstance(member, dict) else "usrpwd_nonce"
        if key == "pubkey" and member is True:
            key = "pubkey_done"
        extensions[key] = member
    return {"ext": extensions}


def _extension_body(body: int | bytes | None) -> Json:
    return True if body is None else body.hex() if isinstance(body, bytes) else body


def _qos(raw: int) -> Json:
    congestion = "block" if raw & 8 else "block_first" if raw & 32 else "drop"
    return {"raw": raw, "priority": raw & 7, "congestion": congestion, "express": bool(raw & 16)}


def _qos_bits(form: dict[str, Any]) -> int:
    return int(form["priority"]) | CONGESTION[form["congestion"]] | (16 if form["express"] else 0)


def _summary(payload: bytes) -> Json:
    return {"len": len(payload), "head": payload[:SHOWN].hex(), "tail": payload[-SHOWN:].hex()}


def _id_text(octets: bytes) -> str:
    """An identifier as text: the little-endian number in hexadecimal, without leading zeros."""
    return f"{int.from_bytes(octets, 'little'):x}"


def _id_bytes(text: Any) -> bytes:
    number = int(str(text), 16)
    return number.to_bytes(max(1, (number.bit_length() + 7) // 8), "little")


_TO_JSON: Final[dict[str, Callable[[Zenoh1Json, Any, dict[str, Json]], None]]] = {
    "WireExpr": _wire_expr_to, "LooseWireExpr": _wire_expr_to, "DeclareKeyExpr": _key_expr_to, "Init": _init_to,
    "Open": _open_to, "Join": _join_to, "Fragment": _fragment_to, "Interest": _interest_to, "Oam": _oam_to,
    "TransportOam": _oam_to, "LinkState": _link_state_to, "Auth": _auth_to,
}  # fmt: skip
_FROM_JSON: Final[dict[str, Callable[[Zenoh1Json, dict[str, Json]], dict[str, Json]]]] = {
    "WireExpr": _wire_expr_from, "LooseWireExpr": _wire_expr_from, "DeclareKeyExpr": _key_expr_from,
    "Init": _init_from, "Open": _open_from, "Join": _join_from, "Fragment": _fragment_from,
    "Interest": _interest_from, "Oam": _oam_from, "TransportOam": _oam_from, "Auth": _auth_from,
}  # fmt: skip
