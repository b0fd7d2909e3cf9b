"""`@store/puts`: many acknowledged samples in one request, each with an outcome of its own.

They are samples of one storage that writers happened to put at the same time, not a batch: one that is refused is no
reason to refuse another. Nothing is made per sample but its record; the request is submitted, committed and answered
once. `elea.wire.puts` has its form.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from elea.model import keyexpr
from elea.model.errors import AccessDenied, EleaError, InvalidKeyExpr, KeptElsewhere
from elea.model.limits import CACHED_KEY_CHARS
from elea.node.storage.storequery import error_form
from elea.space.access import Action
from elea.space.face import Flow
from elea.store import DEL, PUT, Receipt, Record
from elea.wire.puts import read_puts

if TYPE_CHECKING:
    from elea.node.node import Node
    from elea.node.storage.storage import Storage
    from elea.node.storage.storequery import StoreQuery

__all__ = ["Group", "PutsRequests"]

KNOWN: Final = 10_000
"""Keys of a storage that are known to be keys, and its own; then all are forgotten and looked at again."""

Chosen = Callable[[str, str | None], "Storage | None"]


class Group:
    """The samples of one request: the records to store for them, and who was refused at once."""

    __slots__ = ("places", "records", "refused", "restamped")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.places: list[int] = []
        """For each sample the index of its record, -1 if it was refused."""
        self.refused: dict[int, EleaError] = {}
        self.restamped: list[int] = []
        """Samples that have another timestamp than they came with."""

    def form(self, receipt: Receipt) -> str:
        """What became of each sample, as JSON without the braces."""
        found = receipt.positions()
        positions = [None if place < 0 else found[place] for place in self.places]
        repeated = [at for at, place in enumerate(self.places) if place in receipt.repeated] if receipt.repeated else []
        refused = {str(at): error_form(error) for at, error in self.refused.items()}
        form: dict[str, object] = {"positions": positions, "repeated": repeated, "refused": refused}
        if self.restamped:
            form["restamped"] = self.restamped
        return json.dumps(form, separators=(",", ":"))[1:-1]


class PutsRequests:
    """Turns requests to one storage into groups. Used by one thread at a time."""

    def __init__(self, node: Node, storage: Storage, chosen: Chosen) -> None:
        self._node = node
        self._storage = storage
        self._chosen = chosen
        self._keys: dict[tuple[bytes, bool], str] = {}
        """By key, and whether it must persist."""

    def group(self, asking: StoreQuery, durability: str | None) -> Group:
        """The samples of a request.

        Raises:
            DecodeError: its payload has another form.
        """
        given = read_puts(asking.body.payload or b"")
        group = Group()
        records, places, keys, qos = group.records, group.places, self._keys, asking.qos
        lasting = durability == "persistent"
        now_ns, own, stamping = self._node.loop.wall_ns(), self._node.node_id, self._storage.stamping
        clock = self._node.clock
        time = clock.reserve(now_ns, len(given))
        arrival_ns = stamping.arrival(now_ns)
        judge = asking.judge()
        for sample in given:
            key, payload, encoding, schema, attachment, ntp64, stamp_id, source_id, entity, number = sample
            name = keys.get((key, lasting))
            if name is None:
                try:
                    name = self._name(key, durability)
                except EleaError as error:
                    group.refused[len(places)] = error
                    places.append(-1)
                    continue
            if judge is not None:
                action = Action.DELETE if payload is None else Action.PUT
                if not judge(Flow.INGRESS, action, name):
                    group.refused[len(places)] = AccessDenied(action.label, name)
                    places.append(-1)
                    continue
            if stamp_id is not None and stamp_id.strip(b"\0") and clock.accepts(ntp64, now_ns):
                if ntp64 >= time:  # what comes behind it is newer
                    time = clock.reserve(now_ns, len(given) - len(places))
            else:
                if stamp_id is not None:
                    group.restamped.append(len(places))
                ntp64, stamp_id = time, own
                time += 1
            places.append(len(records))
            records.append(
                Record(
                    name,
                    b"" if payload is None else payload,
                    ntp64,
                    stamp_id,
                    arrival_ns,
                    DEL if payload is None else PUT,
                    encoding,
                    schema,
                    attachment,
                    source_id,
                    entity,
                    number,
                    True,
                    qos,
                )
            )
        if group.restamped:
            stamping.count(len(group.restamped))
        return group

    def _name(self, key: bytes, durability: str | None) -> str:
        """The key as text, if it is one and belongs to the storage."""
        try:
            name = key.decode()
            keyexpr.check(name)
        except UnicodeDecodeError as error:
            raise InvalidKeyExpr(repr(key[:80]), "it is no UTF-8", "write keys as text") from error
        if "*" in name:
            raise InvalidKeyExpr(name, "it has wildcards", "put samples of single keys, or ask for one with @store/put")
        chosen = self._chosen(name, durability)
        if chosen is not self._storage:
            raise KeptElsewhere(name, self._storage.name)
        if len(key) <= CACHED_KEY_CHARS:
            if len(self._keys) >= KNOWN:
                self._keys.clear()
            self._keys[key, durability == "persistent"] = name
        return name
