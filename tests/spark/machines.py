"""A standalone cluster of Spark on machines of its own: driver, two executors and broker, each in a network namespace.

    python -m tests.spark.machines                                # everything
    python -m tests.spark.machines --rows 100000 --targets delta --calm

The machines share nothing but a folder for tables (`tests.spark.namespaces`); checkpoints are the driver's alone, the
store is the broker's. A log is read as a batch, and by streams into Delta (`delta`, `ingest`, `merge`), back into the
broker (`sink`) and into an object store on a fifth machine (`s3`, `s3-ingest`). First each in peace: how many tasks
read, and how many bytes each machine received and sent. Then in small batches while there is trouble: an executor is
killed, the network between an executor and the broker fails for three seconds, then until the stream has gone on
without it; of `s3` the one between an executor and the object store as well. In the end every number must be there
once. One JSON object is printed for each run. Exit code 1: rows are lost or twice; 3: no namespaces can be made here,
and it says what is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from elea.spark import java
from tests.robust.children import Child, eventually
from tests.spark.namespaces import Machines, lacking
from tests.spark.trouble import ROOT, descendants

__all__ = ["TARGETS", "run"]

DRIVER, BROKER, STORE = "driver", "broker", "store"
EXECUTORS = ("one", "two")
TARGETS = ("delta", "ingest", "merge", "sink", "s3", "s3-ingest")
BATCHES = 14
SMALL = 10_000
"""Rows that are not worth a file of a task."""

PATIENCE = 600.0
SHORT_SECONDS = 3.0
STATUS_ENDED = 143
PORTS = {"master": "7077", BROKER: "7447", STORE: "5000"}


class Cluster:
    """Everything that runs, and where."""

    def __init__(self, machines: Machines, stack: contextlib.ExitStack, *, has_store: bool) -> None:
        self.machines = machines
        self._stack = stack
        self._workers: dict[str, Child] = {}
        self._environment = self._prepared(has_store=has_store)
        locator = f"tcp/{machines.address(BROKER)}:{PORTS[BROKER]}"
        broker = ["elea", "broker", "--json", "--quiet", "--no-multicast-scouting", "-l", locator]
        self.broker = self._child(BROKER, [*broker, "--store", str(machines.place / "log"), "--persist", "**"])
        self.broker.answer(PATIENCE)
        master = f"spark://{machines.address(DRIVER)}:{PORTS['master']}"
        self._spark_class(DRIVER, "master.Master", "--port", PORTS["master"])
        for name in EXECUTORS:
            self._workers[name] = self._spark_class(
                name, "worker.Worker", "--cores", "1", "--memory", "768m", "--work-dir",
                str(machines.place / "work"), master,
            )  # fmt: skip
        own = [master, machines.address(DRIVER), locator, str(machines.place)]
        self.driver = self._child(DRIVER, ["tests.spark.machinedriver", *own])
        assert self.driver.answer(PATIENCE) == "ready"
        if has_store:
            self._child(STORE, ["moto.server", "-H", machines.address(STORE), "-p", PORTS[STORE]])
            eventually(self._has_bucket, "the bucket", PATIENCE)

    def _prepared(self, *, has_store: bool) -> dict[str, str]:
        import pyspark

        java.ensure()
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        found = {
            "SPARK_HOME": str(Path(pyspark.__file__).parent), "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": str(self.machines.place / "tmp"), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths,
        }  # fmt: skip
        if has_store:
            found |= {
                "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL": self._store_address, "AWS_ALLOW_HTTP": "true",
            }  # fmt: skip
        return found

    @property
    def _store_address(self) -> str:
        return f"http://{self.machines.address(STORE)}:{PORTS[STORE]}"

    def _has_bucket(self) -> bool:
        return "told" in self.driver.ask("bucket", f"{self._store_address}/lake", timeout=PATIENCE)

    def _child(self, machine: str, words: Sequence[str], start: Callable[..., Any] | None = None) -> Child:
        log = self._stack.enter_context((self.machines.files(machine) / f"{words[0]}.log").open("ab"))
        start = start or partial(self.machines.start, machine)
        environment = {**self._environment, "SPARK_LOCAL_IP": self.machines.address(machine)}
        made = Child(list(words), start=start, environment=environment, stderr=log, start_new_session=True)
        self._stack.callback(_end, made)
        return made

    def _spark_class(self, machine: str, kind: str, *words: str) -> Child:
        """A daemon of Spark, when it is up."""
        program = [f"{self._environment['SPARK_HOME']}/bin/spark-class", f"org.apache.spark.deploy.{kind}"]
        address = ["--host", self.machines.address(machine), "--webui-port", "0"]

        def start(called: Sequence[str], **options: Any) -> Any:
            return self.machines.start(machine, [*program, *address, *words], **options)

        made = self._child(machine, [kind], start)
        log = self.machines.files(machine) / f"{kind}.log"
        text = "starting spark master" if kind.startswith("master") else "successfully registered"

        def is_up() -> bool:
            said = log.read_text(errors="replace")
            assert made.is_running, f"{kind} on {machine} has ended: {said[-2000:]}"
            return text in said.lower()

        eventually(is_up, f"{text} in {log}", PATIENCE)
        return made

    def ask(self, *command: Any) -> Any:
        """What the driver answers to a command."""
        answer = self.driver.ask(*command, timeout=PATIENCE)
        assert "told" in answer, answer["failed"]
        return answer["told"]

    def kill_executor(self, name: str) -> None:
        """Its process, on one machine; the worker there starts another."""

        def found() -> list[int]:
            below = descendants(self._workers[name].process.pid)
            return [pid for pid, _, called in below if "CoarseGrainedExecutorBackend" in called]

        os.kill(eventually(found, f"an executor on {name}", PATIENCE)[0], signal.SIGKILL)


def _end(child: Child) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.process.pid, signal.SIGKILL)
    child.end()


# -- runs --------------------------------------------------------------------------------------------------------------


def batch(cluster: Cluster) -> dict[str, Any]:
    """A batch read."""
    with _measured(cluster) as told:
        told |= {"run": "batch", **cluster.ask("batch")}
    return told


def calm(cluster: Cluster, target: str, rows: int, limit: int) -> dict[str, Any]:
    """A stream in peace; with a small limit tasks have too little for files of their own."""
    name = f"calm-{target}-{limit}"
    with _measured(cluster) as told:
        cluster.ask("start", target, name, limit)
        last = _until(cluster, name, lambda now: not now["active"])
        told |= {"run": f"{target}, {limit} a batch", "batches": last["batch"] + 1, "tasks": cluster.ask("tasks", name)}
    return {**told, **cluster.ask("found", target, name), "expected": rows}


def trouble(cluster: Cluster, target: str, rows: int) -> dict[str, Any]:
    """The same in small batches, with an executor killed and networks that fail."""
    name, limit, begun = f"trouble-{target}", rows // BATCHES + 1, time.monotonic()
    one, two = EXECUTORS
    cluster.ask("start", target, name, limit)
    _after(cluster, name, 1)
    cluster.kill_executor(one)
    happened = ["executor killed"]
    _after(cluster, name, 2)
    with cluster.machines.apart(two, BROKER):
        time.sleep(SHORT_SECONDS)
    happened.append(f"network to the broker cut for {SHORT_SECONDS:.0f} s")
    happened.append(f"cut for {_cut_until_gone_on(cluster, name, two, BROKER):.0f} s, gone on without it")
    if target.startswith("s3"):
        happened.append(f"network to the store cut for {_cut_until_gone_on(cluster, name, one, STORE):.0f} s")
    is_early = not cluster.ask("progress", name)["active"]
    _until(cluster, name, lambda now: not now["active"])
    told = {"run": f"{target}, in trouble", "happened": happened, "seconds": round(time.monotonic() - begun, 1)}
    return {**told, **({"too early": True} if is_early else {}), **cluster.ask("found", target, name), "expected": rows}


def _cut_until_gone_on(cluster: Cluster, name: str, machine: str, other: str) -> float:
    """How long it took until two more batches were done by the other executor."""
    begun = time.monotonic()
    with cluster.machines.apart(machine, other):
        _after(cluster, name, cluster.ask("progress", name)["batch"] + 2)
    return time.monotonic() - begun


def _after(cluster: Cluster, name: str, batch_id: int) -> None:
    _until(cluster, name, lambda now: now["batch"] >= batch_id or not now["active"])


def _until(cluster: Cluster, name: str, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Wait until a query has come so far.

    Raises:
        AssertionError: it has failed.
    """

    def found() -> dict[str, Any] | None:
        now: dict[str, Any] = cluster.ask("progress", name)
        assert now["problem"] is None, now["problem"]
        time.sleep(0.1)
        return now if is_so(now) else None

    got: dict[str, Any] = eventually(found, f"{name} goes on", PATIENCE)
    return got


@contextlib.contextmanager
def _measured(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Bytes that machines receive and send meanwhile, and the time it takes."""
    told: dict[str, Any] = {}
    before, begun = cluster.machines.traffic(), time.monotonic()
    yield told
    told["seconds"] = round(time.monotonic() - begun, 1)
    after = cluster.machines.traffic()
    told["kilobytes"] = {
        name: {"received": _kilo(now.received - then.received), "sent": _kilo(now.sent - then.sent)}
        for (name, now), then in zip(after.items(), before.values(), strict=True)
    }


def _kilo(octets: int) -> int:
    return round(octets / 1000)


def is_right(told: dict[str, Any], rows: int) -> bool:
    """Whether a run has every number once, and all that was meant to happen did."""
    if told["run"] == "batch":
        return sum(told["rows"].values()) == rows and set(told["rows"]) == set(EXECUTORS)
    is_whole = told["rows"] == told["different"] == rows
    return is_whole and not told.get("wrong") and not told.get("too early")


def run(
    targets: Sequence[str], rows: int, *, is_calm: bool = True, is_troubled: bool = True
) -> Iterator[dict[str, Any]]:
    """What each run finds, as it ends."""
    has_store = any(one.startswith("s3") for one in targets)
    names = [DRIVER, *EXECUTORS, BROKER, *([STORE] if has_store else [])]
    with Machines(names, sharing=[DRIVER, *EXECUTORS]) as machines, contextlib.ExitStack() as stack:
        cluster = Cluster(machines, stack, has_store=has_store)
        cluster.ask("feed", rows)
        if is_calm:
            yield batch(cluster)
            for target in targets:
                yield calm(cluster, target, rows, rows)
                if target == "delta":
                    yield calm(cluster, target, rows, SMALL)
        for target in targets if is_troubled else ():
            yield trouble(cluster, target, rows)


def main() -> int:
    """For the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=700_000)
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--calm", action="store_true", help="figures only, no trouble")
    parser.add_argument("--trouble", action="store_true", help="trouble only, no figures")
    args = parser.parse_args()
    problem = lacking()
    if problem is not None:
        print(f"there are no machines to run on: {problem}", file=sys.stderr)
        return 3
    # Whoever ends it leaves no namespaces behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(STATUS_ENDED))
    wrong = 0
    for told in run(args.targets, args.rows, is_calm=not args.trouble, is_troubled=not args.calm):
        told["is right"] = is_right(told, args.rows)
        wrong += not told["is right"]
        print(json.dumps(told), flush=True)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
