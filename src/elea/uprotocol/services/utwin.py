"""`UTwin`: the last message of every topic (core.utwin v2), out of what brokers keep.

A broker with a storage for `up/**` has the last sample of every key. So this service stores nothing: it asks the data
space for the keys of the topics, and makes messages of the samples that answer.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from elea.model.errors import EleaError
from elea.model.limits import UPROTOCOL_TOPICS, UTWIN_BYTES
from elea.uprotocol.attributes import UAttributes, UPayloadFormat
from elea.uprotocol.communication.rpcserver import RpcServer
from elea.uprotocol.core import utwin as core
from elea.uprotocol.payload import UPayload
from elea.uprotocol.received import Dropped, SampleReader
from elea.uprotocol.services.entity import ServiceEntity
from elea.uprotocol.services.usubscription import in_format_of, request_of
from elea.uprotocol.status import UCode, UStatus, UStatusError
from elea.uprotocol.uuid7 import Clock, now_ms
from elea.uprotocol.uuri import UUri
from elea.uprotocol.zenohkey import key_of

if TYPE_CHECKING:
    from elea.api.sample import Sample
    from elea.uprotocol.message import UMessage
    from elea.uprotocol.zenohtransport import UTransportZenoh

__all__ = ["LastMessages", "UTwin"]

PATIENCE: Final = 5.0
"""Seconds that brokers may take to answer for one topic."""


class LastMessages:
    """Reads the last message of topics from what brokers keep."""

    def __init__(self, transport: UTransportZenoh, *, clock: Clock = now_ms) -> None:
        self._transport = transport
        self._drops = Dropped()
        self._reader = SampleReader(clock, self._drops)

    def of(self, topic: UUri, *, timeout: float = PATIENCE) -> UMessage:
        """The last message of one topic.

        Raises:
            UStatusError: INVALID_ARGUMENT (not one topic), NOT_FOUND (nobody keeps one, or its time to live is over),
                UNAVAILABLE (no session).
        """
        if topic.problem or topic.wildcards or not topic.is_topic:
            raise UStatusError(UCode.INVALID_ARGUMENT, f"{topic} is not one topic: no wildcards, resource 8000..FFFE")
        key = key_of(topic, None, self._transport.get_authority())
        try:
            replies = [reply.ok for reply in self._transport.session.get(key, timeout=timeout)]
        except EleaError as error:
            raise UStatusError(UCode.UNAVAILABLE, f"{topic} cannot be asked for: {error}") from error
        samples: list[Sample] = [sample for sample in replies if sample is not None]
        found = [self._reader.read(sample, has_sink_filter=False) for sample in samples]
        messages = [message for message in found if message is not None]
        if not messages:
            raise UStatusError(UCode.NOT_FOUND, f"no broker keeps a message of {topic} that has not expired")
        return max(messages, key=lambda message: message.attributes.id or (0, 0))


class UTwin:
    """Serves `//authority/3/2/1` on a transport of that authority.

    ::

        with UTwin(transport):
            …
    """

    def __init__(self, transport: UTransportZenoh, *, workers: int = 4, clock: Clock = now_ms) -> None:
        """Begin to serve.

        Args:
            workers: requests answered at a time; each waits for brokers.
        """
        self._last = LastMessages(transport, clock=clock)
        self._entity = ServiceEntity(transport, core.service_uri(transport.get_authority()))
        self._server = RpcServer(self._entity, workers=workers)
        self._server.register_endpoint(None, core.GET_LAST_MESSAGES, self._answer)

    def close(self) -> None:
        """Serve no more."""
        self._server.close()

    def __enter__(self) -> UTwin:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, _: int, attributes: UAttributes, payload: UPayload | None) -> UPayload:
        given = payload or UPayload(b"", UPayloadFormat.PROTOBUF)
        batch = request_of(given, core.GetLastMessagesRequest).topics
        topics = () if batch is None else batch.uris
        if len(topics) > UPROTOCOL_TOPICS:
            problem = f"{len(topics)} topics are above the limit of {UPROTOCOL_TOPICS}"
            raise UStatusError(UCode.INVALID_ARGUMENT, problem)
        until = time.monotonic() + (attributes.ttl or 0) / 1000
        responses: list[core.MessageResponse] = []
        size = 0
        for topic in topics:
            responses.append(self._response(topic, until, UTWIN_BYTES - size))
            message = responses[-1].message
            size += 0 if message is None else len(message.payload or b"")
        return in_format_of(given, core.GetLastMessagesResponse(responses=tuple(responses)))

    def _response(self, topic: UUri, until: float, room: int) -> core.MessageResponse:
        """The last message of a topic, if the caller still waits for it and there is room for it in the answer."""
        left = until - time.monotonic()
        try:
            if left <= 0:
                raise UStatusError(UCode.DEADLINE_EXCEEDED, "the brokers took too long")
            message = self._last.of(topic, timeout=min(left, PATIENCE))
            if len(message.payload or b"") > room:
                problem = f"the messages are larger than {UTWIN_BYTES} bytes; ask for fewer topics"
                raise UStatusError(UCode.RESOURCE_EXHAUSTED, problem)
        except UStatusError as error:
            return core.MessageResponse(topic=topic, status=error.status)
        return core.MessageResponse(topic=topic, status=UStatus(UCode.OK), message=message)
