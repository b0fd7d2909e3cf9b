"""What the two early dialects do differently: one row of a table each, and the messages that differ.

Everything else in this package is written once, against the messages both have in common (zenoh-2018 §3).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from elea.model.resource import XRCE_SCHEME, ZENOH_SCHEME
from elea.wire.early import Codec
from elea.wire.xrce2017 import codec as codec2017
from elea.wire.xrce2017 import messages as messages2017
from elea.wire.zenoh2018 import codec as codec2018
from elea.wire.zenoh2018 import messages as messages2018

__all__ = ["GENERATIONS", "XRCE2017", "ZENOH2018", "Generation"]


@dataclass(frozen=True, slots=True)
class Generation:
    """One early dialect."""

    name: str
    scheme: str
    codec: Codec
    messages: ModuleType
    has_spaces: bool
    """Whether there are resource spaces and conduits that migrate."""

    has_pull_ids: bool
    """Whether a pull session has a number of its own; otherwise the id is its name."""

    ends_pulls: bool
    """Whether the end of a pull is said, and a pull can be cancelled."""

    def encode(self, message: Any) -> bytes:
        """The octets of a message."""
        out = bytearray()
        self.codec.write_message(out, message)
        return bytes(out)

    def ping(self, hash: int) -> Any:
        return self.messages.Ping(hash) if self.has_pull_ids else self.messages.PingPong(hash)

    def pong(self, hash: int) -> Any:
        return self.messages.Pong(hash) if self.has_pull_ids else self.messages.PingPong(hash, True)

    def pull(self, id: int, *, most: int | None = None, final: bool = False, pull_id: int = 1) -> Any:
        """A Pull that is not numbered yet; `final` is said only where it can be."""
        if self.has_pull_ids:
            return self.messages.Pull(0, id, pull_id, maxSamples=most)
        return self.messages.Pull(0, id, final=final, maxSamples=most)


ZENOH2018: Final = Generation("zenoh2018", ZENOH_SCHEME, Codec.of(codec2018), messages2018, True, False, True)
XRCE2017: Final = Generation("xrce2017", XRCE_SCHEME, Codec.of(codec2017), messages2017, False, True, False)
GENERATIONS: Final = {one.name: one for one in (ZENOH2018, XRCE2017)}
