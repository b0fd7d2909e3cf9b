"""What a node knows of types, whoever brings it and in whatever order."""

from __future__ import annotations

from typing import Any, cast

import pytest

from elea.content.registry import SchemaRegistry
from elea.model.encoding import Encoding
from elea.model.keyexpr import KeyExpr
from elea.node.route import SampleRun
from elea.node.schemas import STAMPS, SpaceSchemas
from elea.space.face import Response
from elea.space.questions import ReplyBody, ResponseFinal
from elea.wire.details import pack_parts

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


def answer(schemas: SpaceSchemas, time: int | None, payload: bytes | None, key: str = KEY) -> None:
    stamp = None if time is None else (time, b"\1")
    meta = pack_parts(payload is None, stamp, 0, None, None, None)
    schemas._answered(Response(0, key, ReplyBody(meta, payload or b"")))


def known(schemas: SpaceSchemas) -> list[bytes]:
    return [text for _, _, text in schemas.registry.texts()]


def test_one_thread_at_a_time_takes_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = schemas_of(FakeNode())
    held: list[bool] = []

    def take(self: SchemaRegistry, key: str, schema: bytes | None, payload: bytes | None) -> bool:
        held.append(schemas._taking.locked())
        return True

    monkeypatch.setattr(SchemaRegistry, "take", take)
    schemas.stores.append(lambda: [(KEY, None, b"int8 a", None)])
    schemas.ask()
    schemas._arrived(SampleRun(KeyExpr(KEY), [(0, 0, b"", 5, None, b"int8 a")], True))
    schemas._answered(Response(0, KEY, ReplyBody(None, b"int8 a"), 5, None))

    assert held == [True, True, True]


def test_an_older_schema_does_not_take_the_place_of_a_newer_one() -> None:
    """As stores answer that were not there when it changed."""
    schemas = schemas_of(FakeNode())
    answer(schemas, 2, b"int8 new")
    answer(schemas, 1, b"int8 old")
    assert known(schemas) == [b"int8 new"]
    schemas.stores.append(lambda: [(KEY, None, b"int8 old", (1, b"\1"))])
    schemas.ask()
    assert known(schemas) == [b"int8 new"]
    answer(schemas, 1, None)
    assert known(schemas) == [b"int8 new"]
    answer(schemas, 3, None)
    answer(schemas, 2, b"int8 new")
    assert known(schemas) == []
    answer(schemas, 4, b"int8 newer")
    assert known(schemas) == [b"int8 newer"]
    answer(schemas, None, b"int8 unsaid")
    assert known(schemas) == [b"int8 unsaid"]


def test_so_many_timestamps_are_remembered_and_those_of_known_schemas_for_good() -> None:
    schemas = schemas_of(FakeNode())
    answer(schemas, 2, b"int8 new")
    for number in range(STAMPS + 10):
        answer(schemas, 2, None, f"@schema/cdr/U{number}")
    answer(schemas, 1, b"int8 old")

    assert len(schemas._stamps) <= STAMPS
    assert known(schemas) == [b"int8 new"]


class AnsweringNode(FakeNode):
    """The answer comes when somebody waits for it; a store of its own has another type."""

    def __init__(self) -> None:
        super().__init__()
        self.has_threads = True
        self.schemas = schemas_of(self)
        self.schemas.stores.append(lambda: [("@schema/cdr/Other", None, b"int8 b", (1, b"\1"))])

    def step_aside(self) -> None:
        answer(self.schemas, 1, b"int8 a")
        self.schemas._answered(ResponseFinal(0))


def test_a_type_that_the_own_stores_do_not_have_is_waited_for() -> None:
    """Although they have others, which nobody knew before."""
    schemas = AnsweringNode().schemas

    found = schemas.contents.decode("a", Encoding.APPLICATION_CDR.id, b"T", b"\0\1\0\0\7")

    assert found == {"a": 7}
    assert (schemas.asked, schemas.is_known) == (1, True)


def test_who_asks_for_all_types_gets_more_than_the_own_stores_have() -> None:
    schemas = AnsweringNode().schemas

    assert len(schemas.ask()) == 2
    assert (schemas.asked, schemas.is_known) == (1, True)
