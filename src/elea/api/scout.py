"""Looking for nodes without opening a session: `scout()` and the `Scout` it gives."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from elea.api.apierrors import InvalidValue
from elea.api.channels import Handler
from elea.api.config import Config
from elea.api.handle import Items
from elea.api.identity import ZenohId
from elea.api.info import Hello
from elea.api.settings import MulticastSettings, Settings
from elea.api.sinks import Sink, into_handler
from elea.api.whatami import IntoWhatAmIMatcher, WhatAmI, into_matcher
from elea.io.loop import Loop
from elea.model.found import ANY_ROLE, Found
from elea.node.discovery import Seeker, seek

__all__ = ["Scout", "scout"]

H = TypeVar("H")


class Scout(Generic[H]):
    """Nodes as they answer: a channel of `Hello`, or calls of a function. Made by `scout`; ends by `stop`.

    A node answers again each time it is asked, which is after 1, 2, 4, 8, 8, … seconds.
    """

    def __init__(self, sink: Sink[Hello], handler: H, what: int, multicast: MulticastSettings) -> None:
        self._handler = handler
        self._loop = Loop("scout")
        try:
            self._seeker = seek(
                self._loop,
                what,
                lambda found: sink.push(_hello(found)),
                group=multicast.address,
                interface=multicast.interface,
                ttl=multicast.ttl,
            )
        except BaseException:
            self._loop.close()
            raise
        # A scout that nobody holds any more stops, as a program that forgets it would expect.
        self._stop = weakref.finalize(self, _end, self._seeker, self._loop, sink)

    @property
    def handler(self) -> H:
        """What was asked for as handler: a channel, the second of a pair, or None for a function."""
        return self._handler

    def stop(self) -> None:
        """Look no further; does nothing the second time."""
        self._stop()

    def recv(self) -> Hello:
        """The next answer, waiting for it."""
        return self._channel().recv()

    def try_recv(self) -> Hello | None:
        """The next answer, or None if there is none now."""
        return self._channel().try_recv()

    def __iter__(self) -> Iterator[Hello]:
        return Items(self, self._channel())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _channel(self) -> Handler[Hello]:
        if not isinstance(self._handler, Handler):
            raise TypeError(f"this scout has no channel: its handler is {self._handler!r}")
        return self._handler


def scout(handler: Any = None, what: IntoWhatAmIMatcher | None = None, config: Config | None = None) -> Scout[Any]:
    """Look for nodes by multicast, without opening a session.

    ::

        with elea.scout(what="router|peer") as scout:
            for hello in scout:
                print(hello.zid, hello.locators)

    Args:
        handler: as for a subscriber: None for a channel, a channel's kind, or a function.
        what: the modes to look for; all if not given.
        config: where to look: `scouting/multicast`.
    """
    settings = Settings.of(config or Config())
    mask = ANY_ROLE if what is None else int(into_matcher(what))
    if not mask:
        raise InvalidValue("WhatAmI matcher", "it is empty: name a mode to look for, for example 'router|peer'")
    sink: Sink[Hello]
    sink, given = into_handler(handler, "Hello")
    return Scout(sink, given, mask, settings.scouting.multicast)


def _hello(found: Found) -> Hello:
    return Hello(WhatAmI.of(found.role), ZenohId(found.node_id), found.locators)


def _end(seeker: Seeker, loop: Loop, sink: Sink[Hello]) -> None:
    seeker.close()
    loop.close()
    sink.close()
