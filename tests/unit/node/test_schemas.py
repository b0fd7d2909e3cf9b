"""What a node knows of types, whoever brings it and in whatever order."""

from __future__ import annotations

from typing import Any, cast

import pytest

from elea.content.registry import SchemaRegistry
from elea.model.keyexpr import KeyExpr
from elea.node.route import SampleRun
from elea.node.schemas import SpaceSchemas
from elea.space.face import Response
from elea.space.questions import ReplyBody

KEY = "@schema/cdr/T"


class FakeNode:
    """What types need of a node; nobody answers."""

    def __init__(self) -> None:
        self.loop = self.local = self
        self.meters: list[object] = []
        self.has_threads = False

    def now(self) -> float:
        return 0.0

    def subscribe(self, key: str, box: object) -> None:
        pass

    def ask(self, request: object, box: object, timeout: float, *, here: bool) -> None:
        pass


def schemas_of(node: FakeNode) -> SpaceSchemas:
    return SpaceSchemas(cast("Any", node))


def test_one_thread_at_a_time_takes_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = schemas_of(FakeNode())
    held: list[bool] = []

    def take(self: SchemaRegistry, key: str, schema: bytes | None, payload: bytes | None) -> bool:
        held.append(schemas._taking.locked())
        return True

    monkeypatch.setattr(SchemaRegistry, "take", take)
    schemas.stores.append(lambda: [(KEY, None, b"int8 a")])
    schemas.ask()
    schemas._arrived(SampleRun(KeyExpr(KEY), [(0, 0, b"", 5, None, b"int8 a")], True))
    schemas._answered(Response(0, KEY, ReplyBody(None, b"int8 a"), 5, None))

    assert held == [True, True, True]
