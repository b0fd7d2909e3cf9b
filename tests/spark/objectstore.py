"""An S3 server as a process of its own (moto's), and the environment by which everybody finds it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from tests.interop.inbox import free_port
from tests.robust.children import eventually

__all__ = ["BUCKET", "object_store"]

BUCKET = "lake"


@contextmanager
def object_store() -> Iterator[dict[str, str]]:
    """The variables of the environment that name it; it is empty, and ends with this."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    found = {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
    }
    try:
        eventually(lambda: _listens(port), "the server listens", 60.0)
        request = urllib.request.Request(f"{found['AWS_ENDPOINT_URL']}/{BUCKET}", method="PUT")
        urllib.request.urlopen(request, timeout=60).close()
        before = {name: os.environ.get(name) for name in found}
        os.environ.update(found)
        try:
            yield found
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
