"""What may block, done outside of the loop; and signatures shared with the threaded twin.

Not the loop's own executor: `asyncio.run` waits for its threads before it returns, and a program that leaves the loop
while a node is still being looked for must not wait for that. These threads are daemons.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

__all__ = ["in_thread", "in_thread_soon", "twin"]

P = ParamSpec("P")
R = TypeVar("R")

WORKERS: Final = 32
"""Blocking calls at the same time; the next ones wait."""

IDLE: Final = 1.0
"""Seconds a thread stays when there is nothing to do."""


def twin(
    method: Callable[Concatenate[Any, P], R],
) -> Callable[[Callable[..., Coroutine[Any, Any, R]]], Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]]:
    """Gives a coroutine function the parameters and the description of the threaded method it stands for."""

    def give(function: Callable[..., Coroutine[Any, Any, R]]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
        functools.update_wrapper(function, method, assigned=("__doc__",), updated=())
        function.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
        return function

    return give


async def in_thread(work: Callable[[], R], *, unwanted: Callable[[R], object] | None = None) -> R:
    """The result of a blocking call.

    A cancelled caller waits no longer, but the call goes on; `unwanted` gets what it returns then.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()

    def settle(result: R | None, error: BaseException | None) -> None:
        if future.cancelled():
            if error is None and unwanted is not None:
                # It may block as well, so not here.
                _workers.submit(lambda: unwanted(result))  # type: ignore[arg-type]
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def job() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as problem:  # noqa: BLE001 - handed over to the caller
            error = problem
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:  # the loop is closed
            if error is None and unwanted is not None:
                unwanted(result)  # type: ignore[arg-type]

    _workers.submit(job)
    return await future


def in_thread_soon(work: Callable[[], object]) -> None:
    """The same for work that says itself what comes of it."""
    _workers.submit(work)


class _Workers:
    """Daemon threads for blocking calls, there only as long as they are needed."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._free = 0
        self._count = 0

    def submit(self, job: Callable[[], object]) -> None:
        self._jobs.put(job)
        with self._lock:
            if self._free >= self._jobs.qsize() or self._count >= WORKERS:
                return
            self._count += 1
        threading.Thread(target=self._run, name="elea-aio", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                self._free += 1
            try:
                job = self._jobs.get(timeout=IDLE)
            except queue.Empty:
                with self._lock:
                    self._free -= 1
                    if self._jobs.empty():
                        self._count -= 1
                        return
                continue
            with self._lock:
                self._free -= 1
            job()
            del job


_workers: Final = _Workers()
