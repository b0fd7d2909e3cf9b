"""The others in a conversation with a router: who holds what exists from the start, and who acts when a record says
that something happens elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tests.vectors.answers import FENCE, Reading, entity_of
from tests.vectors.cases import Json, Record
from tests.vectors.rawclient import RawClient

__all__ = ["Actor", "set_up"]

CONTROL = 0
COMPLETE = {"queryable_info": {"complete": True, "distance": 0}}
CONTROL_QOS = {"raw": 8, "priority": 0, "congestion": "block", "express": False}
PAYLOAD = {"PUT": {"payload": "6f"}, "DEL": {}}
QUOTED = re.compile(r"[`'\"]([^`'\"]+)[`'\"]")


class Actor:
    """A raw client that declares, undeclares, answers, puts and asks."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.reading = Reading()
        """Of what the router says to this client."""
        self._ids: dict[tuple[str, str], int] = {}
        self._recorded = Reading()

    def declare(self, entity: str, key: str, *, complete: bool = False, number: int | None = None) -> None:
        """Declare a SUBSCRIBER, QUERYABLE or TOKEN."""
        known = len(self._ids) + 1 if number is None else number
        self._ids[entity, key] = known
        body = {"_": f"D_{entity}", "id": known, "wire_expr": _literal(key)}
        if complete:
            body["ext"] = COMPLETE
        self._control(body)

    def settle(self) -> None:
        """Return when the router has taken all that was said: it answers a question behind it."""
        number = (1 << 32) - 2
        self.client.say(
            {"_": "REQUEST", "id": number, "wire_expr": _literal(f"{FENCE}/nobody"), "body": {"_": "QUERY"}}
        )
        while not any(one == {"_": "RESPONSE_FINAL", "id": number} for _, one in self.client.heard()):
            pass

    def undeclare(self, entity: str, key: str) -> bool:
        """Undeclare it, if it was declared here."""
        number = self._ids.pop((entity, key), None)
        if number is None:
            return False
        self._control({"_": f"U_{entity}", "id": number})
        return True

    def _control(self, body: Json) -> None:
        self.client.say({"_": "DECLARE", "ext": {"qos": CONTROL_QOS}, "body": body}, CONTROL)

    def act(self, record: Record, holder: Actor) -> None:
        """Do what a record without octets tells of: its recorded consequences say what it was."""
        for name, *rest in record.get("acts", ()):  # not in recorded vectors: programs say it plainly
            who = holder if name.startswith("holder") else self
            who.do(name.removeprefix("holder "), *rest)
        messages = [message for frame in record["router_answers"] for message in frame["msgs"]]
        for message in messages:
            if message["_"] == "DECLARE" and entity_of(message["body"]):
                self._declaration(message["body"], holder)
            elif message["_"] in ("PUSH", "REQUEST"):
                self.client.say(message | {"wire_expr": _literal(self._recorded.key(message["wire_expr"]))})
        if not messages and "acts" not in record:
            self._told(record.get("what", ""))

    def do(self, name: str, entity: str, key: str, complete: bool = False) -> None:
        """Declare, undeclare or put, and see that the router has taken it."""
        if name == "declare":
            self.declare(entity, key, complete=complete)
        elif name == "undeclare":
            self.undeclare(entity, key)
        else:
            self.client.say({"_": "PUSH", "wire_expr": _literal(key), "body": {"_": entity, **PAYLOAD[entity]}})
        self.settle()

    def _declaration(self, body: Json, holder: Actor) -> None:
        entity = entity_of(body)
        if body["_"].startswith("U_"):
            key = holder._recorded.declared(entity, body["id"]) or self._recorded.declared(entity, body["id"])
            if key is not None and not self.undeclare(entity, key):
                holder.undeclare(entity, key)
                holder.settle()
            return
        self._recorded.answers([(CONTROL, {"_": "DECLARE", "body": body})])
        info = body.get("ext", {}).get("queryable_info", {})
        self.declare(entity, self._recorded.key(body["wire_expr"]), complete=bool(info.get("complete")))

    def _told(self, what: str) -> None:
        """Something that the client of the records is not told of: only the words say what."""
        kind = next((name for name in ("SUBSCRIBER", "QUERYABLE", "TOKEN") if name.lower() in what.lower()), "")
        key = QUOTED.search(what)
        if "undeclare" in what and self._ids:
            named = [one for one in self._ids if key is not None and one[1] == key[1]]
            entity, held = (named or list(self._ids))[-1]
            self.undeclare(entity, held)
        elif "declare" in what and kind and key:
            self.declare(kind, key[1], complete="complete" in what)

    def answer(self, request: Json, record: Record) -> None:
        """Answer a query as the recorded queryable did."""
        frames: Json = record.get("replies", record["router_answers"])
        for frame in frames:
            for message in frame["msgs"]:
                if message["_"] == "RESPONSE":
                    expr = _literal(self._recorded.key(message["wire_expr"]))
                    self.client.say(message | {"id": request["id"], "wire_expr": expr})
        self.client.say({"_": "RESPONSE_FINAL", "id": request["id"]})


def set_up(holder: Actor, records: list[Record]) -> None:
    """Declare what exists before the first record: a subscriber, a complete queryable and a token.

    The records name them: the answers to what is asked about the present, except those of aggregates, have the very
    keys; of an aggregated queryable only the first part is seen, and it stands on `<part>/*`.
    """
    exact: dict[str, list[str]] = {"SUBSCRIBER": [], "QUERYABLE": [], "TOKEN": []}
    parts: dict[str, list[str]] = {"SUBSCRIBER": [], "QUERYABLE": [], "TOKEN": []}
    later: set[tuple[str, str]] = set()
    for record in records:
        aggregate = _aggregates(record["sent_network_message_hex"])
        for frame in record["router_answers"]:
            for message in frame["msgs"]:
                body = message.get("body") or {}
                if not entity_of(body) or body["_"].startswith("U_"):
                    continue
                holder._recorded.answers([(CONTROL, message)])
                named = entity_of(body), holder._recorded.key(body["wire_expr"])
                if message.get("interest_id") is None:
                    later.add(named)
                elif named not in later:
                    (parts if aggregate else exact)[named[0]].append(named[1])
        parts["SUBSCRIBER"] += [key for key, *_ in record.get("delivered_to_subscriber") or []]
    for entity, ending in (("SUBSCRIBER", "/**"), ("QUERYABLE", "/*"), ("TOKEN", "/1")):
        whole = exact[entity] or ([_stem(parts[entity]) + ending] if parts[entity] else [])
        for key in dict.fromkeys(whole):
            holder.declare(entity, key, complete=entity == "QUERYABLE")


def _literal(key: str) -> Json:
    return {"scope": 0, "suffix": key, "mapping": "sender"}


def _aggregates(octets: str | None) -> bool:
    """Whether the octets are an INTEREST with the aggregate bit."""
    data = bytes.fromhex(octets or "")
    if not data or data[0] & 0x1F != 0x19 or not data[0] & 0x60:
        return False
    at = 1
    while data[at] & 0x80:
        at += 1
    return bool(data[at + 1] & 0x80)


def _stem(keys: Iterable[str]) -> str:
    """The chunks that all keys begin with, without the last one of any and without wildcards."""
    stems = [key.split("/")[:-1] for key in keys]
    common: list[str] = []
    for chunks in zip(*stems, strict=False):
        if len(set(chunks)) > 1 or "*" in chunks[0]:
            break
        common.append(chunks[0])
    return "/".join(common)
