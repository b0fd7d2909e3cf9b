"""Predicates of subscribers beside eclipse-zenoh, which knows nothing of them: it passes them over, nobody loses."""

from __future__ import annotations

from typing import Any

import pytest
import zenoh

import elea
from tests.interop.inbox import free_port
from tests.interop.network import configuration
from tests.robust.children import eventually

pytestmark = pytest.mark.interop


def session(library: Any, mode: str, **entries: Any) -> Any:
    """A session of a library; `__` stands for `/`."""
    made = {path.replace("__", "/"): value for path, value in entries.items()}
    return library.open(configuration(library, {"mode": mode, "listen/endpoints": [], **made}))


@pytest.mark.parametrize("router_of", [elea, zenoh], ids=lambda library: f"router-{library.__name__}")
@pytest.mark.parametrize("publisher_of", [elea, zenoh], ids=lambda library: f"publisher-{library.__name__}")
def test_subscriber_gets_what_it_wants_through_any_router(router_of: Any, publisher_of: Any) -> None:
    got: list[str] = []
    everything: list[str] = []
    port = free_port()
    locator = f"tcp/127.0.0.1:{port}"
    with (
        session(router_of, "router", listen__endpoints=[locator]),
        session(elea, "client", connect__endpoints=[locator]) as desk,
        session(zenoh, "client", connect__endpoints=[locator]) as other,
        session(publisher_of, "client", connect__endpoints=[locator]) as robot,
    ):
        subscriber = desk.declare_subscriber(
            "where/**", lambda sample: got.append(sample.payload.to_string()), where="value > 7"
        )
        publisher = robot.declare_publisher("where/1")
        eventually(lambda: publisher.matching_status.matching, "the subscriber is known")
        for number in range(10):
            publisher.put(str(number))
        eventually(lambda: len(got) == 2, "what is wanted has come")

        # Somebody else wants everything, and gets it.
        other.declare_subscriber("where/1", lambda sample: everything.append(sample.payload.to_string()))
        eventually(lambda: publisher.put("0") or everything, "what another wants has come")

        assert got == ["8", "9"]
        assert (subscriber.where.refused == 0) is (router_of is elea)
