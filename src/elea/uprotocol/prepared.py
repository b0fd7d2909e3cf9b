"""`Prepared`: messages that differ in identifier and payload only; what they have in common is written once.

All messages of a topic are such messages, and all calls of a method by one client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elea.model.errors import EleaError
from elea.uprotocol.attachment import Written
from elea.uprotocol.status import UCode, UStatusError
from elea.uprotocol.uuid7 import UUID, new_uuid
from elea.uprotocol.validation import id_problem
from elea.wire.details import pack_attachment

if TYPE_CHECKING:
    from elea.uprotocol.zenohtransport import Outlet, UTransportZenoh

__all__ = ["Prepared"]


class Prepared:
    """Sends messages; `UTransportZenoh.prepare` makes it."""

    __slots__ = ("_has_format", "_has_reqid", "_outlet", "_transport", "_written")

    def __init__(
        self, transport: UTransportZenoh, written: Written, outlet: Outlet, *, has_format: bool, has_reqid: bool
    ) -> None:
        self._transport = transport
        self._outlet = outlet
        self._written = written
        self._has_format = has_format
        self._has_reqid = has_reqid

    def send(
        self, payload: bytes | None, id: UUID | None = None, reqid: UUID | None = None, *, wait: bool = True
    ) -> None:
        """Hand one more message to the network, with an identifier of its own unless one is given.

        Raises:
            UStatusError: as `UTransportZenoh.send`.
        """
        if id is None:
            id = new_uuid()
        elif not id.is_valid:
            raise UStatusError(UCode.INVALID_ARGUMENT, id_problem("id", id))
        if self._has_reqid and (reqid is None or not reqid.is_valid):
            raise UStatusError(UCode.INVALID_ARGUMENT, id_problem("reqid", reqid))
        if payload is None:
            if self._has_format:
                raise UStatusError(UCode.INVALID_ARGUMENT, "payload_format is set, but there is no payload")
            payload = b""
        elif type(payload) is not bytes:
            raise UStatusError(UCode.INVALID_ARGUMENT, f"the payload is {type(payload).__name__} and not bytes")
        route, qos, _ = self._outlet
        self._transport.check(self._outlet)
        if not wait and route.is_full(qos):
            raise UStatusError(UCode.UNAVAILABLE, f"no room for message {id} now; try again later")
        try:
            route.send(pack_attachment(self._written.attachment(id, reqid)), payload, qos, True)
        except EleaError as error:
            raise UStatusError(UCode.UNAVAILABLE, f"message {id} not sent: {error}") from error
