"""Range reads: the samples of a log as Arrow record batches, fetched a few megabytes at a time.

A range comes in answers of about `CHUNK_BYTES`; the next one is asked for when one has come, so that at most two are in
memory, however slow the reader is. The bytes are copied once, from messages into one buffer; the batches lie in it.
A store on this machine sends no blocks that lie in files which we may read, it tells where (`elea.store.inplace`); they
are read one at a time, when they are wanted.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from elea.api.batches import arrow
from elea.api.outgoingquery import seconds
from elea.api.storecall import TIMEOUT, Call, query
from elea.model.encoding import Encoding
from elea.model.errors import StoreError, StoreReplaced
from elea.model.keyexpr import KeyExpr
from elea.model.qos import QueryTarget, SampleKind
from elea.model.timerange import TimeRange

if TYPE_CHECKING:
    import pyarrow as pa

    from elea.api.session import Session
    from elea.columnar.batchfilter import BatchFilter
    from elea.model.predicate import Predicate
    from elea.store.inplace import Place

__all__ = ["Reading"]

CHUNK_BYTES: Final = 8 << 20


class Reading:
    """The samples of a range, as an iterator of record batches; see `Session.read`.

    Batches have the columns `position, key, payload, ntp64, stamp_id, arrival, kind, encoding, schema, attachment,
    source_id, source_eid, source_sn, once, qos`. After the end `next` is the position to go on from.
    """

    def __init__(
        self,
        session: Session,
        key_expr: str,
        *,
        start: int | None,
        end: int | None,
        time: TimeRange | str | None,
        limit: int | None,
        newest_first: bool,
        by_time: bool,
        skip_damaged: bool,
        timeout: float | None,
        log: str | None = None,
        keys: Sequence[str] | None = None,
        kind: SampleKind | None = None,
        where: Predicate | str | None = None,
    ) -> None:
        arrow()
        from elea.store.inplace import Places, machine

        for name, value in (("start", start), ("end", end), ("limit", limit)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ValueError(f"{name} is a whole number from 0, not {value!r}")
        self._session = session
        self._key_expr = key_expr
        self._from = start
        self._to = end
        self._limit = limit
        self._newest_first = newest_first
        self._by_time = by_time
        self._timeout = TIMEOUT if timeout is None else seconds(timeout)
        self._fixed = ["by=time"] if by_time else [f"bytes={CHUNK_BYTES}"]
        if newest_first:
            self._fixed.append("order=newest")
        if skip_damaged:
            self._fixed.append("skip_damaged")
        if time is not None:
            asked = TimeRange.parse(time) if isinstance(time, str) else time
            self._fixed.append(f"time={asked.resolve(session._node.loop.wall_ns())}")
        if kind is not None:
            self._fixed.append("kind=del" if kind is SampleKind.DELETE else "kind=put")
        if log is not None:
            self._fixed.append(f"log={log}")
        self._target = QueryTarget.BEST_MATCHING if log is None else QueryTarget.ALL
        more: dict[str, object] = {}
        if keys is not None:
            more["keys"] = [str(KeyExpr(one)) for one in keys]
        self._filter: BatchFilter | None = None
        if where is not None:
            from elea.columnar.batchfilter import BatchFilter
            from elea.model.predicate import Predicate

            predicate = Predicate.of(where)
            # Again, because blocks are read as they lie on disk.
            self._filter = BatchFilter(predicate, contents=session._node.schemas.contents)
            more["where"] = str(predicate)
        self._payload = json.dumps(more).encode() if more else None
        self._here: deque[pa.RecordBatch | Place] = deque()
        self._machine = machine()
        self._places = Places()
        self.log: str | None = None
        """The log that is read, known from the first batch on."""
        self.epoch: str | None = None
        """The identity of its positions."""
        self.first: int | None = None
        """The position of its oldest sample."""
        self.end: int | None = None
        """The position behind its newest sample."""
        self.next: int | None = start
        """Where to go on: up to here everything has been read; downwards if the newest come first."""
        self.schema: pa.Schema | None = None
        """The columns of the batches."""
        self._call: Call | None = self._ask()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        while (batch := self.ready()) is None:
            if not self.fetch():
                raise StopIteration
        return batch

    def read_all(self) -> pa.Table:
        """Everything that is left, as one table."""
        batches = list(self)
        return arrow().Table.from_batches(batches, self.schema)

    def close(self) -> None:
        """Read no more."""
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __del__(self) -> None:
        call = getattr(self, "_call", None)
        if call is not None:
            # The garbage collector may come while this thread holds any lock: the answer finds nobody, that is all.
            self._session._storing.calls.discard(call)

    def fetch(self) -> bool:
        """Read the next block or wait for the next answer, when nothing is `ready`; False if there is none."""
        if self._here:
            place = self._here.popleft()
            batch = self._places.load(place)
            if batch is not None:
                self._here.appendleft(batch)
                return True
            self._ask_for_octets(place.first)
        call = self._call
        if call is None:
            return False
        self._call = None
        call.renew()
        answer = call.finish()
        batches = self._decoded(call)
        here = self._places.among(batches, answer.get("places") or ())
        if here is None:
            self._ask_for_octets(self._from)
            return self.fetch()
        self._note(answer, sum(batch.num_rows for batch in batches))
        self._here.extend(one for one in here if isinstance(one, tuple) or one.num_rows)
        return True

    def ready(self) -> pa.RecordBatch | None:
        """The next batch, if it is in memory."""
        while self._here and not isinstance(self._here[0], tuple):
            batch: Any = self._here.popleft()
            if self._filter is not None:
                batch = self._filter.filter(batch)
            if batch.num_rows:
                return batch
        return None

    def _ask_for_octets(self, start: int | None) -> None:
        """Go on from a block that cannot be read here: the store sends it, or knows what is wrong with it."""
        self.close()
        self._here.clear()
        self._machine = None
        self._from = start
        self._call = self._ask()

    # -- answers

    def _ask(self) -> Call:
        parameters = list(self._fixed)
        if self._machine is not None:
            parameters.append(f"machine={self._machine}")
        for name, value in (("from", self._from), ("to", self._to), ("limit", self._limit)):
            if value is not None:
                parameters.append(f"{name}={value}")
        body = query(";".join(parameters), self._payload, Encoding.APPLICATION_JSON)
        call = Call(self._session, "read", self._key_expr, body, timeout=self._timeout, target=self._target)
        call.known = self.log is not None
        call.begin()
        return call

    def _decoded(self, call: Call) -> list[pa.RecordBatch]:
        """The batches of an answer, out of its pieces."""
        if call.finals > 1:
            raise StoreError(f"several logs keep keys of {self._key_expr}; read each by its own key expression")
        from elea.store.columns import SCHEMA
        from elea.store.entrance import ANSWER, read_stream

        pieces, call.pieces = call.pieces, []
        if not pieces:
            return []
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        batches = read_stream(data, ANSWER)
        self.schema = SCHEMA
        return batches

    def _note(self, answer: dict[str, Any], rows: int) -> None:
        """Find out where the answer leaves us, and ask for what follows."""
        try:
            log, epoch, first, following, end = (answer[name] for name in ("log", "epoch", "first", "next", "end"))
        except KeyError as missing:
            raise StoreError(f"the answer of a store has no {missing}: {answer}") from None
        if self.log is None:
            self.log, self.epoch, self.end = log, epoch, end
        elif (log, epoch) != (self.log, self.epoch):
            raise StoreReplaced(log, epoch, self.epoch or "")
        self.first, self.next = first, following
        if self._limit is not None:
            self._limit -= rows
        if not answer.get("more") or self._limit == 0:
            return
        if self._newest_first:
            stuck = self._to is not None and following >= self._to
            self._to = following
        else:
            # What has come since the first answer belongs to the next reading.
            self._to = self.end if self._to is None else min(self._to, self.end or 0)
            stuck = self._from is not None and following <= self._from
            self._from = following
        if stuck:
            raise StoreError(f"a store goes on from position {following} again and again")
        self._call = self._ask()
