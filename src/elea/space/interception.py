"""Down-sampling and low-pass filters, as `downsampling` and `low_pass_filter` of eclipse-zenoh say them.

Both are looked up where routes are made and, for queries and replies, beside the access rules; only messages on keys
that a rule names are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from elea.model import keytext
from elea.model.values import value_class
from elea.space.access import Action
from elea.space.face import Flow

__all__ = ["DATA", "Downsampling", "LowPass", "Rate", "Sampler", "Scope", "size_limit"]

DATA: Final = (Action.PUT, Action.DELETE, Action.QUERY, Action.REPLY)
"""The messages that can be thinned out or be too large."""


@value_class
class Scope:
    """Which messages of which links a filter is about."""

    messages: frozenset[Action]
    flows: frozenset[Flow]
    interfaces: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()

    def fits(self, flow: Flow, action: Action, interfaces: Iterable[str], protocol: str) -> bool:
        """Whether it is about a message."""
        if flow not in self.flows or action not in self.messages:
            return False
        if self.interfaces and not set(self.interfaces) & set(interfaces):
            return False
        return not self.protocols or protocol in self.protocols


@value_class
class Rate:
    """At most `hertz` messages a second on the keys of an expression together; 0 lets none through."""

    key_expr: str
    hertz: float


@value_class
class Downsampling:
    """Rates for some messages of some links; the first whose expression intersects a key holds for it."""

    scope: Scope
    rates: tuple[Rate, ...]

    def rate_of(self, key: str) -> int | None:
        """Which of the rates holds for a key."""
        for number, rate in enumerate(self.rates):
            if keytext.intersects(rate.key_expr, key):
                return number
        return None


@value_class
class LowPass:
    """Messages of some links with more bytes of payload and attachment than `limit` are dropped."""

    scope: Scope
    key_exprs: tuple[str, ...]
    limit: int

    def has(self, key: str) -> bool:
        """Whether it is about a key expression: about all of it."""
        return any(keytext.includes(one, key) for one in self.key_exprs)


class Sampler:
    """One rate on one link and in one direction: whether the next message goes through.

    >>> sampler = Sampler(10.0)
    >>> [sampler.passes(now) for now in (5.0, 5.05, 5.11, 5.2)]
    [True, False, True, False]
    """

    __slots__ = ("_last", "_least")

    def __init__(self, hertz: float) -> None:
        self._least = 1 / hertz if hertz else float("inf")
        self._last = float("-inf")

    def passes(self, now: float) -> bool:
        """Whether a message that comes now goes through."""
        if self._least == float("inf") or now - self._last < self._least:
            return False
        self._last = now
        return True


def size_limit(filters: Iterable[LowPass], key: str) -> int | None:
    """The smallest limit of those that are about a key; None without one."""
    return min((one.limit for one in filters if one.has(key)), default=None)
