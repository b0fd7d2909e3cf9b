"""What a session of a cluster on this machine leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import elea.spark
spark = elea.spark.session(
    master="local-cluster[1,1,512]", settings={"spark.executor.memory": "512m", "spark.driver.memory": "512m"}
)
print(spark.range(10).count())
"""


def test_cluster_on_this_machine_leaves_no_directories(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("SPARK_HOME", None)
    environment.pop("PYSPARK_PYTHON", None)

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=environment, timeout=300
    )

    (home,) = (tmp_path / "elea").glob("spark-*")
    assert done.stdout.split()[-1] == "10"
    assert (home / "work").is_dir()
    assert list((home / "work").iterdir()) == []
