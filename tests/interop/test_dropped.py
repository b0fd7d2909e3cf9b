"""Handles that a program drops: those with a function as handler go on, all others end, with both libraries."""

from __future__ import annotations

import gc
import importlib
import time
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.interop

QUIET = "{mode: 'peer', scouting: {multicast: {enabled: false}}, listen: {endpoints: ['tcp/127.0.0.1:0']}}"
WAIT = 10.0


def publisher(session: Any) -> Any:
    return session.declare_publisher("a")


def querier(session: Any) -> Any:
    return session.declare_querier("a")


KINDS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "subscriber": (lambda session, handler: session.declare_subscriber("a", handler), publisher),
    "queryable": (lambda session, handler: session.declare_queryable("a", handler), querier),
}
HANDLERS: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "channel": (lambda library: None, False),
    "ring": (lambda library: library.handlers.RingChannel(3), False),
    "pair": (lambda library: (lambda _: None, "anything"), False),
    "function": (lambda library: lambda _: None, True),
    "callback": (lambda library: library.handlers.Callback(lambda _: None), True),
}


def becomes(wanted: bool, ask: Callable[[], bool]) -> bool:
    """Whether an answer becomes what is wanted."""
    until = time.monotonic() + WAIT
    while ask() is not wanted and time.monotonic() < until:
        time.sleep(0.01)
    return ask() is wanted


@pytest.mark.parametrize("library", ["zenoh", "elea"])
@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize("kind", KINDS)
def test_dropped_handle_ends_unless_a_function_is_its_handler(kind: str, handler: str, library: str) -> None:
    module = importlib.import_module(library)
    declare, watch = KINDS[kind]
    make, goes_on = HANDLERS[handler]
    with module.open(module.Config.from_json5(QUIET)) as session:
        watcher = watch(session)
        handle = declare(session, make(module))
        assert becomes(True, lambda: bool(watcher.matching_status.matching))

        del handle
        gc.collect()

        if goes_on:
            time.sleep(0.1)  # it must not end, and there is nothing to wait for
            assert watcher.matching_status.matching
        else:
            assert becomes(False, lambda: bool(watcher.matching_status.matching))


@pytest.mark.parametrize("library", ["zenoh", "elea"])
def test_dropped_token_is_gone(library: str) -> None:
    module = importlib.import_module(library)
    seen: list[str] = []
    with module.open(module.Config.from_json5(QUIET)) as session:
        session.liveliness().declare_subscriber("a", lambda sample: seen.append(str(sample.kind)))
        token = session.liveliness().declare_token("a")
        assert becomes(True, lambda: len(seen) == 1)

        del token
        gc.collect()

        assert becomes(True, lambda: seen == ["SampleKind.PUT", "SampleKind.DELETE"])
