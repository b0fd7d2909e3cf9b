"""What a router answered, in a form in which two of them can be compared.

Not significant, and so not in that form: which numbers the router gave, how messages are grouped in FRAMEs, the order
across priorities and of declarations that answer the same question, the time in a timestamp, and whether a key travels
literally or by a resource.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.vectors.cases import Json

__all__ = ["FENCE", "Reading", "entity_of"]

FENCE = "@fence"
"""The keys of the messages that mark the end of a step; wildcards do not match them."""

ENTITIES = ("SUBSCRIBER", "QUERYABLE", "TOKEN")


def entity_of(body: Json) -> str:
    """SUBSCRIBER, QUERYABLE or TOKEN, for a body that declares or undeclares one; else nothing."""
    name = str(body.get("_", ""))
    return name[2:] if name[:2] in ("D_", "U_") and name[2:] in ENTITIES else ""


class Reading:
    """Reads the messages of one link, in order, recorded or heard."""

    def __init__(self) -> None:
        self._resources: dict[tuple[str, int], str] = {}
        self._entities: dict[tuple[str, int], str] = {}

    # -- what the client says -----------------------------------------------------------------------------------------

    def said(self, message: Json) -> None:
        """The client's own resources stand in answers, too."""
        if message.get("_") == "DECLARE":
            self._resource(message["body"], own="receiver", other="sender")

    # -- what the router answers --------------------------------------------------------------------------------------

    def answers(self, messages: Iterable[tuple[int, Json]]) -> dict[str, list[Json]]:
        """Comparable messages by priority."""
        found: dict[str, list[Json]] = {}
        for priority, message in messages:
            form = self._form(message)
            if form is not None:
                found.setdefault(f"priority {priority}", []).append(form)
        return {priority: _ordered(forms) for priority, forms in sorted(found.items())}

    def key(self, expr: Json) -> str:
        """The whole text of a key expression; a resource nobody declared is named as such."""
        scope = expr.get("scope", 0)
        prefix = self._resources.get((expr.get("mapping", "sender"), scope), f"<resource {scope}>") if scope else ""
        return prefix + str(expr.get("suffix", ""))

    def declared(self, entity: str, number: int) -> str | None:
        """The key under which an entity of that id stands declared."""
        return self._entities.get((entity, number))

    def _form(self, message: Json) -> Json | None:
        if message.get("_") == "OAM":
            return None
        body = message.get("body")
        if message.get("_") == "DECLARE":
            if body["_"] in ("D_KEYEXPR", "U_KEYEXPR"):
                self._resource(body, own="sender", other="receiver")
                return None
            if entity_of(body):
                body = self._entity(body)
        elif message.get("_") == "REQUEST":
            message = message | {"id": "any"}
        form = self._plain(message if body is None else message | {"body": body})
        return None if FENCE in json.dumps(form) else form

    def _resource(self, body: Json, *, own: str, other: str) -> None:
        if body["_"] == "U_KEYEXPR":
            self._resources.pop((own, body["id"]), None)
        elif body["_"] == "D_KEYEXPR":
            text = self.key({"mapping": other, **body.get("wire_expr", body)})
            self._resources.setdefault((own, body["id"]), text)  # a live number keeps its first meaning

    def _entity(self, body: Json) -> Json:
        """Instead of the id: which key it was given for before, if that is another."""
        entity, number = entity_of(body), body["id"]
        if body["_"].startswith("U_"):
            key = self._entities.pop((entity, number), None)
            return body | {"id": 0 if number == 0 else f"of {key}"}
        if number == 0:
            return body
        key = self.key(body["wire_expr"])
        known = self._entities.get((entity, number))
        self._entities[entity, number] = key
        return body | {"id": "any" if known in (None, key) else f"of {known}"}

    def _plain(self, value: Json) -> Json:
        if isinstance(value, list):
            return [self._plain(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "scope" in value and "suffix" in value:
            return {"key": self.key(value)}
        return {name: "any" if name == "timestamp" else self._plain(item) for name, item in value.items()}


def _ordered(forms: list[Json]) -> list[Json]:
    """Declarations of entities that follow each other and answer the same interest, in the order of their text."""
    found: list[Json] = []
    run: list[Json] = []
    for form in [*forms, None]:
        declares = form is not None and form["_"] == "DECLARE" and form["body"]["_"].startswith("D_")
        entity = declares and bool(entity_of(form["body"]))
        if run and not (entity and form.get("interest_id") == run[0].get("interest_id")):
            found += sorted(run, key=_text)
            run = []
        if entity:
            run.append(form)
        elif form is not None:
            found.append(form)
    return found


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
