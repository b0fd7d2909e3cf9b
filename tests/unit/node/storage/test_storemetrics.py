"""The counters of storages on the metrics page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import elea
from elea.api.session import Session
from elea.model.errors import StoreFull
from elea.store import Log, Record
from tests.unit.node.storage.serving import Broker, configuration, eventually, manager, samples, told


def page(session: Session, made: Broker) -> dict[str, int]:
    """Names with labels → values."""
    (sample,) = samples(session, f"@/{made.session.zid()}/router/metrics?compression=false")
    lines = sample.payload.to_string().splitlines()
    assert lines[-1] == "# EOF"
    described = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    found = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    for name in found:
        assert name.partition("{")[0].removesuffix("_total").removesuffix("_info") in described
    return {name: int(value) for name, value in found.items()}


class FullLog:
    """A log on a disk that is full."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def append(self, records: list[Record]) -> Any:
        raise StoreFull("no room")


def test_metrics_page_has_the_counters_of_each_storage(tmp_path: Path) -> None:
    config = configuration(
        mode="router",
        listen={"endpoints": ["tcp/127.0.0.1:0"]},
        adminspace={"enabled": True},
        plugins=manager(
            tmp_path, home={"key_expr": "home/**", "volume": "log"}, now={"key_expr": "now/**", "volume": "memory"}
        ),
    )
    with elea.open(config) as session:
        made = Broker.__new__(Broker)
        made.session, made.locator = session, session._runtime.links.locators()[0]
        storages = session._runtime.storages
        assert storages is not None
        made.storages = storages
        with made.client() as client:
            client.put("home/a", "x", ack=True)
            client.put("home/b", "x", congestion_control=elea.CongestionControl.BLOCK)
            client.put_batch([("now/a", "1"), ("now/b", "2")], durability="transient")
            samples(client, "home/**")
            home = made.storage("home")
            home._committer._log = FullLog(home.log)  # type: ignore[assignment]
            client.put("home/c", "x", congestion_control=elea.CongestionControl.BLOCK)
            eventually(lambda: home.not_kept["full"] == 1, "the loss")
            client.cursor("home/**", "reader").move(1)
            found = page(client, made)
            facts = told(client, f"@store/info/{session.zid()}/home")

    assert found['elea_store_kept_samples_total{storage="home"}'] == 2
    assert found['elea_store_kept_samples_total{storage="now"}'] == 2
    assert found['elea_store_kept_samples_total{storage="default"}'] == 0
    assert found['elea_store_acknowledged_samples_total{storage="home"}'] == 1
    assert found['elea_store_acknowledged_samples_total{storage="now"}'] == 2
    assert found['elea_store_not_kept_samples_total{storage="home",reason="full"}'] == 1
    assert found['elea_store_end_position{storage="home"}'] == 2
    assert found['elea_store_state{storage="home",state="open"}'] == 1
    assert found['elea_store_state{storage="home",state="full"}'] == 0
    assert found['elea_store_damaged{storage="home"}'] == 0
    assert found['elea_store_cursors{storage="home"}'] == 1
    assert found['elea_store_commits_total{storage="home"}'] >= 2
    assert found['elea_store_bytes{storage="home"}'] > 0
    assert found["elea_store_queries"] == 0
    assert (facts["acknowledged"], facts["kept"], facts["not_kept"]) == (1, 2, {"full": 1})
