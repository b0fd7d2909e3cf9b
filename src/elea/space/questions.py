"""A query and its answers, as the space passes them on; compiled where that is possible.

They are values like the others of `face`, but written out: there is one of each for every query and neighbour, and
compiled code makes and reads them at a fifth of the cost. Nobody changes one that has been sent.

The bodies say what no node on the way needs to know. A dialect makes them of its messages and messages of them;
extensions that it does not understand stay with the body, for the next session of the same dialect.
"""

from __future__ import annotations

from typing import Final

from elea.model.details import Source
from elea.model.encoding import Encoding
from elea.model.qos import ConsolidationMode, QueryTarget
from elea.wire.primitives import Unknown
from elea.wire.timestampstack import CollectedStamps

__all__ = ["AnswerBody", "ErrorBody", "QueryBody", "ReplyBody", "Request", "Response", "ResponseFinal"]

AUTO: Final = ConsolidationMode.AUTO


class _Value:
    """Compared with its own kind, and shown, by its parts."""

    __slots__ = ()

    def _parts(self) -> tuple[object, ...]:
        return ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Value) and type(other) is type(self) and self._parts() == other._parts()

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._parts()!r}"


class QueryBody(_Value):
    """What a query says besides its key: parameters, and perhaps a payload with its encoding.

    All queries of a series share one, which is then known by `is`.
    """

    __slots__ = ("attachment", "consolidation", "encoding", "extensions", "parameters", "payload", "source")

    def __init__(
        self,
        parameters: str = "",
        consolidation: ConsolidationMode = AUTO,
        payload: bytes | None = None,
        encoding: Encoding = Encoding.ZENOH_BYTES,
        attachment: bytes | None = None,
        source: Source | None = None,
        extensions: tuple[Unknown, ...] = (),
    ) -> None:
        self.parameters = parameters
        self.consolidation = consolidation
        self.payload = payload
        self.encoding = encoding
        self.attachment = attachment
        self.source = source
        self.extensions = extensions

    def _parts(self) -> tuple[object, ...]:
        return (
            self.parameters,
            self.consolidation,
            self.payload,
            self.encoding,
            self.attachment,
            self.source,
            self.extensions,
        )


class ReplyBody(_Value):
    """A sample as an answer: packed details (`elea.wire.details`) and payload; a deletion has none, b""."""

    __slots__ = ("consolidation", "extensions", "meta", "payload")

    def __init__(
        self,
        meta: bytes | None,
        payload: bytes,
        consolidation: ConsolidationMode = AUTO,
        extensions: tuple[Unknown, ...] = (),
    ) -> None:
        self.meta = meta
        self.payload = payload
        self.consolidation = consolidation
        self.extensions = extensions

    def _parts(self) -> tuple[object, ...]:
        return self.meta, self.payload, self.consolidation, self.extensions


class ErrorBody(_Value):
    """An answer that says what went wrong."""

    __slots__ = ("encoding", "extensions", "payload", "source")

    def __init__(
        self,
        payload: bytes,
        encoding: Encoding = Encoding.ZENOH_BYTES,
        source: Source | None = None,
        extensions: tuple[Unknown, ...] = (),
    ) -> None:
        self.payload = payload
        self.encoding = encoding
        self.source = source
        self.extensions = extensions

    def _parts(self) -> tuple[object, ...]:
        return self.payload, self.encoding, self.source, self.extensions


AnswerBody = bytes | ReplyBody | ErrorBody
"""Bytes are a put that is nothing but this payload, which is what nearly all answers are."""


class Request(_Value):
    """A query."""

    __slots__ = ("body", "budget", "id", "key", "qos", "stack", "target", "timeout_ms")

    def __init__(
        self,
        id: int,
        key: str,
        target: QueryTarget,
        body: QueryBody,
        timeout_ms: int | None = None,
        qos: int = 0x0D,
        budget: int | None = None,
        stack: CollectedStamps | None = None,
    ) -> None:
        self.id = id
        self.key = key
        self.target = target
        self.body = body
        self.timeout_ms = timeout_ms
        self.qos = qos
        self.budget = budget
        self.stack = stack

    def _parts(self) -> tuple[object, ...]:
        return self.id, self.key, self.target, self.body, self.timeout_ms, self.qos, self.budget, self.stack


class Response(_Value):
    """One answer to query `id`; `responder` is (node id, entity id)."""

    __slots__ = ("body", "id", "key", "qos", "responder", "stack")

    def __init__(
        self,
        id: int,
        key: str,
        body: AnswerBody,
        qos: int = 0x0D,
        responder: tuple[bytes, int] | None = None,
        stack: CollectedStamps | None = None,
    ) -> None:
        self.id = id
        self.key = key
        self.body = body
        self.qos = qos
        self.responder = responder
        self.stack = stack

    def _parts(self) -> tuple[object, ...]:
        return self.id, self.key, self.body, self.qos, self.responder, self.stack


class ResponseFinal(_Value):
    """No more answers to query `id`."""

    __slots__ = ("id", "qos")

    def __init__(self, id: int, qos: int = 0x0D) -> None:
        self.id = id
        self.qos = qos

    def _parts(self) -> tuple[object, ...]:
        return self.id, self.qos
