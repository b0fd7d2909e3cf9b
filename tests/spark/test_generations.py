"""One key, six nodes and more, Spark among them: every put is seen by all of them, also those of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.interop.generations import KEY, all_nodes, check_all_seen, meanwhile, storing


class SparkNode:
    """Puts rows, and sees what the broker has kept as rows."""

    sees_own = True

    def __init__(self, spark: Any, locator: str) -> None:
        self._spark = spark
        self._locator = locator

    def put(self, payload: bytes) -> None:
        frame = self._spark.createDataFrame([(KEY, payload)], "key string, payload binary").coalesce(1)
        frame.write.format("zenoh").mode("append").option("connect", self._locator).save()

    def seen(self) -> list[bytes]:
        rows = self._spark.read.format("zenoh").option("connect", self._locator).load(KEY)
        return [bytes(row["payload"]) for row in rows.select("payload").collect()]


def test_every_put_of_six_nodes_is_seen_by_all(spark: Any, tmp_path: Path) -> None:
    with storing(tmp_path / "store") as (broker, line), all_nodes(broker, line) as nodes:
        (modern,) = broker._runtime.links.locators("zenoh1")
        rows = SparkNode(spark, modern)
        put = {name: [f"{name} 0".encode(), f"{name} 1 ".encode() * 20] for name in [*nodes, "spark"]}

        for number in range(2):
            for name, node in nodes.items():
                node.put(put[name][number])
            meanwhile(nodes, lambda number=number: rows.put(put["spark"][number]))  # type: ignore[misc]
        check_all_seen(nodes, put)

        found = meanwhile(nodes, rows.seen)
        assert sorted(found) == sorted(one for puts in put.values() for one in puts)
        check_all_seen(nodes, put)  # and nothing came twice
