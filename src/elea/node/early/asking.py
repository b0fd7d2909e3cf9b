"""Gets of programs here, as pulls: a selection is declared, pulled once, and forgotten.

So what a get finds is what the other node has stored. A query with parameters, or with a payload, has no words in these
dialects. In xrce2017 nothing says that a pull is over: there only a key without wildcards can be asked for, and its one
sample is the end. Spec: zenoh-2018 §5.12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from elea.model.errors import DeclarationRejected, NotExpressible
from elea.model.keytext import pattern_of as keys_of
from elea.node.early.keys import paths_of
from elea.node.early.remotepulls import RemotePull
from elea.protocol.early.numbered import plain_entry
from elea.space.face import Request, Response, ResponseFinal
from elea.space.queries import QUERY_TIMEOUT
from elea.space.questions import AnswerBody, ErrorBody

if TYPE_CHECKING:
    from elea.node.early.face import EarlyFace

__all__ = ["Asking"]

FIRST_SELECTION: Final = 1


class _Get:
    """One query: the selections whose pulls are not over."""

    __slots__ = ("has", "request", "sids")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.has = keys_of(request.key)
        self.sids: set[int] = set()


class Asking:
    """The queries that are under way to one neighbour; the lock of its machine guards them."""

    def __init__(self, face: EarlyFace) -> None:
        self.refused = 0
        """Queries that could not be said."""
        self._face = face
        self._generation = face.machine.neighbour.session.generation
        self._gets: dict[int, _Get] = {}  # by selection
        self._pulls: dict[int, RemotePull] = {}
        self._next = FIRST_SELECTION

    def ask(self, request: Request) -> None:
        """A query; the space is locked."""
        face = self._face
        problem = self._problem(request)
        if problem is not None:
            self.refused += 1
            error = NotExpressible(face.dialect, problem)
            face.node.later(lambda: self._fail(request, str(error)))
            return
        get = _Get(request)
        with face.machine.lock:
            for path in paths_of(request.key):
                sid, self._next = self._next, self._next + 2
                get.sids.add(sid)
                self._gets[sid] = get
                self._declare(get, sid, f"{face.machine.session.prefix}{path}".encode())
        seconds = QUERY_TIMEOUT if request.timeout_ms is None else request.timeout_ms / 1000
        face.node.loop.after(seconds, lambda: self._expired(get))

    def puller(self, key: str) -> RemotePull | None:
        """A pull subscriber at the other node; None if nothing tells the end of a pull, or the key has no name."""
        face = self._face
        paths = paths_of(key)
        if not self._generation.ends_pulls or not paths:
            return None
        with face.machine.lock:
            sids = {self._next + 2 * at: path for at, path in enumerate(paths)}
            self._next += 2 * len(paths)
            made = RemotePull(face, sids)
            self._pulls.update(dict.fromkeys(sids, made))
            made.begin()
        return made

    def forget_pull(self, sid: int) -> None:
        """A pull subscriber is gone."""
        self._pulls.pop(sid, None)

    def _problem(self, request: Request) -> str | None:
        body = request.body
        if body.parameters or body.payload is not None or body.attachment is not None:
            return f"a query with parameters or a payload, here of {request.key}"
        paths = paths_of(request.key)
        if not paths:
            return f"the key {request.key}"
        if not self._generation.ends_pulls and (len(paths) > 1 or "*" in paths[0] or "?" in paths[0]):
            return f"where the answers to {request.key} end; ask for a key without wildcards"
        return None

    def _declare(self, get: _Get, sid: int, query: bytes) -> None:
        m = self._generation.messages
        neighbour = self._face.machine.neighbour

        def done(error: DeclarationRejected | None) -> None:
            if error is not None:
                self._face.machine.after_packet(lambda: self._refused(get, sid, error))
            elif sid in self._gets:
                most = None if self._generation.ends_pulls else 1
                neighbour.session.send(plain_entry(self._generation, self._generation.pull(sid, most=most)))

        neighbour.declare([m.SelectionDecl(sid, query)], done)

    # -- answers ------------------------------------------------------------------------------------------------------

    def takes(self, space: int, id: int) -> bool:
        """Whether a sample under an id is the answer to a query."""
        return not space and (id in self._gets or id in self._pulls)

    def answered(self, id: int, key: str, payload: bytes) -> None:
        """A sample has come for a pull."""
        pull = self._pulls.get(id)
        if pull is not None:
            pull.answered(id, key, payload)
            return
        get = self._gets.get(id)
        if get is None:
            return
        if get.has.matches(key):
            self._reply(get.request, key, payload)
        if not self._generation.ends_pulls:
            self.ended(0, id)

    def ended(self, space: int, id: int) -> None:
        """A pull is over."""
        pull = None if space else self._pulls.get(id)
        if pull is not None:
            pull.ended(id)
            return
        with self._face.machine.lock:
            get = self._gets.pop(id, None) if not space else None
            if get is None:
                return
            get.sids.discard(id)
            self._face.machine.neighbour.declare([self._generation.messages.ForgetSelectionDecl(id)])
        if not get.sids:
            self._final(get.request)

    def _refused(self, get: _Get, sid: int, error: DeclarationRejected) -> None:
        self._reply(get.request, "", ErrorBody(str(error).encode()))
        with self._face.machine.lock:
            self._gets.pop(sid, None)
            get.sids.discard(sid)
        if not get.sids:
            self._final(get.request)

    def _expired(self, get: _Get) -> None:
        for sid in list(get.sids):
            self.ended(0, sid)

    def _fail(self, request: Request, problem: str) -> None:
        self._reply(request, "", ErrorBody(problem.encode()))
        self._final(request)

    def _reply(self, request: Request, key: str, body: AnswerBody) -> None:
        self._face.node.answer(self._face, Response(request.id, key, body, request.qos))

    def _final(self, request: Request) -> None:
        self._face.node.answer(self._face, ResponseFinal(request.id, request.qos))
