"""All links of a node: connecting, accepting, which of them hold sessions, and their end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from elea.io.dial import connect
from elea.io.halfopen import HalfOpen
from elea.io.link import Link
from elea.io.linkerrors import LinkError, LocatorError
from elea.io.losses import Losses
from elea.io.sharedmemory import WORTH, keep_heap
from elea.io.spin import LIMIT as SPIN_LIMIT
from elea.io.systemrandom import SystemRandom
from elea.io.tap import tapped
from elea.io.tls_settings import TlsSettings
from elea.model.errors import EleaError, OperationTimeout, ProtocolError, SessionClosed, SessionError
from elea.model.limits import MAX_BATCH, MAX_MESSAGE
from elea.model.logger import logger
from elea.model.node_id import NodeId
from elea.model.qos import Role
from elea.model.values import mypyc_attr, value_class
from elea.node.connection import Connection
from elea.node.dialect import ANY, DEFAULT, Dialect, Refusal, dialect_named, dialect_of
from elea.node.gracefulclose import close_gracefully
from elea.node.guesses import Guesses
from elea.node.node import Node
from elea.node.sessionregistry import SessionRegistry
from elea.protocol.backoff import Backoff

if TYPE_CHECKING:
    from random import Random

    from elea.io.listener import Listener

__all__ = ["LinkSettings", "Links"]

_log = logger("elea.node")

DUPLICATE: Final = 4
"""The reason that `SessionClosed` names when another link holds the session: the number of Zenoh 1.x."""

TIDY_SECONDS: Final = 1.0
"""How long after much memory was given back it is returned to the system: a message on its way still needs it."""


@value_class
class LinkSettings:
    """What the configuration says of links and sessions."""

    batch_size: int = MAX_BATCH
    sn_bits: int = 32
    lease: float = 10.0
    keep_alives: int = 4
    qos: bool = True
    lowlatency: bool = False
    compression: bool = False
    region_name: bytes | None = None
    credentials: tuple[bytes, bytes] | None = None
    """User and password to give."""
    users: Mapping[bytes, bytes] | None = None
    """Users and passwords to ask for."""
    tls: TlsSettings | None = None
    open_timeout: float = 10.0
    accept_timeout: float = 10.0
    accept_pending: int = 100
    max_message: int = MAX_MESSAGE
    memory: int | None = None
    """Bytes that messages of others may take in all; a part of the machine's memory unless given."""
    max_sessions: int = 1000
    wait_before_drop: float = 0.001
    wait_before_drop_fragments: float = 0.05
    wait_before_close: float = 5.0
    protocols: frozenset[str] | None = None
    """The kinds of links that may be used; None for all."""
    spin: float = SPIN_LIMIT
    shared_memory: int = 0
    shared_from: int = WORTH
    backoff: Callable[[], Backoff] = Backoff

    def __repr__(self) -> str:
        # Settings are logged and end in tracebacks; passwords do not.
        user = None if self.credentials is None else self.credentials[0].decode("utf-8", "replace")
        asks = None if self.users is None else f"{len(self.users)} users"
        return f"LinkSettings(lease={self.lease}, user={user!r}, users={asks}, tls={self.tls is not None}, …)"


@mypyc_attr(allow_interpreted_subclasses=True)
class Links:
    """All links of a node; `elea.testing` makes them of something else than sockets."""

    def __init__(self, node: Node, settings: LinkSettings, *, chance: Random | None = None) -> None:
        self.node = node
        self.settings = settings
        self.loop = node.loop
        self.listeners: list[tuple[Listener, str]] = []
        self.connections: set[Connection] = set()
        self.on_left: Callable[[Connection], None] | None = None
        self.link_listeners: list[Callable[[Connection, bool], None]] = []
        self.refused = 0
        self.unopened = 0
        """Links of others that ended before a session was opened over them, for whatever reason."""
        self.losses = Losses()
        self.half_open = HalfOpen(settings.accept_pending, now=node.loop.now)
        if settings.memory is not None:
            node.memory.total = settings.memory
        node.memory.on_given = self._on_given
        self.guesses = Guesses(node.loop.now)
        self._opening: set[Connection] = set()
        self._registry: SessionRegistry[Connection] = SessionRegistry(node.node_id)
        self._lock = threading.Lock()
        self._closed = False
        self.random: Random | SystemRandom = chance or SystemRandom()
        self._dialects: dict[str, Dialect] = {}
        if node.role is Role.ROUTER:  # it holds what it passes on
            keep_heap()

    def _made(self, link: Link, dialect: Dialect, accepted: bool, timeout: float, locator: str = "") -> Connection:
        # No attribute of the class: compiled, it would not be looked for in a class derived from this one.
        return Connection(self, link, dialect, accepted=accepted, timeout=timeout, locator=locator)

    def dialect(self, name: str = DEFAULT) -> Dialect:
        """A dialect as this node speaks it."""
        found = self._dialects.get(name)
        if found is not None:
            return found
        made = dialect_named(name, self)  # not under the lock: it imports, and may ask this node
        with self._lock:
            found = self._dialects.setdefault(name, made)
        if found is not made:
            made.close()
        return found

    def connect(self, locator: str, *, timeout: float | None = None) -> Connection:
        """Open a session with the node at `locator`; returns when both sides agree, or with the session there is.

        Raises:
            LinkError, SessionError, ProtocolError: why it could not be opened.
        """
        wait = self.settings.open_timeout if timeout is None else timeout
        self._check_protocol(locator)
        dialect = self.dialect(dialect_of(locator))
        dialect.check(locator)
        found = dialect.found(locator, wait)
        if found is not None:
            return self._connect_to_one(locator, found, wait)
        link = tapped(connect(locator, timeout=wait, tls=self.settings.tls), accepted=False, dialect=dialect.name)
        connection = self._over(link, dialect, accepted=False, timeout=wait, locator=locator)
        self._start(connection)
        if not connection.ready.wait(wait + 1.0):
            connection.end(OperationTimeout(f"no session with {locator} within {wait} s"))
        if connection.face is None or connection.ended.is_set():
            other = self.session_with(connection.peer_id)
            if other is not None:
                return other
            error = connection.error or SessionError(f"no session with {locator}")
            raise error
        return connection

    def _connect_to_one(self, locator: str, found: Iterator[str], timeout: float) -> Connection:
        """A session with the first of some nodes that can be reached."""
        problem: EleaError | None = None
        for one in found:
            try:
                return self.connect(one, timeout=timeout)
            except (LinkError, SessionError, ProtocolError) as error:
                problem = error
        raise problem or SessionError(f"no session with {locator}")

    def join(self, locator: str, dialect: Dialect) -> Connection:
        """One more link of a session that there is already; `dialect` knows which.

        Raises:
            LinkError: the other node cannot be reached there.
        """
        self._check_protocol(locator)
        timeout = self.settings.open_timeout
        link = tapped(connect(locator, timeout=timeout, tls=self.settings.tls), accepted=False, dialect=dialect.name)
        connection = self._over(link, dialect, accepted=False, timeout=timeout, locator=locator)
        self._start(connection)
        return connection

    def listen(self, locator: str) -> Listener:
        """Accept sessions at `locator`."""
        from elea.io.listener import listen  # not with the module: clients do not

        self._check_protocol(locator)
        dialect = self.dialect(dialect_of(locator))
        dialect.check(locator)
        listener = listen(
            locator,
            loop=self.loop,
            tls=self.settings.tls,
            half_open=self.half_open,
            on_link=lambda link: self._accept(tapped(link, accepted=True, dialect=dialect.name), dialect, locator),
        )
        self.listeners.append((listener, dialect.name))
        return listener

    def _check_protocol(self, locator: str) -> None:
        allowed = self.settings.protocols
        if allowed is not None and locator.partition("/")[0] not in allowed:
            hint = f"use one of {', '.join(sorted(allowed))}, or add it to transport/link/protocols"
            raise LocatorError(locator, "transport/link/protocols does not have this kind of link", hint)

    def session_with(self, node_id: bytes) -> Connection | None:
        """The connection that holds the session with a node."""
        with self._lock:
            found = self._registry.holder(node_id)
        return None if found is None or found.face is None or found.ended.is_set() else found

    def locators(self, dialect: str | None = None) -> list[str]:
        """Where this node can be reached, or can be by nodes that speak one dialect."""
        chosen = [listener for listener, name in self.listeners if dialect in (None, name) or name == ANY]
        return [locator for listener in chosen for locator in listener.locators()]

    @property
    def heard_dialects(self) -> set[str]:
        """The dialects this node listens in."""
        return {name for _, name in self.listeners}

    def dropped(self) -> dict[str, int]:
        """Messages lost in this node, by reason: on the way out, over all links there were, and to slow handlers."""
        return {**self.losses.counts, "undelivered": self.node.dispatch.dropped}

    def close(self) -> None:
        """End everything; returns soon, whatever the others do."""
        with self._lock:
            self._closed = True
            connections = [*self.connections, *self._opening]
            dialects = list(self._dialects.values())
        for listener, _ in self.listeners:
            listener.close()
        close_gracefully(connections)
        for connection in connections:
            connection.close()
        for dialect in dialects:
            dialect.close()

    # -- what connections say -----------------------------------------------------------------------------------------

    def _accept(self, link: Link, dialect: Dialect, locator: str = "") -> None:
        timeout = self.settings.accept_timeout
        connection = self._over(link, dialect, accepted=True, timeout=timeout, locator=locator)
        # Who has done a TLS handshake has done a step that costs something.
        steps = int(link.remote.startswith("tls/"))
        connection.place = self.half_open.take(link.remote, connection.end, steps=steps)
        with contextlib.suppress(LinkError, ProtocolError, SessionClosed):  # its end is told and counted by `left`
            self._start(connection)

    def _over(self, link: Link, dialect: Dialect, *, accepted: bool, timeout: float, locator: str = "") -> Connection:
        """A connection over a link, which is closed if there can be none."""
        try:
            return self._made(link, dialect, accepted, timeout, locator)
        except BaseException:
            link.close()
            raise

    def _on_given(self) -> None:
        """Much memory was given back: once what is left of it is gone, the system gets it."""
        tidy = self.node.memory.tidy
        self.loop.after(TIDY_SECONDS, lambda: threading.Thread(target=tidy, name="elea-tidy", daemon=True).start())

    def _refuse(self, remote: str, problem: object) -> None:
        """Count a link that never became a session; said the 1st, 2nd, 4th … time, so that a flood fills no log."""
        self.unopened += 1
        if self.unopened & (self.unopened - 1) == 0:
            _log.warning("link refused: link=%s unopened=%d problem=%s", remote, self.unopened, problem)

    def admit(self, connection: Connection, node_id: bytes) -> Refusal | None:
        """Another node wants a session over a link of its own."""
        if node_id == self.node.node_id:
            return Refusal.SELF
        with self._lock:
            if len(self.connections) >= self.settings.max_sessions:
                self.refused += 1
                return Refusal.FULL
            if not self._registry.accept(node_id, connection):
                self.refused += 1
                return Refusal.DUPLICATE
            connection.peer_id = node_id
        return None

    def recognised(self, connection: Connection) -> Refusal | None:
        """A connection of ours knows whom it reaches; the reason why it should not go on, if there is one."""
        if connection.peer_id == self.node.node_id:
            return Refusal.SELF
        with self._lock:
            return None if self._registry.begin(connection.peer_id, connection) else Refusal.DUPLICATE

    def _start(self, connection: Connection) -> None:
        with self._lock:
            is_closed = self._closed
            if not is_closed:
                self._opening.add(connection)
        if is_closed:
            error = SessionClosed(text="this node is closed")
            connection.end(error)
            raise error
        try:
            connection.start()
        except BaseException as error:  # the link broke, or the system gives no more threads
            connection.end(SessionClosed(text=f"the link could not be served: {error}"))
            raise

    def joined(self, connection: Connection) -> None:
        """A handshake has succeeded."""
        face = connection.face
        assert face is not None
        subject = face.subject
        with self._lock:
            self._opening.discard(connection)
            other = self._registry.confirm(subject.node_id, connection)
            self.connections.add(connection)
        if connection.place is not None:
            connection.place.leave()
        if other is not None:
            other.end(SessionClosed(DUPLICATE, "both nodes connected at once, another link was kept"))
        with self.node.lock:
            if connection.ended.is_set():
                return
            connection.machine.on_joining()
            self.node.space.add_face(face)
        self.node.settle()
        _log.info(
            "session opened: node=%s role=%s link=%s",
            NodeId(subject.node_id),
            subject.role.name,
            connection.link.remote,
        )
        if subject.role is Role.ROUTER and self.node.role is Role.ROUTER:
            _log.warning(
                "another router is a neighbour, and routers form no network here: node=%s link=%s "
                "not_delivered=nothing passes from or to a third router, nor between this one and eclipse-zenoh's "
                "hint=connect all clients and peers to one broker; to copy stored data use --align",
                NodeId(subject.node_id),
                connection.link.remote,
            )
        for listener in list(self.link_listeners):
            listener(connection, True)

    def left(self, connection: Connection) -> None:
        """A link has ended, before or after its session began."""
        with self._lock:
            self._opening.discard(connection)
            self._registry.release(connection.peer_id, connection)
            was_open = connection in self.connections
            self.connections.discard(connection)
        if connection.place is not None:
            connection.place.leave()
        if was_open and connection.face is not None:
            with self.node.lock:
                self.node.space.remove_face(connection.face, self.loop.now())
            self.node.settle()
            _log.info("session ended: node=%s reason=%s", NodeId(connection.peer_id), connection.error)
            for listener in list(self.link_listeners):
                listener(connection, False)
        elif connection.accepted and not self._closed and not connection.machine.joined:
            self._refuse(connection.link.remote, connection.error)
        if was_open and self.on_left is not None:
            self.on_left(connection)
