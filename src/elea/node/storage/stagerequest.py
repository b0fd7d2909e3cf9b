"""`@store/stage` and `@store/commit`: batches that are stored as a whole and once, whatever dies on the way.

Pieces are staged beside the log and change nothing. A commit names those that are the batch; that decision is written
down first and then carried out: the samples get the numbers `batch << 32 | row` of the writer, by which a broker that
died in between and comes again knows which of them are in the log already. Subscribers get them when they are stored.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from elea.model.errors import InvalidSelector, StoreError, StoreFull
from elea.model.jsontext import read_json
from elea.model.limits import STORE_STAGED_OF_USER, STORE_WRITERS_OF_USER
from elea.model.node_id import NodeId
from elea.node.storage.batchrequest import (
    STAMP,
    check_access,
    check_keys,
    columns_of,
    decoded,
    is_stamped,
    publish_batch,
)
from elea.node.storage.owners import Owners, user_of
from elea.node.storage.requests import source_of, subject_of
from elea.store.columns import check_batch
from elea.store.logreads import Keys
from elea.store.staging import Mark, Staging
from elea.store.stamps import check_stamps

if TYPE_CHECKING:
    from elea.node.node import Node
    from elea.node.storage.republisher import Republisher
    from elea.node.storage.storage import Storage
    from elea.node.storage.storequery import StoreQuery

__all__ = ["DIRECTORY", "StageRequests"]

DIRECTORY: Final = "staged"
"""Below the directory of the log."""

NUMBERS: Final = 1 << 31
"""Batches of one writer, and twice as many samples of a batch: both have to fit into the number of a sample."""

_log: Final = logging.getLogger("elea.node")


class StageRequests:
    """The staged batches of one storage."""

    def __init__(self, node: Node, storage: Storage, publishing: Republisher) -> None:
        self._node = node
        self._storage = storage
        self._publishing = publishing
        self._turn = threading.Lock()
        self._owners = Owners(storage.log, "writer", "STORE_WRITERS_OF_USER", STORE_WRITERS_OF_USER)
        directory = storage.settings.directory
        self.staging = Staging(None if directory is None else Path(directory) / DIRECTORY)
        for writer, number, form in self.staging.decided:
            try:
                mark, _ = self._finish(writer, number, form)
            except StoreError as error:  # tried again with the next request of the writer
                _log.error("batch not finished: writer=%s number=%d problem=%s", writer, number, error)
            else:
                _log.info("batch finished: writer=%s number=%d samples=%d", writer, number, mark.rows)

    def answer_stage(self, asking: StoreQuery) -> None:
        """Keep a piece.

        Raises:
            InvalidSelector, StoreError: it is not kept.
        """
        writer, number = _writer(asking)
        user = user_of(asking)
        self._owners.claim(writer, user)
        data = asking.body.payload or b""
        if user is not None:
            self._check_quota(user, len(data))
        done = self._settled(writer, number)
        if done is None:
            batch = decoded(data, self._storage)
            check_keys(batch.column("key"), subject_of(asking.key), Keys(self._storage.key_expr))
            check_access(asking, batch)
            # What is decided on must be possible, so everything a log may refuse is looked at now.
            if is_stamped(batch):
                check_stamps(batch)  # how far ahead they are is looked at when it is committed
                batch = batch.select([name for name in batch.schema.names if name not in STAMP])
            check_batch(columns_of(self._node, batch, (b"\1", 0, 0), asking.qos, self._storage.stamping)[0])
            piece = asking.parameters.get("piece") or ""
            self.staging.stage(writer, number, piece, data, self._node.loop.wall_ns() / 1e9)
        asking.reply_json({"log": self._storage.name, "epoch": self._storage.log.epoch, "committed": done is not None})

    def answer_commit(self, asking: StoreQuery) -> None:
        """Make pieces a batch of the log; or drop them; or tell only whether the batch is there.

        Raises:
            StoreFenced: the writer has committed a later batch.
            InvalidSelector, StoreError: it is not committed.
        """
        writer, number = _writer(asking)
        self._owners.check(writer, user_of(asking))
        done = self._settled(writer, number)
        repeated, restamped = done is not None, 0
        if "drop" in asking.parameters:
            with self._turn:
                self.staging.drop(writer, number)
        elif "ask" not in asking.parameters and done is None:
            form = {"pieces": _pieces(asking), "qos": asking.qos}
            done, repeated, restamped = self._commit(writer, number, form)
        facts: dict[str, Any] = {"log": self._storage.name, "epoch": self._storage.log.epoch, "restamped": restamped}
        if done is not None:
            facts |= {"first": done.first, "rows": done.rows}
        asking.reply_json({**facts, "committed": done is not None, "repeated": repeated})

    def _check_quota(self, user: str, octets: int) -> None:
        staged = self.staging.staged(self._owners.of(user))
        if staged + octets > STORE_STAGED_OF_USER:
            raise StoreFull(
                f"{staged} bytes of yours are staged and not committed, the limit is {STORE_STAGED_OF_USER}; "
                "commit smaller batches, or drop those that never will be"
            )

    def _settled(self, writer: str, number: int) -> Mark | None:
        """What became of a batch, after finishing the one that was decided on before."""
        if self.staging.is_decided(writer):
            with self._turn:
                for known, older, form in self.staging.decided:
                    if known == writer:
                        self._finish(known, older, form)
        return self.staging.committed(writer, number)

    def _commit(self, writer: str, number: int, form: dict[str, Any]) -> tuple[Mark, bool, int]:
        with self._turn:
            done = self.staging.committed(writer, number)
            if done is not None:  # by another request, in the meantime
                return done, True, 0
            self.staging.decide(writer, number, form)
            mark, restamped = self._finish(writer, number, form)
            return mark, False, restamped

    def _finish(self, writer: str, number: int, form: dict[str, Any]) -> tuple[Mark, int]:
        """Store what was decided on, as far as it is not stored yet; and how many timestamps were replaced."""
        storage = self._storage
        id, entity, _ = source_of(f"{writer}.0")
        first: int | None = None
        rows = restamped = 0
        storage.wait_settled()  # single puts that came before have the lower positions
        for piece in form["pieces"]:
            given = decoded(self.staging.load(writer, number, piece), storage)
            batch, others = columns_of(
                self._node, given, (id, entity, (number << 32) + rows), form["qos"], storage.stamping
            )
            restamped += others
            receipt = storage.append_arrow(batch)
            publish_batch(batch, receipt.repeated, storage, self._publishing)
            if first is None and batch.num_rows:
                first = receipt.repeated.get(0) if 0 in receipt.repeated else receipt.first
            rows += batch.num_rows
        return self.staging.finish(writer, number, first, rows), restamped


def _writer(asking: StoreQuery) -> tuple[str, int]:
    """The parameter `src`: who writes, and which batch this is."""
    text = asking.parameters.get("src") or ""
    id, entity, number = source_of(text)
    if not 0 <= number < NUMBERS:
        raise InvalidSelector(f"src={text}", f"batches have numbers from 0 to {NUMBERS - 1}")
    return f"{NodeId(id)}.{entity}", number  # written anew: it becomes the name of a file


def _pieces(asking: StoreQuery) -> list[str]:
    payload = asking.body.payload
    try:
        pieces = read_json(b"[]" if payload is None else payload)
    except ValueError as error:
        raise StoreError(f"a commit has a JSON list of pieces: {error}") from error
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        raise StoreError(f"a commit has a JSON list of names of pieces, not {str(pieces)[:80]}")
    if len(set(pieces)) != len(pieces):
        raise StoreError("a commit names a piece twice; each is stored once")
    return pieces
