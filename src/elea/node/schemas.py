"""The types that a data space declares, as this node knows them: `elea.content.registry`, filled when it is needed.

Nobody asks before a payload comes that needs a type. Then the node subscribes to `@schema/**`, so that changes are
noticed, looks into its own stores, and asks the others. A thread that may wait, waits for the answer; one that reads
links does not, and lets the sample through to who looks again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from elea.content.contents import Contents
from elea.content.registry import EVERYTHING, SchemaRegistry
from elea.io.dispatch import Mailbox
from elea.model.errors import DecodeError, EleaError
from elea.model.limits import SCHEMAS_KNOWN
from elea.model.qos import ConsolidationMode, QueryTarget
from elea.node.route import SampleRun
from elea.space.face import Request, Response
from elea.space.questions import QueryBody, ReplyBody
from elea.wire.details import Parts, unpack_parts

if TYPE_CHECKING:
    from elea.node.node import Node
    from elea.node.openmetrics import OpenMetrics

__all__ = ["SpaceSchemas", "StoredSchema"]

_log: Final = logging.getLogger("elea.node")

WAIT: Final = 10.0
"""Seconds that the first payload of a type waits for its declaration, at most: as long as any query."""

AGAIN: Final = 5.0
LONGEST: Final = 300.0
"""Seconds after which a type that was not declared is asked for again: each time twice as long, up to this. What is
declared meanwhile is told to subscribers; only what another broker has kept, and brings later, has to be asked for."""

QOS: Final = 5

Stamp = tuple[int, bytes]
"""A timestamp: NTP64 and id."""

StoredSchema = tuple[str, "bytes | None", "bytes | None", "Stamp | None"]
"""A sample below `@schema`: key, schema of its encoding, payload (None if it is deleted), timestamp."""

NOTHING: Final[Parts] = (False, None, 0, None, None, None)
"""What a sample without details says."""

STAMPS: Final = 2 * SCHEMAS_KNOWN
"""Keys whose newest timestamp is remembered: all that are known, and as many that are deleted or refused."""


class SpaceSchemas:
    """What the data space says of types."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.registry = SchemaRegistry()
        self.contents = Contents(self.registry, self._wait)
        """For threads that may wait for a type that is not known yet."""
        self.passing = Contents(self.registry, self.begin)
        """For the others."""
        self.stores: list[Callable[[], Iterable[StoredSchema]]] = []
        """What the stores of this process keep below `@schema`."""
        self.asked = 0
        """Questions for types so far."""
        self._lock = threading.Lock()
        self._taking = threading.Lock()
        """Of `registry.take`: samples come in any thread, and those of stores in that which asks."""
        self._stamps: dict[str, Stamp] = {}
        self._is_subscribed = False
        self._known = threading.Event()
        self._next = 0.0
        self._pause = AGAIN
        self._is_told = False

    @property
    def is_known(self) -> bool:
        """Whether the data space has answered what types there are."""
        return self._is_told

    def begin(self, *, here: bool = True) -> None:
        """Find out what types there are, without waiting for it; later calls ask again, less and less often.

        Args:
            here: ask the stores of this process, too.
        """
        now = self._node.loop.now()
        with self._lock:
            if now < self._next:
                return
            self._next = float("inf")  # until there is an answer
            self._known.clear()
            is_first, self._is_subscribed = not self._is_subscribed, True
            if is_first:
                self._node.meters.append(self.meter)
        self.asked += 1
        body = QueryBody("", ConsolidationMode.LATEST)
        request = Request(0, EVERYTHING, QueryTarget.ALL, body, int(1000 * WAIT), QOS)
        try:
            if is_first:
                self._node.local.subscribe(EVERYTHING, Mailbox(self._arrived))
            self._node.local.ask(request, Mailbox(self._answered), WAIT, here=here)
        except EleaError as error:  # the node is being closed
            _log.debug("types are not asked for: problem=%s", error)
            self._known.set()

    def meter(self, text: OpenMetrics) -> None:
        """Add to the metrics page."""
        text.family("elea_schemas", "gauge", "Types and rules for keys that this node knows of the data space.")
        text.sample("elea_schemas", len(self.registry))
        text.family("elea_schemas_refused", "counter", "Schemas that made no sense, or for which there was no room.")
        text.sample("elea_schemas_refused_total", self.registry.refused)

    def ask(self) -> SchemaRegistry:
        """What is declared, after the data space was asked; for threads that may wait."""
        self._wait()
        if not self._known.is_set():  # the own stores had something new, but not all that there is
            self._wait()
        return self.registry

    def _wait(self) -> None:
        """Look into the own stores and ask; wait for the answer if those bring nothing new."""
        before = self.registry.generation
        if self._node.loop.now() >= self._next:
            self._read_stores()
        # Who waits may be one of the threads that answer for our own stores: those were looked into just now.
        self.begin(here=not self.stores)
        if self.registry.generation == before and self._node.loop.has_threads and not self._known.is_set():
            self._node.loop.step_aside()  # the answer comes by a link that this thread may be reading
            self._known.wait(WAIT)

    def _read_stores(self) -> None:
        for stored in self.stores:
            try:
                for sample in stored():
                    self._take_newest(*sample)
            except EleaError as error:
                _log.warning("schemas of a store are not known: problem=%s", error)

    def _arrived(self, run: object) -> None:
        if isinstance(run, SampleRun):
            for raw in run.run:
                self._take(str(run.key), raw[4], raw[5])

    def _answered(self, message: object) -> None:
        if not isinstance(message, Response):
            with self._lock:
                self._next = self._node.loop.now() + self._pause
                self._pause = min(2 * self._pause, LONGEST)
            self._is_told = True
            self._known.set()
        elif isinstance(message.body, ReplyBody):
            self._take(message.key, message.body.meta, message.body.payload)
        elif isinstance(message.body, bytes):
            self._take(message.key, None, message.body)

    def _take(self, key: str, meta: bytes | None, payload: bytes) -> None:
        try:
            is_deletion, stamp, _, schema, _, _ = NOTHING if meta is None else unpack_parts(meta)
        except DecodeError:
            return
        self._take_newest(key, schema, None if is_deletion else payload, stamp)

    def _take_newest(self, key: str, schema: bytes | None, payload: bytes | None, stamp: Stamp | None) -> None:
        """Take it, unless a newer one was: every store answers with what it has."""
        with self._taking:
            if stamp is not None:
                if stamp < self._stamps.get(key, stamp):
                    return
                self._stamps[key] = stamp
            self.registry.take(key, schema, payload)
            if len(self._stamps) > STAMPS:
                known = {each for each, _, _ in self.registry.texts()}
                self._stamps = {each: its for each, its in self._stamps.items() if each in known}
