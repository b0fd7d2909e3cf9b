"""Random conversations of a raw client with a router, as records of the kind that vectors of behaviour have."""

from __future__ import annotations

import random
from typing import Any

from tests.vectors.rawclient import message_octets

__all__ = ["raw_program"]

CHUNKS = ("a", "b", "c")
ENTITIES = ("SUBSCRIBER", "QUERYABLE", "TOKEN")
MODES = ("current", "future", "current_future")
CONTROL = {"qos": {"raw": 8, "priority": 0, "congestion": "block", "express": False}}


def raw_program(seed: int, length: int = 25) -> list[dict[str, Any]]:
    """The records of one conversation."""
    return _Program(random.Random(seed)).records(length)


class _Program:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._interests: list[int] = []
        self._mine: list[tuple[str, int]] = []
        self._declared: set[tuple[str, str]] = set()
        self._theirs: list[tuple[str, str, str]] = []
        self._resources: dict[int, str] = {}
        self._next = 1

    def records(self, length: int) -> list[dict[str, Any]]:
        kinds = [
            *[self._remote_declare] * 4,
            *[self._remote_undeclare] * 3,
            *[self._interest] * 4,
            *[self._interest_final] * 2,
            *[self._declare] * 3,
            *[self._undeclare] * 2,
            self._resource,
            *[self._push] * 2,
            *[self._remote_put] * 2,
            *[self._request] * 2,
            self._nonsense,
        ]
        return [
            {"name": str(number), "router_answers": [], "frame_priority": 0, "sent_network_message_hex": None}
            | self._chance.choice(kinds)()
            for number in range(length)
        ]

    def _key(self, wild: bool = True) -> str:
        chunks = [self._chance.choice(CHUNKS) for _ in range(self._chance.choice((1, 1, 2, 2, 3)))]
        if wild and self._chance.random() < 0.5:
            at = self._chance.randrange(len(chunks))
            chunks[at] = self._chance.choice(("*", "**", "a$*"))
        return "/".join(chunks)

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _say(self, form: Any, priority: int = 0) -> dict[str, Any]:
        return {"sent_network_message_hex": message_octets(form).hex(), "frame_priority": priority, "form": form}

    def _expr(self, key: str) -> dict[str, Any]:
        """Literally, or by a resource of this client."""
        for number, prefix in self._resources.items():
            if key.startswith(prefix) and self._chance.random() < 0.7:
                return {"scope": number, "suffix": key[len(prefix) :], "mapping": "sender"}
        return {"scope": 0, "suffix": key, "mapping": self._chance.choice(("sender", "receiver"))}

    def _declaration(self, body: Any) -> dict[str, Any]:
        return self._say({"_": "DECLARE", "ext": CONTROL, "body": body})

    # -- what the others do -------------------------------------------------------------------------------------------

    def _remote_declare(self) -> dict[str, Any]:
        entity = self._chance.choice(ENTITIES)
        who = "holder " if entity == "QUERYABLE" or self._chance.random() < 0.5 else ""
        key = self._key(wild=entity != "TOKEN")  # 1.10.2 now and then misses that a token on `**` is in question
        if (who, entity, key) in self._theirs:
            return self._remote_undeclare()
        self._theirs.append((who, entity, key))
        return {"acts": [(f"{who}declare", entity, key, entity == "QUERYABLE" and self._chance.random() < 0.5)]}

    def _remote_undeclare(self) -> dict[str, Any]:
        if not self._theirs:
            return self._push()
        who, entity, key = self._theirs.pop(self._chance.randrange(len(self._theirs)))
        return {"acts": [(f"{who}undeclare", entity, key)]}

    def _remote_put(self) -> dict[str, Any]:
        return {"acts": [("put", self._chance.choice(("PUT", "DEL")), self._key(wild=False))]}

    # -- what the raw client says -------------------------------------------------------------------------------------

    def _interest(self) -> dict[str, Any]:
        number = self._number()
        kinds = self._chance.choice(("", "K", "S", "Q", "T", "SQ", "ST", "QT", "SQT", "KT"))
        restricted = self._chance.random() < 0.8
        options = kinds + ("R" if restricted else "")
        mode = self._chance.choice(MODES)
        # 1.10.2 is silent if an aggregate without a current part has something of the asker's own to sum up.
        if restricted and mode == "current_future" and "T" not in kinds and self._chance.random() < 0.4:
            options += "A"
        else:  # 1.10.2 goes on summing up after the end of an aggregate
            self._interests.append(number)
        form: dict[str, Any] = {
            "_": "INTEREST",
            "id": number,
            "mode": mode,
            "options": "".join(letter for letter in "KSQTRNMA" if letter in options),
            "ext": CONTROL,
        }
        if restricted:
            form["wire_expr"] = self._expr(self._key())
            form["options"] = "".join(
                letter
                for letter in "KSQTRNMA"
                if letter in options
                or (letter == "N" and form["wire_expr"]["suffix"])
                or (letter == "M" and form["wire_expr"]["mapping"] == "sender")
            )
        return self._say(form)

    def _interest_final(self) -> dict[str, Any]:
        if not self._interests:
            return self._interest()
        number = self._interests.pop(self._chance.randrange(len(self._interests)))
        return self._say({"_": "INTEREST", "id": number, "mode": "final", "ext": CONTROL})

    def _declare(self) -> dict[str, Any]:
        entity, number = self._chance.choice(ENTITIES), self._number()
        # 1.10.2 is silent about queryables of others that one of the asker's own stands beside: those stand apart.
        key = f"own/{self._key()}" if entity == "QUERYABLE" else self._key(wild=entity != "TOKEN")
        if (entity, key) in self._declared:
            return self._push()  # the same twice on one link is something no node says
        self._declared.add((entity, key))
        self._mine.append((entity, number))
        body: dict[str, Any] = {"_": f"D_{entity}", "id": number, "wire_expr": self._expr(key)}
        if entity == "QUERYABLE" and self._chance.random() < 0.5:
            body["ext"] = {"queryable_info": {"complete": True, "distance": 0}}
        return self._declaration(body)

    def _undeclare(self) -> dict[str, Any]:
        if not self._mine:
            return self._declare()
        entity, number = self._mine.pop(self._chance.randrange(len(self._mine)))
        return self._declaration({"_": f"U_{entity}", "id": number})

    def _resource(self) -> dict[str, Any]:
        if self._resources and self._chance.random() < 0.3:
            number = self._chance.choice(list(self._resources))
            del self._resources[number]
            return self._declaration({"_": "U_KEYEXPR", "id": number})
        number, key = self._number(), self._chance.choice(CHUNKS)
        self._resources[number] = key
        return self._declaration({"_": "D_KEYEXPR", "id": number, "wire_expr": {"scope": 0, "suffix": key}})

    def _nonsense(self) -> dict[str, Any]:
        """Well-formed messages about what does not exist: none may cost more than itself."""
        # Invalid keys are left out: 1.10.2 takes some of them, and the task that reads the link dies of others.
        expr = {"scope": 9999, "suffix": "/a", "mapping": self._chance.choice(("sender", "receiver"))}
        number = self._number() + 5000
        return self._chance.choice(
            (
                lambda: self._say({"_": "PUSH", "wire_expr": expr, "body": {"_": "PUT", "payload": ""}}, 5),
                lambda: self._say({"_": "REQUEST", "id": number, "wire_expr": expr, "body": {"_": "QUERY"}}, 5),
                lambda: self._say({"_": "RESPONSE_FINAL", "id": number}, 5),
                lambda: self._say({"_": "INTEREST", "id": number, "mode": "final", "ext": CONTROL}),
                lambda: self._declaration({"_": f"U_{self._chance.choice(ENTITIES)}", "id": number}),
                lambda: self._declaration({"_": f"D_{self._chance.choice(ENTITIES)}", "id": number, "wire_expr": expr}),
                lambda: self._declaration({"_": "U_KEYEXPR", "id": number}),
                lambda: self._declaration({"_": "D_FINAL"}),
            )
        )()

    def _push(self) -> dict[str, Any]:
        kind = self._chance.choice(("PUT", "DEL"))
        body = {"_": kind, "payload": self._chance.randbytes(3).hex()} if kind == "PUT" else {"_": kind}
        return self._say({"_": "PUSH", "wire_expr": self._expr(self._key()), "body": body}, 5)

    def _request(self) -> dict[str, Any]:
        key = self._key()
        form: dict[str, Any] = {"_": "REQUEST", "id": self._number(), "wire_expr": self._expr(key)}
        target = self._chance.choice((None, "all", "all_complete"))
        if target:
            form["ext"] = {"target": target}
        reply = {"_": "REPLY", "body": {"_": "PUT", "payload": "72"}}
        expr = {"scope": 0, "suffix": key, "mapping": "sender"}
        replies = [{"msgs": [{"_": "RESPONSE", "id": 0, "wire_expr": expr, "body": reply}]}]
        return self._say(form | {"body": {"_": "QUERY"}}, 5) | {"replies": replies}
