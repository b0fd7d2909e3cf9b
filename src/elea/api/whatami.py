"""What a node does, as the API names it, and sets of that."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from elea.api.apierrors import InvalidValue
from elea.model.qos import Role

__all__ = ["IntoWhatAmIMatcher", "WhatAmI", "WhatAmIMatcher", "into_matcher"]


class WhatAmI(Enum):
    """The mode of a node; the values are the bits of a scouting mask.

    >>> str(WhatAmI.PEER), WhatAmI("router"), str(WhatAmI.PEER | WhatAmI.ROUTER)
    ('peer', Router, 'router|peer')
    """

    ROUTER = 1
    PEER = 2
    CLIENT = 4

    @classmethod
    def _missing_(cls, value: object) -> WhatAmI:
        if not isinstance(value, str):
            raise TypeError(f"{type(value).__name__!r} object is no text")
        for member in cls:
            if str(member) == value:
                return member
        raise InvalidValue("WhatAmI", f"{value!r} is none of router, peer, client")

    @classmethod
    def of(cls, role: Role) -> WhatAmI:
        """The mode with the name of a role."""
        return _OF_ROLE[role]

    @property
    def role(self) -> Role:
        """The role of that name."""
        return Role(self.value)

    def __int__(self) -> int:
        value: int = self.value
        return value

    def __or__(self, other: WhatAmI | str) -> WhatAmIMatcher:
        return WhatAmIMatcher._of(int(self) | int(_member(other)))

    __ror__ = __or__

    def __str__(self) -> str:
        return self.name.lower()

    def __repr__(self) -> str:
        return self.name.capitalize()


_OF_ROLE = {Role.ROUTER: WhatAmI.ROUTER, Role.PEER: WhatAmI.PEER, Role.CLIENT: WhatAmI.CLIENT}


class WhatAmIMatcher:
    """A set of modes.

    >>> matcher = WhatAmIMatcher("peer|router")
    >>> str(matcher), matcher.matches(WhatAmI.CLIENT), "peer" in matcher
    ('router|peer', False, True)
    """

    __slots__ = ("_mask",)
    _mask: int

    def __init__(self, matcher: str | None = None) -> None:
        if matcher is not None and not isinstance(matcher, str):
            raise TypeError(f"argument 'matcher': {type(matcher).__name__!r} object is no text")
        self._mask = 0
        for name in (matcher or "").split("|"):
            if not name.strip():
                continue
            try:
                self._mask |= int(WhatAmI(name.strip()))
            except InvalidValue as error:
                raise InvalidValue("WhatAmI matcher", f"{matcher!r}: write for example 'router|peer'") from error

    @classmethod
    def _of(cls, mask: int) -> WhatAmIMatcher:
        made = cls.__new__(cls)
        made._mask = mask
        return made

    @classmethod
    def empty(cls) -> WhatAmIMatcher:
        """The set without a mode."""
        return cls._of(0)

    def router(self) -> WhatAmIMatcher:
        """This set and the routers."""
        return self._of(self._mask | 1)

    def peer(self) -> WhatAmIMatcher:
        """This set and the peers."""
        return self._of(self._mask | 2)

    def client(self) -> WhatAmIMatcher:
        """This set and the clients."""
        return self._of(self._mask | 4)

    def is_empty(self) -> bool:
        """Whether no mode is in the set."""
        return not self._mask

    def matches(self, whatami: WhatAmI | str) -> bool:
        """Whether a mode is in the set."""
        return bool(self._mask & int(_member(whatami)))

    def __contains__(self, whatami: WhatAmI | str) -> bool:
        return self.matches(whatami)

    def __int__(self) -> int:
        return self._mask

    def __eq__(self, other: object) -> bool:
        return self._mask == other._mask if isinstance(other, WhatAmIMatcher) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._mask)

    def __str__(self) -> str:
        return "|".join(str(member) for member in WhatAmI if self._mask & int(member))

    def __repr__(self) -> str:
        return f"WhatAmIMatcher({str(self)!r})"


IntoWhatAmIMatcher: TypeAlias = WhatAmIMatcher | WhatAmI | str
"""What a set of modes may be given as."""


def into_matcher(value: IntoWhatAmIMatcher) -> WhatAmIMatcher:
    """The set a user gave."""
    if isinstance(value, WhatAmIMatcher):
        return value
    return WhatAmIMatcher._of(int(value)) if isinstance(value, WhatAmI) else WhatAmIMatcher(value)


def _member(value: WhatAmI | str) -> WhatAmI:
    return value if isinstance(value, WhatAmI) else WhatAmI(value)
