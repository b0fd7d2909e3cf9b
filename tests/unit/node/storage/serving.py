"""A broker with storages in this process, and sessions with it over real sockets."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import elea
from elea.api.session import Session
from elea.node.storage.service import Storages
from elea.node.storage.storage import Storage

WAIT = 30.0

NONE = elea.ConsolidationMode.NONE


class Broker:
    """A router and what it keeps."""

    def __init__(self, plugins: dict[str, Any], listen: str = "tcp/127.0.0.1:0") -> None:
        self.session: Session = elea.open(configuration(mode="router", listen={"endpoints": [listen]}, plugins=plugins))
        self.locator = self.session._runtime.links.locators()[0]
        storages = self.session._runtime.storages
        assert storages is not None
        self.storages: Storages = storages

    def storage(self, name: str) -> Storage:
        return next(storage for storage in self.storages.all if storage.name == name)

    @contextlib.contextmanager
    def client(self) -> Iterator[Session]:
        with elea.open(configuration(mode="client", connect={"endpoints": [self.locator]})) as session:
            yield session


def configuration(**entries: Any) -> elea.Config:
    return elea.Config.from_json5(json.dumps({"scouting": {"multicast": {"enabled": False}, "delay": 0}, **entries}))


def manager(directory: Path | None = None, /, **storages: Any) -> dict[str, Any]:
    volumes = {} if directory is None else {"log": {"dir": str(directory)}}
    return {"storage_manager": {"volumes": volumes, "storages": storages}}


@contextlib.contextmanager
def broker(directory: Path | None = None, /, **storages: Any) -> Iterator[Broker]:
    made = Broker(manager(directory, **storages))
    try:
        yield made
    finally:
        made.session.close()


def eventually(true: Callable[[], object], what: str) -> None:
    end = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < end, f"{what}: not within {WAIT} s"
        time.sleep(0.01)


def samples(session: Session, selector: str, **options: Any) -> list[elea.Sample]:
    """What a get brings; fails if it brings an error."""
    replies = list(session.get(selector, consolidation=NONE, timeout=WAIT, **options))
    errors = [reply.err.payload.to_string() for reply in replies if reply.err is not None]
    assert not errors
    return [reply.ok for reply in replies if reply.ok is not None]


def values(session: Session, selector: str) -> list[tuple[str, str]]:
    """Keys and payloads of what a get brings; a deletion has None of them."""
    return [
        (str(sample.key_expr), sample.payload.to_string() if sample.kind is elea.SampleKind.PUT else "-")
        for sample in samples(session, selector)
    ]


def failure(session: Session, selector: str, **options: Any) -> dict[str, Any]:
    """The one error that a get brings."""
    (reply,) = session.get(selector, consolidation=NONE, timeout=WAIT, **options)
    assert reply.err is not None
    form = json.loads(reply.err.payload.to_string())
    assert isinstance(form, dict)
    return form


def told(session: Session, selector: str, **options: Any) -> dict[str, Any]:
    """The one JSON object that a get brings."""
    (sample,) = samples(session, selector, **options)
    assert str(sample.encoding) == "application/json"
    form = json.loads(sample.payload.to_string())
    assert isinstance(form, dict)
    return form


def table(session: Session, selector: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows of a range read, and what it says at its end."""
    *pieces, last = samples(session, selector)
    data = b"".join(piece.payload.to_bytes() for piece in pieces)
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all().drop_columns("arrival").to_pylist(), json.loads(last.payload.to_string())


def batch(rows: list[tuple[str, bytes]], **columns: Any) -> bytes:
    """Rows as a batch request has them."""
    made = pa.record_batch({"key": [key for key, _ in rows], "payload": [value for _, value in rows], **columns})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as stream:
        stream.write_batch(made)
    return bytes(sink.getvalue().to_pybytes())
