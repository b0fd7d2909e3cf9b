"""What a get brings, as rows: the current values of keys, at any router, or those of an earlier time at a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from elea.model.errors import EleaError, InvalidSelector, StoreClosing, StoreError
from elea.model.qos import ConsolidationMode, QueryTarget
from elea.model.timerange import TimeExpr
from elea.spark.brokers import Brokers
from elea.spark.options import Access, ReadOptions
from elea.spark.rows import Rows
from elea.spark.sessions import session_of, silent, where

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ask", "refused", "selectors_of"]

ROWS: Final = 8192
"""Rows of a batch; each is a reply, which is a Python object here."""


def selectors_of(options: ReadOptions) -> list[str]:
    """The gets that options ask for; answers to several may have samples in common only if their keys have."""
    if options.selector is not None:
        return [options.selector]
    if options.as_of is None:
        return list(options.key_exprs)
    return [f"{one}?_as_of={TimeExpr(options.as_of)}" for one in options.key_exprs]


def ask(selector: str, options: ReadOptions, rows: Rows) -> Iterator[pa.RecordBatch]:
    """The samples that are answered.

    Raises:
        StoreError: somebody answers with an error.
        BrokerAway: a broker is away, or does not stay until it has answered.
    """
    brokers = Brokers(options, session_of(options))
    if "_history" not in selector:
        # All of it is here before the first sample is given: it can be asked for again.
        samples: Iterable[Any] = brokers.ask(lambda: list(_samples(selector, options, ConsolidationMode.LATEST)))
    else:
        samples = _history(selector, options, brokers)
    if options.kind is not None:
        samples = (sample for sample in samples if sample.kind.name == options.kind.upper())
    given = iter(samples)
    while chunk := list(islice(given, ROWS)):
        yield rows.rows_of(_columns(chunk))


def _samples(selector: str, options: ReadOptions, mode: ConsolidationMode) -> Iterator[Any]:
    timeout = options.request_timeout_ms / 1000
    replies = session_of(options).get(
        selector,
        target=QueryTarget.BEST_MATCHING,
        consolidation=mode,
        timeout=timeout,
        where=options.predicate,
    )
    for reply in replies:
        if reply.ok is None:
            raise refused(selector, reply, options)
        yield reply.ok


def _history(selector: str, options: ReadOptions, brokers: Brokers) -> Iterator[Any]:
    """Samples as they come, which may be many: what has been given cannot be taken back."""
    links = brokers.links()
    yield from _samples(selector, options, ConsolidationMode.NONE)
    if not brokers.stand(links):
        brokers.give_up()


def refused(selector: str, reply: Any, access: Access) -> EleaError:
    """What to raise if a get is answered with an error."""
    payload = reply.err.payload.to_bytes()
    text = payload[:500].decode("utf-8", "replace")
    if '"InvalidSelector"' in text:
        return InvalidSelector(selector, text)
    if '"StoreClosing"' in text:
        return StoreClosing()
    if payload == b"Timeout":  # said in place of a node that says nothing (zenoh-1 §14.1)
        return silent(access)
    return StoreError(f"a get of {selector} at {where(access)} is answered with an error: {text}")


def _columns(samples: list[Any]) -> pa.RecordBatch:
    """Samples in the columns of a log; positions mean nothing here."""
    from time import time_ns

    import pyarrow as pa

    from elea.store.columns import SCHEMA

    now = time_ns()
    made = []
    for sample in samples:
        stamp, source = sample.timestamp, sample.source_info
        wire = sample.encoding
        made.append(
            (
                0,
                str(sample.key_expr),
                sample.payload.to_bytes(),
                0 if stamp is None else stamp.value.ntp64,
                b"" if stamp is None else stamp.value.id.data,
                now,
                int(sample.kind.value),
                wire.id,
                wire.schema,
                None if sample.attachment is None else sample.attachment.to_bytes(),
                None if source is None else source.source_id.zid.data,
                None if source is None else source.source_id.eid,
                None if source is None else source.source_sn,
                False,
                int(sample.priority) | (8 if sample.congestion_control.name == "BLOCK" else 0) | 16 * sample.express,
            )
        )
    columns = zip(*made, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(list(column), field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )
