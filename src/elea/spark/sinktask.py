"""The executor's part of the sink: samples to the storages of a broker, where they await the commit, or straight out.

Which storage a sample belongs to is asked of the broker, once a minute. What no storage keeps is put as it is: a retry
puts it again. Nobody falls back from the one to the other unnoticed: where a store was seen, its absence is an error.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from elea.api.stagedbatch import StagedBatch
from elea.model.errors import ConfigError, NotStored
from elea.model.qos import CongestionControl, Priority, Qos
from elea.spark.brokerquery import refused
from elea.spark.brokers import Brokers

if TYPE_CHECKING:
    import uuid

    import pyarrow as pa

    from elea.api.session import Session
    from elea.spark.options import WriteOptions

__all__ = ["Place", "SinkTask", "chunks", "places_of", "qos_of"]

CHUNK_ROWS: Final = 65_536
CHUNK_BYTES: Final = 8 << 20
"""What is brought to a broker at a time: as much as it takes in one piece."""

SILENCE: Final = 1.5
"""Seconds of unbroken connection without an answer, after which there is no store."""

INFO: Final = "@store/info/**"

REMEMBERED: Final = 60.0
"""Seconds until the storages are asked for again."""

_known: Final[dict[str, tuple[float | None, list[Place]]]] = {}


class Place(NamedTuple):
    """A storage of a broker."""

    name: str
    key_expr: str


def qos_of(options: WriteOptions) -> Qos:
    """How samples are sent: unless told otherwise, a sink waits rather than drops."""
    return Qos(
        Priority.DATA if options.priority is None else options.priority,
        CongestionControl.BLOCK if options.congestion_control is None else options.congestion_control,
        bool(options.express),
    )


def places_of(session: Session, options: WriteOptions) -> list[Place]:
    """The storages there are, in the order in which the broker asks them; none at a router without a store.

    Raises:
        ConfigError: there are none although exactly once is asked for.
        NotStored: there were some before.
        BrokerAway: a broker was away all the time; what it keeps would be put as if nobody kept it.
    """
    if options.idempotent is False:
        return []
    at, known = _known.get(str(session.zid()), (None, []))
    if at is not None and time.monotonic() - at < REMEMBERED and (known or not options.idempotent):
        return known
    found = Brokers(options, session).ask(lambda: _asked(session, options))
    if not found and known:
        raise NotStored(", ".join(place.key_expr for place in known))
    if not found and options.idempotent:
        hint = "start one with --store and --persist, or leave the option out: each sample is then put at least once"
        raise ConfigError("option idempotent", f"nobody at {', '.join(options.connect)} keeps samples", hint)
    _known[str(session.zid())] = time.monotonic(), found
    return found


def _asked(session: Session, options: WriteOptions) -> list[Place]:
    """What there is, or nothing if nobody has said anything for a while."""
    until = time.monotonic() + SILENCE
    while not (found := _places(session, options)) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def _places(session: Session, options: WriteOptions) -> list[Place]:
    found = []
    for reply in session.get(INFO, timeout=options.request_timeout_ms / 1000):
        if reply.ok is None:
            raise refused(INFO, reply, options)
        form = json.loads(reply.ok.payload.to_bytes())
        found.append(Place(form["name"], form["key_expr"]))
    return found


def chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer, larger batches: Spark hands out some thousands at a time."""
    import pyarrow as pa

    waiting: list[Any] = []
    rows = octets = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        rows += batch.num_rows
        octets += batch.nbytes
        if rows >= CHUNK_ROWS or octets >= CHUNK_BYTES:
            yield pa.concat_batches(waiting)
            waiting, rows, octets = [], 0, 0
    if waiting:
        yield pa.concat_batches(waiting)


class SinkTask:
    """Where the samples of one task go."""

    def __init__(self, session: Session, options: WriteOptions, writer: uuid.UUID, number: int) -> None:
        self._session = session
        self._options = options
        self._places = places_of(session, options)
        self._qos = qos_of(options)
        self._batch = StagedBatch(session, writer, number, qos=self._qos.raw, timeout=options.request_timeout_ms / 1000)
        self.pieces: dict[str, list[str]] = {}
        """What was staged, by the key expression of the storage."""
        self.plain = 0
        """Samples that were put without a store."""

    def take(self, samples: pa.RecordBatch) -> None:
        """Stage some samples, and put those that no storage keeps."""
        import pyarrow.compute as pc

        from elea.store.logreads import Keys

        for place in self._places:
            if not samples.num_rows:
                return
            mask = Keys(place.key_expr).mask(samples.column("key"))
            mine = samples if mask is None else samples.filter(mask)
            if mine.num_rows:
                self.pieces.setdefault(place.key_expr, []).extend(self._batch.stage(place.key_expr, mine))
            samples = samples.slice(0, 0) if mask is None else samples.filter(pc.invert(mask))
        if not samples.num_rows:
            return
        if self._options.idempotent:
            raise NotStored(samples.column("key")[0].as_py())
        self._put(samples)

    def _put(self, samples: pa.RecordBatch) -> None:
        from elea.api.apitimestamp import Timestamp
        from elea.model.encoding import Encoding
        from elea.model.node_id import NodeId
        from elea.model.timestamp import Timestamp as Stamp

        columns = {name: samples.column(name).to_pylist() for name in samples.schema.names}
        none = [None] * samples.num_rows
        times = columns.get("ntp64", none)
        ids = columns.get("stamp_id", none)
        rows = zip(
            columns["key"], columns["payload"], columns["kind"], columns["encoding"], columns.get("schema", none),
            columns.get("attachment", none), times, ids, strict=True,
        )  # fmt: skip
        common: dict[str, Any] = {
            "congestion_control": self._qos.congestion_control,
            "priority": self._qos.priority,
            "express": self._qos.express,
        }
        for key, payload, kind, encoding, schema, attachment, time_, id_ in rows:
            stamp = None if time_ is None else Timestamp.of(Stamp(time_, NodeId(id_)))
            more = {**common, "attachment": attachment, "timestamp": stamp}
            if kind:
                self._session.delete(key, **more)
            else:
                self._session.put(key, payload, encoding=Encoding.of(encoding, schema), **more)
        self.plain += samples.num_rows

    def settle(self) -> None:
        """Return when what was put without a store has reached the router."""
        if not self.plain:
            return
        # The end of a query comes back behind everything that was sent before it on the same lane.
        for _ in self._session.get(
            "elea/spark/settled", priority=self._qos.priority, timeout=self._options.request_timeout_ms / 1000
        ):
            pass
