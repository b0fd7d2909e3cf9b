"""From a sample to a message: what is no message, or too old, is dropped and counted with the reason."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from elea.model.errors import DecodeError
from elea.model.limits import UPROTOCOL_KEYS
from elea.model.logger import logger
from elea.model.qos import SampleKind
from elea.uprotocol.attachment import read_checked
from elea.uprotocol.attributes import is_expired
from elea.uprotocol.filters import is_wanted
from elea.uprotocol.message import UMessage
from elea.uprotocol.uuid7 import Clock
from elea.uprotocol.uuri import UUri
from elea.uprotocol.zenohkey import key_problem, resolved

if TYPE_CHECKING:
    from elea.api.sample import Sample

__all__ = ["Dropped", "ReceivedMessage", "SampleReader"]

_log = logger("elea.uprotocol")

_DELETE: Final = SampleKind.DELETE
_TUPLE: Final = tuple.__new__


class ReceivedMessage(UMessage):
    """A message with the key it came by. It equals the message that was sent."""

    key: str = ""

    @property
    def origin(self) -> UUri | None:
        """The source, with the authority that the key says if the sender left it out."""
        source = self.attributes.source
        return None if source is None or not self.key else resolved(source, self.key)


class Dropped:
    """How many samples brought no message to anybody, by reason.

    `attachment`: there is none, or one that cannot be read. `invalid`: the attributes break a rule. `expired`: their
    time to live has passed. `key`: they name other addresses than the key. `deleted`: deletions carry no message.
    """

    def __init__(self) -> None:
        self.counts = {"attachment": 0, "invalid": 0, "expired": 0, "key": 0, "deleted": 0}
        self._lock = threading.Lock()

    def add(self, reason: str, key: str, problem: str) -> None:
        """Count one more, and say so now and then: with the first, the second, the fourth, the eighth …"""
        with self._lock:
            self.counts[reason] += 1
            count = self.counts[reason]
        if count & (count - 1) == 0:
            _log.warning("message dropped: reason=%s key=%s problem=%s dropped=%d", reason, key, problem, count)


class SampleReader:
    """Makes messages of the samples that one listener's key expression brings."""

    def __init__(self, clock: Clock, dropped: Dropped) -> None:
        self._clock = clock
        self._dropped = dropped
        self._agreeing: set[tuple[str, UUri | None, UUri | None]] = set()

    def read(self, sample: Sample, *, has_sink_filter: bool) -> ReceivedMessage | None:
        """The message, or None if there is none to be delivered."""
        key = str(sample.key_expr)
        attachment = sample.attachment
        if attachment is None or sample.kind is _DELETE:
            self._dropped.add("attachment" if sample.kind is not _DELETE else "deleted", key, "no attributes")
            return None
        try:
            attributes, problem = read_checked(attachment.to_bytes())
        except DecodeError as error:
            self._dropped.add("attachment", key, str(error))
            return None
        if problem:
            self._dropped.add("invalid", key, problem)
            return None
        if not is_wanted(attributes.type, has_sink_filter=has_sink_filter):
            return None
        if attributes.ttl and is_expired(attributes, self._clock()):
            self._dropped.add("expired", key, f"older than its {attributes.ttl} ms")
            return None
        name = (key, attributes[2], attributes[3])
        if name not in self._agreeing and not self._agrees(key, attributes.type, *name[1:]):
            return None
        payload = sample.payload.to_bytes()
        # Zenoh has no absent payload, but only a message with a payload has a format.
        body = None if not payload and not attributes.payload_format else payload
        message: ReceivedMessage = _TUPLE(ReceivedMessage, (attributes, body))
        message.key = key
        return message

    def _agrees(self, key: str, type: int, source: UUri | None, sink: UUri | None) -> bool:
        """Whether the attributes name the addresses that the key names."""
        if problem := key_problem(key, type, source, sink):
            self._dropped.add("key", key, problem)
            return False
        if len(self._agreeing) >= UPROTOCOL_KEYS:
            self._agreeing.clear()
        self._agreeing.add((key, source, sink))
        return True
