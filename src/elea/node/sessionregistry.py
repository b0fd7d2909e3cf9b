"""Which link a session with a node goes over: one at most, also when both ends connect at the same moment.

Both ends must drop the same one of two crossing links, and may not ask each other. Hence the rules: the end with the
smaller id gives way while its own opening is under way; and an OPEN_ACK is final, since who sends one has chosen. The
latter makes it work with eclipse-zenoh too, which knows no tie-break: it keeps whichever it entered first.
Nothing here is locked: the owner does that. Spec: zenoh-1 §5.1, §7.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from elea.model.node_id import NodeId

__all__ = ["SessionRegistry"]

T = TypeVar("T")


class SessionRegistry(Generic[T]):
    """Links by node: those we open, and those that hold a session.

    >>> links: SessionRegistry[str] = SessionRegistry(bytes([2]))
    >>> links.begin(bytes([1]), "ours"), links.accept(bytes([1]), "theirs")  # 1 is the smaller and gives way
    (True, False)
    """

    def __init__(self, own_id: bytes) -> None:
        self._own = NodeId(own_id)
        self._opening: dict[bytes, T] = {}
        self._held: dict[bytes, T] = {}

    def begin(self, node_id: bytes, link: T) -> bool:
        """INIT_ACK tells us whom we have connected to: whether to go on."""
        if node_id in self._held or node_id in self._opening:
            return False
        self._opening[node_id] = link
        return True

    def accept(self, node_id: bytes, link: T) -> bool:
        """OPEN_SYN has come: whether to answer OPEN_ACK."""
        if node_id in self._held or (node_id in self._opening and self._own > NodeId(node_id)):
            return False
        self._held[node_id] = link
        return True

    def confirm(self, node_id: bytes, link: T) -> T | None:
        """The session is open on both ends; returns the link that has to go for it, if any."""
        before = self._held.get(node_id)
        self._held[node_id] = link
        if self._opening.get(node_id) is link:
            del self._opening[node_id]
        return None if before is link else before

    def release(self, node_id: bytes, link: T) -> None:
        """A link has ended, at whatever stage."""
        for links in (self._opening, self._held):
            if links.get(node_id) is link:
                del links[node_id]

    def holder(self, node_id: bytes) -> T | None:
        """The link of the session with a node."""
        return self._held.get(node_id)
