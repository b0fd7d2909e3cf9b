"""What a broker's own session puts has one timestamp for subscribers here, subscribers elsewhere and storages."""

from __future__ import annotations

from pathlib import Path

import elea
from tests.unit.node.storage.serving import broker, eventually, samples

HOME = {"key_expr": "home/**", "volume": "log"}


def test_everybody_sees_the_same_timestamp(tmp_path: Path) -> None:
    with broker(tmp_path, home=HOME) as made, made.client() as client:
        own = made.session
        seen: list[list[elea.Sample]] = [[], []]
        with (
            own.declare_subscriber("home/**", seen[0].append),
            client.declare_subscriber("home/**", seen[1].append),
            own.declare_publisher("home/x") as publisher,
        ):
            eventually(lambda: own._node.route(own._node.local, "home/x").ways, "the subscriber elsewhere")
            publisher.put("1", attachment="a")
            own.put("home/x", "2")
            own.delete("home/x")
            eventually(lambda: [len(one) for one in seen] == [3, 3], "the samples")
        eventually(lambda: made.storage("home").log.end == 3, "the store")
        stored = samples(client, "home/x?_history")

    stamps = [[str(sample.timestamp) for sample in one] for one in (*seen, stored)]
    assert stamps[0] == stamps[1] == stamps[2]
    assert len(set(stamps[0])) == 3
    assert "None" not in stamps[0]
    assert [sample.kind for sample in stored] == [elea.SampleKind.PUT, elea.SampleKind.PUT, elea.SampleKind.DELETE]
