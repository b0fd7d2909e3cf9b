"""`strip_prefix`: stored under the rest of the key, answered with the whole one."""

from __future__ import annotations

from pathlib import Path

import elea
from elea.store import open_log
from tests.unit.node.storage.serving import batch, broker, samples, table, values

LOG = {"key_expr": "home/1/**", "volume": "log", "strip_prefix": "home/1", "complete": True}


def test_clients_see_whole_keys_and_the_files_have_the_rest(tmp_path: Path) -> None:
    with broker(tmp_path, home=LOG) as made, made.client() as client:
        with client.declare_subscriber("**") as live:
            client.put("home/1/a", "x", ack=True)
            client.put("home/1", "y", ack=True)
            samples(client, "@store/batch/home/1/**?src=a1.1.1", payload=batch([("home/1/b", b"z")]))
            heard = sorted(str(live.recv().key_expr) for _ in range(3))
        got = values(client, "home/**")
        rows, _ = table(client, "@store/read/home/1/**")
        client.delete("home/1/*", congestion_control=elea.CongestionControl.BLOCK)
        left = values(client, "**")
    with open_log(tmp_path / "home", read_only=True) as log:
        stored = [(one.record.key, one.record.payload) for one in log.read()][:3]

    assert heard == ["home/1", "home/1/a", "home/1/b"]
    assert got == [("home/1/a", "x"), ("home/1", "y"), ("home/1/b", "z")]
    assert [row["key"] for row in rows] == ["home/1/a", "home/1", "home/1/b"]
    assert left == [("home/1", "y")]
    assert stored == [("a", b"x"), ("", b"y"), ("b", b"z")]


def test_a_directory_can_be_served_under_another_prefix(tmp_path: Path) -> None:
    with broker(tmp_path, home=LOG) as made:
        made.session.put("home/1/a", "x", ack=True)
    with broker(tmp_path, home={**LOG, "key_expr": "archive/**", "strip_prefix": "archive"}) as made:
        assert values(made.session, "archive/**") == [("archive/a", "x")]
