"""What else comes from others and is read: selectors, the content of payloads, rules put over the admin space."""

from __future__ import annotations

import json
from typing import Any, Final

from elea.api.accesssettings import GUARDED, changed
from elea.content import decode_content
from elea.content.contents import UNKNOWN
from elea.model.encoding import Encoding
from elea.model.errors import ConfigError, InvalidKeyExpr, InvalidSelector
from elea.model.qos import Role
from elea.model.selector import Selector
from elea.space.access import Access, Action
from elea.space.face import Flow, Subject
from elea.space.guard import GuardRules
from tests.fuzz.laws import require
from tests.fuzz.target import Target

__all__ = ["content_target", "rules_target", "selector_target"]

SELECTORS: Final = tuple(
    text.encode()
    for text in ("a", "a/*?x=1;y", "a/**?_time=[now(-60s)..]", "a/b?_time=]2026-01-01T00:00:00Z..now()[", "a?a=b=c;;d",
                 "@/**?descriptors=false", "a/$*b?_anyke", "a?_history;_limit=3;_order=newest", "a?é=ü",
                 "a?_as_of=now()")
)  # fmt: skip
SELECTOR_TOKENS: Final = tuple(
    text.encode()
    for text in ("?", ";", "=", "/", "*", "**", "$*", "_time=", "[", "]", "..", "now(", ")", "-1h", "9" * 40, "\0")
)

PAYLOADS: Final = (
    b'\x00{"a": [1, null, {"b": "x"}]}',
    b"\x01text",
    b"\x02\xa2aa\x01ab\x82\x01\xf6",
    b"\x02\xbfaa\x9f\x01\x02\xff\xff",
    b"\x02\xc2\x49\x01\x00\x00\x00\x00\x00\x00\x00\x00",
    b"\x02\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00",
    b"\x02\x7f\x61a\x61b\xff",
    b"\x00[1,2",
)
PAYLOAD_TOKENS: Final = (
    b"\x9f",
    b"\xff",
    b"\xbf",
    b"\x5f",
    b"\x7f",
    b"\xc0",
    b"\xd9",
    b"\x1b" + b"\xff" * 8,
    b"[" * 500,
    b"{",
    b'"',
)
ENCODINGS: Final = (Encoding.APPLICATION_JSON, Encoding.TEXT_PLAIN, Encoding.APPLICATION_CBOR, Encoding.ZENOH_BYTES)

_RULE: Final = {"id": "r", "messages": ["put", "query"], "key_exprs": ["a/**"], "permission": "deny"}
_ACCESS: Final = {
    "enabled": True,
    "default_permission": "allow",
    "rules": [_RULE],
    "subjects": [{"id": "s", "usernames": ["ann"]}],
    "policies": [{"rules": ["r"], "subjects": ["s"]}],
}
_RATE: Final = [{"messages": ["put"], "rules": [{"key_expr": "a/**", "freq": 1.0}]}]
_SIZE: Final = [{"messages": ["put"], "key_exprs": ["a/**"], "size_limit": 5}]
RULES: Final = (
    b"\0" + json.dumps(_ACCESS).encode(),
    b"\0" + json.dumps({**_ACCESS, "subjects": [{"id": "s", "zids": ["ab12"], "interfaces": ["lo"]}]}).encode(),
    b"\0{enabled: false}",
    b"\1" + json.dumps(_RATE).encode(),
    b"\1[]",
    b"\2" + json.dumps(_SIZE).encode(),
    b"\2[]",
)
RULE_TOKENS: Final = tuple(
    text.encode()
    for text in ('"rules":', '"subjects":', '"id":', '"flows":["egress"]', '"messages":[]', "[", "]", "{", "}", ",",
                 "null",
                 '"**"', '"$*"', '"@a"', "1e999", "-1", "true", "//", "/*", "'", "[" * 300)
)  # fmt: skip


def selector_target() -> Target:
    """A selector, and what its parameters say."""

    def decode(data: bytes) -> Any:
        selector = Selector(data.decode("utf-8", "replace"))
        return selector, selector.time_range, dict(iter(selector.parameters))

    def law(data: bytes, found: Any) -> None:
        selector, _, _ = found
        again = Selector(str(selector))
        require(again == selector and str(again) == str(selector), "a selector is what it says it is", str(selector))

    refusals = (InvalidSelector, InvalidKeyExpr)
    return Target("selector", decode, law, refusals, lambda: SELECTORS, lambda: SELECTOR_TOKENS, 4_096)


def content_target() -> Target:
    """A payload by its encoding (octet 0): fields, or unknown, and no exception whatever it is."""

    def decode(data: bytes) -> object:
        encoding = ENCODINGS[data[0] % len(ENCODINGS)] if data else ENCODINGS[0]
        return decode_content(encoding, data[1:])

    def law(data: bytes, found: object) -> None:
        require(found is UNKNOWN or repr(found) == repr(decode(data)), "it is read the same again", data)

    return Target("content", decode, law, (), lambda: PAYLOADS, lambda: PAYLOAD_TOKENS, 8_192)


def rules_target() -> Target:
    """Rules that somebody has put at the admin space (octet 0 says which): refused, or ready to judge."""
    everybody = Subject(b"\1", Role.CLIENT, "ann", None, "tcp/127.0.0.1:1")

    def decode(data: bytes) -> GuardRules:
        entry = GUARDED[data[0] % len(GUARDED)] if data else GUARDED[0]
        return changed(GuardRules(), entry, data[1:])

    def law(data: bytes, rules: GuardRules) -> None:
        if rules.access is not None:
            access = Access(rules.access)
            verdict = access.judge(access.combinations(everybody), Flow.INGRESS, Action.PUT, "a/b")
            require(
                verdict.allowed or bool(verdict.rules) or not rules.access.default_allow, "denials have a rule", data
            )

    return Target("access-rules", decode, law, (ConfigError, InvalidKeyExpr), lambda: RULES, lambda: RULE_TOKENS, 4_096)
