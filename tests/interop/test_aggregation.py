"""`aggregation`: one expression is declared for all subscribers or publishers it includes, as eclipse-zenoh does."""

from __future__ import annotations

import json
from typing import Any

import pytest
import zenoh

import elea
from tests.robust.children import config as configuration
from tests.robust.children import eventually

pytestmark = pytest.mark.interop

AGGREGATED = {"subscribers": ["agg/**"], "publishers": ["out/*"]}


@pytest.fixture(
    params=[(elea, None), (zenoh, None), (elea, "ns"), (zenoh, "ns")], ids=lambda p: f"{p[0].__name__}-{p[1]}"
)
def far(request: pytest.FixtureRequest) -> tuple[Any, str | None]:
    library, namespace = request.param
    return library, namespace


def test_router_sees_the_expression_and_the_subscribers_get_their_samples(far: tuple[Any, str | None]) -> None:
    library, namespace = far
    before = "" if namespace is None else f"{namespace}/"
    with elea.open(configuration("router", "listen", "tcp/127.0.0.1:0")) as hub:
        config = library.Config()
        for path, value in {
            "mode": "client",
            "connect/endpoints": [hub._runtime.links.locators()[0]],
            "scouting/multicast/enabled": False,
            "aggregation": AGGREGATED,
            **({} if namespace is None else {"namespace": namespace}),
        }.items():
            config.insert_json5(path, json.dumps(value))

        def declared(kind: str) -> list[str]:
            with hub._node.lock:
                found = getattr(hub._node.space.snapshot(), kind)
            return sorted(key for key in found if not key.startswith("@"))

        got: list[str] = []
        with library.open(config) as session:
            one = session.declare_subscriber("agg/a", lambda sample: got.append(str(sample.key_expr)))
            two = session.declare_subscriber("agg/b/*", lambda sample: got.append(str(sample.key_expr)))
            other = session.declare_subscriber("other/a", lambda sample: None)
            publishers = [session.declare_publisher(key) for key in ("out/a", "out/b", "else")]
            eventually(lambda: declared("subscribers") == [f"{before}agg/**", f"{before}other/a"], "declarations")
            eventually(lambda: declared("publishers") == [f"{before}else", f"{before}out/*"], "interests")
            for key in ("agg/c", "agg/a", "agg/b/x"):
                hub.put(before + key, "x")
            # eclipse-zenoh has a thread for each subscriber, so there is no order between two of them.
            eventually(lambda: sorted(got) == ["agg/a", "agg/b/x"], "the samples")
            one.undeclare()
            other.undeclare()
            eventually(lambda: declared("subscribers") == [f"{before}agg/**"], "what one still wants")
            two.undeclare()
            eventually(lambda: declared("subscribers") == [], "nothing")
            for publisher in publishers:
                publisher.undeclare()
            eventually(lambda: declared("publishers") == [], "nothing")
