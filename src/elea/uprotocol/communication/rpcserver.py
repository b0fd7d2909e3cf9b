"""`RpcServer`: answers calls of the methods of this entity."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from functools import partial

from elea.model.limits import UPROTOCOL_CALLS
from elea.uprotocol.attributes import UAttributes
from elea.uprotocol.communication.answering import Answerer, Authorize, Request, any_client
from elea.uprotocol.message import UMessage
from elea.uprotocol.payload import IntoPayload, UPayload
from elea.uprotocol.status import UCode, UStatus, UStatusError
from elea.uprotocol.transport import UTransport
from elea.uprotocol.uuri import UUri

__all__ = ["RequestHandler", "RpcServer"]

RequestHandler = Callable[[int, UAttributes, "UPayload | None"], IntoPayload]
"""`handler(resource_id, attributes, payload)` returns the payload of the answer, or raises UStatusError."""


class RpcServer:
    """Serves methods of this entity.

    ::

        with RpcServer(transport) as server:
            server.register_endpoint(None, 0x0B, lambda method, attributes, payload: payload)

    Requests for one method are worked on one after the other, in the thread that received them, which is the fastest
    way for handlers that do not wait. With `workers` so many are worked on at a time, each in a thread of its own.
    """

    def __init__(self, transport: UTransport, *, workers: int = 0, authorize: Authorize | None = None) -> None:
        """Serve nothing yet.

        Args:
            workers: threads for handlers that wait for something.
            authorize: says for the attributes of a request whether it is allowed (`UCode.OK`), or the code to refuse.
        """
        self._transport = transport
        self._answerer = Answerer(transport.loop, transport.send, authorize)
        self._endpoints: dict[int, tuple[UUri, RequestHandler, Callable[[UMessage], None]]] = {}
        self._lock = threading.Lock()
        self._workers = _Workers(workers) if workers > 0 else None
        transport.on_close(self._stop_workers)

    @property
    def pending(self) -> int:
        """Requests that are worked on or wait for it."""
        return len(self._answerer)

    @property
    def timed_out(self) -> int:
        """Requests whose handler took longer than their time to live; they were answered so."""
        return self._answerer.timed_out

    @property
    def failed(self) -> int:
        """Requests whose handler broke: it raised something else than a UStatusError, or gave what cannot be sent."""
        return self._answerer.failed

    @property
    def unsent(self) -> int:
        """Answers that could not be sent."""
        return self._answerer.unsent

    def register_endpoint(self, origin_filter: UUri | None, resource_id: int, handler: RequestHandler) -> None:
        """Answer calls of the method `resource_id` by those whom `origin_filter` names (default: everybody).

        Raises:
            UStatusError: INVALID_ARGUMENT (not a method, or an origin whose resource is not 0), ALREADY_EXISTS (it has
                a handler), RESOURCE_EXHAUSTED (too many listeners).
        """
        origin = any_client(origin_filter)
        method = self._transport.get_resource(resource_id)
        if not method.is_method:
            raise UStatusError(UCode.INVALID_ARGUMENT, f"{method} is no method: its resource must be in 1..7FFF")
        with self._lock:
            if resource_id in self._endpoints:
                raise UStatusError(UCode.ALREADY_EXISTS, f"{method} has a handler already")
            listener = partial(self._arrived, resource_id, handler)
            self._transport.register_listener(origin, method, listener)
            self._endpoints[resource_id] = origin, handler, listener

    def unregister_endpoint(self, origin_filter: UUri | None, resource_id: int, handler: RequestHandler) -> None:
        """Answer no more; a call that is being worked on is still answered.

        Raises:
            UStatusError: NOT_FOUND: it is not registered with this origin and handler.
        """
        origin = any_client(origin_filter)
        with self._lock:
            found = self._endpoints.get(resource_id)
            if found is None or found[:2] != (origin, handler):
                raise UStatusError(UCode.NOT_FOUND, f"method {resource_id:X} has no such handler")
            del self._endpoints[resource_id]
        self._transport.unregister_listener(origin, self._transport.get_resource(resource_id), found[2])

    def close(self) -> None:
        """Answer nothing any more."""
        with self._lock:
            ending = dict(self._endpoints)
            self._endpoints.clear()
        for resource_id, (origin, _, listener) in ending.items():
            try:
                self._transport.unregister_listener(origin, self._transport.get_resource(resource_id), listener)
            except UStatusError as error:  # it has ended with its transport
                if error.code is not UCode.NOT_FOUND:
                    raise
        self._stop_workers()

    def __enter__(self) -> RpcServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _arrived(self, resource_id: int, handler: RequestHandler, message: UMessage) -> None:
        request = self._answerer.accept(message)
        if request is None:
            return
        work = partial(_work, resource_id, handler, request)
        if self._workers is None:
            work()
        elif not self._workers.offer(work):
            self._answerer.refuse(request, UStatus(UCode.RESOURCE_EXHAUSTED, f"{UPROTOCOL_CALLS} requests wait"))

    def _stop_workers(self) -> None:
        if self._workers is not None:
            self._workers.stop()


def _work(resource_id: int, handler: RequestHandler, request: Request) -> None:
    try:
        value = handler(resource_id, request.attributes, request.payload)
    except Exception as error:  # noqa: BLE001 - the caller is told
        request.fail(error)
    else:
        request.answer(value)


class _Workers:
    """Threads that work on requests; made when there is work."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue(UPROTOCOL_CALLS)
        self._threads: list[threading.Thread] = []
        self._stopped = False

    def offer(self, job: Callable[[], None]) -> bool:
        """Have it done; False if there is no room."""
        if self._stopped:
            return False
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            return False
        if len(self._threads) < self._count:
            thread = threading.Thread(target=self._run, name="elea-uprotocol", daemon=True)
            self._threads.append(thread)
            thread.start()
        return True

    def stop(self) -> None:
        """No more; what is being done is finished, what waits is not begun."""
        self._stopped = True
        while True:
            try:
                self._jobs.get_nowait()
            except queue.Empty:
                break
        for _ in self._threads:
            self._jobs.put_nowait(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # while this waits for the next, it must not keep the request
