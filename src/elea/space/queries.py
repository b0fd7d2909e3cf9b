"""Queries under way: which branch belongs to whose question, and until when it may take.

Spec: zenoh-1 sections 14.1, 14.3. Where a query goes is decided in `routes`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from elea.model.encoding import Encoding
from elea.model.limits import QUERY_TIMEOUT
from elea.space.deadlines import Deadlines
from elea.space.face import Request, Response, ResponseFinal
from elea.space.neighbour import Neighbour
from elea.space.questions import ErrorBody

__all__ = ["QUERY_TIMEOUT", "TIMEOUT", "Queries"]

TIMEOUT: Final = ErrorBody(b"Timeout", Encoding.ZENOH_STRING)
"""What a node says for a neighbour that did not answer in time (zenoh-1 §14.1)."""


class _Query:
    """A neighbour's question and what has become of it."""

    __slots__ = ("branches", "id", "qos", "source")

    def __init__(self, source: Neighbour, request: Request) -> None:
        self.source = source
        self.id = request.id
        self.qos = request.qos
        self.branches: dict[_Branch, None] = {}  # in the order they were asked, so that runs can be repeated


class _Branch:
    """The question as passed on to one neighbour."""

    __slots__ = ("id", "neighbour", "query", "ticket")

    def __init__(self, query: _Query, neighbour: Neighbour, number: int) -> None:
        self.query = query
        self.neighbour = neighbour
        self.id = number
        self.ticket = 0


class Queries:
    """All queries that wait for answers."""

    def __init__(self) -> None:
        self._asked: dict[Neighbour, dict[int, _Query]] = {}
        self._passed_on: dict[Neighbour, dict[int, _Branch]] = {}
        self._deadlines: Deadlines[_Branch] = Deadlines()

    def __len__(self) -> int:
        return sum(len(asked) for asked in self._asked.values())

    def count(self, source: Neighbour) -> int:
        """How many queries of a neighbour wait for answers."""
        return len(self._asked.get(source, ()))

    def is_open(self, source: Neighbour, number: int) -> bool:
        """Whether a neighbour's query of that id waits for answers."""
        return number in self._asked.get(source, ())

    def asker(self, neighbour: Neighbour, number: int) -> Neighbour | None:
        """Whose question a branch belongs to; None when nobody waits for its answer any more."""
        branch = self._passed_on.get(neighbour, {}).get(number)
        return None if branch is None else branch.query.source

    def ask(self, source: Neighbour, request: Request, destinations: Iterable[Neighbour], now: float) -> None:
        """Pass a query on; without a destination it is answered at once."""
        query = _Query(source, request)
        self._asked.setdefault(source, {})[query.id] = query  # before anything is sent, which may fail
        timeout = QUERY_TIMEOUT if request.timeout_ms is None else request.timeout_ms / 1000
        for neighbour in destinations:
            passed_on = self._passed_on.setdefault(neighbour, {})
            branch = _Branch(query, neighbour, neighbour.request_ids.fresh(passed_on))
            passed_on[branch.id] = branch
            query.branches[branch] = None
            branch.ticket = self._deadlines.add(now + timeout, branch)
            neighbour.send(
                Request(
                    branch.id,
                    request.key,
                    request.target,
                    request.body,
                    request.timeout_ms,
                    request.qos,
                    request.budget,
                    request.stack,
                )
            )
        if not query.branches:
            del self._asked[source][query.id]
            source.send(ResponseFinal(request.id, request.qos))

    def respond(self, neighbour: Neighbour, message: Response) -> bool:
        """Hand an answer to who asked; false when no such query is open."""
        passed_on = self._passed_on.get(neighbour)
        branch = None if passed_on is None else passed_on.get(message.id)
        if branch is None:
            return False
        query = branch.query
        query.source.send(Response(query.id, message.key, message.body, query.qos, message.responder, message.stack))
        return True

    def finish(self, neighbour: Neighbour, number: int) -> bool:
        """A neighbour has said all; false when no such query is open."""
        passed_on = self._passed_on.get(neighbour)
        branch = None if passed_on is None else passed_on.get(number)
        if branch is None:
            return False
        self._close(branch)
        return True

    def cancel(self, source: Neighbour, number: int) -> bool:
        """Who asked wants no more answers; false when no such query is open."""
        query = self._asked.get(source, {}).pop(number, None)
        if query is None:
            return False
        self._abandon(query)
        return True

    def drop(self, neighbour: Neighbour) -> None:
        """A neighbour is gone: its questions need no answer, and the others wait no longer for its answers."""
        for query in self._asked.pop(neighbour, {}).values():
            self._abandon(query)
        for branch in list(self._passed_on.get(neighbour, {}).values()):
            self._close(branch)
        self._passed_on.pop(neighbour, None)

    def next_deadline(self) -> float | None:
        """When the next branch has taken too long."""
        return self._deadlines.next()

    def expire(self, now: float) -> None:
        """Answer for the neighbours that have not, and wait for them no longer."""
        for branch in self._deadlines.due(now):
            silent = (branch.neighbour.face.subject.node_id, 0)
            query = branch.query
            query.source.send(Response(query.id, "", TIMEOUT, query.qos, silent))
            self._close(branch)

    def _close(self, branch: _Branch) -> None:
        query = branch.query
        self._forget(branch)
        query.branches.pop(branch, None)
        if not query.branches:
            del self._asked[query.source][query.id]
            query.source.send(ResponseFinal(query.id, query.qos))

    def _abandon(self, query: _Query) -> None:
        for branch in query.branches:
            self._forget(branch)

    def _forget(self, branch: _Branch) -> None:
        self._deadlines.call_off(branch.ticket)
        del self._passed_on[branch.neighbour][branch.id]
