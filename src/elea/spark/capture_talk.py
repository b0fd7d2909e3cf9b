"""What has been said on a captured connection, as far as later messages refer to it: the keys behind numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from elea.model.limits import CAPTURE_KEYS
from elea.wire.pcap import Flow
from elea.wire.zenoh1 import messages as m

__all__ = ["PUT", "Talk", "early_samples", "key_of"]

PUT: Final = "PUT"


@dataclass(slots=True)
class Talk:
    """What is known of a connection; side 0 has connected, side 1 has accepted."""

    connecting: Flow
    keys: tuple[dict[Any, str], dict[Any, str]] = field(default_factory=lambda: ({}, {}))
    fragments: dict[tuple[int, bool, int], list[bytes]] = field(default_factory=dict)
    ends: dict[Flow, tuple[str, str]] = field(default_factory=dict)
    """Both directions as texts; making them for every row took a quarter of the time."""

    def side(self, flow: Flow) -> int:
        """Who sends what goes this way."""
        return 0 if flow == self.connecting else 1

    def declare(self, side: int, number: Any, key: str) -> None:
        """`side` has said that `number` stands for `key`."""
        if len(self.keys[side]) < CAPTURE_KEYS:
            self.keys[side][number] = key

    def resolve(self, owner: int, scope: Any, suffix: str | None) -> str | None:
        """The key of a number that `owner` has declared, and what follows it; None if nobody knows the number."""
        if not scope:
            return suffix or ""
        known = self.keys[owner].get(scope)
        return None if known is None else known + (suffix or "")


def key_of(talk: Talk, side: int, parts: list[Any]) -> str | None:
    """The key that a message of 1.x and the bodies in it are about; takes note of declarations."""
    for part in parts:
        if isinstance(part, m.DeclareKeyExpr):
            # Spec zenoh-1 §9.1: inside of a declaration of a key there is no mapping flag.
            key = talk.resolve(1 - side, part.scope, part.suffix)
            if key is not None:
                talk.declare(side, part.id, key)
            return key
        if isinstance(part, m.UndeclareKeyExpr):
            return talk.keys[side].pop(part.id, None)
        expression = getattr(part, "wire_expr", None)
        if expression is not None:
            owner = side if getattr(expression, "sender", False) else 1 - side
            return talk.resolve(owner, expression.scope, expression.suffix)
    return None


def early_samples(talk: Talk, side: int, space: int, message: Any, whole: bool) -> Iterator[dict[str, Any]]:
    """What a message says about keys; `whole` unless it is a fragment, which is no sample."""
    name = type(message).__name__
    kind = PUT if whole else None
    if name == "Declare":
        made = [found for found in message.declarations if type(found).__name__ == "ResourceDecl"]
        for declared in made:
            talk.declare(side, (space, declared.rid), _text(declared.resource))
        if len(made) == 1:
            yield {"key": _text(made[0].resource)}
    elif name == "WriteData":
        yield {"kind": kind, "key": _text(message.resource), "payload": message.payload}
    elif name == "StreamData":
        yield {"kind": kind, "key": _early_key(talk, side, space, message), "payload": message.payload}
    elif name == "BatchedData":
        key = _early_key(talk, side, space, message)
        for payload in message.payload:
            yield {"kind": kind, "key": key, "payload": getattr(payload, "payload", payload)}


def _early_key(talk: Talk, side: int, space: int, message: Any) -> str | None:
    number = space, message.id
    return talk.keys[side].get(number) or talk.keys[1 - side].get(number)


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "backslashreplace")
