"""All storages of a broker: what they declare, which of them a request is for, their upkeep, their end."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from elea.content.registry import EVERYTHING
from elea.io.dispatch import Mailbox
from elea.model import keyexpr
from elea.model.errors import AccessDenied, Congested, EleaError, InvalidSelector, StoreClosing, StoreError
from elea.model.limits import CACHED_KEY_CHARS, STORE_CURSORS_OF_USER
from elea.model.node_id import NodeId
from elea.model.selector import Parameters
from elea.node.storage.acknowledger import Acknowledger
from elea.node.storage.aligner import Aligner
from elea.node.storage.aligner_answers import answer_align
from elea.node.storage.answerpool import READERS, WRITERS, AnswerPool
from elea.node.storage.batchrequest import answer_batch
from elea.node.storage.facts import facts_of
from elea.node.storage.getanswers import answer, is_quick
from elea.node.storage.owners import Owners
from elea.node.storage.putsrequest import PutsRequests
from elea.node.storage.republisher import Republisher
from elea.node.storage.requests import answer_cursor, answer_read, put_record, subject_of
from elea.node.storage.sequencer import Sequencer
from elea.node.storage.settings import DEFAULT_LOG
from elea.node.storage.stagerequest import StageRequests
from elea.node.storage.storage import BLOCKED_SECONDS, Storage
from elea.node.storage.storemetrics import meter
from elea.node.storage.storequery import Gone, StoreQuery
from elea.node.storage.upkeep import Upkeep
from elea.store import Receipt

if TYPE_CHECKING:
    from elea.io.memorybudget import Share
    from elea.node.links import LinkSettings
    from elea.node.localface import Asked
    from elea.node.node import Node
    from elea.node.schemas import StoredSchema
    from elea.node.storage.settings import StoreSettings

__all__ = ["Storages"]

_log: Final = logging.getLogger("elea.node")

KNOWN: Final = 10_000
"""Keys whose storage is remembered; then all are forgotten and found again."""

VERBS: Final = ("put", "puts", "batch", "stage", "commit", "read", "cursor")


class Storages:
    """The durability service of one node."""

    def __init__(self, node: Node, settings: StoreSettings, *, is_told: bool = False) -> None:
        """Open everything and begin to keep and to answer.

        Args:
            is_told: whether the admin space tells of storages, too.

        Raises:
            StoreInUse, StoreError: a directory cannot be used.
        """
        self._node = node
        self._id = str(NodeId(node.node_id))
        self._closed = False
        self.storages: list[Storage] = []
        self.default: Storage | None = None
        self._aligning: Aligner | None = None
        self._own: set[Mailbox] = set()
        self._acknowledging: dict[Storage, Acknowledger] = {}
        self._grouping: dict[Storage, PutsRequests] = {}
        self._turns: defaultdict[Storage, Sequencer] = defaultdict(Sequencer)
        self._committing: dict[Storage, StageRequests] = {}
        self._known: dict[tuple[str, bool], Storage | None] = {}
        self._owners: dict[Storage, Owners] = {}
        self._failed: Counter[type[EleaError]] = Counter()
        self._open(settings)
        self._readers = AnswerPool(READERS, "elea-answer")
        self._writers = AnswerPool(WRITERS, "elea-store")
        self._upkeep = Upkeep(self.all, node.loop.wall_ns)
        for storage in self.all:
            self._acknowledging[storage] = Acknowledger(node, storage, Republisher(node, self._own))
            self._grouping[storage] = PutsRequests(node, storage, self._chosen)
            self._owners[storage] = Owners(storage.log, "cursor", "STORE_CURSORS_OF_USER", STORE_CURSORS_OF_USER)
            self._committing[storage] = StageRequests(node, storage, Republisher(node, self._own))
            self._declare(storage)
        self._tell(is_told)
        node.durable = self
        node.meters.append(lambda text: meter(text, self.all, self.answering))
        self._upkeep.start()

    @property
    def answering(self) -> int:
        """Queries that are being answered by a thread of their own."""
        return self._readers.running + self._writers.running

    @property
    def all(self) -> list[Storage]:
        """Every storage, the default one last."""
        return self.storages if self.default is None else [*self.storages, self.default]

    def _open(self, settings: StoreSettings) -> None:
        try:
            for one in settings.storages:
                self.storages.append(Storage(self._node, one))
            if settings.default is not None:
                self.default = Storage(self._node, settings.default)
        except BaseException:
            for storage in self.storages:
                storage.close()
            raise
        for storage in self.all:
            log = storage.log
            where = storage.settings.directory or "memory"
            _log.info(
                "storage opened: storage=%s key=%s where=%s samples=%d state=%s damaged=%d",
                storage.name, storage.key_expr, where, log.end - log.first, log.state.value, len(log.damage),
            )  # fmt: skip

    def _declare(self, storage: Storage) -> None:
        local = self._node.local
        is_default = storage is self.default
        if not is_default:
            box = Mailbox(storage.arrived)
            self._own.add(box)
            local.subscribe(storage.key_expr, box, elsewhere=False)
            local.keep(storage.key_expr, storage)
        is_complete = storage.settings.complete and not is_default
        for expr in storage.key_exprs:
            local.answer(expr, Mailbox(partial(self._get, storage)), complete=is_complete)
            for verb in VERBS:
                local.answer(f"@store/{verb}/{expr}", Mailbox(partial(self._request, verb, storage)), complete=True)
        local.answer(f"@store/align/{storage.key_expr}", Mailbox(partial(self._align, storage)), complete=True)
        if storage.meets(EVERYTHING):
            self._node.schemas.stores.append(partial(_schemas_in, storage))

    def _tell(self, is_told: bool) -> None:
        """Facts about storages: for clients of the store, and where eclipse-zenoh's storage manager has them."""
        places = [f"@store/info/{self._id}"]
        if is_told:
            places.append(f"@/{self._id}/{self._node.role}/status/plugins/storage_manager/storages")
        for place in places:
            self._node.local.answer(f"{place}/**", Mailbox(partial(self._told, place)), complete=False)

    # -- which storage ------------------------------------------------------------------------------------------------

    def _chosen(self, subject: str, durability: str | None) -> Storage | None:
        """The storage that a request is for: the first that has all its keys and is as durable as wanted."""
        lasting = durability == "persistent"
        try:
            return self._known[subject, lasting]
        except KeyError:
            pass
        able = [one for one in self.all if one.settings.durability == "persistent" or not lasting]
        found = next((one for one in able if one.has(subject)), None)
        if len(subject) <= CACHED_KEY_CHARS:
            if len(self._known) >= KNOWN:
                self._known.clear()
            self._known[subject, lasting] = found
        return found

    def _refusal(self, subject: str, durability: str | None) -> StoreError:
        if any(storage.has(subject) for storage in self.all):
            return StoreError(f"{subject} is kept in memory only; declare it with --persist to have it {durability}")
        names = ", ".join(storage.key_expr for storage in self.all if storage.meets(subject))
        return StoreError(f"{subject} is more than one storage has; ask for one of {names}")

    def keeper_of(self, key: str, durability: str) -> Storage | None:
        """Where samples are stored that say how durable they are (`Durable`)."""
        return self._chosen(key, durability)

    # -- answering ----------------------------------------------------------------------------------------------------

    def _get(self, storage: Storage, asked: Asked) -> None:
        asking = StoreQuery(self._node, asked, self._is_closed)
        work = partial(answer, asking, storage, self._node.loop.wall_ns())
        if is_quick(asking, storage):
            self._answer(asking, work)
        else:
            self._later(asking, work)

    def _request(self, verb: str, storage: Storage, asked: Asked) -> None:
        if not _is_named(verb, asked):
            asked.done()
            return
        subject, durability, log = subject_of(asked.request.key), _named(asked, "durability"), _named(asked, "log")
        if log is not None and log != storage.name:
            asked.done()  # it names another one, perhaps of another broker
            return
        chosen = storage if log is not None else self._chosen(subject, durability)
        if chosen is not storage and (chosen is not None or storage is not self._first_asked(subject)):
            asked.done()  # another storage of this broker answers
            return
        asking = StoreQuery(self._node, asked, self._is_closed)
        if chosen is None:
            asking.fail(self._refusal(subject, durability))
        elif verb == "put":
            self._put(asking, storage)
        elif verb == "puts":
            self._puts(asking, storage, durability)
        elif verb == "batch":
            publishing = Republisher(self._node, self._own)
            turn = self._turns[storage].take()
            self._write(asking, partial(answer_batch, self._node, asking, storage, publishing, turn))
        elif verb == "stage":
            self._write(asking, partial(self._committing[storage].answer_stage, asking))
        elif verb == "commit":
            self._write(asking, partial(self._committing[storage].answer_commit, asking))
        elif verb == "read":
            self._later(asking, partial(answer_read, asking, storage, self._node.loop.wall_ns()))
        else:
            self._write(asking, partial(answer_cursor, asking, storage, self._owners[storage]))

    def _align(self, storage: Storage, asked: Asked) -> None:
        """Another broker compares its log with ours of the same key expression."""
        if not _is_named("align", asked):
            asked.done()
            return
        same = [one for one in self.storages if one.key_expr == subject_of(asked.request.key)]
        wanted = self.default if _named(asked, "log") == DEFAULT_LOG else next(iter(same), None)
        if storage is not wanted:
            asked.done()
            return
        asking = StoreQuery(self._node, asked, self._is_closed)
        self._later(asking, partial(answer_align, asking, storage, self._id, self._node.loop.wall_ns()))

    def align(self, links: LinkSettings) -> None:
        """Begin to bring what the brokers have that the settings name; `links` say how they are reached."""
        self._aligning = Aligner(self._node, links, self.all, self._id)
        self._aligning.start()

    def _first_asked(self, subject: str) -> Storage | None:
        return next((one for one in self.all if one.meets(subject)), None)

    def _put(self, asking: StoreQuery, storage: Storage) -> None:
        """In the thread that brings the queries, so that puts of one client are stored in their order."""
        try:
            record, is_other = put_record(self._node, asking, storage.stamping)
            records = storage.resolved(record)
            if not records:
                raise StoreError(f"no stored key belongs to {record.key}; a put needs a key without wildcards")
            self._acknowledging[storage].submit(asking, records, BLOCKED_SECONDS, restamped=is_other)
        except EleaError as error:
            asking.fail(error)

    def _puts(self, asking: StoreQuery, storage: Storage, durability: str | None) -> None:
        try:
            group = self._grouping[storage].group(asking, durability)
            if group.records:
                self._acknowledging[storage].submit(asking, group.records, BLOCKED_SECONDS, group)
                return
            asking.reply_text(self._acknowledging[storage].form(Receipt(0, 0, {}), group))
            asking.done()
        except EleaError as error:
            asking.fail(error)

    def _told(self, place: str, asked: Asked) -> None:
        asking = StoreQuery(self._node, asked, self._is_closed)

        def tell() -> None:
            for storage in self.all:
                key = f"{place}/{storage.name}"
                if keyexpr.intersects(asking.key, key):
                    asking.reply_json(facts_of(storage), key)

        self._later(asking, tell)

    def _later(self, asking: StoreQuery, work: Callable[[], None]) -> None:
        asking.is_crowded = self._readers.is_crowded
        self._submit(self._readers, asking, work)

    def _write(self, asking: StoreQuery, work: Callable[[], None]) -> None:
        self._submit(self._writers, asking, work)

    def _submit(self, pool: AnswerPool, asking: StoreQuery, work: Callable[[], None]) -> None:
        """Have a request answered by a thread. What it carries is in the node's budget until then."""
        octets = 0 if asking.body.payload is None else len(asking.body.payload)
        share = self._node.memory.share()
        if octets and not share.take(octets):
            limit = self._node.memory.total
            asking.fail(Congested(f"no room for a request of {octets} bytes, all have {limit} together; try again"))
            return
        try:
            pool.submit(asking.asker(), partial(self._answer, asking, work, share))
        except RuntimeError:  # being closed; no answer at all would say that there is nothing
            share.close()
            asking.fail(StoreClosing())

    def _answer(self, asking: StoreQuery, work: Callable[[], None], share: Share | None = None) -> None:
        try:
            work()
        except Gone as error:
            _log.debug("answer given up: key=%s problem=%s", asking.key, error)
            if self._closed:
                asking.fail(StoreClosing())
        except (InvalidSelector, AccessDenied) as error:
            asking.fail(error)
        except EleaError as error:
            count = self._failed[type(error)] = self._failed[type(error)] + 1
            if count & (count - 1) == 0:  # said the 1st, 2nd, 4th … time, so that no asker fills a log
                _log.warning("query failed: key=%s problem=%s failed=%d", asking.key[:200], error, count)
            asking.fail(error)
        except Exception as error:  # noqa: BLE001 - whoever asked must not wait for ever
            # What it says may quote anything that is in memory: it is told here, and not to whoever asked.
            _log.exception("query failed: key=%s", asking.key)
            asking.fail(StoreError(f"the broker has failed, an internal {type(error).__name__}; see its log"))
        finally:
            asking.done()
            if share is not None:
                share.close()

    # -- the end ------------------------------------------------------------------------------------------------------

    def _is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Commit and acknowledge what has come, write the indexes down, and let others have the directories."""
        if self._closed:
            return
        self._closed = True
        if self._aligning is not None:
            self._aligning.close()
        self._upkeep.close()
        self._readers.close()
        self._writers.close()
        for storage in self.all:
            storage.close()
            self._acknowledging[storage].close()
            _log.info("storage closed: storage=%s samples=%d", storage.name, storage.kept)


def _is_named(verb: str, asked: Asked) -> bool:
    """Whether a query names what it asks for: one with a wildcard there would be judged as none of the requests."""
    return asked.request.key.startswith(f"@store/{verb}/")


def _named(asked: Asked, name: str) -> str | None:
    text = asked.request.body.parameters
    return Parameters(text).get(name) if f"{name}=" in text else None


def _schemas_in(storage: Storage) -> Iterator[StoredSchema]:
    """The newest samples below `@schema` that a storage has."""
    for stored in storage.log.latest_matching(EVERYTHING):
        its = stored.record
        yield its.key, its.schema, its.payload, (its.ntp64, its.stamp_id)
