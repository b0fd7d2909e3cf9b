"""Identifiers as the API shows them: of nodes, of entities, of the source of a sample."""

from __future__ import annotations

from typing import Final

from elea.model.node_id import NodeId

__all__ = ["EntityGlobalId", "EntityId", "SourceInfo", "SourceSn", "ZenohId"]

EntityId = int
"""The number of an entity within its node."""

SourceSn = int
"""The number a source gives to a sample."""

_U32: Final = (1 << 32) - 1


class ZenohId(NodeId):
    """The identifier of a node. It prints as hexadecimal text, and equals any `NodeId` of the same value.

    >>> ZenohId(bytes.fromhex("3412")), ZenohId.of(NodeId.parse("77"))
    (1234, 77)
    """

    __slots__ = ()

    @classmethod
    def of(cls, id: NodeId | bytes) -> ZenohId:
        """The identifier with the value of another one, or with these bytes of the wire."""
        return cls(id if isinstance(id, bytes) else id.data)

    # The methods a dataclass makes compare with the very same class only.
    def __eq__(self, other: object) -> bool:
        return self.data == other.data if isinstance(other, NodeId) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self.data < other.data if isinstance(other, NodeId) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.data <= other.data if isinstance(other, NodeId) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self.data > other.data if isinstance(other, NodeId) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self.data >= other.data if isinstance(other, NodeId) else NotImplemented

    def __hash__(self) -> int:
        # That of the dataclass, so that both kinds find each other in a dictionary.
        return hash((self.data,))

    def __repr__(self) -> str:
        return str(self)


class EntityGlobalId:
    """The identifier of an entity: its node, and its number there. Made by sessions."""

    __slots__ = ("_eid", "_zid")

    def __init__(self, zid: ZenohId, eid: EntityId) -> None:
        self._zid = zid
        self._eid = eid

    @property
    def zid(self) -> ZenohId:
        """The node."""
        return self._zid

    @property
    def eid(self) -> EntityId:
        """The number of the entity."""
        return self._eid

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EntityGlobalId):
            return NotImplemented
        return self._eid == other._eid and self._zid == other._zid

    def __hash__(self) -> int:
        return hash((self._zid, self._eid))

    def __repr__(self) -> str:
        return f"EntityGlobalId {{ zid: {self._zid}, eid: {self._eid} }}"


class SourceInfo:
    """Who made a sample, and the number it has there.

    >>> SourceInfo(EntityGlobalId(ZenohId(b"1"), 6), 7).source_sn
    7
    """

    __slots__ = ("_id", "_sn")

    def __init__(self, source_id: EntityGlobalId, source_sn: SourceSn) -> None:
        if not isinstance(source_id, EntityGlobalId):
            raise TypeError(f"argument 'source_id': {type(source_id).__name__!r} object is no EntityGlobalId")
        if not 0 <= source_sn <= _U32:
            raise OverflowError(f"a source number has 32 bits, {source_sn} does not fit")
        self._id = source_id
        self._sn = source_sn

    @property
    def source_id(self) -> EntityGlobalId:
        """The entity that made the sample."""
        return self._id

    @property
    def source_sn(self) -> SourceSn:
        """The number of the sample."""
        return self._sn

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SourceInfo):
            return NotImplemented
        return self._sn == other._sn and self._id == other._id

    def __hash__(self) -> int:
        return hash((self._id, self._sn))

    def __repr__(self) -> str:
        return f"SourceInfo {{ source_id: {self._id}, source_sn: {self._sn} }}"
