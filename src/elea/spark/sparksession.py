"""`elea.spark.session()`: a Spark session from the extra `spark` alone, set up for this pipeline."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from elea.model.errors import ConfigError
from elea.spark import java
from elea.spark.options import PARALLELISM
from elea.spark.sparkhome import remove_scratch, spark_home, sweep_scratch, took_scratch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LOCAL_SETTINGS", "prepare", "session"]

_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
_CHECKPOINTING: Final = f"{_STREAMING}.checkpointing"

SETTINGS: Final = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # Keeps the state of aggregations beside the heap: a large one does not stop the world. Comes with PySpark.
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
}
"""What is set wherever Spark runs."""

SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""An environment variable that `spark-submit` sets for the program it starts."""

_cleaned: Final[set[str]] = set()
"""Applications whose directories are removed at the end."""

LOCAL_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The other one starts a `chmod` for every file of a checkpoint, 50 ms a micro-batch. It relies on atomic renames:
    # right for local disks, wrong for object stores.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
    # Arrow's Java looks at every index twice, a fifth of what a row from Python costs. Offsets are looked at when
    # samples are stored, and blocks have checksums.
    "spark.driver.extraJavaOptions": "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false",
}
"""What is set besides if driver and executors are on this machine."""


def session(
    name: str = "elea",
    *,
    master: str | None = None,
    remote: str | None = None,
    settings: Mapping[str, str] | None = None,
    ui: bool = False,
    log_level: str | None = "ERROR",
) -> SparkSession:
    """A Spark session that can read and write `format("zenoh")`; the one that runs already, if there is one.

    ::

        spark = elea.spark.session()
        spark.read.format("zenoh").load("fleet/**").show()

    Args:
        master: where Spark runs: `local[2]`, `local-cluster[2,1,1024]`, `spark://host:7077`; unless given where
            `spark-submit` was told, or `local[*]`.
        remote: a Spark Connect server instead, `sc://host:15002`, or `local[2]` for one of its own.
        settings: further settings of Spark, which go before ours.
        ui: whether Spark's web pages are served.
        log_level: what Spark prints of its own; None leaves it alone.

    Raises:
        ConfigError: pyspark or Java is missing.
    """
    wanted = {} if settings is None else dict(settings)
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ConfigError("pyspark", "it is not installed", "run in a clone of Elea: pip install '.[spark]'") from error
    if remote is None:
        master = master or wanted.pop("spark.master", None) or os.environ.get("MASTER")
        if master is None and SUBMITTED not in os.environ:  # who submits says where
            master = "local[*]"
    is_here = (master or remote or "").startswith("local")
    os.environ.setdefault(PARALLELISM, str(cores_of(master or remote or "")))
    if remote is None or is_here:
        prepare(is_here=is_here)
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    elif remote is not None:
        builder = builder.remote(remote)
    for key, value in {**settings_for(master or remote or "", ui=ui), **wanted}.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        # What a Connect server was started with cannot be set again for a session, which is tried all the same.
        warnings.filterwarnings("ignore", "Failed to set", UserWarning)
        made = builder.getOrCreate()
    if log_level is not None and remote is None:
        made.sparkContext.setLogLevel(log_level)
    if (master or "").startswith("local-cluster"):
        _clean_up_after(made)
    return made


def _clean_up_after(spark: SparkSession) -> None:
    """Have the directories of executors of this machine removed when the program ends; Spark leaves them."""
    home, application = Path(os.environ["SPARK_HOME"]), str(spark.sparkContext.applicationId)
    if application in _cleaned:
        return
    _cleaned.add(application)
    sweep_scratch(home)
    took_scratch(home, application)

    def end() -> None:
        with contextlib.suppress(Exception):  # it may have ended, in whatever way
            spark.stop()
        remove_scratch(home, application)

    atexit.register(end)


def cores_of(master: str) -> int:
    """How many tasks run at the same time, as far as the text says; two if it does not."""
    found = re.match(r"local\[(\*|\d+)(?:,\d+)?\]|local-cluster\[(\d+),(\d+)", master)
    if found is None:
        return 2
    if found[1] is None:
        return int(found[2]) * int(found[3])
    return os.cpu_count() or 2 if found[1] == "*" else int(found[1])


def settings_for(master: str, *, ui: bool) -> dict[str, str]:
    """The settings for a place to run."""
    found = dict(SETTINGS)
    if master.startswith("sc://"):  # the rest is the server's own
        return {"spark.sql.session.timeZone": "UTC"}
    found["spark.ui.enabled"] = str(ui).lower()
    if master.startswith("local"):
        found |= LOCAL_SETTINGS
        if sys.platform != "win32":
            # Rows pass between Java and Python at half the cost of TCP.
            found["spark.python.unix.domain.socket.enabled"] = "true"
        found["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 2)
    return found


def prepare(*, is_here: bool = True) -> None:
    """Set the environment that Spark is started with: Java, and this Python for its workers."""
    java.ensure()
    # Else workers are the `python3` of the path, which need not have any of our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if is_here:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        if "SPARK_HOME" not in os.environ:  # local-cluster starts its workers from there
            import pyspark

            os.environ["SPARK_HOME"] = str(spark_home(Path(pyspark.__file__).parent))
