"""From a sample to a message: what is no message, or too old, is dropped and counted with the reason."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from elea.model.errors import DecodeError
from elea.model.limits import UPROTOCOL_KEYS_PER_MESSAGE
from elea.model.logger import logger
from elea.uprotocol.attachment import Known, read_known
from elea.uprotocol.attributes import UAttributes, is_expired
from elea.uprotocol.filters import is_wanted
from elea.uprotocol.message import ReceivedMessage
from elea.uprotocol.uuid7 import Clock
from elea.uprotocol.zenohkey import key_problem
from elea.wire.details import attachment_of, is_deletion

if TYPE_CHECKING:
    from elea.api.sample import Sample

__all__ = ["Dropped", "SampleReader"]

_log = logger("elea.uprotocol")

_TUPLE: Final = tuple.__new__


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

    def read(self, sample: Sample, *, has_sink_filter: bool) -> ReceivedMessage | None:
        """The message, or None if there is none to be delivered."""
        raw = sample._raw
        key = str(sample._key)
        meta: bytes | None = raw[4]
        if is_deletion(meta):
            self._dropped.add("deleted", key, "a deletion has no attributes")
            return None
        try:
            attachment = attachment_of(meta)
            if attachment is None:
                self._dropped.add("attachment", key, "no attributes")
                return None
            attributes, problem, known = read_known(attachment)
        except DecodeError as error:
            self._dropped.add("attachment", key, str(error))
            return None
        if problem:
            self._dropped.add("invalid", key, problem)
            return None
        if not is_wanted(attributes[1], has_sink_filter=has_sink_filter):
            return None
        if attributes[5] and is_expired(attributes, self._clock()):
            self._dropped.add("expired", key, f"older than its {attributes.ttl} ms")
            return None
        if (known is None or key not in known.keys) and not self._agrees(key, attributes, known):
            return None
        payload = raw[5]
        if type(payload) is not bytes:
            payload = sample.payload.to_bytes()
        # Zenoh has no absent payload, but only a message with a payload has a format.
        message: ReceivedMessage = _TUPLE(ReceivedMessage, (attributes, payload if payload or attributes[11] else None))
        message.key = key
        return message

    def _agrees(self, key: str, attributes: UAttributes, known: Known | None) -> bool:
        """Whether the attributes name the addresses that the key names."""
        if problem := key_problem(key, attributes.type, attributes.source, attributes.sink):
            self._dropped.add("key", key, problem)
            return False
        if known is not None:
            if len(known.keys) >= UPROTOCOL_KEYS_PER_MESSAGE:
                known.keys.clear()
            known.keys.add(key)
        return True
