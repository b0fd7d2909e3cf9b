"""What a storage tells of itself: `@store/info` and the admin space."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elea.node.storage.storage import Storage

__all__ = ["facts_of"]


def facts_of(storage: Storage) -> dict[str, object]:
    """State, positions and counters, as they are now."""
    log, settings = storage.log, storage.settings
    return {
        "name": storage.name,
        "key_expr": storage.key_expr,
        "strip_prefix": settings.strip_prefix or None,
        "durability": settings.durability,
        "complete": settings.complete,
        "sync": None if settings.directory is None else "relaxed" if settings.relaxed else "durable",
        "directory": settings.directory,
        "state": log.state.value,
        "epoch": log.epoch,
        "first": log.first,
        "end": log.end,
        "keys": log.keys,
        "bytes": sum(size for _, _, size, _ in log.shelf.sizes()),
        "kept": storage.kept,
        "acknowledged": storage.acknowledged,
        "not_kept": dict(storage.not_kept),
        "restamped": storage.restamped,
        "refused": storage.refused,
        "aligned": storage.aligned,
        "alignment": [one.facts() for one in storage.alignments],
        "updates": {"remembered": len(storage.wild), "forgotten": storage.wild.forgotten},
        "commits": storage.groups,
        "syncs": log.syncs,
        "cursors": log.cursors(),
        "damage": [str(damage) for damage in log.damage],
        "retention": {
            "max_age": settings.max_age,
            "max_bytes": settings.max_bytes,
            "max_samples": settings.max_samples,
            "past_cursors": settings.past_cursors,
        },
    }
