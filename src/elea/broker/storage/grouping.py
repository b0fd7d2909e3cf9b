"""`@store/puts`: many acknowledged samples in one request, each with an outcome of its own.

They are samples of one storage that writers happened to put at the same time, not a batch: one that is refused is no
reason to refuse another. Nothing is made per sample but its record; the request is submitted, committed and answered
once. `elea.wire.puts` has its form.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from elea.broker.storage.asking import error_form
from elea.model import keyexpr
from elea.model.errors import EleaError, InvalidKeyExpr, KeptElsewhere
from elea.model.limits import CACHED_KEY_CHARS
from elea.model.node_id import NodeId
from elea.model.timestamp import HlcUpdate, Timestamp
from elea.store import DEL, PUT, Receipt, Record
from elea.wire.puts import Given, read_puts

if TYPE_CHECKING:
    from elea.broker.node import Node
    from elea.broker.storage.asking import Asking
    from elea.broker.storage.storage import Storage

__all__ = ["Group", "Grouping"]

KNOWN: Final = 10_000
"""Keys of a storage that are known to be keys, and its own; then all are forgotten and looked at again."""

Chosen = Callable[[str, str | None], "Storage | None"]


class Group:
    """The samples of one request: the records to store for them, and who was refused at once."""

    __slots__ = ("places", "records", "refused")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.places: list[int] = []
        """For each sample the index of its record, -1 if it was refused."""
        self.refused: dict[int, EleaError] = {}

    def form(self, receipt: Receipt) -> str:
        """What became of each sample, as JSON without the braces."""
        found = receipt.positions()
        positions = [None if place < 0 else found[place] for place in self.places]
        repeated = [at for at, place in enumerate(self.places) if place in receipt.repeated] if receipt.repeated else []
        refused = {str(at): error_form(error) for at, error in self.refused.items()}
        text = json.dumps({"positions": positions, "repeated": repeated, "refused": refused}, separators=(",", ":"))
        return text[1:-1]


class Grouping:
    """Turns requests to one storage into groups. Used by one thread at a time."""

    def __init__(self, node: Node, storage: Storage, chosen: Chosen) -> None:
        self._node = node
        self._storage = storage
        self._chosen = chosen
        self._keys: dict[tuple[bytes, bool], str] = {}
        """By key, and whether it must persist."""

    def group(self, asking: Asking, durability: str | None) -> Group:
        """The samples of a request.

        Raises:
            DecodeError: its payload has another form.
        """
        value = asking.body.value
        given = read_puts(b"" if value is None else value.payload)
        group = Group()
        records, places, keys, qos = group.records, group.places, self._keys, asking.qos
        lasting = durability == "persistent"
        now_ns, own = self._node.keeper.wall_ns(), self._node.node_id
        time = self._node.clock.reserve(now_ns, len(given))
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
            if stamp_id is None or not self._accepts(sample, now_ns):
                ntp64, stamp_id = time, own
                time += 1
            places.append(len(records))
            records.append(
                Record(
                    name,
                    b"" if payload is None else payload,
                    ntp64,
                    stamp_id,
                    now_ns,
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
        return group

    def _accepts(self, sample: Given, now_ns: int) -> bool:
        """Whether the time of a sample can be believed."""
        stamp = Timestamp(sample[5], NodeId(sample[6] or b""))
        return self._node.clock.update(stamp, now_ns) is HlcUpdate.ACCEPTED

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
