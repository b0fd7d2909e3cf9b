"""The log of another broker, reached over a session of a node of its own (`Far`).

A broker's own node is a router, and its sessions with other routers pass on what is live. Whoever only asks is a
client: so there is a second node, in that role, for each broker that is asked.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from elea.io.dispatch import Mailbox
from elea.model.encoding import Encoding
from elea.model.errors import AlignmentFailed, ArrowRefused, EleaError, OperationTimeout
from elea.model.jsontext import read_json
from elea.model.limits import STORE_ALIGN_BUCKETS
from elea.model.qos import CongestionControl, ConsolidationMode, Priority, Qos, QueryTarget
from elea.node.localface import EXPIRED
from elea.node.runtime import Runtime
from elea.node.storage.aligner_answers import packed
from elea.space.face import Request, Response
from elea.space.questions import ErrorBody, QueryBody
from elea.store.alignment import Head, Listing
from elea.store.columns import number_rows
from elea.store.entrance import ANSWER, Form, read_stream
from elea.store.fingerprints import IDENTITIES, Bucket, fingerprints
from elea.store.scope import Scope
from elea.wire.details import is_deletion, unpack

__all__ = ["Calls", "buckets_of", "error_in"]

TIMEOUT: Final = 60.0
"""Seconds for an answer. The first one may take long: the other broker reads its whole log for it."""

LOOK_SECONDS: Final = 0.25
"""How often who waits looks whether it is still wanted."""

ANSWER_BYTES: Final = 64 << 20
"""Bytes of one answer, besides those of samples that were asked for."""

QOS: Final = Qos(priority=Priority.DATA_LOW, congestion_control=CongestionControl.BLOCK).raw
"""Below what is live."""

JSON_ID: Final = Encoding.APPLICATION_JSON.id
_SENT: Final = [field.name for field in IDENTITIES if field.name != "fingerprint"]
_IDENTITIES: Final = pa.schema([IDENTITIES.field(name) for name in _SENT])
_LISTED: Final = {field.name: field.type for field in IDENTITIES}

LISTED: Final = Form("the list of another broker", _LISTED, frozenset(_SENT), frozenset(_LISTED))
ROWS: Final = replace(ANSWER, what="what another broker sends", is_kept=True)


class Calls:
    """What the aligner of one storage asks one broker."""

    def __init__(self, runtime: Runtime, key_expr: str, log: str | None, is_closing: Callable[[], bool]) -> None:
        self._node = runtime.node
        self._links = runtime.links
        self._key = f"@store/align/{key_expr}"
        self._log = "" if log is None else f";log={log}"
        self._is_closing = is_closing
        self.far = ""
        """The broker that answers."""

    def head(self, scope: Scope) -> Head:
        _, form = self._ask(f"what=head;{_times(scope)}")
        try:
            self.far = str(form["node"])
            return Head(self.far, str(form["epoch"]), int(form["floor"], 16), buckets_of(form["buckets"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise self._nonsense(error) from error

    def buckets(self, level: int, scope: Scope, within: Sequence[int]) -> dict[int, Bucket]:
        assert len(within) <= STORE_ALIGN_BUCKETS
        of = ".".join(map(str, within))
        _, form = self._ask(f"what=digest;level={level};of={of};{_times(scope)}")
        try:
            return buckets_of(form["buckets"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise self._nonsense(error) from error

    def listing(self, level: int, bucket: int, part: int, parts: int, scope: Scope) -> Listing:
        asked = f"what=list;level={level};bucket={bucket};part={part};parts={parts};{_times(scope)}"
        data, form = self._ask(asked)
        try:
            # The fingerprints are made here: what they are worth does not depend on the other broker.
            batches = [batch.select(_SENT) for batch in read_stream(data, LISTED)]
            table = pa.Table.from_batches(batches, _IDENTITIES)
            return Listing(str(form["epoch"]), table.append_column("fingerprint", fingerprints(table)))
        except (ArrowRefused, KeyError, TypeError) as error:
            raise self._nonsense(error) from error

    def rows(self, epoch: str, positions: Sequence[int], octets: int) -> Iterator[pa.RecordBatch]:
        data, _ = self._ask(f"what=rows;epoch={epoch}", packed(positions), ANSWER_BYTES + 2 * octets)
        try:
            batches = read_stream(data, ROWS)
        except ArrowRefused as error:
            raise self._nonsense(error) from error
        for batch in batches:
            if batch.num_rows:
                yield number_rows(batch, 0)

    # -- one request -------------------------------------------------------------------------------------------------

    def _ask(self, parameters: str, payload: bytes | None = None, most: int = ANSWER_BYTES) -> tuple[bytes, Any]:
        """The pieces of an answer, joined, and the object at its end.

        Raises:
            AlignmentFailed: there was none, or no sense in it.
            OperationTimeout: it took too long.
        """
        answers: queue.SimpleQueue[object] = queue.SimpleQueue()
        body = QueryBody(parameters + self._log, ConsolidationMode.NONE, payload)
        request = Request(0, self._key, QueryTarget.BEST_MATCHING, body, int(TIMEOUT * 1000), QOS)
        links = frozenset(self._links.connections)
        number = self._node.local.ask(request, Mailbox(answers.put), TIMEOUT, here=False)
        pieces: list[bytes] = []
        last: bytes | None = None
        octets = 0
        try:
            while isinstance(message := self._next(answers), Response):
                payload, is_last = self._payload(message)
                octets += len(payload)
                if is_last:
                    last = payload
                else:
                    pieces.append(payload)
                if octets > most:
                    raise AlignmentFailed(f"the answer has more than {most} octets; it is given up")
        finally:
            if self._node.local.forget(number):
                with self._node.lock:
                    self._node.space.cancel(self._node.local, number)
        if message is EXPIRED:
            raise OperationTimeout(f"no answer within {TIMEOUT:g} s; its log may be large, the next round tries again")
        if last is None and frozenset(self._links.connections) != links:
            raise AlignmentFailed("the link was lost before there was an answer; it is tried again")
        if last is None:
            raise AlignmentFailed(f"nobody answers for {self._key}; is there a storage of this key expression?")
        try:
            return b"".join(pieces), read_json(last)
        except ValueError as error:
            raise self._nonsense(error) from error

    def _next(self, answers: queue.SimpleQueue[object]) -> object:
        while True:
            try:
                return answers.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                if self._is_closing():
                    raise AlignmentFailed("this broker is being closed") from None

    def _payload(self, response: Response) -> tuple[bytes, bool]:
        """The bytes of one answer, and whether they are the object at the end."""
        body = response.body
        if isinstance(body, ErrorBody):
            raise error_in(body.payload)
        if isinstance(body, bytes):
            return body, False
        if is_deletion(body.meta):
            raise AlignmentFailed("an answer that is no data; is it an Elea broker?")
        return body.payload, unpack(body.meta).encoding.id == JSON_ID

    def _nonsense(self, error: Exception) -> AlignmentFailed:
        return AlignmentFailed(f"an answer makes no sense: {error!r}; are both brokers of the same version?")


def _times(scope: Scope) -> str:
    return f"floor={scope.floor:x};forget={scope.forget:x}"


def buckets_of(forms: Any) -> dict[int, Bucket]:
    return {int(bucket): Bucket(int(made), int(samples)) for bucket, made, samples in forms}


def error_in(payload: bytes) -> EleaError:
    try:
        form = read_json(payload)
        return AlignmentFailed(f"{form['error']}: {form['text']}")
    except (ValueError, TypeError, KeyError):
        return AlignmentFailed(payload[:500].decode("utf-8", "replace"))
