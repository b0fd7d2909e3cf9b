"""Batches that a store takes as a whole and once: staged in pieces by anybody, committed by one.

For writers that may die at any time and do the same work again: a Spark query, a job that is tried until it works. The
writer has a name that outlives it and numbers its batches upwards. See `docs/store.md`, `@store/stage`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from elea.api.batches import pieces_of
from elea.api.storecall import QOS, Call, query
from elea.model.encoding import Encoding
from elea.model.errors import StoreError
from elea.model.qos import BLOCK

if TYPE_CHECKING:
    import pyarrow as pa

    from elea.api.session import Session
    from elea.api.zbytes import IntoZBytes
    from elea.model.keyexpr import KeyExpr

__all__ = ["StagedBatch"]

TIMEOUT: Final = 60.0
"""Seconds for a request: a large batch is committed in one, and a broker that was killed may come again meanwhile."""

STREAM: Final = Encoding("application/vnd.apache.arrow.stream")


class StagedBatch:
    """One batch of a writer.

    ::

        writer = uuid.uuid5(uuid.NAMESPACE_URL, "nightly-report")    # the same in every attempt
        batch = StagedBatch(session, writer, number=17)
        pieces = batch.stage("report/**", rows)
        batch.commit("report/**", pieces)                            # stored and published, or was already

    Args:
        writer: who writes; whoever writes under the same name must number its batches on.
        number: of the batch, from 0; a number below one that is committed is refused.
        entity: tells several writers of one name apart.
        qos: how its samples are published, as on the wire.
        timeout: seconds for each request.
    """

    def __init__(
        self,
        session: Session,
        writer: uuid.UUID,
        number: int,
        *,
        entity: int = 0,
        qos: int = QOS,
        timeout: float | None = None,
    ) -> None:
        self._session = session
        self._source = f"{writer.int:x}.{entity}.{number}"
        self._qos = qos | BLOCK  # requests wait; nobody drops them
        self._timeout = TIMEOUT if timeout is None else timeout

    def stage(
        self, key_expr: KeyExpr | str, batch: pa.RecordBatch | pa.Table | Iterable[tuple[str, IntoZBytes]]
    ) -> list[str]:
        """Bring samples of one storage to the store, where they wait; the names under which they do.

        Nothing is brought, and there are no names, if the batch is committed already.

        Raises:
            StoreFenced: a later batch of the writer is committed.
            NotStored, StoreError, OperationTimeout: they are not staged.
        """
        names: list[str] = []
        for piece in pieces_of(batch, key_expr):
            name = uuid.uuid4().hex
            body = query(f"src={self._source};piece={name}", piece.data, STREAM)
            if self._ask("stage", piece.key, body)["committed"]:
                return []
            names.append(name)
        return names

    def commit(self, key_expr: KeyExpr | str, pieces: Sequence[str]) -> dict[str, Any]:
        """Store and publish these pieces, in this order, and no others; or find out that the batch is there.

        Returns:
            `log`, `epoch`, `first` and `rows` of the batch, whether that is `repeated` news, and how many samples
            were `restamped` because their time was too far ahead.

        Raises:
            StoreFenced: a later batch of the writer is committed.
            NotStored, StoreError, OperationTimeout: unless it is the last, nothing is stored.
        """
        body = query(f"src={self._source}", json.dumps(list(pieces)).encode(), Encoding.APPLICATION_JSON)
        return self._ask("commit", str(key_expr), body)

    def is_committed(self, key_expr: KeyExpr | str) -> bool:
        """Whether the store has it."""
        return bool(self._ask("commit", str(key_expr), query(f"src={self._source};ask"))["committed"])

    def drop(self, key_expr: KeyExpr | str) -> None:
        """Forget what is staged of it. Without this it is forgotten when the writer goes on, or after a day."""
        self._ask("commit", str(key_expr), query(f"src={self._source};drop"))

    def _ask(self, service: str, key: str, body: Any) -> dict[str, Any]:
        answer = Call(self._session, service, key, body, timeout=self._timeout, qos=self._qos).wait()
        if "committed" not in answer:
            raise StoreError(f"the answer of a store has no 'committed': {answer}")
        return answer
