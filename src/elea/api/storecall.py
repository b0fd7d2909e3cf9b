"""A request to a store, from its first attempt to its outcome. Whoever waits for it (a thread, a loop) drives it.

A request is a query on a key below `@store`. Its answers are pieces of data and one small one in JSON, which every
complete answer has. An attempt that ends without it was cut off, or nobody keeps the key; which of the two it is
nobody says, so it is tried again while that may help. Requests can be repeated safely: samples have numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from elea.api.receipt import answer_of, error_of
from elea.io.dispatch import Mailbox
from elea.model.encoding import Encoding
from elea.model.errors import (
    ConfigError,
    Congested,
    EleaError,
    NotStored,
    OperationTimeout,
    SessionClosed,
    StoreClosing,
)
from elea.model.qos import CongestionControl, ConsolidationMode, Locality, Qos, QueryTarget
from elea.node.localface import EXPIRED
from elea.space.face import Request, Response
from elea.space.questions import ErrorBody, QueryBody, ReplyBody
from elea.wire.details import is_deletion, unpack

if TYPE_CHECKING:
    from elea.api.session import Session

__all__ = ["QOS", "TIMEOUT", "Call", "query"]

TIMEOUT: Final = 10.0
"""Seconds until an acknowledgement, unless the caller says otherwise."""

SILENCE: Final = 1.0
"""Seconds of unbroken connection in which nobody answers, after which nobody keeps the key."""

FIRST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.5

QOS: Final = Qos(congestion_control=CongestionControl.BLOCK).raw
JSON: Final = Encoding.APPLICATION_JSON.id
NONE: Final = ConsolidationMode.NONE


def query(
    parameters: str,
    payload: bytes | None = None,
    encoding: Encoding = Encoding.ZENOH_BYTES,
    attachment: bytes | None = None,
) -> QueryBody:
    """The body of a request."""
    return QueryBody(parameters, NONE, payload, encoding, attachment)


class Call:
    """A request, and what has come of it so far. One attempt at a time: `send`, be told, `judge`."""

    __slots__ = (
        "_body",
        "_destination",
        "_done",
        "_error",
        "_expired",
        "_final",
        "_key",
        "_links",
        "_number",
        "_qos",
        "_reads",
        "_session",
        "_silent",
        "_target",
        "_told",
        "_tries",
        "conduit",
        "deadline",
        "finals",
        "known",
        "name",
        "pieces",
        "timeout",
    )

    def __init__(
        self,
        session: Session,
        service: str,
        name: str,
        body: QueryBody,
        *,
        timeout: float = TIMEOUT,
        qos: int = QOS,
        destination: Locality = Locality.ANY,
        target: QueryTarget = QueryTarget.BEST_MATCHING,
    ) -> None:
        if session._namespace is not None:  # what a store answers names whole keys, in columns
            hint = "use a session without a namespace, and whole keys"
            raise ConfigError("namespace", "stores cannot be called from a session with a namespace", hint)
        self._session = session
        self._key = f"@store/{service}/{name}"
        self._reads = service == "read"
        self._body = body
        self._qos = qos
        self._destination = destination
        self._target = target
        self._tries = 0
        self._silent: float | None = None
        self._number = 0
        self._done: list[Callable[[], object]] = []
        self._told = threading.Lock()
        self.name = name
        self.conduit = (qos & 7) << 1 | 1
        """The lane it takes on a link."""
        self.timeout = timeout
        self.deadline = session._node.loop.now() + timeout
        self.known = False
        """Whether a store is known to keep the key: then silence is a failure that may pass."""
        self._reset()

    def _reset(self) -> None:
        self._final: bytes | None = None
        self._error: EleaError | None = None
        self._expired = False
        self.pieces: list[bytes] = []
        self.finals = 0

    # -- an attempt

    def send(self, done: Callable[[], object]) -> None:
        """Ask; `done` is called once, from any thread, when there is something to judge.

        Raises:
            SessionClosed: the session is.
        """
        session = self._session
        timeout = self.timeout
        if self._tries:
            self._reset()
            # Rounded up, for there is a timer for every length of time that queries have.
            timeout = max(-(-(self.deadline - session._node.loop.now()) // 0.1) * 0.1, 0.1)
        self._tries += 1
        # A list of one: taking the last item out is what only one thread can do. It is there before the look at the
        # session, for closing does it the other way round.
        self._done = [done]
        session._check()
        self._links = frozenset(session._runtime.links.connections)
        request = Request(0, self._key, self._target, self._body, int(timeout * 1000), self._qos)
        self._number = session._node.local.ask(
            request,
            Mailbox(self._take),
            timeout,
            here=self._destination is not Locality.REMOTE,
            elsewhere=self._destination is not Locality.SESSION_LOCAL,
        )

    def _take(self, message: object) -> None:
        """A response, the end, or that time is over."""
        if isinstance(message, Response):
            body = message.body
            if isinstance(body, ErrorBody):
                self._error = error_of(body.payload)
                return
            meta, payload = (body.meta, body.payload) if isinstance(body, ReplyBody) else (None, body)
            if is_deletion(meta):
                return
            # Only what is read has other answers, too.
            if not self._reads or unpack(meta).encoding.id == JSON:
                self._final = payload
                self.finals += 1
            else:
                self.pieces.append(payload)
            return
        self._expired = message is EXPIRED
        self._finish()

    @property
    def is_cut_off(self) -> bool:
        """Whether the attempt ended without a word: the link was lost, or nobody was there to answer."""
        return self._final is None and self._error is None and not self._expired

    def resume(self, before: Call | float) -> None:
        """Go on for an attempt in another form, or until a deadline: this is not the first one."""
        if isinstance(before, Call):
            self.deadline, self._tries = before.deadline, before._tries
        else:
            self.deadline, self._tries = before, 1

    def _finish(self) -> None:
        try:
            done = self._done.pop()
        except IndexError:
            return
        done()

    def close(self) -> None:
        """The session has been closed."""
        self.fail(SessionClosed(text=f"the session was closed before a store answered for {self.name}"))

    def fail(self, error: EleaError) -> None:
        """It cannot be answered."""
        self._error = error
        self._finish()

    def cancel(self) -> None:
        """Nobody waits any more."""
        node = self._session._node
        self._done.clear()
        self._session._storing.calls.discard(self)
        if node.local.forget(self._number):
            with node.lock:
                node.space.cancel(node.local, self._number)

    # -- the outcome

    def judge(self) -> float | None:
        """What the attempt has come to: None if all is well, else the seconds after which to try again.

        Raises:
            EleaError: what the store says, or that it says nothing.
        """
        if self._final is not None and self._error is None:
            return None
        now = self._session._node.loop.now()
        error = self._error
        if error is not None and not isinstance(error, Congested | StoreClosing):
            raise error
        lasting = self._expired or now >= self.deadline
        pause: float = min(FIRST_PAUSE * 2.0 ** (self._tries - 1), LONGEST_PAUSE)
        if error is None and not self._expired and self._is_silent(now) and not (self.known and not lasting):
            raise NotStored(self.name)
        if lasting or now + pause >= self.deadline:
            raise error or OperationTimeout(self.why(self.name))
        return pause

    def _is_silent(self, now: float) -> bool:
        """Whether nobody answers although the links have stood long enough."""
        links = frozenset(self._session._runtime.links.connections)
        if self.pieces or links != self._links or not links:
            self._silent = None
            return False
        if self._silent is None:
            self._silent = now
        return now - self._silent >= SILENCE or now >= self.deadline

    def why(self, name: str) -> str:
        """What to say when time is over."""
        where = "" if self._session._runtime.links.connections else "; this session is connected to nobody now"
        return (
            f"no store has acknowledged {name} within {self.timeout:g} s, in {self._tries} attempts{where}; "
            "it may have been stored all the same"
        )

    def answer(self) -> dict[str, Any]:
        """The small answer of a call that ended well."""
        return answer_of(self._final or b"")

    # -- a thread that waits

    def begin(self) -> None:
        """Send it; `finish` waits for what comes of it."""
        self._told.acquire()
        self._session._storing.calls.add(self)
        self.send(self._told.release)

    def finish(self) -> dict[str, Any]:
        """Wait for the small answer.

        Raises:
            EleaError: why there is none.
        """
        storing = self._session._storing
        try:
            while True:
                self._told.acquire()
                pause = self.judge()
                if pause is None:
                    return self.answer()
                storing.closing.wait(pause)
                self.send(self._told.release)
        except EleaError:
            raise
        except BaseException:  # somebody pressed control-C
            self.cancel()
            raise
        finally:
            storing.calls.discard(self)

    def wait(self) -> dict[str, Any]:
        """Both."""
        self.begin()
        return self.finish()

    def renew(self, timeout: float | None = None) -> None:
        """Its time begins now: nobody has waited for it so far."""
        self.timeout = self.timeout if timeout is None else timeout
        self.deadline = self._session._node.loop.now() + self.timeout
