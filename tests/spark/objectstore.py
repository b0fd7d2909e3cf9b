"""An S3 server as a process of its own (moto's), and the environment by which everybody finds it.

Tasks have the environment with which Spark was started, so it is set before the session of the tests is made
(`conftest`), with the port at which the server will be.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from tests.interop.inbox import free_port
from tests.robust.children import eventually

__all__ = ["BUCKET", "object_store", "prepare"]

BUCKET = "lake"


@cache
def prepare() -> int:
    """Have the environment name the server; its port."""
    port = free_port()
    os.environ.update(
        {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ALLOW_HTTP": "true",
        }
    )
    return port


@contextmanager
def object_store() -> Iterator[str]:
    """The address of an empty bucket; the server ends with this."""
    port = prepare()
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: _listens(port), "the server listens", 60.0)
        request = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT")
        urllib.request.urlopen(request, timeout=60).close()
        yield f"s3://{BUCKET}"
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
