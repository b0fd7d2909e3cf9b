"""A query and its answers, as the space passes them on; compiled where that is possible.

They are values like the others of `face`, but written out: there is one of each for every query and neighbour, and
compiled code makes and reads them at a fifth of the cost. Nobody changes one that has been sent.
"""

from __future__ import annotations

from elea.model.qos import QueryTarget

__all__ = ["Request", "Response", "ResponseFinal"]


class Request:
    """A query. `body` is the dialect's own, passed on untouched."""

    __slots__ = ("body", "budget", "id", "key", "qos", "target", "timeout_ms")

    def __init__(
        self,
        id: int,
        key: str,
        target: QueryTarget,
        body: object,
        timeout_ms: int | None = None,
        qos: int = 0x0D,
        budget: int | None = None,
    ) -> None:
        self.id = id
        self.key = key
        self.target = target
        self.body = body
        self.timeout_ms = timeout_ms
        self.qos = qos
        self.budget = budget

    def _parts(self) -> tuple[object, ...]:
        return self.id, self.key, self.target, self.body, self.timeout_ms, self.qos, self.budget

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Request) and self._parts() == other._parts()

    def __repr__(self) -> str:
        return f"Request{self._parts()!r}"


class Response:
    """One answer to query `id`: a reply or an error in `body`; `responder` is (node id, entity id).

    Octets as `body` are a reply that is nothing but this payload, which is what nearly all replies are.
    """

    __slots__ = ("body", "id", "key", "qos", "responder")

    def __init__(
        self, id: int, key: str, body: object, qos: int = 0x0D, responder: tuple[bytes, int] | None = None
    ) -> None:
        self.id = id
        self.key = key
        self.body = body
        self.qos = qos
        self.responder = responder

    def _parts(self) -> tuple[object, ...]:
        return self.id, self.key, self.body, self.qos, self.responder

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Response) and self._parts() == other._parts()

    def __repr__(self) -> str:
        return f"Response{self._parts()!r}"


class ResponseFinal:
    """No more answers to query `id`."""

    __slots__ = ("id", "qos")

    def __init__(self, id: int, qos: int = 0x0D) -> None:
        self.id = id
        self.qos = qos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResponseFinal) and self.id == other.id and self.qos == other.qos

    def __repr__(self) -> str:
        return f"ResponseFinal({self.id}, {self.qos})"
