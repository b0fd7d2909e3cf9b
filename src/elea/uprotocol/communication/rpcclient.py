"""`RpcClient`: calls methods of other entities and waits for what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elea.api.channels import Handler
from elea.model.limits import UPROTOCOL_KEYS
from elea.uprotocol.attributes import UAttributes
from elea.uprotocol.communication.calloptions import PLAIN, CallOptions
from elea.uprotocol.communication.calls import Calls
from elea.uprotocol.message import UMessage
from elea.uprotocol.payload import IntoPayload, UPayload, into_payload
from elea.uprotocol.status import UCode, UStatusError
from elea.uprotocol.transport import LocalUriProvider, PreparedMessages, UTransport
from elea.uprotocol.uuid7 import UUID, new_uuid
from elea.uprotocol.uuri import ANY_UURI, UUri

if TYPE_CHECKING:
    from elea.api.channels import Source

__all__ = ["PendingCall", "RpcClient", "request_message"]


def request_message(who: LocalUriProvider, method: UUri, payload: IntoPayload, options: CallOptions | None) -> UMessage:
    """The message that calls a method. Its source has our authority: without it the answer would go to the server's.

    Raises:
        UStatusError: INVALID_ARGUMENT: not a method, or an option is wrong.
    """
    given = options or PLAIN
    data, form = into_payload(payload)
    return UMessage.request(
        who.get_source(),
        method.with_authority(who.get_authority()),
        data,
        form,
        ttl=given.call_ttl,
        id=given.id,
        priority=given.call_priority,
        token=given.token,
        permission_level=given.permission_level,
        traceparent=given.traceparent,
    )


class PendingCall:
    """A call that is under way."""

    __slots__ = ("_calls", "_channel", "_id", "_method")

    def __init__(self, calls: Calls, id: UUID, method: UUri, source: Source) -> None:
        self._calls = calls
        self._id = id
        self._method = method
        # Whoever waits at it reads the link meanwhile, so that nobody has to wake it (elea.api.channels).
        self._channel: Handler[tuple[UPayload | UStatusError | None]] = Handler(1)
        self._channel.source = source

    def settle(self, outcome: UPayload | UStatusError | None) -> None:
        """It has ended."""
        self._channel.push((outcome,))

    def result(self, timeout: float | None = None) -> UPayload | None:
        """What it gave; to be asked for once. Ends by itself when the time to live of the call is over.

        Raises:
            UStatusError: what it ended with; DEADLINE_EXCEEDED if there was no answer in time.
            OperationTimeout: `timeout` seconds have passed; the call goes on.
        """
        (outcome,) = self._channel.recv(timeout=timeout)
        if isinstance(outcome, UStatusError):
            raise outcome
        return outcome

    def cancel(self) -> None:
        """Wait no more: it ends with CANCELLED, unless it has ended."""
        if self._calls.forget(self._id):
            self.settle(UStatusError(UCode.CANCELLED, f"call of {self._method} was cancelled"))


class RpcClient:
    """Calls methods for this entity.

    ::

        with RpcClient(transport) as client:
            answer = client.invoke_method(UUri.parse("//vcu.my_vin/CD/4/B"), UPayload.json({"door": 1}))
    """

    def __init__(self, transport: UTransport) -> None:
        """Listen to the answers for this entity.

        Raises:
            UStatusError: RESOURCE_EXHAUSTED: too many listeners; UNAVAILABLE: no session.
        """
        self._transport = transport
        self._calls = Calls(transport.loop)
        self._prepared: dict[tuple[UUri, int, CallOptions | None], tuple[UAttributes, PreparedMessages]] = {}
        transport.register_listener(ANY_UURI, transport.get_source(), self._calls.arrived)
        transport.on_close(self._calls.close)

    @property
    def pending(self) -> int:
        """Calls that wait for an answer."""
        return len(self._calls)

    @property
    def unmatched(self) -> int:
        """Answers nobody waited for: late ones, repeated ones, those to another client of the same entity."""
        return self._calls.unmatched

    def start(self, method: UUri, payload: IntoPayload = None, options: CallOptions | None = None) -> PendingCall:
        """Call a method, and go on: `result()` of what this returns waits.

        Raises:
            UStatusError: as `invoke_method`, where it is known at once.
        """
        data, form = into_payload(payload)
        key = method, form, options
        found = self._prepared.get(key)
        if found is None:
            request = request_message(self._transport, method, payload, options).attributes
            if len(self._prepared) >= UPROTOCOL_KEYS:
                self._prepared.clear()
            self._prepared[key] = found = request, self._transport.prepare(request)
        request, prepared = found
        id = new_uuid() if options is None or options.id is None else options.id
        call = PendingCall(self._calls, id, method, self._transport)
        self._calls.begin(id, request, call.settle)
        try:
            prepared.send(data, id)
        except BaseException:
            self._calls.forget(id)
            raise
        return call

    def invoke_method(
        self, method: UUri, payload: IntoPayload = None, options: CallOptions | None = None
    ) -> UPayload | None:
        """Call a method and wait for its answer, at most the time to live (10 s unless `options` say otherwise).

        Raises:
            UStatusError: INVALID_ARGUMENT (no method), UNAVAILABLE (nobody serves it now), DEADLINE_EXCEEDED (no answer
                in time), ALREADY_EXISTS (the id is in use), CANCELLED (the client was closed), or what the server said.
        """
        call = self.start(method, payload, options)
        try:
            return call.result()
        except BaseException:
            call.cancel()
            raise

    def close(self) -> None:
        """Listen no more; calls that wait end with CANCELLED."""
        try:
            self._transport.unregister_listener(ANY_UURI, self._transport.get_source(), self._calls.arrived)
        except UStatusError as error:  # it has ended with its transport
            if error.code is not UCode.NOT_FOUND:
                raise
        self._calls.close()

    def __enter__(self) -> RpcClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
