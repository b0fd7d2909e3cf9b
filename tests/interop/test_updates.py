"""Updates of many keys by eclipse-zenoh clients outlive `kill -9` of the broker."""

from __future__ import annotations

from pathlib import Path

import pytest
import zenoh

from tests.interop.storing import StoringBroker, client
from tests.interop.test_storage import acknowledged, get

pytestmark = pytest.mark.interop

BLOCK = zenoh.CongestionControl.BLOCK


def test_updates_count_for_older_samples_that_come_after_kill_9(tmp_path: Path) -> None:
    with StoringBroker("--store", str(tmp_path), "--persist", "home/**") as broker:
        with client(broker.locator) as session:
            old = session.new_timestamp()
            for key in ("home/a/1", "home/a/2", "home/b/1"):
                session.put(key, "before", congestion_control=BLOCK)
            session.delete("home/a/*", congestion_control=BLOCK)
            session.put("home/b/*", "for all", congestion_control=BLOCK)
            acknowledged(session, "home/c", 1, "behind them")  # so they have been seen
            before = get(session, "home/**")
        broker.kill()
        broker.restart()
        with client(broker.locator) as session:
            after = get(session, "home/**")
            for key in ("home/a/3", "home/b/3"):
                session.put(key, "late", timestamp=old, congestion_control=BLOCK)
            session.put("home/a/4", "new", congestion_control=BLOCK)
            end = get(session, "home/**")

    assert before == after == [("home/b/1", "for all"), ("home/c", "behind them")]
    assert end == [("home/a/4", "new"), ("home/b/1", "for all"), ("home/b/3", "for all"), ("home/c", "behind them")]
