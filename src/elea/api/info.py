"""What a session knows about its surroundings: nodes found, sessions and links open, counterparts matching."""

from __future__ import annotations

from elea.api.identity import ZenohId
from elea.api.whatami import WhatAmI
from elea.model.qos import Reliability
from elea.model.values import value_class

__all__ = ["Hello", "Link", "MatchingStatus", "Transport"]


@value_class
class _Hello:
    whatami: WhatAmI
    zid: ZenohId
    found: tuple[str, ...]


class Hello(_Hello):
    """A node found by scouting, and where to reach it."""

    __slots__ = ()

    @property
    def locators(self) -> list[str]:
        """The addresses it listens on."""
        return list(self.found)

    def __str__(self) -> str:
        return f"Hello {{ zid: {self.zid}, whatami: {self.whatami!r}, locators: [{', '.join(self.found)}] }}"

    __repr__ = __str__


@value_class
class MatchingStatus:
    """Whether anybody takes what a publisher puts, or answers what a querier asks."""

    matching: bool

    def __repr__(self) -> str:
        return f"MatchingStatus {{ matching: {_flag(self.matching)} }}"


@value_class
class Transport:
    """A session with another node."""

    zid: ZenohId
    whatami: WhatAmI
    is_qos: bool
    is_multicast: bool
    is_shm: bool = False

    def __repr__(self) -> str:
        return (
            f"Transport {{ zid: {self.zid}, whatami: {self.whatami!r}, is_qos: {_flag(self.is_qos)}, "
            f"is_multicast: {_flag(self.is_multicast)}, is_shm: {_flag(self.is_shm)} }}"
        )


@value_class
class _Link:
    zid: ZenohId
    src: str
    dst: str
    group: str | None
    mtu: int
    is_streamed: bool
    names: tuple[str, ...]
    auth_identifier: str | None
    priorities: tuple[int, int] | None
    reliability: Reliability | None


class Link(_Link):
    """One connection or socket of a session."""

    __slots__ = ()

    @property
    def interfaces(self) -> list[str]:
        """The network interfaces it goes through."""
        return list(self.names)

    def __repr__(self) -> str:
        names = ", ".join(f'"{name}"' for name in self.names)
        auth = "None" if self.auth_identifier is None else f'Some("{self.auth_identifier}")'
        reliability = "None"
        if self.reliability is not None:
            reliability = "Some(Reliable)" if self.reliability is Reliability.RELIABLE else "Some(BestEffort)"
        return (
            f"Link {{ zid: {self.zid}, src: {self.src}, dst: {self.dst}, group: {_some(self.group)}, mtu: {self.mtu}, "
            f"is_streamed: {_flag(self.is_streamed)}, interfaces: [{names}], auth_identifier: {auth}, "
            f"priorities: {_some(self.priorities)}, reliability: {reliability} }}"
        )


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _some(value: object) -> str:
    return "None" if value is None else f"Some({value})"
