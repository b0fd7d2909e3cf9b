"""The client side of stores: acknowledged puts and deletions, batches, range reads, cursors.

What it asks of a broker is said in `docs/store.md`. Nothing here needs pyarrow but batches and range reads, which
import it when they are used.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from elea.api.outgoingquery import seconds
from elea.api.putcollector import PutCollector
from elea.api.putgroups import Kept, Lane
from elea.api.putroute import into_encoding
from elea.api.receipt import Receipt
from elea.api.samplenumbers import Numbers
from elea.api.storecall import TIMEOUT, Call, query
from elea.api.zbytes import IntoZBytes, into_bytes
from elea.model.encoding import Encoding
from elea.model.errors import EleaError, InvalidKeyExpr, StoreError
from elea.model.keyexpr import KeyExpr
from elea.model.node_id import NodeId
from elea.model.qos import BLOCK, Locality
from elea.model.timestamp import Timestamp as ModelTimestamp
from elea.wire.puts import Given

if TYPE_CHECKING:
    import pyarrow as pa

    from elea.api.apitimestamp import Timestamp
    from elea.api.batches import Piece
    from elea.api.identity import SourceInfo
    from elea.api.session import Session

__all__ = ["Durability", "StoreClient"]

Durability: TypeAlias = Literal["persistent", "transient", "volatile"]
"""How long a sample outlives its writer: as the disk does, as the broker does, not at all."""

SESSION_ENTITY: Final = 1
MAX_KNOWN: Final = 4096
_GIVEN: Final = ("timeout", "payload", "encoding", "attachment", "timestamp", "source_info")

_log = logging.getLogger("elea.api")


class StoreClient:
    """What a session has to do with stores."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.node = str(session.zid())
        self._id = session._node.node_id
        # Numbers must never come a second time from the same entity. A node with an id of its own choice may have had
        # it before, so its entities for this purpose are drawn by lot.
        self._lot = random.SystemRandom() if session._settings.id is not None else None
        self._known: set[str] = set()
        self.kept = Kept()
        self._collector = PutCollector(session, self)
        self.numbers = self.source(SESSION_ENTITY)
        self.calls: set[Call] = set()
        self.closing = threading.Event()
        self.failed = 0
        """Samples with a durability, put without `ack`, that no store took."""

    def source(self, entity: int) -> Numbers:
        """The numbers of an entity of this session."""
        return Numbers(self._entity() if self._lot is not None else entity, self._entity)

    def _entity(self) -> int:
        if self._lot is not None:
            return self._lot.randrange(1 << 31, 1 << 32)
        return next(self._session._eids)

    def close(self) -> None:
        """The session is closed: nobody waits any longer."""
        self.closing.set()
        for call in list(self.calls):
            call.close()

    @staticmethod
    def wants(durability: str | None, *, ack: bool) -> bool:
        """Whether a store takes part.

        Raises:
            ValueError: there is no such durability, or nobody could acknowledge it.
        """
        if durability is not None and durability not in ("persistent", "transient", "volatile"):
            raise ValueError(f"durability {durability!r} is none of persistent, transient, volatile")
        if durability == "volatile" and ack:
            raise ValueError("nobody stores what is volatile, so nobody can acknowledge it; put it without ack")
        return ack or durability in ("persistent", "transient")

    # -- samples

    def put(self, *, ack: bool, numbers: Numbers | None = None, **options: Any) -> Receipt | None:
        """Put or delete a sample; with `ack` wait for the store. Options as in `prepare`."""
        numbers = self.numbers if numbers is None else numbers
        serial, entity, number = numbers.wait()
        released = False
        try:
            if not ack:
                call = self.prepare(entity, number, **options)
                released = True  # by who is told of the outcome
                self.send_only(call, numbers, serial)
                return None
            found = self.in_group(entity, number, options)
            outcome = None if found is None else self._collector.put(*found)
            if isinstance(outcome, Receipt):
                return outcome
            if isinstance(outcome, EleaError):
                raise outcome
            call = self.prepare(entity, number, **options)
            if outcome is not None and outcome.deadline is not None:
                call.resume(outcome.deadline)
            return self.receipt(call, call.wait(), options["durability"])
        finally:
            if not released:
                numbers.release(serial)

    def prepare(
        self,
        entity: int,
        number: int,
        *,
        key: str,
        payload: IntoZBytes | None,
        durability: str | None,
        encoding: Encoding | str | None,
        attachment: IntoZBytes | None,
        timestamp: Timestamp | None,
        source_info: SourceInfo | None,
        qos: int,
        destination: Locality | None,
        timeout: float | None,
    ) -> Call:
        """The request for one sample; without a payload it is a deletion."""
        if "*" in key:
            raise InvalidKeyExpr(key, "it has wildcards", "a store acknowledges samples of single keys")
        source = f"{self.node}.{entity}.{number}"
        if source_info is not None:
            who = source_info.source_id
            source = f"{who.zid}.{who.eid}.{source_info.source_sn}"
        parameters = f"kind=del;src={source}" if payload is None else f"src={source}"
        stamp = self._stamp() if timestamp is None else timestamp.value
        if stamp is not None:
            parameters += f";time={stamp.ntp64:x}.{stamp.id}"
        if durability is not None:
            parameters += f";durability={durability}"
        body = query(
            parameters,
            None if payload is None else into_bytes(payload),
            into_encoding(encoding),
            None if attachment is None else into_bytes(attachment),
        )
        call = Call(
            self._session,
            "put",
            key,
            body,
            timeout=TIMEOUT if timeout is None else seconds(timeout),
            qos=qos | BLOCK,
            destination=Locality.ANY if destination is None else destination,
        )
        call.known = key in self._known or self.kept.find(key, durability) is not None
        return call

    def in_group(self, entity: int, number: int, options: dict[str, Any]) -> tuple[Lane, Given] | None:
        """The same as a sample that may travel with others; None if it is not known with which, or it goes alone.

        Without an object or a copy of the options that is not needed: this is half of what a put costs.
        """
        key, durability, destination = options["key"], options["durability"], options["destination"]
        keys = self.kept.find(key, durability)
        if keys is None or "*" in key or not (destination is None or destination is Locality.ANY):
            return None
        timeout, payload, encoding, attachment, timestamp, info = [options[name] for name in _GIVEN]
        id = self._id
        if info is not None:
            id, entity, number = NodeId.parse(str(info.source_id.zid)).data, info.source_id.eid, info.source_sn
        stamp = self._stamp() if timestamp is None else timestamp.value
        wanted = None if payload is None or encoding is None else into_encoding(encoding)
        given = (
            key.encode(),
            None if payload is None else into_bytes(payload),
            0 if wanted is None else wanted.id,
            None if wanted is None else wanted.schema,
            None if attachment is None else into_bytes(attachment),
            0 if stamp is None else stamp.ntp64,
            None if stamp is None else stamp.id.data,
            id,
            entity,
            number,
        )
        return Lane(keys, durability, options["qos"] | BLOCK, TIMEOUT if timeout is None else seconds(timeout)), given

    def _stamp(self) -> ModelTimestamp | None:
        """The timestamp of this node, if it gives samples one at all."""
        node = self._session._node
        return None if node.stamper is None else node.clock.tick(node.loop.wall_ns())

    def receipt(self, call: Call, answer: dict[str, Any], durability: str | None) -> Receipt:
        """The receipt for one sample."""
        self.kept.learn(call.name, durability, answer.get("keys"))
        if not call.known:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known.add(call.name)
        try:
            fields = answer["log"], answer["epoch"], answer["position"], 1, int(answer["repeated"])
            return Receipt(*fields, answer.get("restamped", 0))
        except KeyError as missing:
            raise StoreError(f"the answer of a store has no {missing}: {answer}") from None

    def send_only(self, call: Call, numbers: Numbers, serial: int) -> None:
        """Send a sample whose writer does not wait. It is not tried again, but counted if no store takes it."""

        def done() -> None:
            numbers.release(serial)
            self.calls.discard(call)
            try:
                problem: object = call.judge()
            except EleaError as error:
                problem = error
            if problem is not None:
                self.failed += 1
                if self.failed & (self.failed - 1) == 0:
                    _log.warning("sample not stored: key=%s problem=%s failed=%d", call.name, problem, self.failed)

        self.calls.add(call)
        call.send(done)

    # -- batches

    def put_batch(
        self,
        batch: pa.RecordBatch | pa.Table | Iterable[tuple[str, IntoZBytes]],
        key_expr: KeyExpr | str | None,
        durability: str | None,
        timeout: float | None,
    ) -> Receipt:
        """Store many samples."""
        from elea.api.batches import pieces_of
        from elea.api.batchupload import BatchUpload

        sending = BatchUpload(self, durability, timeout)
        try:
            for piece in pieces_of(batch, key_expr):
                sending.add(piece, self.numbers.wait(piece.rows)).begin()
                while sending.is_full:
                    sending.settle(sending.oldest.finish())
            while sending:
                sending.settle(sending.oldest.finish())
        except EleaError as error:
            sending.total.note(error)
            raise
        finally:
            sending.end()
        return sending.total.receipt()

    def prepare_batch(
        self, piece: Piece, source: str, before: str | None, durability: str | None, timeout: float
    ) -> Call:
        """The request for a piece of a batch: `source` is that of its first sample, `before` of the one before it."""
        parameters = f"src={source}"
        if before is not None:
            parameters += f";after={before}"
        if durability is not None:
            parameters += f";durability={durability}"
        body = query(parameters, piece.data, Encoding("application/vnd.apache.arrow.stream"))
        return Call(self._session, "batch", piece.key, body, timeout=timeout)
