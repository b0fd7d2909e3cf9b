"""The figures of a running pipeline as a page for Prometheus: `elea pipeline run --metrics 127.0.0.1:9108`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from elea.model.errors import ConfigError
from elea.node.openmetrics import OpenMetrics
from elea.spark.pipeline.report import SinkReport

__all__ = ["page", "serving"]

TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"

COUNTERS: Final = {
    "rows_in": "Rows that were computed",
    "rows_out": "Rows that were written",
    "quarantined": "Rows in the quarantine, because they broke a rule",
    "dropped": "Rows dropped, because they broke a rule",
    "late": "Rows behind the watermark, in no window",
    "batches": "Micro-batches",
    "repeated": "Micro-batches that came again after a crash, and were left out",
    "restarts": "Times that a query was started again on a machine without time",
}

Sinks = Callable[[], Sequence[SinkReport]]


def page(pipeline: str, sinks: Sequence[SinkReport]) -> str:
    """All figures of this run."""
    made = OpenMetrics(descriptors=True)
    for name, what in COUNTERS.items():
        made.family(f"elea_pipeline_{name}", "counter", f"{what}, of this run.")
        for one in sinks:
            value = getattr(one, name)
            made.sample(f"elea_pipeline_{name}_total", value, pipeline=pipeline, sink=one.name, kind=one.kind)
    made.family("elea_pipeline_lost", "counter", "Positions of logs that were passed over, by reason.")
    for one in sinks:
        for reason, count in sorted(one.losses.items()):
            made.sample("elea_pipeline_lost_total", count, pipeline=pipeline, sink=one.name, reason=reason)
    made.family("elea_pipeline_failed", "gauge", "1 if the query has ended with an error.")
    for one in sinks:
        made.sample("elea_pipeline_failed", int(one.problem is not None), pipeline=pipeline, sink=one.name)
    newest = [(one.name, one.figures[-1]) for one in sinks if one.figures]
    for name, what in {"lag": "Rows of the log that are to come", "batch_ms": "How long the last batch took"}.items():
        made.family(f"elea_pipeline_{name}", "gauge", f"{what}.")
        for sink, figures in newest:
            value = getattr(figures, name)
            if value is not None:
                made.sample(f"elea_pipeline_{name}", value, pipeline=pipeline, sink=sink)
    made.family("elea_pipeline_away_seconds", "gauge", "How long the broker of a log is away.")
    for sink, figures in newest:
        for log, seconds in sorted(figures.away.items()):
            made.sample("elea_pipeline_away_seconds", seconds, pipeline=pipeline, sink=sink, log=log)
    return str(made)


@contextmanager
def serving(address: str | None, pipeline: str, sinks: Sinks) -> Iterator[str | None]:
    """Serve the page at `/metrics` of `host:port` (port 0: any); where it is.

    Raises:
        ConfigError: the address is none, or taken.
    """
    if address is None:
        yield None
        return
    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise ConfigError("metrics", f"{address!r} is no address", "write it as 127.0.0.1:9108")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = page(pipeline, sinks()).encode() if self.path.partition("?")[0] == "/metrics" else None
            self.send_response(200 if found is not None else 404)
            self.send_header("Content-Type", TYPE if found is not None else "text/plain")
            self.send_header("Content-Length", str(len(found or b"")))
            self.end_headers()
            self.wfile.write(found or b"")

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: standard error is the report's."""

    try:
        server = ThreadingHTTPServer((host or "127.0.0.1", int(port)), Handler)
    except OSError as error:
        raise ConfigError("metrics", f"{address}: {error.strerror}", "choose another port") from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="elea-pipeline-metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{server.server_address[0]!s}:{server.server_address[1]}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
