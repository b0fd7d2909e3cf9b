"""The counters of storages on the broker's metrics page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from elea.store import State

if TYPE_CHECKING:
    from elea.node.openmetrics import OpenMetrics
    from elea.node.storage.storage import Storage

__all__ = ["meter"]

_COUNTERS: Final = {
    "kept_samples": "Samples stored since the start.",
    "acknowledged_samples": "Samples acknowledged since the start.",
    "commits": "Groups of samples committed since the start.",
    "refused_batches": "Batches of samples refused because their Arrow stream is not what it has to be.",
    "syncs": "Syncs of samples to the disk since the start.",
    "restamped_samples": "Samples whose timestamp was too far ahead and was replaced.",
    "forgotten_updates": "Updates of many keys that gave way to newer ones.",
}
_GAUGES: Final = {
    "first_position": "The position of the oldest sample.",
    "end_position": "The position behind the newest sample.",
    "bytes": "Octets of segments.",
    "damaged": "Damaged places that are known.",
    "cursors": "Cursors.",
}


def _counts(storage: Storage) -> dict[str, int]:
    """The values of the counters and gauges."""
    log = storage.log
    return {
        "kept_samples": storage.kept,
        "acknowledged_samples": storage.acknowledged,
        "commits": storage.groups,
        "refused_batches": storage.refused,
        "syncs": log.syncs,
        "restamped_samples": storage.restamped,
        "forgotten_updates": storage.wild.forgotten,
        "first_position": log.first,
        "end_position": log.end,
        "bytes": sum(size for _, _, size, _ in log.shelf.sizes()),
        "damaged": len(log.damage),
        "cursors": len(log.cursors()),
    }


def meter(text: OpenMetrics, storages: Sequence[Storage], answering: int) -> None:
    """Add the counters of storages."""
    counts = {storage.name: _counts(storage) for storage in storages}
    for name, help in _COUNTERS.items():
        text.family(f"elea_store_{name}", "counter", help)
        for storage, values in counts.items():
            text.sample(f"elea_store_{name}_total", values[name], storage=storage)
    text.family("elea_store_not_kept_samples", "counter", "Samples that were not stored, by reason.")
    for one in storages:
        for reason, count in sorted(one.not_kept.items()):
            text.sample("elea_store_not_kept_samples_total", count, storage=one.name, reason=reason)
    for name, help in _GAUGES.items():
        text.family(f"elea_store_{name}", "gauge", help)
        for storage, values in counts.items():
            text.sample(f"elea_store_{name}", values[name], storage=storage)
    text.family("elea_store_state", "gauge", "1 for the state a storage is in.")
    for one in storages:
        for state in State:
            text.sample("elea_store_state", int(one.log.state is state), storage=one.name, state=state.value)
    text.family("elea_store_queries", "gauge", "Queries to storages that are being answered.")
    text.sample("elea_store_queries", answering)
